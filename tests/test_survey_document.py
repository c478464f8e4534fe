"""Documents: what one site says of its table, as numbers, as bytes and in a vector that tokens add up."""

import json
import subprocess
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amble.data.tables import Column, Table
from amble.errors import AmbleError
from amble.survey.document import describe, from_bytes, to_bytes
from amble.survey.regions import documents, size, vector
from amble.survey.summary import LEVELS_MAX, UNPACKED_MAX
from survey_samples import frames, tables_of

FEATURES = ("age", "income", "same", "town", "bmi")


def of(held, **options):
    """A document of columns of numbers or text; the last is the target."""
    made = [
        Column(name, None, np.array(cells, float)) if isinstance(cells[0], int | float) else Column(name, cells, None)
        for name, cells in held.items()
    ]
    return describe(Table("rows.csv", made, None), None, **options)


def summary(document, name):
    return next(each for each in document.all if each.name == name)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_a_document_has_what_pandas_says_of_the_table(tmp_path, gaps):
    data = frames(gaps=gaps)
    for site, table in tables_of(tmp_path, data).items():
        document = describe(table, "cost", weight=None, columns=FEATURES)
        frame = data[site]
        assert document.rows == document.used == document.total == len(frame)
        for name in ("age", "income", "same", "bmi", "cost"):
            found, column = summary(document, name), frame[name]
            assert (found.kind, found.count, found.missing) == ("number", column.count(), column.isna().sum())
            assert (found.min, found.max) == (column.min(), column.max())
            assert found.mean == pytest.approx(column.mean(), rel=1e-14)
            assert np.sqrt(found.M2 / found.count) == pytest.approx(column.std(ddof=0), rel=1e-9, abs=1e-15)
        town = summary(document, "town")
        counts = frame["town"].value_counts().sort_index()
        assert [(level, cells) for level, cells, _ in town.levels] == list(counts.items())
        assert town.missing == frame["town"].isna().sum()
        assert summary(document, "age").whole
        assert not summary(document, "bmi").whole


def test_moments_far_from_zero_are_those_of_the_noise():
    noise = np.random.default_rng(0).normal(size=5000)
    found = summary(of({"x": (1e9 + noise).tolist(), "y": [0, 1] * 2500}), "x")
    exact = (1e9 + noise) - 1e9  # what float64 keeps of the noise, exactly
    assert pytest.approx(((exact - exact.mean()) ** 2).sum(), rel=1e-12) == found.M2


@pytest.mark.parametrize("text", ["", "NA", "nan", "NaN", "null", "n/a"])
def test_an_empty_cell_is_missing_and_the_others_stay_numbers(text):
    document = of({"x": ["1", text, "3"], "town": ["Ulm", "Bonn", text], "y": [1.5, 2.5, 3.5]})
    x, town = summary(document, "x"), summary(document, "town")
    assert (x.kind, x.count, x.missing, x.mean) == ("number", 2, 1, 2.0)
    assert (town.kind, town.count, town.missing) == ("text", 2, 1)


def test_which_rows_are_used_depends_on_the_policy():
    columns = {"x": ["1", "", "3", "5"], "z": [1.0, 2.0, 3.0, 9.0], "y": ["1.5", "2.5", "", "0.5"]}
    used = {missing: of(columns, missing=missing) for missing in ("refuse", "mean", "drop")}
    assert [each.used for each in used.values()] == [4, 3, 2]
    assert [summary(each, "z").mean for each in used.values()] == [15 / 4, 4.0, 5.0]
    assert [summary(each, "x").mean for each in used.values()] == [3.0, 3.0, 3.0]
    assert {summary(each, "x").missing for each in used.values()} == {1}


def test_labels_are_text_or_few_whole_numbers_or_what_the_task_says():
    x = [float(k) for k in range(42)]
    assert of({"x": x, "y": [0, 1] * 21}).target.distinct == 2
    assert of({"x": x, "y": [0, 1] * 21}, task="regression").target.levels is None
    assert of({"x": x, "y": list(range(42))}).target.levels is None
    assert of({"x": x, "y": list(range(42))}, task="classification").target.distinct == 42
    assert of({"x": x, "y": [0.5, 1.5] * 21}, task="classification").target.levels[0].level == 0.5
    assert of({"x": x, "y": ["no", "yes"] * 21}).target.levels[1] == ("yes", 21, 21.0)


