"""Live visits: the simulator's, number by number, while nothing is lost; and exact again after somebody was."""

import numpy as np
import pytest

import amble
from amble import methods
from amble.arrays import named_leaves
from amble.live.core.message import Epoch
from amble.live.core.visits import GiftVisits, RawVisits, visits_for
from amble.losses.penalty import Penalty
from samples import some_objective, unknowns

AGENTS, LAPS = 5, 6
GIFTS = {
    "I-BCD": lambda M: amble.IBCD(tau=0.7, tokens=M),
    "WPG": lambda M: amble.WPG(alpha=0.2, tokens=M),
    "WADMM": lambda M: amble.WADMM(beta=0.9, tokens=M),
    "Relay full": lambda M: amble.Relay(tokens=M, form="full"),
    "Relay scalar": lambda M: amble.Relay(tokens=M, form="scalar"),
}
RAW = {
    "API-BCD": lambda M: amble.APIBCD(tau=0.7, tokens=M),
    "PW-ADMM": lambda M: amble.PWADMM(beta=0.9, tokens=M),
}
KINDS = ("least squares", "logistic")


def objectives(kind, count=AGENTS):
    return [some_objective(kind, seed)[0] for seed in range(count)]


def schedule(M, hops, agents=AGENTS, seed=0):
    """(token, agent) in some order: any will do, as both must follow it."""
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(M)), int(rng.integers(agents))) for _ in range(hops)]


def initial(fs, start=None):
    return np.zeros(unknowns(fs[0])) if start is None else start


def some_start(fs):
    return np.random.default_rng(7).normal(size=unknowns(fs[0])) * 3


class Simulated:
    """The simulator's visits along a schedule."""

    def __init__(self, method, fs, start=None, penalty=None):
        self.rules, self.fs, start = methods.rules(method, start, penalty), fs, initial(fs, start)
        self.agents = [self.rules.agent(f, start) for f in fs]
        self.slots = {(m, i): self.rules.slot(start) for m in range(method.tokens) for i in range(len(fs))}
        self.tokens = [self.rules.token(start, len(fs), m) for m in range(method.tokens)]

    def visit(self, m, i):
        self.agents[i], self.slots[m, i], self.tokens[m] = self.rules.visit(
            self.fs[i], self.agents[i], self.slots[m, i], self.tokens[m]
        )
        return self.rules.estimate(self.tokens[m])


class Live:
    """Live visits, with the epochs that the protocol would keep."""

    def __init__(self, method, fs, start=None, penalty=None):
        self.visits, self.fs = visits_for(method, unknowns(fs[0]), len(fs), start=start, penalty=penalty), fs
        self.holders = [self.visits.holder(f) for f in fs]
        self.shares, self.share_epochs = {}, {}
        self.parcels = [self.visits.parcel(m) for m in range(method.tokens)]
        self.epochs, self.hops = [0] * method.tokens, [0] * method.tokens

    def visit(self, m, i):
        fresh = self.share_epochs.get((m, i)) != self.epochs[m]
        share = self.shares.get((m, i)) or self.visits.share()
        self.hops[m] += 1
        self.holders[i], self.shares[m, i], self.parcels[m] = self.visits.visit(
            self.fs[i], self.holders[i], share, self.parcels[m], i, self.hops[m], fresh
        )
        self.share_epochs[m, i] = self.epochs[m]
        return self.z(m)

    def z(self, m):
        return self.visits.estimate(self.parcels[m])

    def lose(self, m, author, *dead):
        """Token m is reissued, and these are buried."""
        self.epochs[m] += 1
        buried = np.isin(np.arange(len(self.fs)), dead) * 1.0
        self.parcels[m] = self.visits.recount(self.parcels[m], Epoch(self.epochs[m], author), buried)


def cases(table):
    return [
        pytest.param(make_method(M), kind, id=f"{name} {M} {kind}")
        for name, make_method in table.items() for M in (1, 3) for kind in KINDS
    ]  # fmt: skip


@pytest.mark.parametrize("started", [False, True], ids=["from zero", "from a start"])
@pytest.mark.parametrize(("method", "kind"), cases(GIFTS) + cases(RAW))
def test_without_losses_a_live_visit_is_the_simulators(method, kind, started):
    """visits.py: "When nothing is ever lost, a visit is the simulator's, number by number." """
    fs = objectives(kind)
    start = some_start(fs) if started else None
    simulated, live = Simulated(method, fs, start), Live(method, fs, start)
    for m in range(method.tokens):
        np.testing.assert_allclose(live.z(m), initial(fs, start), rtol=1e-14)  # N times it, over N
    assert isinstance(live.visits, GiftVisits if hasattr(method, "gift") else RawVisits)
    for m, i in schedule(method.tokens, LAPS * AGENTS):
        np.testing.assert_array_equal(live.visit(m, i), simulated.visit(m, i))
        np.testing.assert_array_equal(live.holders[i].agent.x, simulated.agents[i].x)
    for parcel, token in zip(live.parcels, simulated.tokens, strict=True):
        if method.tokens == 1 and hasattr(method, "gift"):  # then the simulator keeps no board
            continue
        ours = parcel.token.account.board if hasattr(method, "gift") else parcel.token
        theirs = token.board if hasattr(method, "gift") else token
        for name, leaf in named_leaves(theirs, "").items():
            np.testing.assert_array_equal(named_leaves(ours, "")[name], leaf, err_msg=name)


