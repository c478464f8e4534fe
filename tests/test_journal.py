"""The journal: what was persisted is there after anything, and a file that is not right is refused and left alone."""

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from amble import AmbleError
from amble.arrays import named_leaves, tree_map
from amble.live.core import visits as live_visits
from amble.live.core.effects import Ask, Custody, Left, Persist, Reply, Report, Settings, Share, Sight, Visit
from amble.live.core.message import Ending, Epoch, Token
from amble.live.core.packing import digest
from amble.live.core.parcels import Holder, Parcel
from amble.live.core.protocol import Core
from amble.live.formats import wire
from amble.live.journal.journal import VISIT, Event, Journal, Visited, read_events
from amble.losses import LeastSquares
from amble.methods import apibcd, ibcd, pwadmm, relay, wadmm

AGENTS, P = ("anna", "bert", "cleo"), 5
RELAY = relay.Relay(2, "full")
ENDING = Ending("hops", "token 0 has made its 9 hops – enough")


def some_losses(p=P):
    rng = np.random.default_rng(1)
    rows = np.full(9, 1 / 9)
    return [LeastSquares.build(rng.normal(size=(9, p)), rng.normal(size=9), rows, np.full(p, 0.1)) for _ in AGENTS]


F = some_losses()[0]


def open_journal(path, method=RELAY, agent="anna", p=P, objective=F, visits_max=0, **settings):
    visits = live_visits.visits_for(method, p, len(AGENTS))
    shape = wire.Shape(wire.run_digest(settings), AGENTS, method.tokens, visits.parcel(0))
    return Journal.open(path, shape, visits, objective, agent, visits_max)


@contextlib.contextmanager
def opened(path, **options):
    with contextlib.closing(open_journal(path, **options)) as journal:
        yield journal


