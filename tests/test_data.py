"""Named data sets: where they are looked for, real downloads from a real server, and what is refused."""

import bz2
import gzip
import hashlib
import lzma
import os
import pty
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.data import cache, download
from amble.data.known import SETS, Known, Part, checksum

FOLDER = Path(os.environ.get("AMBLE_DATA", Path(__file__).parents[2] / "shared" / "data"))
TEXT = b"1.5 1:0.25 3:-2\n-2 2:1e3\n0.5 1:1 2:2 3:3\n"
X = np.array([[0.25, 0, -2], [0, 1e3, 0], [1, 2, 3]])
Y = np.array([1.5, -2, 0.5])
TINY = Known("regression", 3, 3, parts=(Part("tiny", "some/tiny.bz2", 3, 60, checksum(X, Y)),))


class Server:
    """A real web server of a few files; those in `cut` announce more bytes than come."""

    def __init__(self):
        self.files, self.cut, self.asked = {}, set(), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if self.path in outer.cut else content)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever)
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


@pytest.fixture
def tiny(monkeypatch, tmp_path, server):
    """A data set of three rows that only the server has; gives the cache folder."""
    monkeypatch.setitem(SETS, "tiny", TINY)
    monkeypatch.delenv("AMBLE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AMBLE_DATA_URL", server.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server.files["/some/tiny.bz2"] = bz2.compress(TEXT)
    return tmp_path / "cache" / "amble"


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


# --- those that come with scikit-learn ------------------------------------------------------------------------------


EMBEDDED = [name for name, known in SETS.items() if not known.parts]


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_data_are_those_of_scikit_learns_loader_bit_for_bit(name):
    from sklearn import datasets

    theirs, ours = getattr(datasets, f"load_{name}")(), amble.load(name)
    np.testing.assert_array_equal(ours.X, theirs.data, strict=True)
    np.testing.assert_array_equal(ours.y, theirs.target, strict=True)
    assert ours.columns == tuple(theirs.feature_names)


def test_embedded_data_are_read_without_importing_scikit_learn():
    code = "import sys, amble; [amble.load(name) for name in sys.argv[1:]]; print(*sys.modules)"
    command = [sys.executable, "-c", code, *EMBEDDED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"sklearn", "scipy", "pandas"} & set(loaded)


def test_embedded_data_need_scikit_learn_with_its_files(tmp_path, monkeypatch):
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").touch()
    code = "import amble, sys\ntry: amble.load('digits')\nexcept amble.AmbleError as error: sys.exit(str(error))"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert f"scikit-learn has no {tmp_path / 'sklearn' / 'datasets' / 'data' / 'digits.csv.gz'};" in done.stderr
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with refused(r"this needs amble\[sim\], which is not installed"):
        amble.load("digits")


def files_in(folder):
    return sorted(path.name for path in folder.glob("*"))


@pytest.mark.parametrize(("name", "known"), SETS.items())
def test_every_set_is_as_the_table_says(name, known, monkeypatch):
    missing = [part.file for part in known.parts if not (FOLDER / f"{part.file}.bz2").is_file()]
    if missing:
        pytest.skip(f"{missing[0]}.bz2 is not in {FOLDER}")
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    data = amble.load(name)
    assert (data.task, data.X.shape) == (known.task, (known.rows, known.columns))
    assert known.classes == (len(np.unique(data.y)) if data.task == "classification" else 0)
    assert data.columns is None or len(set(data.columns)) == known.columns
    if len(known.parts) == 2:
        assert data.X_test.shape == (known.parts[1].rows, known.columns)
        assert set(np.unique(data.y_test)) == set(np.unique(data.y))


@pytest.mark.parametrize("file", ["cpusmall", "cadata", "ijcnn1.t", "usps.t"])
def test_the_parser_and_scikit_learns_agree(file):
    from sklearn.datasets import load_svmlight_file

    from amble.data import libsvm

    path = FOLDER / f"{file}.bz2"
    if not path.is_file():
        pytest.skip(f"{file}.bz2 is not in {FOLDER}")
    rows, y = libsvm.parse(bz2.decompress(path.read_bytes()), file)
    theirs, their_y = load_svmlight_file(str(path), zero_based=False)
    assert np.array_equal(rows, theirs.toarray())
    assert np.array_equal(y, their_y)


def test_the_checksum_is_of_the_values_and_not_of_their_spelling():
    by_hand = hashlib.sha256(b"3 3" + Y.astype("<f8").tobytes() + X.astype("<f8").tobytes()).hexdigest()
    assert checksum(X, Y) == by_hand
    assert checksum(np.where(X == 0, -0.0, X), Y) == by_hand
    assert checksum(np.asfortranarray(X), Y) == by_hand
    assert checksum(X.reshape(9, 1), Y) != by_hand


def test_a_set_is_downloaded_once_and_then_read_from_the_cache(tiny, server):
    for _ in range(2):
        data = amble.load("tiny")
        assert np.array_equal(data.X, X)
        assert np.array_equal(data.y, Y)
    assert server.asked == ["/some/tiny.bz2"]
    assert files_in(tiny) == ["tiny.bz2"]


@pytest.mark.parametrize(("ending", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress), ("", bytes)])
@pytest.mark.parametrize("place", ["AMBLE_DATA", "cache"])
def test_a_file_that_is_here_is_not_downloaded(ending, pack, place, tiny, server, monkeypatch, tmp_path):
    folder = tiny if place == "cache" else tmp_path / "mine"
    folder.mkdir(parents=True)
    if place == "AMBLE_DATA":
        monkeypatch.setenv("AMBLE_DATA", str(folder))
    (folder / f"tiny{ending}").write_bytes(pack(TEXT.replace(b"1e3", b"1000.00").replace(b"\n", b"\r\n")))
    assert np.array_equal(amble.load("tiny").X, X)
    assert server.asked == []


