"""API-BCD's tracked rule, live: the simulator's while nothing is lost, and the survivors' after somebody was."""

import numpy as np
import pytest

import amble
from amble.live.core.tracked_visits import TrackedVisits
from samples import unknowns
from test_visits import AGENTS, KINDS, LAPS, Simulated, objectives, schedule, settled, some_start
from test_visits import Live as LiveVisits

TAU = 0.7
METHODS = {
    "API-BCD": lambda M: amble.APIBCD(tau=TAU, tokens=M, token_rule="tracked"),
    "gAPI-BCD": lambda M: amble.GAPIBCD(tau=TAU, tokens=M, token_rule="tracked"),
}
every_method = pytest.mark.parametrize("method", [
    pytest.param(make(M), id=f"{name} {M}") for name, make in METHODS.items() for M in (1, 3)
])  # fmt: skip


class Live(LiveVisits):
    def leave(self, m, i):
        fresh = self.share_epochs.get((m, i)) != self.epochs[m]
        share = self.shares.get((m, i)) or self.visits.share()
        self.hops[m] += 1
        self.holders[i], self.shares[m, i], self.parcels[m] = self.visits.leave(
            self.holders[i], share, self.parcels[m], i, self.hops[m], fresh
        )
        self.share_epochs[m, i] = None


def laps(live, count, agents):
    for m, i in count * [(m, i) for m in range(len(live.parcels)) for i in agents]:
        live.visit(m, i)


def lose_all(live, *dead):
    for m in range(len(live.parcels)):
        live.lose(m, 1, *dead)


def fixed_point(fs, method):
    """Of least squares: z is the mean of x_i = argmin f_i(x) + tau M/2 |x - z|^2, with N the number of these agents."""
    p, w = unknowns(fs[0]), method.tau * method.tokens
    zero, A, b = np.zeros(p), np.eye(p), np.zeros(p)
    for f in fs:
        inverse = np.linalg.inv(f.hessian(zero) + w * np.eye(p)) / len(fs)
        A, b = A - w * inverse, b - inverse @ f.grad(zero)
    return np.linalg.solve(A, b)


def assert_accounts_are_whole(live, agents):
    """Every token is the sum of what these agents last gave it, over their number."""
    for m, parcel in enumerate(live.parcels):
        assert not parcel.recounting
        assert float(parcel.members) == float(parcel.token.account.weight) == len(agents)
        given = sum(live.shares[m, i].given for i in agents)
        np.testing.assert_allclose(parcel.token.account.total, given, rtol=0, atol=1e-12)


@every_method
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("started", [False, True], ids=["from zero", "from a start"])
def test_without_losses_a_live_visit_is_the_simulators(method, kind, started):
    """visits.py: "When nothing is ever lost, a visit is the simulator's, number by number." """
    fs = objectives(kind)
    start = some_start(fs) if started else None
    simulated, live = Simulated(method, fs, start), Live(method, fs, start)
    assert isinstance(live.visits, TrackedVisits)
    for m, i in schedule(method.tokens, LAPS * AGENTS):
        np.testing.assert_array_equal(live.visit(m, i), simulated.visit(m, i))
        np.testing.assert_array_equal(live.holders[i].agent, simulated.agents[i])
        np.testing.assert_array_equal(live.shares[m, i], simulated.slots[m, i])
        np.testing.assert_array_equal(live.parcels[m].token.account.total, simulated.tokens[m].total)
        np.testing.assert_array_equal(live.parcels[m].token.account.weight, simulated.tokens[m].weight)


@every_method
def test_after_a_recount_a_visit_is_that_of_a_run_of_the_survivors(method):
    """tracked_visits.py: "after a recount a visit is, number by number, that of a run with only the remaining
    agents"."""
    fs = objectives("logistic", 6)
    live, fresh = Live(method, fs), Simulated(method, fs[:4])
    laps(live, 2, range(6))
    lose_all(live, 4, 5)
    laps(live, 1, range(4))
    assert_accounts_are_whole(live, range(4))
    fresh.agents = [holder.agent for holder in live.holders[:4]]
    fresh.slots = {key: share for key, share in live.shares.items() if key[1] < 4}
    fresh.tokens = [token._replace(total=live.parcels[m].token.account.total) for m, token in enumerate(fresh.tokens)]
    for m, i in schedule(method.tokens, 60, agents=4):
        np.testing.assert_array_equal(live.visit(m, i), fresh.visit(m, i))


@every_method
def test_two_dead_of_six_are_gone_and_one_comes_back(method):
    """The model does not jump, and what the dead had given is out of it; one that comes back is taken in whole."""
    fs = objectives("least squares", 6)
    live = Live(method, fs)
    laps(live, 20, range(6))
    before = [live.z(m) for m in range(method.tokens)]
    lose_all(live, 4, 5)
    for m in range(method.tokens):
        for i in range(4):
            np.testing.assert_array_equal(live.z(m), before[m])
            live.visit(m, i)
    for there in ([0, 1, 2, 3], [0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5]):
        laps(live, 600, there)
        assert_accounts_are_whole(live, there)
        left = [fs[i] for i in there]
        for m in range(method.tokens):
            np.testing.assert_allclose(live.z(m), fixed_point(left, method), rtol=0, atol=1e-9)
            np.testing.assert_allclose(live.z(m), settled(method, left), rtol=0, atol=1e-9)
            assert live.parcels[m].buried.sum() == 6 - len(there)


