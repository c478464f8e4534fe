"""A real agent, whatever it hears: what `python tests/fuzz_agent.py --messages 1000000` does at length, in short."""

import numpy as np
import pytest

pytest.importorskip("zenoh")

from amble.live import status
from amble.live.chaos.tally import Mean
from amble.live.core.effects import Ask, Persist, Reply, Report, Settings
from amble.live.core.message import EPOCHS_MAX, HOPS_MAX, Accepted, Ending, Epoch, Refused, Stop, Token
from amble.live.core.protocol import Core
from amble.live.core.visits import GiftVisits
from amble.live.formats import wire
from fuzz_agent import METHODS, Agent, Fuzz, memory

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", range(2))
def test_an_agent_that_hears_harmful_messages_is_unharmed(tmp_path, seed):
    """Every one is refused with a reason in the log, the agent works on, and its memory is bounded."""
    (tmp_path / "warm").mkdir()
    Fuzz(seed + 10, tmp_path / "warm").run(500)
    before = memory()
    counts = Fuzz(seed, tmp_path).run(4000)
    assert memory() - before < 20 * 1024
    heard = sum(number for words, number in counts.items() if not words.startswith(("honest", "ended")))
    assert heard == 4000
    assert counts["Token: Accepted, visited"] > 100  # many reach the protocol
    assert counts["not decoded: Refused"] > 1000
    assert counts["honest: visited, and in the journal"] >= 5


def test_a_matrix_that_cannot_be_solved_is_not_read(tmp_path):
    """accounts.py: the whole account starts again, from the model that the agent has."""
    agent = Agent(tmp_path / "a", METHODS[0])
    parcel = agent.node.visits.parcel(1)
    p = agent.config.dimension
    weight = np.stack([0.0 * np.eye(p), -1.0 * np.eye(p), 0.0 * np.eye(p)])  # which what is added makes zero
    account = parcel.token.account
    account = account._replace(board=account.board._replace(weight=weight, version=np.ones(3)))
    token = Token(1, Epoch(1, 1), 3, "b", parcel._replace(token=parcel.token._replace(account=account)))
    answer = agent.hear("b", wire.encode(agent.node.shape, token))
    assert answer == Accepted()
    account = agent.node.core.rows["custody/1"].message.payload.token.account
    assert account.generation[0] == 1
    assert np.linalg.eigvalsh(account.board.weight.sum(axis=0)).min() >= -1e-12


def test_numbers_that_are_not_finite_end_the_run_and_not_the_process(tmp_path):
    """Its sender is told, and everybody hears why."""
    agent = Agent(tmp_path / "a", {"name": "WADMM", "tokens": 2, "beta": 1e6})
    parcel = agent.node.visits.parcel(1)
    account = parcel.token.account._replace(
        generation=np.array([3.0, 0.0]), z=np.full(agent.config.dimension, 1e308), awaited=np.ones(len(parcel.met))
    )
    parcel = parcel._replace(token=parcel.token._replace(account=account), since=np.zeros(()))
    answer = agent.hear("b", wire.encode(agent.node.shape, Token(1, Epoch(1, 1), 3, "b", parcel)))
    assert answer == Refused("a visit of it gives numbers that are not finite")
    assert agent.node.core.ending.cause == "diverged"
    assert agent.node.core.stopped == "token 1 has diverged at hop 4 (noticed by a)"
    agent.end()


def test_what_an_agents_rows_say_of_a_divergence_is_in_its_own_status_only(tmp_path):
    """Neither what it sends nor its journal's events, which are collected, has a word on its rows."""
    agent = Agent(tmp_path / "a", {"name": "WPG", "tokens": 2, "alpha": 1e300})
    core, parcel = agent.node.core, agent.node.core.rows["custody/0"].message.payload
    said = core.heard(1.0, 1, Token(0, Epoch(0, 0), 2, "b", parcel))
    ending = Ending("diverged", "token 0 has diverged at hop 3 (noticed by a)")
    assert {effect.question.ending for effect in said if isinstance(effect, Ask)} == {ending}
    assert {effect.words for effect in said if isinstance(effect, Report)} == {ending.words}
    agent.node._write_status(ended=True)
    assert "alpha = 1e+300 is above 2 / L" in status.read(agent.folder).likely_cause
    agent.end()


def test_a_loss_is_not_computed_again_once_the_run_has_ended(tmp_path):
    """The driver asks for the end at every turn after `seconds` are over."""
    agent = Agent(tmp_path / "a", METHODS[0])
    core, asked = agent.node.core, []

    class Counted:
        smoothness = 1.0

        def value(self, w):
            asked.append(w)
            return 0.0

    core.end.objective = Counted()
    core.halt(1.0, "seconds", "1 s are over")
    assert core.ending.cause == "seconds"
    assert asked
    asked.clear()
    core.halt(2.0, "seconds", "1 s are over")
    assert asked == []
    agent.end()


def test_a_stop_without_a_reason_is_not_passed_on(tmp_path):
    """An agent that has stopped for no reason would not know it, and pass each such message on to everybody."""
    agent = Agent(tmp_path / "a", METHODS[0])
    agent.asks.clear()
    answer = agent.hear("b", wire.encode(agent.node.shape, Stop(Ending("hops", ""), "b")))
    assert "length >= 1" in answer.reason
    assert agent.asks == []
    agent.end()


def started():
    core = Core("a", ("b", "c"), Settings(("a", "b", "c"), patience_s=2.0), GiftVisits(Mean(), 1, 3), 1.0)
    core.start(0.0)
    for name in ("b", "c"):
        core.peer(0.0, name, True)
    return core


def test_the_last_epoch_is_not_followed_by_another():
    """A neighbour may jump to it: then a token that is lost after that ends the run, and no version is inexact."""
    core = started()
    said = core.heard(1.0, 1, Token(0, Epoch(EPOCHS_MAX, 2), 5, "b", core.visits.parcel(0)))
    assert [effect.answer for effect in said if isinstance(effect, Reply)] == [Accepted()]
    to = core.rows["custody/0"].to
    core.peer(2.0, to, False)
    said = core.tick(10.0)
    assert core.stopped == "token 0 is lost, and it has already been reissued 131,071 times"
    assert [effect.kind for effect in said if isinstance(effect, Report)] == ["stopped"]
    assert [effect.rows for effect in said if isinstance(effect, Persist)] == [{"stopped": core.ending}]


def test_the_last_hop_ends_the_run():
    core = started()
    core.heard(1.0, 1, Token(0, Epoch(0, 0), HOPS_MAX - 1, "b", core.visits.parcel(0)))
    assert core.stopped == f"token 0 has made its {HOPS_MAX} hops"
    assert core.rows["sight/0"].hop == HOPS_MAX