def test_of_a_column_with_too_many_texts_only_their_number_is_said():
    texts = [f"name {k}" for k in range(LEVELS_MAX + 1)]
    found = summary(of({"name": texts, "y": [0.5] * len(texts)}), "name")
    assert (found.distinct, found.levels) == (LEVELS_MAX + 1, None)


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"x": [1.0, np.inf], "y": [1, 2]}, {}, "rows.csv, row 2, column x is inf; numbers go up to 1e.100"),
        ({"x": ["1", "b\x00"], "y": [1, 2]}, {}, "row 2, column x holds 'b.x00'; a text has at most 200 characters"),
        ({"x": [1, 2], "w": [1, -2], "y": [1, 2]}, {"weight": "w"}, "row 2, column w is -2; the weight must be zero"),
        ({"x": [1, 2], "w": [1, 0], "y": [1, 2]}, {"exposure": "w"}, "w is 0; the exposure must be above zero"),
        ({"x": [1, 2], "w": [1, 2], "y": [1, 2]}, {"event": "w"}, "w is 2; the event must be 0 .censored. or 1"),
        ({"x": [1, 2], "w": [1, 200], "y": [1, 2]}, {"offset": "w"}, "w is 200; the offset must be from -100 to 100"),
        ({"x": [1, 2], "w": ["1", "two"], "y": [1, 2]}, {"weight": "w"}, "w is 'two'; the weight must be a number"),
        (
            {"x": [1, 2], "w": [1, 2], "y": [1, 2]},
            {"exposure": "w", "weight": "w"},
            "column 'w' of rows.csv is both exposure and weight",
        ),
        ({"x": [1, 2], "y": [1, 2]}, {"columns": ["y"]}, "column 'y' of rows.csv is the target"),
        (
            {"x": ["a", "b"], "y": [1, 2]},
            {"columns": ["x=a"]},
            "no column 'x=a'; name 'x': the survey finds its levels",
        ),
        ({"x": [1, 2], "y": [1, 2]}, {"columns": ["z"]}, "no column of rows.csv named 'z'"),
        ({"x": [1, 2], "y": [1, 2]}, {"columns": ["x", "x"]}, "name one twice"),
        ({"y": [1, 2]}, {}, "rows.csv has no column besides y"),
        ({"x": [1, 2], "y": [1, 2]}, {"missing": "median"}, "no way to treat missing cells named 'median'"),
        (
            {"x": [*map(str, range(99)), "o"], "y": [1.5] * 100},
            {},
            "row 100, column x holds 'o', and most of the column",
        ),
    ],
)
def test_what_cannot_be_described_is_refused_in_a_sentence(columns, options, sentence):
    with pytest.raises(AmbleError, match=sentence):
        of(columns, **options)


def test_the_target_is_the_last_column_without_a_role():
    assert of({"x": [1, 2], "y": [1, 2], "w": [1, 3]}, weight="w").target.name == "y"


# --- as bytes --------------------------------------------------------------------------------------------------------

names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8)
numbers = st.floats(-1e100, 1e100) | st.just(float("nan"))
levels = st.sampled_from(["Ulm", "Bonn", "Köln", "", "NA", "a b", "=", '"'])


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 6))
    columns = []
    for name in draw(st.lists(names, min_size=3, max_size=6, unique=True)):
        if draw(st.booleans()):
            columns.append(Column(name, draw(st.lists(levels, min_size=rows, max_size=rows)), None))
        else:
            columns.append(Column(name, None, np.array(draw(st.lists(numbers, min_size=rows, max_size=rows)))))
    weight = np.array(draw(st.lists(st.floats(0, 1e15, allow_subnormal=False), min_size=rows, max_size=rows)))
    return Table("rows.csv", [Column("the weight", None, weight), *columns], None)


@settings(deadline=None)
@given(tables(), st.sampled_from(["refuse", "mean", "drop"]), st.booleans())
def test_a_document_comes_back_from_its_bytes(table, missing, weighed):
    document = describe(table, -1, weight="the weight" if weighed else None, missing=missing)
    data = to_bytes(document)
    assert from_bytes(data, "north") == document
    assert to_bytes(from_bytes(data, "north")) == data


def sample():
    return to_bytes(of({"x": [1.0, 2.5], "town": ["Ulm", "Bonn"], "w": [1.0, 2.0], "y": [0, 1]}, weight="w"))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_are_refused_in_a_sentence(data):
    for each in (data, zlib.compress(data)):
        with pytest.raises(AmbleError, match="the description of its table that north sent is not valid"):
            from_bytes(each, "north")


