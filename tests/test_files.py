"""Files of your own: what is read is what was written, and what cannot be read is one sentence that says where."""

import bz2
import gzip
import io
import lzma
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import amble
from amble import AmbleError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1, 1e6, 1e-9]
Y = RNG.normal(size=40)
PACKERS = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress, ".gz": gzip.compress}
HOUSES = "rooms,town,price\n3,Ulm,1.5\n2,Bonn,0.5\n4,Ulm,2.5\n"


@pytest.fixture
def write(tmp_path):
    """A file of that name and content, and its path."""

    def make(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


def frame(**more):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], **more})


# What is read is what was written


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize(("kind", "delimiter"), [(".csv", ","), (".tsv", "\t")])
@pytest.mark.parametrize("header", [True, False])
def test_numbers_from_csv_are_those_that_pandas_wrote(packing, kind, delimiter, header, write):
    text = frame(y=Y).to_csv(sep=delimiter, header=header, index=False)
    data = amble.read_file(write(f"rows{kind}{packing}", PACKERS[packing](text.encode())))
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, Y)
    names = (*"abc", "y") if header else (*"012", "3")
    assert (data.name, data.task, data.columns, data.target) == ("rows", "regression", names[:3], names[3])


@pytest.mark.parametrize(("target", "index"), [("b", 1), (1, 1), (-3, 1), ("-3", 1), (None, 3), (0, 0), ("y", 3)])
def test_the_target_by_name_or_number(target, index, write):
    path = write("rows.csv", frame(y=Y).to_csv(index=False))
    data = amble.read_file(path, target=target)
    everything = np.column_stack([X, Y])
    assert np.array_equal(data.y, everything[:, index])
    assert np.array_equal(data.X, np.delete(everything, index, axis=1))
    assert data.target == "abcy"[index]


def test_text_beside_numbers_is_read_like_pandas_reads_it(write):
    """Quotes, commas and line breaks within cells, spaces around them, a mark at the start, lines that are empty."""
    text = '\ufeffa, b ,"name, full",y\r\n1, 2.5 ,"Ulm, ""old""",up\r\n\r\n-3e2,.5,"two\nlines",down\r\n7,8,x,up\r\n'
    path = write("rows.csv", text)
    data = amble.read_file(path, categorical="one-hot")
    theirs = pd.read_csv(path, skipinitialspace=True)
    assert data.y.tolist() == theirs["y"].tolist()
    assert np.array_equal(data.X[:, :2], theirs.iloc[:, :2].to_numpy())
    assert data.columns == ("a", "b", 'name, full=Ulm, "old"', "name, full=two\nlines", "name, full=x")
    assert np.array_equal(data.X[:, 2:], np.eye(3))


def test_one_hot_columns_are_those_of_pandas(write):
    colours = RNG.choice(["red", "green", "blue"], 40)
    table = frame(colour=colours, y=Y)
    data = amble.read_file(write("rows.csv", table.to_csv(index=False)), categorical="one-hot")
    theirs = pd.get_dummies(table.drop(columns="y"), prefix_sep="=", dtype=float)
    assert list(data.columns) == list(theirs.columns)
    assert np.array_equal(data.X, theirs.to_numpy())


@pytest.mark.parametrize(
    ("cells", "task", "expected"),
    [
        (["up", "down"], None, "classification"),
        (["0", "1"], None, "classification"),
        (["-1.0", "1.0"], None, "classification"),
        (["0.5", "1"], None, "regression"),
        (list(map(str, range(20))), None, "classification"),
        (list(map(str, range(21))), None, "regression"),
        (["0", "1"], "regression", "regression"),
        (["0.5", "1"], "classification", "classification"),
    ],
)
def test_the_task_is_guessed_from_the_targets_unless_it_is_said(cells, task, expected, write):
    text = "a,y\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells * 2))
    data = amble.read_file(write("rows.csv", text), task=task)
    assert data.task == expected
    whole = expected == "classification" and "0.5" not in cells
    kind = "U" if "up" in cells else "i" if whole else "f"
    assert data.y.dtype.kind == kind


