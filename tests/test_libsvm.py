"""LIBSVM text: our parser against scikit-learn's, its two ways against each other, and what it refuses."""

import bz2
import io
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import amble
from amble import AmbleError
from amble.data import libsvm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1, 1e6, 1e-9]
Y = RNG.normal(size=40)
PACKERS = {".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def write(tmp_path):
    """A file of that name and content, and its path."""

    def make(name, content):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return make


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


@pytest.mark.parametrize("name", ["rows", "rows.libsvm", "rows.svm", "rows.txt", "rows.t", "rows.svm.bz2", "rows.xz"])
def test_libsvm_text_as_scikit_learn_writes_it(name, tmp_path):
    sparse = np.where(RNG.random(X.shape) < 0.5, X, 0.0)
    sparse[0] = X[0]
    held = io.BytesIO()
    dump_svmlight_file(sparse, Y, held, zero_based=False)
    path = tmp_path / name
    path.write_bytes(PACKERS.get(path.suffix, bytes)(held.getvalue()))
    data = amble.read_file(path)
    theirs, their_y = load_svmlight_file(io.BytesIO(held.getvalue()), zero_based=False)
    assert np.array_equal(data.X, theirs.toarray())
    assert np.array_equal(data.y, their_y)
    assert data.columns == ("1", "2", "3")


rows = st.lists(
    st.tuples(
        st.floats(-1e30, 1e30),
        st.dictionaries(st.integers(1, 9), st.floats(-1e30, 1e30) | st.integers(-9, 9), max_size=5),
    ),
    min_size=1,
    max_size=8,
)


@given(rows, st.sampled_from([" ", "  ", "\t"]), st.sampled_from(["\n", "\r\n", " \n", "\n\n"]))
def test_any_libsvm_text_is_read_both_ways_alike(given_rows, space, end):
    """The quick way, where it takes the text, and the way row by row give the numbers that were written."""
    lines = [space.join([repr(y), *(f"{k}:{v!r}" for k, v in sorted(pairs.items()))]) for y, pairs in given_rows]
    content = (end.join(lines) + end).encode()
    expected = np.zeros((len(given_rows), 9))
    for k, (_, pairs) in enumerate(given_rows):
        for index, value in pairs.items():
            expected[k, index - 1] = value
    found, y = libsvm.parse(content, "text", 9)
    assert np.array_equal(found, expected)
    assert y.tolist() == [y for y, _ in given_rows]
    quick, slow = libsvm._quick(content), libsvm._by_row(content, "text")
    assert quick is not None
    assert all(np.array_equal(one, other) for one, other in zip(quick, slow, strict=True))


@settings(max_examples=300)
@given(st.text("0123456789.:-+e #\n\tnaif_x", max_size=30))
def test_the_quick_way_takes_nothing_that_the_slow_way_refuses(text):
    quick = libsvm._quick(text.encode())
    if quick is not None:
        slow = libsvm._by_row(text.encode(), "text")
        assert all(np.array_equal(one, other) for one, other in zip(quick, slow, strict=True))


def test_libsvm_text_of_the_width_of_another(write):
    first = amble.read_file(write("train", "1.5 1:1 4:1\n2 2:5\n"))
    assert amble.read_file(write("test", "0.5 2:1\n"), columns=first.columns).X.tolist() == [[0, 1, 0, 0]]
    with refused(r"wide has index 5 \(the first too high is in its row 2\), and 4 columns are expected"):
        amble.read_file(write("wide", "1.5 1:1\n2 5:5\n"), columns=first.columns)


def test_comments_and_leading_spaces_in_libsvm_text(write):
    data = amble.read_file(write("a", "# a comment\n 1.5 1:2 # more\n-1 2:3\n"))
    assert data.X.tolist() == [[2, 0], [0, 3]]
    assert data.y.tolist() == [1.5, -1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "holds no rows of LIBSVM text"),
        ("1\n2\n", "holds no rows of LIBSVM text"),
        ("1 1:2\n1 0:2\n", "a, row 2: index 0 was found; indices are whole numbers from 1 on"),
        ("1 -1:2\n", "a, row 1: index -1 was found"),
        ("1 1.5:2\n", "a, row 1: index 1.5 was found"),
        ("1 1:2\n\n1 2:1 2:1\n", "a, row 3: index 2 comes after 2; each is given once, in rising order"),
        ("1 3:2 2:1\n", "a, row 1: index 2 comes after 3"),
        ("1 3:x\n", "a, row 1: 'x' is in the place of the value of index 3"),
        ("1 3:\n", "a, row 1: '' is in the place of the value of index 3"),
        ("1 3:nan\n", "a, row 1: 'nan' is in the place of the value"),
        ("inf 3:1\n", "a, row 1: 'inf' is in the place of the target"),
        ("1 x:1\n", "a, row 1: 'x' is in the place of an index"),
        ("1 3 4\n", "a, row 1: '3' was found; write index:value"),
        ("1 qid:3 1:2\n", "a, row 1: 'qid' is in the place of an index"),
        ("one 1:2\n", "a, row 1: 'one' is in the place of the target"),
        ("1 2000000000:2\n", "too many for a dense array"),
    ],
)
def test_text_that_is_refused_by_row(content, sentence, write):
    with refused(sentence):
        amble.read_file(write("a", content))