@pytest.mark.usefixtures("tiny")
def test_amble_data_comes_before_the_cache(monkeypatch, tmp_path):
    amble.load("tiny")
    (tmp_path / "tiny").write_bytes(TEXT[:16])
    monkeypatch.setenv("AMBLE_DATA", str(tmp_path))
    with refused("tiny is not tiny as it was published"):
        amble.load("tiny")


def test_wrong_values_are_one_sentence_with_both_checksums(tiny):
    tiny.mkdir(parents=True)
    (tiny / "tiny").write_bytes(TEXT.replace(b"0.25", b"0.26"))
    found = checksum(np.where(X == 0.25, 0.26, X), Y)[:12]
    with refused(rf"{tiny}/tiny is not tiny .*{found}.*{checksum(X, Y)[:12]}; delete it.*amble data get tiny\.$"):
        amble.load("tiny")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tiny.bz2", bz2.compress(TEXT)[:-10]),
        ("tiny.bz2", b"<html>no such page</html>"),
        ("tiny.xz", lzma.compress(TEXT)[:-20]),
        ("tiny.xz", b""),
        ("tiny", TEXT[:-12]),  # within a number
        ("tiny", TEXT[:-3]),  # within an index:value
        ("tiny", b""),
        ("tiny", b"1 7:1\n"),
    ],
)
def test_half_a_file_is_one_sentence_and_get_mends_it(name, content, tiny, server):
    tiny.mkdir(parents=True)
    (tiny / name).write_bytes(content)
    with refused(rf"^{tiny}/{name}\b.*; delete it, and fetch it again with: amble data get tiny\.$") as caught:
        amble.load("tiny")
    assert "\n" not in str(caught.value)
    whole = server.files.pop("/some/tiny.bz2")
    with refused("404 Not Found.*or get http://.*/some/tiny.bz2 in another way"):
        cache.get("tiny")
    assert files_in(tiny) == [name]  # nothing is lost before there is something better
    server.files["/some/tiny.bz2"] = whole
    assert cache.get("tiny") == [(tiny / "tiny.bz2", True)]
    assert cache.get("tiny") == [(tiny / "tiny.bz2", False)]
    assert files_in(tiny) == ["tiny.bz2"]
    assert np.array_equal(amble.load("tiny").X, X)


@pytest.mark.usefixtures("tiny")
def test_a_damaged_file_in_a_folder_of_yours_is_left_to_you(monkeypatch, tmp_path, server):
    (tmp_path / "tiny").write_bytes(TEXT[:16])
    monkeypatch.setenv("AMBLE_DATA", str(tmp_path))
    with refused("delete it"):
        cache.get("tiny")
    assert server.asked == []
    assert (tmp_path / "tiny").read_bytes() == TEXT[:16]


def test_a_download_of_other_values_is_not_kept(tiny, server):
    server.files["/some/tiny.bz2"] = bz2.compress(TEXT.replace(b"0.25", b"0.26"))
    with refused(rf"^{server.url}/some/tiny.bz2 is not tiny .*; try again, or get .* copy it into {tiny}"):
        amble.load("tiny")
    assert files_in(tiny) == []


def test_a_download_cut_short_is_not_kept(tiny, server):
    size = len(server.files["/some/tiny.bz2"])
    server.cut.add("/some/tiny.bz2")
    with refused(rf"could not be downloaded \({size // 2} of {size} bytes came\); try again"):
        amble.load("tiny")
    assert files_in(tiny) == []


