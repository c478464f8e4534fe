"""The driver of an agent: what it logs of those who harm it, which model it writes, and what it counts as time.

The driver, its journal and the protocol are real; the test is its transport (fuzz_agent.Agent).
"""

import logging
import threading
import time

import numpy as np
import pytest

pytest.importorskip("zenoh")

from amble.errors import AmbleError
from amble.live import status
from amble.live.agent import undecoded
from amble.live.agent.node import Node
from amble.live.agent.stages import Training
from amble.live.core.effects import Report
from amble.live.core.message import Accepted, Ending, Epoch, Leaving, Passed, Refused, Stop, Token
from amble.live.core.packing import flat
from amble.live.formats import wire
from amble.live.journal.file import Unwritable
from amble.live.seldom import Seldom
from config_samples import X, Y
from fuzz_agent import METHODS, Agent


@pytest.fixture
def agent(tmp_path):
    agent = Agent(tmp_path / "a", METHODS[0])
    agent.node.seldom = Seldom()
    yield agent
    agent.end()


def again(agent):
    """The same agent, started once more; what ends it closes the new journal."""
    agent.node.journal.close()
    course = Training(agent.config, agent.config.objective(X, Y))
    agent.node = Node(agent.config, agent.folder, course, threading.Event())
    return agent.node


def warnings(caplog, words):
    return [record.getMessage() for record in caplog.records if words in record.getMessage()]


def done(agent, effects):
    agent.node._do([(agent.node.stage, effects)], agent)


# --- what enters the queue -------------------------------------------------------------------------------------------


def test_what_is_no_message_of_the_run_is_refused_before_it_waits(agent):
    shape, back = agent.node.shape, []
    other = bytearray(wire.encode(shape, Leaving("b")))
    other[10] ^= 1  # the run's fingerprint
    for data in (b"nonsense", bytes(other), shape.prefix + bytes(shape.bytes_max)):
        agent.node.hear("b", data, back.append)
    assert agent.node.inputs.empty()
    assert len(back) == 3
    assert all(isinstance(wire.decode_answer(shape, answer), Refused) for answer in back)


def test_messages_that_wait_have_a_bound_and_the_next_is_refused(agent, monkeypatch):
    monkeypatch.setattr(undecoded, "LEAST_BYTES", 10_000)
    monkeypatch.setattr(undecoded, "TIMES", 0)
    shape, back = agent.node.shape, []
    message = wire.encode(shape, Passed(0, Epoch(0, 0), 1, "b"))
    for _ in range(100):
        agent.node.hear("b", message, back.append)
    assert agent.node.inputs.qsize() == 100 - len(back) == 10_000 // (len(message) + undecoded.EACH_BYTES)
    assert wire.decode_answer(shape, back[-1]) == Refused("too many messages wait here; send it again later")
    agent.work()
    assert agent.node.undecoded.bytes == 0
    assert isinstance(agent.hear("b", message), Accepted)


# --- logs -----------------------------------------------------------------------------------------------------------


def test_the_same_refusal_of_the_same_sender_is_logged_once_a_minute(agent, caplog):
    """A neighbour that is broken, or means harm, must not fill the disk."""
    for _ in range(500):
        assert isinstance(agent.hear("b", b"nonsense"), Refused)
    assert len(warnings(caplog, "refused a message from b")) == 1
    agent.hear("c", b"nonsense")
    assert len(warnings(caplog, "refused a message from c")) == 1
    agent.hear("b", wire.encode(agent.node.shape, Passed(0, Epoch(0, 0), 1, "c")))  # which is another reason
    assert len(warnings(caplog, "refused a message from b")) == 2


def test_one_reason_is_one_reason_whatever_its_numbers(agent, caplog):
    for size in range(100):
        agent.hear("b", bytes(agent.node.shape.bytes_max + 1 + size))
    assert len(warnings(caplog, "refused a message from b")) == 1


def test_how_many_were_left_out_is_said_with_the_next(agent, caplog):
    agent.node.seldom = Seldom(every_s=0.0)
    agent.hear("b", b"nonsense")
    agent.node.seldom.every_s = 60.0
    for _ in range(41):
        agent.hear("b", b"nonsense")
    agent.node.seldom.every_s = 0.0
    agent.hear("b", b"nonsense")
    assert len(warnings(caplog, "refused a message from b")) == 2
    assert warnings(caplog, "refused a message from b")[-1].endswith("(and 41 more like it, not logged)")


def test_answers_that_are_refused_are_limited_too(agent, caplog):
    asks = [answered for _, answered in agent.asks]
    for _ in range(50):
        asks[0](b"nonsense")
        agent.work()
    assert len(warnings(caplog, "refused an answer from")) == 1