@every_method
def test_one_dies_after_the_other(method):
    """Those that were buried before are members no more: the second recount waits for all four that are left."""
    fs = objectives("least squares", 6)
    live = Live(method, fs)
    laps(live, 2, range(6))
    for dead in (5, 4):
        lose_all(live, dead)
        for m in range(method.tokens):
            for i in range(dead):
                assert live.parcels[m].recounting
                live.visit(m, i)
        assert_accounts_are_whole(live, range(dead))


@every_method
@pytest.mark.parametrize("lost", [False, True])
def test_one_that_leaves_takes_out_what_it_gave(method, lost):
    """What it gave goes out with its last visit of each token; also while a token is being recounted."""
    fs = objectives("least squares", 6)
    live = Live(method, fs)
    laps(live, 2, range(6))
    for m in range(method.tokens):
        if lost:
            live.lose(m, 1)
            live.visit(m, 5)
        live.leave(m, 5)
    laps(live, 600, range(5))
    assert_accounts_are_whole(live, range(5))
    np.testing.assert_allclose(live.z(0), fixed_point(fs[:5], method), rtol=0, atol=1e-9)


@every_method
def test_one_that_leaves_before_it_gave_is_not_waited_for(method):
    live = Live(method, objectives("least squares", 4))
    for m in range(method.tokens):
        live.visit(m, 0)
        live.leave(m, 3)
        live.leave(m, 3)  # it meets the token again before it can end
        assert float(live.parcels[m].token.account.weight) == 3
    laps(live, 2, range(3))
    assert_accounts_are_whole(live, range(3))


@every_method
def test_a_token_that_its_last_member_leaves_starts_again(method):
    live = Live(method, objectives("least squares", 3))
    lose_all(live, 1, 2)
    for m in range(method.tokens):
        live.visit(m, 0)
        live.leave(m, 0)
        assert not live.z(m).any()
    laps(live, 2, [1, 2])
    assert_accounts_are_whole(live, [1, 2])


@every_method
def test_a_token_that_is_lost_again_during_its_recount_begins_another(method):
    fs = objectives("least squares", 5)
    live = Live(method, fs)
    laps(live, 3, range(5))
    for visited in (1, 3, 2):
        lose_all(live, 4)
        laps(live, 1, range(visited))
        assert all(parcel.recounting for parcel in live.parcels)
    laps(live, 1, range(2, 4))
    assert_accounts_are_whole(live, range(4))


def test_a_recount_ends_though_somebody_is_never_met():
    """A recount ends when everybody who is left is in it, or after LAPS_MAX laps."""
    live = Live(METHODS["API-BCD"](2), objectives("least squares", 6))
    laps(live, 2, range(6))
    lose_all(live)  # nobody is known to be dead, and yet 4 and 5 do not come
    laps(live, 10, range(4))
    assert_accounts_are_whole(live, range(4))


@every_method
@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_lost_the_accounts_are_those_of_who_is_there(method, seed):
    """Visits in any order, tokens reissued from older copies, agents buried that live: what is left at last is what
    each agent last gave, and the fixed point is that of all who are met."""
    rng, fs = np.random.default_rng(seed), objectives("least squares", 6)
    live, copies = Live(method, fs), []
    for _ in range(300):
        m, i = int(rng.integers(method.tokens)), int(rng.integers(6))
        live.visit(m, i)
        if rng.random() < 0.1:
            copies.append((m, live.parcels[m], live.hops[m]))
        if copies and rng.random() < 0.06:
            m, live.parcels[m], live.hops[m] = copies[int(rng.integers(len(copies)))]
            live.lose(m, 1, *rng.choice(6, int(rng.integers(3)), replace=False))
    there = list(range(6 - seed % 3))
    lose_all(live, *range(len(there), 6))
    laps(live, 600, there)
    assert_accounts_are_whole(live, there)
    for m in range(method.tokens):
        np.testing.assert_allclose(live.z(m), fixed_point([fs[i] for i in there], method), rtol=0, atol=1e-9)


@every_method
@pytest.mark.parametrize("how", ["leave", "die"])
def test_one_that_is_never_met_takes_the_initial_model_with_it(method, how):
    """The mean counts it from the beginning, with the initial model as what it gave; and no more once it is gone."""
    fs = objectives("least squares", 4)
    live = Live(method, fs, some_start(fs))
    laps(live, 2, range(3))
    if how == "leave":
        for m in range(method.tokens):
            live.leave(m, 3)
    else:
        lose_all(live, 3)
        laps(live, 1, range(3))
    assert_accounts_are_whole(live, range(3))
    laps(live, 200, range(3))
    for m in range(method.tokens):
        np.testing.assert_allclose(live.z(m), fixed_point(fs[:3], method), rtol=0, atol=1e-6)