def test_a_download_of_half_a_file_is_not_kept(tiny, server):
    server.files["/some/tiny.bz2"] = bz2.compress(TEXT)[:-10]
    with refused("is cut short or damaged .*; try again"):
        amble.load("tiny")
    assert files_in(tiny) == []


def test_a_page_that_is_not_there(tiny, server):
    server.files.clear()
    with refused(r"could not be downloaded \(the server says 404 Not Found\); try again"):
        amble.load("tiny")
    assert files_in(tiny) == []


def test_a_download_has_a_largest_size(tiny, monkeypatch):
    monkeypatch.setattr(download, "DOWNLOAD_BYTES_MAX", 20)
    with refused(r"bytes long, more than the 20 that are taken"):
        amble.load("tiny")
    assert files_in(tiny) == []


def test_no_network_says_which_file_goes_where(tiny, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("AMBLE_DATA_URL", f"http://127.0.0.1:{port}/")
    with refused(
        rf"http://127.0.0.1:{port}/some/tiny.bz2 could not be downloaded .*refused.*or get .*/some/tiny.bz2 .*"
        rf"into {tiny}, or into the folder that the environment variable AMBLE_DATA names\.$"
    ):
        amble.load("tiny")
    monkeypatch.setenv("AMBLE_DATA_URL", "not an address")
    with refused("not an address/some/tiny.bz2 could not be downloaded"):
        amble.load("tiny")


@pytest.mark.usefixtures("tiny")
def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with refused("nothing can be written to the cache folder .*file/amble .*; set XDG_CACHE_HOME"):
        amble.load("tiny")


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/amble"), ("darwin", "Library/Caches/amble"), ("win32", "AppData/Local/amble/Cache")],
)
def test_the_cache_folder_of_each_system(platform, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.cache_folder() == Path.home() / expected


def run_amble(*words, cwd, **environment):
    kept = {key: value for key, value in os.environ.items() if key not in ("AMBLE_DATA", "COLUMNS")}
    settings = {**kept, "XDG_CACHE_HOME": str(cwd / "cache"), "no_proxy": "127.0.0.1", **environment}
    command = [sys.executable, "-m", "amble", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False, env=settings)


def test_amble_data_lists_the_sets_in_80_columns(tmp_path):
    done = run_amble("data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    for words in (*SETS, "embedded", "not here", "49,990", "91,701", "10 classes", "8.4 MB", str(tmp_path)):
        assert words in done.stdout
    assert not (tmp_path / "cache").exists()


def test_amble_data_get_downloads_lists_and_compares(tmp_path, server):
    if not (FOLDER / "cpusmall.bz2").is_file():
        pytest.skip(f"cpusmall.bz2 is not in {FOLDER}")
    server.files["/regression/cpusmall"] = bz2.decompress((FOLDER / "cpusmall.bz2").read_bytes())
    done = run_amble("data", "get", "cpusmall", "digits", cwd=tmp_path, AMBLE_DATA_URL=server.url)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "cache" / "amble" / "cpusmall"
    assert f"cpusmall was downloaded to {file}\n" in done.stdout
    assert "digits is embedded" in done.stdout
    assert files_in(file.parent) == ["cpusmall"]
    again = run_amble("data", "get", "cpusmall", cwd=tmp_path, AMBLE_DATA_URL=server.url)
    assert again.stdout == f"cpusmall is already here: {file}\n"
    assert server.asked == ["/regression/cpusmall"]
    listed = run_amble("data", cwd=tmp_path).stdout
    assert str(file.parent) in "".join(line[60:].strip() for line in listed.splitlines())
    ran = run_amble("compare", "--data", "cpusmall", "-n", "4", "--hops", "40", "-m", "I-BCD", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_amble_data_get_without_the_file_is_one_sentence(tmp_path, server):
    for words, sentence in (("cadata", "404 Not Found"), ("cadat", "did you mean 'cadata'")):
        done = run_amble("data", "get", words, cwd=tmp_path, AMBLE_DATA_URL=server.url)
        assert done.returncode == 2
        assert done.stderr.startswith("amble: ")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
    assert files_in(tmp_path / "cache" / "amble") == []


@pytest.mark.usefixtures("tiny")
def test_somebody_who_watches_sees_a_bar(tmp_path):
    """On a terminal's standard error, which here is a pseudo-terminal; with bars from the first moment on."""
    ours, theirs = pty.openpty()
    code = (
        "import os; from amble import progress; from amble.data.download import download; progress.QUIET_S = 0.0\n"
        "download(os.environ['AMBLE_DATA_URL'] + '/some/tiny.bz2', 'tiny.bz2')"
    )
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=theirs, env=settings) as child:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # the end, on Linux
            pass
        assert child.wait(60) == 0
    os.close(ours)
    assert b"tiny.bz2" in seen
    assert b"kB/s" in seen


def test_help_has_examples(tmp_path):
    for words, example in ((["data"], "amble data get all"), (["data", "get"], "amble data get cpusmall cadata")):
        assert example in run_amble(*words, "--help", cwd=tmp_path).stdout


def table_files(tmp_path):
    """Three rows as every kind of file that holds a table or arrays, packed or not, by the file's name."""
    import pandas

    frame = pandas.DataFrame({"town": ["Ulm", "Bonn", "Ulm"], "rooms": [3.0, 2.0, 1.5], "price": Y})
    csv = frame.to_csv(index=False).encode()
    frame.to_parquet(tmp_path / "rows.parquet")
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    return {
        "rows.csv": csv,
        "rows.csv.gz": gzip.compress(csv),
        "rows.tsv.xz": lzma.compress(csv.replace(b",", b"\t")),
        "rows.parquet": (tmp_path / "rows.parquet").read_bytes(),
        "rows.npz": (tmp_path / "rows.npz").read_bytes(),
    }


@pytest.mark.parametrize("file", ["rows.csv", "rows.csv.gz", "rows.tsv.xz", "rows.parquet", "rows.npz"])
def test_a_named_set_may_be_a_file_of_any_kind(file, tiny, server, tmp_path, monkeypatch):
    content = table_files(tmp_path)[file]
    server.files[f"/far/{file}"] = content
    (tmp_path / file).write_bytes(content)
    options = {} if file.endswith(".npz") else {"target": "price", "categorical": "one-hot"}
    rows = amble.read_file(tmp_path / file, **options)
    name = file.removesuffix(".gz").removesuffix(".xz")
    part = Part(name, f"{server.url}/far/{file}", 3, len(content), checksum(rows.X, rows.y))
    target = options.get("target")
    monkeypatch.setitem(
        SETS, "rows", Known("regression", 3, rows.X.shape[1], parts=(part,), target=target, one_hot=True)
    )
    monkeypatch.setenv("AMBLE_DATA_URL", "http://127.0.0.1:1/a-mirror-of-the-libsvm-page")
    data = amble.load("rows")
    assert (tiny / file).read_bytes() == content
    assert np.array_equal(data.X, rows.X)
    assert np.array_equal(data.y, Y)
    assert (data.columns, data.target) == (rows.columns, rows.target)
    (tiny / file).write_bytes(content[: len(content) // 2])
    with refused("delete it, and fetch it again with: amble data get rows"):
        amble.load("rows")
    assert [path.name for path, fetched in cache.get("rows") if fetched] == [file]


@pytest.mark.usefixtures("tiny")
def test_a_published_test_part_has_the_training_parts_categories(server, monkeypatch):
    files = {"train.csv": "town,price\nUlm,1.5\nBonn,2\n", "test.csv": "town,price\nBonn,3\n"}
    server.files |= {f"/{file}": text.encode() for file, text in files.items()}
    rows = {"train.csv": ([[0.0, 1.0], [1.0, 0.0]], [1.5, 2.0]), "test.csv": ([[1.0, 0.0]], [3.0])}
    parts = tuple(
        Part(file, f"{server.url}/{file}", len(y), 20, checksum(np.array(X), np.array(y)))
        for file, (X, y) in rows.items()
    )
    monkeypatch.setitem(SETS, "towns", Known("regression", 2, 2, parts=parts, target="price", one_hot=True))
    data = amble.load("towns")
    assert data.columns == ("town=Bonn", "town=Ulm")
    assert (data.X_test.tolist(), data.y_test.tolist()) == ([[1.0, 0.0]], [3.0])


@pytest.mark.usefixtures("tiny")
def test_labels_that_are_text_count_in_the_checksum(server, monkeypatch):
    server.files["/pets.csv"] = b"weight,pet\n4.5,cat\n20,dog\n"

    def publish(labels):
        digest = checksum(np.array([[4.5], [20]]), np.array(labels))
        part = Part("pets.csv", f"{server.url}/pets.csv", 2, 20, digest)
        monkeypatch.setitem(SETS, "pets", Known("classification", 2, 1, 2, (part,), target="pet"))

    publish(["dog", "cat"])
    with refused("is not pets.csv as it was published"):
        amble.load("pets")
    publish(["cat", "dog"])
    assert amble.load("pets").y.tolist() == ["cat", "dog"]