def test_npz_with_and_without_test_rows(write):
    held = io.BytesIO()
    np.savez(held, X=X, y=Y)
    data = amble.read_file(write("rows.npz", held.getvalue()))
    assert np.array_equal(data.X, X)
    assert data.X_test is None
    held = io.BytesIO()
    labels = np.where(Y > 0, "up", "down")
    np.savez_compressed(held, X=X[:30], y=labels[:30], X_test=X[30:], y_test=labels[30:])
    data = amble.read_file(write("more.npz", held.getvalue()))
    assert data.task == "classification"
    assert np.array_equal(data.X_test, X[30:])
    problem = amble.split(data, agents=3)
    assert len(problem.heldout.y) == 10


def test_parquet_as_pandas_writes_it(tmp_path):
    table = frame(
        flag=Y > 0, count=np.arange(40), colour=pd.Categorical(["red", "blue"] * 20), y=np.where(Y > 0, "up", "down")
    )
    table.index += 5  # an index that pandas keeps in the file
    table.to_parquet(tmp_path / "rows.parquet")
    data = amble.read_file(tmp_path / "rows.parquet", categorical="one-hot")
    assert data.columns == ("a", "b", "c", "flag", "count", "colour=blue", "colour=red")
    expected = np.column_stack([X, Y > 0, np.arange(40), np.tile([0, 1], 20), np.tile([1, 0], 20)])
    assert np.array_equal(data.X, expected)
    assert data.y.tolist() == table["y"].tolist()


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1))
def test_numbers_in_csv_are_read_to_the_last_bit(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_text("".join(",".join(map(repr, row)) + "\n" for row in numbers))
    data = amble.read_file(path, task="regression")
    assert np.array_equal(np.column_stack([data.X, data.y]), numbers)


# Encoded as another file was


def test_another_file_is_encoded_the_same_way_whatever_its_order(write):
    first = amble.read_file(write("a.csv", HOUSES), categorical="one-hot")
    assert first.columns == ("rooms", "town=Bonn", "town=Ulm")
    other = write("b.csv", "town,price,rooms\nUlm,9.5,7\n")
    again = amble.read_file(other, columns=first.columns, target="price")
    assert again.columns == first.columns
    assert again.X.tolist() == [[7, 0, 1]]


def test_categories_that_look_like_numbers_stay_categories(write):
    first = amble.read_file(write("a.csv", "zone,y\n1,0.5\nA,1\n1.0,3\n"), categorical="one-hot")
    assert first.columns == ("zone=1", "zone=1.0", "zone=A")
    again = amble.read_file(write("b.csv", "zone,y\n1.0,0.5\n1,0.5\n"), columns=first.columns, task="regression")
    assert again.X.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "rooms,town,price\n3,Kiel,1.5\n",
            "line 2, column town holds 'Kiel', a category that the columns given have not",
        ),
        ("rooms,price\n3,1.5\n", "has no column town, which the columns given have"),
        ("rooms,town,age,price\n3,Ulm,4,1.5\n", "has a column age, which the columns given have not; drop it"),
        ("rooms,town,price\nmany,Ulm,1.5\n", "line 2, column rooms holds 'many', which is not a number"),
    ],
)
def test_a_file_that_cannot_be_encoded_the_same_way(text, sentence, write):
    columns = amble.read_file(write("a.csv", HOUSES), categorical="one-hot").columns
    with refused(sentence):
        amble.read_file(write("b.csv", text), columns=columns, task="regression")