@settings(deadline=None)
@given(st.data())
def test_changed_bytes_are_refused_or_a_valid_document(data):
    """A byte changed in the packed form or in the text below it."""
    packed = sample()
    text = bytearray(zlib.decompress(packed))
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytearray(packed)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    for each in (zlib.compress(bytes(text)), bytes(damaged)):
        try:
            document = from_bytes(each, "north")
        except AmbleError:
            continue
        assert from_bytes(to_bytes(document), "north") == document


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_changed_fields_are_refused_or_a_valid_document(data):
    """Any value of the document, at any depth, is replaced by something else."""
    fields = json.loads(zlib.decompress(sample()))
    place = fields
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    place[key] = data.draw(junk)
    try:
        document = from_bytes(zlib.compress(json.dumps(fields).encode()), "north")
    except AmbleError:
        return
    assert from_bytes(to_bytes(document), "north") == document


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (zlib.compress(b" " * (UNPACKED_MAX + 1)), "has more than 16,777,216 bytes"),
        (zlib.compress(b"[" * 100_000), "recursion"),
        (sample() + b"more", "is cut off"),
        (sample()[:-1], "is cut off"),
        (zlib.compress(b'{"format":2}'), "is not of format 1"),
        (zlib.compress(b"[" + b"9" * 10_000 + b"]"), "digits"),
    ],
)
def test_bytes_that_unpack_to_too_much_or_too_little_are_refused(data, problem):
    with pytest.raises(AmbleError, match=problem):
        from_bytes(data, "north")


@pytest.mark.parametrize(
    "change",
    [
        {"mean": 3.0}, {"M2": -1.0}, {"M2": 1e9}, {"count": 3}, {"missing": 1}, {"kind": "text"}, {"name": "y"},
        {"name": "\u202e"}, {"weight": 0.0}, {"max": float("inf")}, {"distinct": 1, "levels": (("a", 1, 1.0),)},
    ],
)  # fmt: skip
def test_a_column_whose_numbers_cannot_be_is_refused(change):
    document = from_bytes(sample(), "north")
    wrong = replace(document, columns=(replace(document.columns[0], **change), *document.columns[1:]))
    with pytest.raises((AmbleError, ValueError)):
        from_bytes(to_bytes(wrong), "north")


# --- in a vector -----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 4), st.binary(min_size=1, max_size=40)), st.integers(40, 50), st.randoms())
def test_sums_of_vectors_hold_every_document_whatever_the_order(held, bytes_max, random):
    vectors = [vector(document, index, 5, bytes_max) for index, document in held.items()]
    random.shuffle(vectors)
    total = sum(vectors, np.zeros(size(5, bytes_max)))
    assert documents(total, 5, bytes_max) == held
    for each in vectors:  # and what is counted out leaves nothing behind
        total = total - each
    assert not total.any()


def test_a_document_that_is_too_long_says_what_to_raise():
    with pytest.raises(AmbleError, match=r"takes 9 bytes, .* has room for 8 per agent; raise \[survey\] bytes_max"):
        vector(b"123456789", 0, 2, 8)
    assert documents(vector(b"12345678", 1, 2, 8), 2, 8) == {1: b"12345678"}


@settings(deadline=None)
@given(st.lists(st.floats() | st.integers(0, 2**49).map(float), min_size=6, max_size=6))
def test_a_vector_of_anything_is_refused_in_a_sentence_or_read(values):
    try:
        found = documents(np.array(values), 2, 12)
    except AmbleError:
        return
    assert all(
        vector(data, k, 2, 12)[3 * k : 3 * k + 3].tolist() == values[3 * k : 3 * k + 3] for k, data in found.items()
    )


def test_a_vector_of_another_survey_and_a_place_that_is_not_there_are_refused():
    with pytest.raises(AmbleError, match="give all agents the same settings"):
        documents(np.zeros(7), 2, 12)
    with pytest.raises(AmbleError, match="agent 2 has no place in a survey of 2"):
        vector(b"1", 2, 2, 12)
    with pytest.raises(AmbleError, match="region 0"):
        documents(2 * vector(b"123456789abc", 0, 2, 12), 2, 12)


def test_an_agent_needs_numpy_alone():
    heavy = ["scipy", "pandas", "msgspec", "jax", "sklearn", "networkx"]
    modules = "import amble.survey.agreement, amble.survey.regions, amble.survey.table_one"
    question = f"import sys; {modules}; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.strip() == "[]"