def effect(k, method=RELAY, p=P):
    """The k-th transaction of a made-up agent: the same wherever it is computed."""
    rng, visits = np.random.default_rng(k), live_visits.visits_for(method, p, len(AGENTS))
    holder, share, before, after = (
        tree_map(lambda leaf: rng.normal(size=np.shape(leaf)), tree)
        for tree in (visits.holder(F), visits.share(), visits.parcel(0), visits.parcel(0))
    )
    m, epoch = k % method.tokens, Epoch(k // 10, k % 3)
    custody = Custody(Token(m, epoch, k, "anna", after), "bert", "cleo", Sight(epoch, k - 1), bool(k % 2))
    rows = {"holder": holder, f"share/{m}": Share(epoch, share), f"sight/{m}": Sight(epoch, k), f"custody/{m}": custody}
    return Persist(rows, Visit(m, epoch, k, "cleo", k, before, after))


def as_bytes(tree):
    """A row as nested plain types, in which arrays are their bytes: equal only bit for bit."""
    if isinstance(tree, tuple):
        return (type(tree).__name__, *map(as_bytes, tree))
    if isinstance(tree, str | int | bytes) or tree is None:
        return tree
    array = np.asarray(tree, np.float64)
    return array.shape, array.tobytes()


def assert_same(rows, others):
    assert {name: as_bytes(row) for name, row in rows.items()} == {name: as_bytes(row) for name, row in others.items()}


def persist_many(journal, numbers):
    for k in numbers:
        journal.persist(effect(k), float(k))


def state_after(k):
    rows = {}
    for number in range(1, k + 1):
        rows |= effect(number).rows
    return rows


def test_what_was_persisted_is_there_bit_for_bit_after_a_restart(tmp_path):
    path = tmp_path / "deep" / "anna.journal"
    with opened(path) as journal:
        assert journal.load() == {}
        for k in (1, 2, 3):
            journal.persist(effect(k), 0.5 * k)
        journal.persist(Persist({"stopped": ENDING}), 2.0)
        assert_same(journal.load(), state_after(3) | {"stopped": ENDING})
    with opened(path) as journal:
        rows = journal.load()
        assert_same(rows, state_after(3) | {"stopped": ENDING})
        assert all(leaf.flags.writeable for leaf in named_leaves(rows["holder"], "").values())
        assert type(rows["holder"]) is Holder
        assert type(rows["custody/0"].message.payload) is Parcel
        assert journal.connection.execute("SELECT count(*) FROM rows").fetchone() == (8,)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_record_has_a_line_a_visit_and_the_events_theirs(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.persist(effect(1), 0.5)
        journal.persist(Persist({"sight/0": Sight(Epoch(3, 1), 4)}), 0.6)  # no visit
        journal.persist(effect(12), 1.5, 0.25, 0.125)
        journal.event(Report("reissue", 1, Epoch(2, 0), 12, "bert has it no more", ("bert", "cleo")), 2.5)
        journal.event(Report("stopped", words="enough"), 3.5)
        lines, events = journal.visits(), journal.events()
    visit = effect(12).visit
    assert [line.number for line in lines] == [1, 12]
    assert lines[1] == Visited(12, 0, 1, 0, 12, "cleo", 1.5, 0.25, 0.125, digest(visit.before), digest(visit.after))
    assert events == [
        Event("reissue", 1, 2, 0, 12, "bert has it no more", 2.5, ("bert", "cleo")),
        Event("stopped", -1, None, None, 0, "enough", 3.5),
    ]


def test_no_visit_is_recorded_twice(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.persist(effect(1), 0.5)
        again = effect(2)
        with pytest.raises(AmbleError, match="has this visit already"):
            journal.persist(again._replace(visit=again.visit._replace(number=1)), 0.6)
        assert_same(journal.load(), state_after(1))  # the rows of that transaction are undone too
        with pytest.raises(AmbleError, match="rows of the kinds holder, share"):
            journal.persist(Persist({"secret": "x"}), 0.7)


METHODS = [
    relay.Relay(1, "full"), RELAY, relay.Relay(2, "scalar"), relay.Relay(1, "gradient"), ibcd.IBCD(tau=1.0),
    wadmm.WADMM(beta=1.0), apibcd.APIBCD(tau=1.0, tokens=2), pwadmm.PWADMM(tokens=2),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.label} {method.tokens}")
def test_agents_that_run_find_their_state_again(tmp_path, method):
    """Live agents of every kind of method, over bytes: what the journal gives back is what the core had persisted."""
    visits, losses = live_visits.visits_for(method, P, len(AGENTS)), some_losses()
    shape = wire.Shape(wire.run_digest({}), AGENTS, method.tokens, visits.parcel(0))
    settings = Settings(AGENTS, method.tokens)
    cores = {
        me: Core(me, tuple(name for name in AGENTS if name != me), settings, visits, loss)
        for me, loss in zip(AGENTS, losses, strict=True)
    }
    with contextlib.ExitStack() as stack:
        journals = {
            me: stack.enter_context(opened(tmp_path / me, method=method, agent=me, objective=core.objective))
            for me, core in cores.items()
        }
        todo = [(me, effect) for me, core in cores.items() for effect in core.start(0.0)]
        todo += [
            (me, said)
            for me, core in cores.items()
            for other in core.neighbours.names
            for said in core.peer(0.0, other, True)
        ]
        hops = 0
        while todo and hops < 40:
            me, said = todo.pop(0)
            if isinstance(said, Persist):
                journals[me].persist(said, float(hops))
            elif isinstance(said, Ask):
                hops += isinstance(said.question, Token)
                question = wire.decode_question(shape, wire.encode(shape, said.question), me)
                replies = cores[said.to].heard(0.0, 0, question)
                todo += [(said.to, then) for then in replies if not isinstance(then, Reply)]
                (answer,) = (then.answer for then in replies if isinstance(then, Reply))
                answer = wire.decode_answer(shape, wire.encode(shape, answer))
                todo += [(me, then) for then in cores[me].answered(0.0, said.number, answer)]
        for me, said in todo:
            if isinstance(said, Persist):
                journals[me].persist(said, float(hops))
        assert hops == 40
        for me, core in cores.items():
            assert_same(journals[me].load(), core.rows)
            assert len(journals[me].visits()) == int(core.rows["holder"].visits)


def keep_persisting(path):
    """What the child does: it says each number once it has been told that it is safe."""
    with opened(Path(path)) as journal:
        for k in range(1, 100_000):
            journal.persist(effect(k), float(k))
            sys.stdout.write(f"{k}\n")
            sys.stdout.flush()


@pytest.mark.parametrize("kill", range(10))
def test_a_killed_agent_finds_its_last_state_or_the_next(tmp_path, kill):
    path = tmp_path / "j"
    with subprocess.Popen([sys.executable, __file__, str(path)], stdout=subprocess.PIPE, text=True) as child:
        for _ in range(1 + 7 * kill):
            child.stdout.readline()
        time.sleep(0.0007 * kill)  # anywhere within a transaction
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read().split()
    last = int(said[-1]) if said else 1 + 7 * kill
    with contextlib.closing(sqlite3.connect(shutil.copytree(tmp_path, tmp_path / "copy") / "j")) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with opened(path) as journal:
        found = len(journal.visits())
        assert found in (last, last + 1)
        assert_same(journal.load(), state_after(found))
        journal.persist(effect(found + 1), 0.0)  # and it goes on
        assert_same(journal.load(), state_after(found + 1))


def files_of(folder):
    """But not the log's index, which SQLite recreates as it likes."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and file.name != "j-shm"}


def refuses(path, words, **options):
    """One sentence, and every byte stays as it was."""
    before = files_of(path.parent)
    with pytest.raises(AmbleError, match=words) as caught:
        open_journal(path, **options)
    assert "\n" not in str(caught.value)
    assert files_of(path.parent) == before


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "j"
    with opened(path) as journal:
        persist_many(journal, range(1, 40))
    return path


@pytest.fixture
def crashed(written):
    """With transactions that are in the log only, as a crash leaves it."""
    with opened(written) as journal:
        persist_many(journal, range(40, 45))
        folder = written.parent / "crashed"
        folder.mkdir()
        for name in ("j", "j-wal"):
            shutil.copy(written.parent / name, folder / name)
    return folder / "j"


def test_the_journals_of_others_are_refused(written, crashed):
    for path in (written, crashed):
        refuses(path, "is the journal of another run", seed=1)
        refuses(path, "keeps other numbers for this run", method=relay.Relay(1, "full"))
        refuses(path, "is the journal of agent 'anna', and this is agent 'bert'", agent="bert")
    with opened(crashed) as journal:
        assert_same(journal.load(), state_after(44))
    assert [file.name for file in crashed.parent.iterdir()] == ["j"]


def test_a_journal_that_is_in_use_is_refused(written):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import pathlib, test_journal\n"
        f"try: test_journal.open_journal(pathlib.Path({str(written)!r}))\n"
        f"except test_journal.AmbleError as error: sys.stdout.write(str(error))"
    )
    with opened(written) as journal:
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "is in use by another process" in other.stdout
        journal.persist(effect(40), 1.0)


def test_files_that_are_no_journals_are_refused(tmp_path):
    path = tmp_path / "notes"
    path.write_bytes(b"dear diary " * 50)
    refuses(path, "is not a journal of amble")
    path.write_bytes(b"dear diary")
    refuses(path, "is not a journal of amble")
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE songs (name)")
    refuses(path, "is not a journal of amble")
    refuses(tmp_path, "cannot be read or written")


def test_a_journal_of_another_format_is_refused(written):
    with contextlib.closing(sqlite3.connect(written)) as connection:
        connection.execute("PRAGMA user_version = 1")
    refuses(written, "is a journal of format 1, and this amble reads format 4")
    with contextlib.closing(sqlite3.connect(written)) as connection:
        connection.execute("PRAGMA user_version = 2")
    refuses(written, "its record is read, but a run goes on in format 4 only")


def test_a_journal_of_format_3_is_read_and_goes_on_in_format_4(tmp_path):
    """It named who was counted out, and how an agent had left, in words only."""
    reports = [Report("reissue", 1, Epoch(2, 0), 12, "bert, cleo", ("bert", "cleo")), Report("stopped", words="a, b"),
               Report("recount", 0, Epoch(3, 0), 15)]  # fmt: skip
    path = tmp_path / "j"
    with opened(path) as journal:
        persist_many(journal, (1, 2))
        journal.persist(Persist({"left": "all that it gave is out of the model"}), 3.0)
        for report in reports:
            journal.event(report, 4.0)
        events = journal.events()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE events DROP COLUMN buried")
        connection.execute("PRAGMA user_version = 3")
        assert list(read_events(connection)) == events
    with opened(path) as journal:
        assert journal.events() == events
        assert_same(journal.load(), state_after(2) | {"left": Left(True, "all that it gave is out of the model")})
        journal.event(reports[0], 5.0)
        assert journal.events()[-1].buried == ("bert", "cleo")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)


def test_a_journal_cut_short_anywhere_is_refused(written):
    whole = written.read_bytes()
    assert len(whole) > 5 * 4096
    for length in (0, 10, 99, 100, 1000, 4096, 5000, *range(8192, len(whole), 4096), len(whole) - 1):
        written.write_bytes(whole[:length])
        refuses(written, "damaged or cut short")


def test_a_log_cut_short_gives_the_last_transaction_that_is_whole(crashed):
    """A crash of the machine may tear the last write; what was not yet synced was not yet acknowledged either."""
    whole, log = crashed.read_bytes(), crashed.with_name("j-wal").read_bytes().rstrip(b"\0")  # zeros: only allocated
    seen = set()
    for length in range(0, len(log) + 1, 2000):
        crashed.write_bytes(whole)
        crashed.with_name("j-wal").write_bytes(log[:length])
        with opened(crashed) as journal:
            seen.add(len(journal.visits()))
            assert_same(journal.load(), state_after(len(journal.visits())))
    assert seen >= {39, 40, 41, 42, 43}


def test_a_log_without_its_journal_is_refused(crashed):
    crashed.unlink()
    refuses(crashed, "there is .*j-wal but no .*j, which it belongs to")


def test_one_wrong_bit_in_a_row_is_noticed(written):
    """SQLite has no checksums of what is inside its pages; rows have their own."""
    whole = written.read_bytes()
    with contextlib.closing(sqlite3.connect(written)) as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM rows")]
    rng = np.random.default_rng(0)
    for body in bodies:
        start = whole.rfind(body[:24])
        assert start > 0
        for place in rng.integers(0, 24, 3):
            wrong = bytearray(whole)
            wrong[start + place] ^= 4
            written.write_bytes(bytes(wrong))
            refuses(written, "damaged or cut short")


def test_random_damage_is_noticed_or_harmless(written):
    """Never a wrong row: either the file is refused, or all rows are as they were."""
    whole, rng = written.read_bytes(), np.random.default_rng(0)
    for _ in range(150):
        wrong = bytearray(whole)
        place = int(rng.integers(100, len(whole)))
        wrong[place : place + 4] = rng.bytes(4)
        written.write_bytes(bytes(wrong))
        try:
            with opened(written) as journal:
                assert_same(journal.load(), state_after(39))
        except AmbleError:
            continue


def test_a_full_disk_undoes_the_transaction_and_the_journal_goes_on_when_there_is_space(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.persist(effect(1), 0.0)
        (pages,) = journal.connection.execute("PRAGMA page_count").fetchone()
        journal.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            AmbleError, match=r"there is no space left for the journal .*j; free some, and the agent continues"
        ):
            persist_many(journal, range(2, 1000))
        last = len(journal.visits())
        assert_same(journal.load(), state_after(last))
        journal.connection.execute("PRAGMA max_page_count = 100000")
        journal.persist(effect(last + 1), 0.0)
        assert_same(journal.load(), state_after(last + 1))
    with opened(tmp_path / "j") as journal:
        assert_same(journal.load(), state_after(last + 1))


# --- a bounded record -----------------------------------------------------------------------------------------------


def lines_of(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM visits ORDER BY number")]


def fill(path, first, last):
    """Visits as they are after a long run, without the time that their transactions take."""
    line = (0, 0, 0, 1, "cleo", 0.0, 0.0, 0.0, "0" * 16, "0" * 16)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(VISIT, ((number, *line) for number in range(first, last + 1)))


@pytest.mark.parametrize("visits_max", [1, 7, 10, 100])
def test_the_oldest_visits_are_dropped_and_never_more_are_kept(tmp_path, visits_max):
    with opened(tmp_path / "j", visits_max=visits_max) as journal:
        for k in range(1, 251):
            journal.persist(effect(k), float(k))
            (count,) = journal.connection.execute("SELECT count(*) FROM visits").fetchone()
            assert count <= visits_max
        numbers = [line.number for line in journal.visits()]
        assert_same(journal.load(), state_after(250))
    assert numbers == list(range(numbers[0], 251))
    assert len(numbers) >= 0.9 * visits_max


def test_a_journal_with_a_bound_stops_growing_and_one_without_does_not(tmp_path):
    sizes = {}
    for visits_max in (0, 200):
        path = tmp_path / f"j{visits_max}"
        with opened(path, visits_max=visits_max) as journal:
            for last in (600, 1200):
                persist_many(journal, range(last - 599, last + 1))
                (pages,) = journal.connection.execute("PRAGMA page_count").fetchone()
                sizes.setdefault(visits_max, []).append(pages)
    assert sizes[200][0] == sizes[200][1]
    assert sizes[0][0] < sizes[0][1]


def test_a_bound_that_was_larger_before_is_reached_bit_by_bit(tmp_path):
    """No transaction drops very many lines: a token waits for it."""
    path = tmp_path / "j"
    with opened(path):
        pass
    fill(path, 1, 10_000)
    counts = []
    with opened(path, visits_max=50) as journal:
        for k in range(10_001, 10_031):
            journal.persist(effect(k), 0.0)
            counts.append(journal.connection.execute("SELECT count(*) FROM visits").fetchone()[0])
    assert min(np.diff(counts)) >= -4096
    assert counts[-1] <= 50
    assert lines_of(path)[-1] == 10_030


def test_events_are_bounded_too(tmp_path):
    with opened(tmp_path / "j", visits_max=5) as journal:
        for k in range(20):
            journal.event(Report("refused", words=str(k)), 0.0)
        assert [event.words for event in journal.events()] == ["15", "16", "17", "18", "19"]


def without_page(path, page):
    wrong = bytearray(path.read_bytes())
    wrong[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(bytes(wrong))


def test_opening_looks_at_the_state_and_the_ends_of_the_record_only(written):
    """So that a start takes as long after a week as after a minute: damage in the middle of the record is not met."""
    fill(written, 40, 20_000)
    whole = written.read_bytes()
    with contextlib.closing(sqlite3.connect(written)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'visits'").fetchone()
    without_page(written, len(whole) // 4096 // 2)
    with opened(written) as journal:
        assert_same(journal.load(), state_after(39))
        journal.persist(effect(20_001), 0.0)
        with pytest.raises(AmbleError, match="damaged or cut short"):
            journal.visits()
    written.write_bytes(whole)
    without_page(written, root)
    refuses(written, "damaged or cut short")


def test_the_sentence_about_damage_says_what_to_delete_and_that_it_is_safe(written):
    written.write_bytes(written.read_bytes()[:5000])
    refuses(written, r"delete j and, if it exists, j-wal, .* recounted, once, and nothing is lost but its part")


# --- the time that an agent has been in the run ---------------------------------------------------------------------


def test_the_time_in_the_run_is_kept_with_a_visit_or_alone(tmp_path):
    with opened(tmp_path / "j") as journal:
        assert journal.elapsed_s() is None
        journal.persist(effect(1), 1e9)
        assert journal.elapsed_s() is None
        journal.persist(effect(2), -1e9, elapsed_s=0.1 + 0.2)
        journal.persist(effect(3), 1e12)
    with opened(tmp_path / "j") as journal:
        assert journal.elapsed_s() == 0.1 + 0.2
        journal.keep_elapsed(1234.5)
        assert journal.elapsed_s() == 1234.5
        journal.connection.execute("UPDATE about SET value = 'long' WHERE key = 'elapsed_s'")
        with pytest.raises(AmbleError, match="damaged or cut short"):
            journal.elapsed_s()


if __name__ == "__main__":
    keep_persisting(sys.argv[1])