# What cannot be read


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a.csv", "", {}, "a.csv is empty"),
        ("a.csv", "\n\n", {}, "a.csv is empty"),
        ("a.csv", "a,b,y\n", {}, "a row of names but no rows below"),
        ("a.csv", "a\n1\n2\n", {}, "has only one column, a, and a target needs others"),
        ("a.csv", "a;y\n1;2\n", {}, "has only one column, a;y, .*commas"),
        ("a.csv", HOUSES, {}, r"line 2, column town holds 'Ulm', which is not a number; .*categorical='one-hot'"),
        ("a.csv", "a,y\n1,2\n2,3\nx,4\n", {}, "line 4, column a holds 'x', which is not a number"),
        ("a.csv", "a,y\n1,2\n1_0,3\n", {}, "line 3, column a holds '1_0', which is not a number"),
        ("a.csv", "1,2\n\n3,4\nx,5\n", {}, "line 4, column 0 holds 'x'"),
        ("a.csv", 'a,"b\nc",y\n1,"2\n",3\n1,z,3\n', {}, "line 5, column b c holds 'z'"),
        ("a.csv", "a,b,y\n1,,2\n", {}, r"line 2, column b is empty \(1 such in that column\); fill"),
        ("a.csv", "a,b,y\n1,2,3\n1,nan,3\n1,NaN,3\n", {}, r"line 3, column b is nan \(2 such"),
        ("a.csv", "a,b,y\n1,2,3\n1,inf,3\n", {}, "line 3, column b is inf"),
        ("a.csv", "a,b,y\n1,2,\n1,2,3\n", {}, "line 2, column y is empty"),
        ("a.csv", "town,y\nUlm,2\n,2\n", {"categorical": "one-hot"}, "line 3, column town is empty"),
        ("a.csv", "a,b,y\n1,2,3\n1,2\n", {}, "line 3 has 2 cells and the first row 3"),
        ("a.csv", "a,b,y\n1,2,3\n1,2,3,4\n", {}, "line 3 has 4 cells and the first row 3"),
        ("a.csv", 'a,y\n1,"2\n', {}, "is not a row of cells"),
        ("a.csv", "a,a,y\n1,2,3\n", {}, "two columns named 'a'"),
        ("a.csv", ",a,y\n0,2,3\n", {}, r"column 0 of .* has no name \(is it a row index\?\)"),
        ("a.csv", "5.1,3.5,setosa\n4,3,setosa\n", {}, r"both text \('setosa'\) and numbers \('5.1'\); say header=True"),
        ("a.csv", HOUSES, {"target": "prize"}, "no column of .*a.csv named 'prize'; did you mean 'price'"),
        ("a.csv", HOUSES, {"target": "xyz"}, "choose one of price, rooms, town"),
        ("a.csv", HOUSES, {"target": 3}, "target=3 was given and .* has 3 columns; give a name, a number from 0 to 2"),
        ("a.csv", HOUSES, {"target": -4}, "target=-4 was given"),
        (
            "a.csv",
            HOUSES,
            {"target": "town", "task": "regression"},
            "line 2, column town holds 'Ulm'.* regression needs",
        ),
        ("a.csv", HOUSES, {"task": "regresion"}, "no task named 'regresion'; did you mean 'regression'"),
        ("a.csv", HOUSES, {"categorical": "onehot"}, "named 'onehot'; did you mean 'one-hot'"),
        ("a.csv", b"a,y\n1,2\n\xff,3\n", {}, "a.csv, line 3 is not UTF-8 text"),
        ("a.csv.bz2", bz2.compress(HOUSES.encode())[:-9], {}, "a.csv.bz2 is cut short or damaged"),
        ("a.csv.gz", gzip.compress(HOUSES.encode(), mtime=0)[:-9], {}, "a.csv.gz is cut short or damaged"),
        ("a.csv.xz", b"rooms", {}, "a.csv.xz is cut short or damaged"),
        ("a.npz", b"PK\x03\x04", {}, "a.npz is not a whole .npz file"),
        ("a.npz", HOUSES, {}, "a.npz is not a whole .npz file"),
        ("a.parquet", HOUSES, {}, "a.parquet is not a whole Parquet file"),
        ("a", "1 1:2\n", {"target": 1}, "says itself what the target is; leave it out"),
        ("a", "1 1:2\n", {"header": True}, "it is for .csv and .tsv files"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_that_says_where(name, content, options, sentence, write):
    with refused(sentence):
        amble.read_file(write(name, content), **options)


def test_there_is_no_such_file(tmp_path):
    with refused("there is no file .*nothere.csv; give the path of one"):
        amble.read_file(tmp_path / "nothere.csv")
    with refused("there is no file"):
        amble.read_file(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": X}, r"has no array y \(its arrays: X\); write it with numpy.savez"),
        ({"rows": X, "y": Y}, r"has no array X \(its arrays: rows, y\)"),
        ({"X": X, "y": Y, "X_test": X}, "has no array y_test"),
        ({"X": X[0], "y": Y}, r"X has shape \(3,\)"),
        ({"X": X, "y": Y[:-1]}, r"X has shape \(40, 3\) of float64 and y \(39,\)"),
        ({"X": X.astype(str), "y": Y}, "of <U32"),
        ({"X": X, "y": np.where(Y > 0, np.nan, Y)}, "y holds values that are not finite"),
        ({"X": X, "y": np.array([{"a": 1}] * 40, dtype=object)}, "not a whole .npz file of plain arrays"),
    ],
)
def test_arrays_that_are_not_rows_and_targets(arrays, sentence, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with refused(sentence):
        amble.read_file(tmp_path / "a.npz")


def test_parquet_gaps_and_kinds_that_are_no_numbers(tmp_path):
    path = tmp_path / "a.parquet"
    for column, sentence in (
        (pd.array([1, None, 3], "Int64"), "row 2, column a is nan"),
        (pd.array(["x", None, "y"], "string"), "row 2, column a is empty"),
        (pd.date_range("2020-01-01", periods=3), "column a holds timestamp"),
        (pd.array(["x", "y", "y"], "string"), "row 1, column a holds 'x', which is not a number"),
    ):
        pd.DataFrame({"a": column, "y": [0.5, 1.5, 2.5]}).to_parquet(path)
        with refused(sentence):
            amble.read_file(path)
    path.write_bytes(path.read_bytes()[:-20])
    with refused("not a whole Parquet file"):
        amble.read_file(path)


def test_parquet_without_pyarrow_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(r"this needs amble\[parquet\], which is not installed: pip install 'amble\[parquet\]'"):
        amble.read_file(write("a.parquet", "PAR1"))


def test_a_column_of_many_texts_is_no_category(write):
    text = "a,y\n" + "".join(f"name{k},{k / 2}\n" for k in range(300))
    with refused("line 2, column a holds 'name0'.*256 categories are allowed, and it has 300"):
        amble.read_file(write("a.csv", text), categorical="one-hot")


def test_names_that_would_clash_when_encoded(write):
    with refused("two columns the name 'a=x' when encoded; rename one"):
        amble.read_file(write("a.csv", "a,a=x,y\nx,1,0.5\ny,2,1.5\n"), categorical="one-hot")


def test_an_error_of_a_wide_table_names_only_near_columns(write):
    names = [f"pixel{k}" for k in range(500)]
    path = write("a.csv", ",".join(names) + "\n" + ",".join("1" * 500) + "\n")
    with refused("did you mean 'pixel4") as caught:
        amble.read_file(path, target="pixle42")
    assert len(str(caught.value)) < 400


def test_the_page_on_data_shows_what_happens(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parent.parent / "docs" / "data.md").read_text()
    monkeypatch.chdir(tmp_path)
    for name, content in re.findall(r"<!-- file: (.*?) -->\n```csv\n(.*?)```", page, re.S):
        (tmp_path / name).write_text(content)
    code = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile("\n".join(code), "data.md", "exec"), {})
    assert capsys.readouterr().out == "".join(re.findall(r"```text\n(.*?)```", page, re.S))
    assert (tmp_path / "partition.png").is_file()


def test_text_among_the_numbers_of_a_target_or_of_a_column_is_named(tmp_path):
    """One slip does not turn amounts into labels or categories."""
    lines = ["size,price", *(f"{k}.5,{2 * k}.25" for k in range(40))]
    file = tmp_path / "x.csv"
    file.write_text("\n".join([*lines[:30], "7.5,oops", *lines[30:]]) + "\n")
    with pytest.raises(AmbleError, match=r"line 31, column price.*'oops'.*most of the column is numbers"):
        amble.read_file(file)
    file.write_text("\n".join([*lines[:30], "NA,7.5", *lines[30:]]) + "\n")
    with pytest.raises(AmbleError, match=r"line 31, column size.*'NA'.*most of the column is numbers"):
        amble.read_file(file, categorical="one-hot")