def test_what_a_neighbour_refuses_or_sends_again_is_no_endless_journal(agent, caplog):
    caplog.set_level(logging.INFO, "amble.live")
    for kind in ("refused", "absorbed"):
        for hop in range(200):
            done(agent, [Report(kind, 0, Epoch(0, 0), hop, "b: no")])
        events = [event for event in agent.node.journal.events() if event.kind == kind]
        assert [event.hop for event in events] == [0]
        assert len(warnings(caplog, f"{kind} token=0")) == 1


def test_what_a_replay_needs_is_always_kept(agent):
    for number in range(1, 6):
        done(agent, [Report("recount", 0, Epoch(number, 0), 3, "b, c")])
    assert [event.words for event in agent.node.journal.events() if event.kind == "recount"] == ["b, c"] * 5


def test_seldom_has_a_bound():
    """However many kinds there are, few are remembered, and few are said."""
    seldom = Seldom(every_s=60.0, keys_max=10)
    said = [seldom(("b", k), 0.0) for k in range(1000)]
    assert sum(each is not None for each in said) == 11
    assert len(seldom.said) <= 11
    assert seldom(("b", 0), 59.9) is None
    assert seldom(("b", 0), 60.0) == 1
    assert seldom(("b", 5000), 60.0) == 989


# --- the disk -------------------------------------------------------------------------------------------------------


def test_a_journal_that_turns_out_to_be_damaged_ends_the_agent(agent):
    """It must not wait forever with a token: the sender still has it."""
    (root,) = agent.node.journal.connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'visits'"
    ).fetchone()
    agent.node.journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    agent.node.journal.close()
    path, objective = agent.folder / "journal.db", agent.config.objective(X, Y)
    agent.node = Node(agent.config, agent.folder, Training(agent.config, objective), threading.Event())
    agent.do(agent.node.sequence.start)
    with path.open("r+b") as file:  # while it runs, as a disk that fails does
        file.seek((root - 1) * 4096)
        file.write(bytes(4096))
    agent.node.journal.connection.execute("PRAGMA shrink_memory")
    parcel = agent.node.core.rows["custody/0"].message.payload
    said = agent.node.core.heard(agent.now, 1, Token(0, Epoch(0, 0), 2, "b", parcel))
    agent.node.replies[1] = lambda _: pytest.fail("it was acknowledged")
    with pytest.raises(AmbleError, match=r"damaged or cut short; delete journal\.db"):
        done(agent, said)


def test_a_full_disk_is_waited_for_and_named_once_a_minute(agent, caplog):
    writes = []

    def write():
        writes.append(1)
        agent.node.ending.set()  # so that the test does not wait
        raise Unwritable("there is no space left for the journal.")

    for _ in range(3):
        with pytest.raises(Unwritable):
            agent.node.keeping.kept(write)
    assert len(writes) == 3
    assert len(warnings(caplog, "Until then the agent waits")) == 1


def waiting(agent, tokens):
    """These tokens of b wait at the agent; the answers that come back are in the list."""
    answers = []
    for m in tokens:
        message = Token(m, Epoch(0, 0), 2, "b", agent.node.visits.parcel(m))
        agent.node.hear("b", wire.encode(agent.node.shape, message), lambda data, m=m: answers.append((m, data)))
    return answers


def turn(agent):
    """As Node.run has it."""
    node = agent.node
    node._do(node._together(node._steps(node.inputs.get()), time.monotonic(), agent), agent)


def test_tokens_that_wait_share_a_transaction_and_none_is_answered_before_it(agent):
    """ "nothing is said about any of them before all are stored" (keeping.py)"""
    node, statements = agent.node, []
    node.keeping.write_s = 3600.0
    answers, asked = waiting(agent, (0, 1, 2)), len(agent.asks)

    def statement(text):
        statements.append((text.split()[0], len(answers), len(agent.asks) - asked))

    before = len(node.journal.visits())
    node.journal.connection.set_trace_callback(statement)
    turn(agent)
    node.journal.connection.set_trace_callback(None)
    assert [each for each in statements if each[0] in ("BEGIN", "COMMIT")] == [("BEGIN", 0, 0), ("COMMIT", 0, 0)]
    assert answers == [(m, node.stage.accepted) for m in (0, 1, 2)]
    assert len(agent.asks) - asked >= 3
    assert [visit.token for visit in node.journal.visits()[before:]] == [0, 1, 2]
    stored, core = node.journal.load(), node.core
    assert stored.keys() == core.rows.keys()
    assert np.array_equal(flat(stored["holder"]), flat(core.rows["holder"]))
    assert all(stored[f"custody/{m}"].to == core.rows[f"custody/{m}"].to for m in (0, 1, 2))


def test_a_token_goes_on_before_its_sender_is_told(agent):
    """The next agent waits for it, and the sender for nothing."""
    asked = []
    ask, agent.ask = agent.ask, lambda *known: (asked.append(len(answers)), ask(*known))
    answers = waiting(agent, (0,))
    turn(agent)
    assert asked[0] == 0
    assert len(answers) == 1