def some_penalty(p):
    """l1 on all but the last unknown, the second may not be below zero."""
    l1 = np.full(p, 0.05)
    l1[-1] = 0.0
    return Penalty(l1, np.zeros(p), np.arange(p) == 1)


@pytest.mark.parametrize("M", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_under_a_penalty_too_a_live_visit_is_the_simulators(kind, M):
    fs = objectives(kind)
    method, penalty = amble.Relay(tokens=M, form="full"), some_penalty(unknowns(fs[0]))
    simulated, live = Simulated(method, fs, penalty=penalty), Live(method, fs, penalty=penalty)
    for m, i in schedule(M, LAPS * AGENTS):
        np.testing.assert_array_equal(live.visit(m, i), simulated.visit(m, i))
        np.testing.assert_array_equal(live.holders[i].agent.x, simulated.agents[i].x)


@pytest.mark.parametrize("M", [1, 3])
def test_the_penalty_is_as_strong_as_those_who_take_part_are_many(M):
    """Six agents of unequal shares; two die, one leaves: the model is the lasso of those who are left."""
    fs = [f._replace(**{k: (i + 1) * getattr(f, k) for k in ("A", "b", "c", "values")}, share=(i + 1) * f.share)
          for i, f in enumerate(objectives("least squares", 6))]  # fmt: skip
    penalty = some_penalty(unknowns(fs[0]))
    live = Live(amble.Relay(tokens=M, form="full"), fs, penalty=penalty)
    laps = [(k % M, i) for k in range(5 * M) for i in range(6)]
    for m, i in laps:
        live.visit(m, i)

    def slope(left):
        """What is left of the conditions of Karush, Kuhn and Tucker for these agents' losses and their penalty."""
        z, shares = live.z(0), sum(float(f.share) for f in left)
        return penalty.times(shares).slopes(z, sum(f.grad(z) for f in left)).max()

    assert slope(fs) < 1e-12
    for m in range(M):
        live.lose(m, 1, 4, 5)
    for m, i in [(m, i) for m, i in laps if i < 4]:
        live.visit(m, i)
    assert slope(fs[:4]) < 1e-12
    live.holders[3], _, live.parcels[0] = live.visits.leave(
        live.holders[3], live.visits.share(), live.parcels[0], 3, live.hops[0] + 1, False
    )
    for m, i in [(m, i) for m, i in laps if i < 3]:
        live.visit(m, i)
    assert slope(fs[:3]) < 1e-12
    assert slope(fs[:4]) > 1e-3


def optimum(fs):
    """Of the mean loss of least squares: an answer of its own."""
    zero = np.zeros(unknowns(fs[0]))
    return np.linalg.solve(sum(f.hessian(zero) for f in fs), -sum(f.grad(zero) for f in fs))


@pytest.mark.parametrize("M", [1, 3])
def test_after_deaths_the_model_is_the_survivors_optimum(M):
    """What two dead agents of six gave is gone from the answer, which is the survivors' optimum; and
    "no jump" at the re-issue."""
    fs = objectives("least squares", 6)
    live = Live(amble.Relay(tokens=M, form="full"), fs)
    for m, i in [(k % M, i) for k in range(5 * M) for i in range(6)]:
        live.visit(m, i)
    np.testing.assert_allclose(live.z(0), optimum(fs), rtol=0, atol=1e-12)
    for m in range(M):
        before = live.z(m)
        live.lose(m, 1, 4, 5)
        np.testing.assert_allclose(live.z(m), before, rtol=0, atol=1e-14)
    for lap in range(4):
        for m in range(M):
            for i in range(4):
                before, counting = live.z(m), live.parcels[m].recounting
                after = live.visit(m, i)
                if M == 1 and counting and live.parcels[m].recounting:
                    np.testing.assert_allclose(after, before, rtol=0, atol=1e-14, err_msg=f"lap {lap}, agent {i}")
    for m in range(M):
        assert not live.parcels[m].recounting
        assert float(live.parcels[m].members) == 4
        np.testing.assert_allclose(live.z(m), optimum(fs[:4]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("M", [1, 3])
def test_one_that_comes_back_is_taken_in_again(M):
    """visits.py: "An agent that comes back gives its whole gift whenever it is met, during the recount or after it" """
    fs = objectives("least squares", 6)
    live = Live(amble.Relay(tokens=M, form="full"), fs)
    everybody = [(m, i) for m in range(M) for i in range(6)]
    for m, i in 2 * everybody:
        live.visit(m, i)
    for m in range(M):
        live.lose(m, 1, 5)
    for m, i in 3 * [(m, i) for m in range(M) for i in range(5)]:
        live.visit(m, i)
    np.testing.assert_allclose(live.z(0), optimum(fs[:5]), rtol=0, atol=1e-12)
    for m, i in 3 * everybody:
        live.visit(m, i)
    for m in range(M):
        np.testing.assert_allclose(live.z(m), optimum(fs), rtol=0, atol=1e-12)
        assert live.parcels[m].buried.sum() == 0
        assert float(live.parcels[m].members) == 6


def test_a_second_recount_waits_for_all_who_are_left():
    """visits.py: "Once all remaining agents have done so, the new account is read"; who was buried before
    is not taken off their number twice."""
    fs = objectives("least squares", 6)
    live = Live(amble.Relay(form="full"), fs)
    for i in 2 * list(range(6)):
        live.visit(0, i)
    for dead in (5, 4):
        live.lose(0, 1, dead)
        for i in range(dead):
            assert live.parcels[0].recounting
            live.visit(0, i)
        assert not live.parcels[0].recounting
        np.testing.assert_allclose(live.z(0), optimum(fs[:dead]), rtol=0, atol=1e-12)


def test_a_recount_ends_though_somebody_is_never_met():
    """A recount ends when everybody who is awaited is in it, or after LAPS_MAX laps."""
    fs = objectives("least squares", 6)
    live = Live(amble.Relay(form="full"), fs)
    for _, i in 2 * [(0, i) for i in range(6)]:
        live.visit(0, i)
    live.lose(0, 1)  # nobody is known to be dead, and yet 4 and 5 do not come
    for i in 10 * list(range(4)):
        live.visit(0, i)
    assert not live.parcels[0].recounting
    np.testing.assert_allclose(live.z(0), optimum(fs[:4]), rtol=0, atol=1e-12)


def test_an_older_issue_leaves_no_trace():
    """ "its own ledger is the token's alone" """
    fs = objectives("least squares", 4)
    live = Live(amble.Relay(form="full"), fs)
    for i in 2 * list(range(4)):
        live.visit(0, i)
    old = live.parcels[0]
    live.lose(0, 1)
    newer = live.parcels[0]
    live.parcels[0], live.epochs[0] = old, 0
    live.visit(0, 2)  # the old issue goes on for a while
    live.parcels[0], live.epochs[0] = newer, 1
    for i in 3 * list(range(4)):
        live.visit(0, i)
    np.testing.assert_allclose(live.z(0), optimum(fs), rtol=0, atol=1e-12)


def settled(method, fs):
    """Where the simulator ends with these agents."""
    simulated = Simulated(method, fs)
    for _ in range(400):
        for m in range(method.tokens):
            for i in range(len(fs)):
                z = simulated.visit(m, i)
    return z


@pytest.mark.parametrize("M", [1, 3])
@pytest.mark.parametrize("name", ["I-BCD", "WADMM", "Relay scalar"])
def test_other_methods_settle_where_the_survivors_do(name, M):
    """After the recount the account has the survivors' gifts only, and ends where a run of the survivors does."""
    method, fs = GIFTS[name](M), objectives("least squares", 5)
    live = Live(method, fs)

    def laps(count, agents):
        for m, i in count * [(m, i) for m in range(M) for i in agents]:
            live.visit(m, i)

    laps(2, range(5))
    for m in range(M):
        live.lose(m, 1, 4)
    laps(400, range(4))
    np.testing.assert_allclose(live.z(0), settled(method, fs[:4]), rtol=0, atol=1e-9)
    laps(400, range(5))  # and it comes back
    np.testing.assert_allclose(live.z(0), settled(method, fs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("how", ["leave", "die"])
@pytest.mark.parametrize("M", [1, 3])
@pytest.mark.parametrize("name", ["I-BCD", "Relay full"])
def test_of_one_that_is_never_met_no_initial_model_is_left(name, M, how):
    """Where the weight is N it stands for what each agent of the beginning gave: for one that goes it goes, too."""
    fs, method = objectives("least squares", 4), GIFTS[name](M)
    live, others = Live(method, fs, some_start(fs)), Live(method, fs[:3], some_start(fs))
    for m, i in schedule(M, 30, agents=3):
        live.visit(m, i)
        others.visit(m, i)
    if how == "leave":
        live.hops[0] += 1
        live.holders[3], _, live.parcels[0] = live.visits.leave(
            live.holders[3], live.visits.share(), live.parcels[0], 3, live.hops[0], True
        )
    else:
        for m in range(M):
            live.lose(m, 0, 3)
    for each in (live, others):
        for m, i in 300 * [(m, i) for m in range(M) for i in range(3)]:
            each.visit(m, i)
    for m in range(M):
        np.testing.assert_allclose(live.z(m), others.z(m), rtol=0, atol=1e-9)