def test_a_share_that_has_not_changed_is_not_written_again(agent):
    """Relay remembers nothing of a single token but the epoch."""
    node, names = agent.node, []
    write = node.keeping.put
    node.keeping.put = lambda stage, rows, *known: (names.append(sorted(rows)), write(stage, rows, *known))
    waiting(agent, (1,))
    turn(agent)
    left = node.core.rows["custody/1"].message
    back = left._replace(hop=left.hop + 1, sender="b")
    node.hear("b", wire.encode(node.shape, back), lambda _: None)
    turn(agent)
    visits = [each for each in names if "holder" in each]
    assert visits == [["custody/1", "holder", "share/1", "sight/1"], ["custody/1", "holder", "sight/1"]]
    assert node.journal.load().keys() == node.core.rows.keys()


def test_a_visit_that_takes_longer_than_a_transaction_is_stored_on_its_own(agent):
    agent.node.keeping.write_s = 0.0
    answers = waiting(agent, (0, 1))
    turn(agent)
    assert [m for m, _ in answers] == [0]


def test_a_group_that_cannot_be_stored_says_nothing(agent):
    node, answers, asked = agent.node, waiting(agent, (0, 1)), len(agent.asks)
    node.keeping.write_s = 3600.0
    node.journal.close()
    with pytest.raises(AmbleError):
        turn(agent)
    assert not answers
    assert len(agent.asks) == asked
    agent.node = again(agent)


# --- the model ------------------------------------------------------------------------------------------------------


def files(agent, ended=True):
    agent.node._write_status(ended=ended)
    return {path.name for path in agent.folder.iterdir()}


def test_a_model_of_nothing_is_not_written(agent):
    """Its own token has begun here, and nobody has been asked yet: the estimate is zero, and no model."""
    assert agent.node.core.rows["holder"].visits == 1
    assert not agent.node.core.rows["holder"].z.any()
    np.save(agent.folder / "model.npy", np.zeros(4))  # of an earlier journal
    assert not {"model.npy", "model.npz"} & files(agent)


def test_a_model_is_written_once_a_token_has_come(agent):
    parcel = agent.node.core.rows["custody/0"].message.payload
    agent.hear("b", wire.encode(agent.node.shape, Token(0, Epoch(0, 0), 2, "b", parcel)))
    assert {"model.npy", "model.npz"} <= files(agent)
    assert np.load(agent.folder / "model.npy").any()


def test_a_model_does_not_outlive_the_divergence_of_its_run(agent):
    """An agent that ended early and was started again has left one: it must not look like the run's."""
    parcel = agent.node.core.rows["custody/0"].message.payload
    agent.hear("b", wire.encode(agent.node.shape, Token(0, Epoch(0, 0), 2, "b", parcel)))
    assert {"model.npy", "model.npz"} <= files(agent)
    agent.hear("b", wire.encode(agent.node.shape, Stop(Ending("diverged", "token 0 has diverged at hop 4"), "b")))
    assert not {"model.npy", "model.npz"} & files(agent)


# --- time -----------------------------------------------------------------------------------------------------------


def hear_a_token(agent, hop=2):
    parcel = agent.node.core.rows["custody/0"].message.payload
    agent.hear("b", wire.encode(agent.node.shape, Token(0, Epoch(0, 0), hop, "b", parcel)))


@pytest.mark.parametrize("leap_s", [86_400.0, -86_400.0])
def test_a_clock_that_leaps_changes_nothing(agent, leap_s):
    """The record has wall-clock times; how long the run has lasted does not follow from them."""
    hear_a_token(agent)
    agent.node.journal.connection.execute("UPDATE visits SET time_s = time_s - ?", (leap_s,))
    later = again(agent)
    assert 0 <= later.begun_s - later.joined_s < 60


def test_time_adds_up_over_restarts(agent):
    hear_a_token(agent)
    agent.node.journal.keep_elapsed(1000.0)
    for number in (1, 2, 3):
        again(agent)
        assert 1000.0 * number <= agent.node.begun_s - agent.node.joined_s < 1000.0 * number + 60
        agent.node.joined_s -= 1000.0  # as if so long had passed
        agent.do(agent.node.sequence.start)
        hear_a_token(agent, hop=2 + 2 * number)


def test_one_that_is_alone_has_no_time(agent):
    """Seconds count from when an agent first met a token of another agent, so one that is alone waits."""
    assert agent.node.joined_s == np.inf
    assert again(agent).joined_s == np.inf


def test_events_are_counted_over_restarts_also_those_that_the_journal_dropped(agent):
    for _ in range(3):
        agent.node._report(Report("recount", words="b"), agent.node.stage)
    agent.node._write_status()
    assert status.read(agent.folder).counts["recount"] == 3
    agent.node._report(Report("recount", words="b"), agent.node.stage)  # and it is killed before the next status
    assert again(agent).gauge.counts["recount"] == 4
    status.write(agent.folder, status.changed(status.read(agent.folder), counts={"recount": 9}))
    assert again(agent).gauge.counts["recount"] == 9
