"""The account of gift methods when tokens are lost, reissued from older copies, and agents die, return or forget.

Sentences in quotation marks are those at the top of live/accounts.py.
"""

import numpy as np
import pytest

import amble
from amble.live.core import accounts
from amble.live.core.message import Epoch
from amble.live.core.packing import Packing, flat
from amble.live.core.visits import visits_for
from amble.live.formats.counts import Counts
from samples import build, unknowns

pytestmark = pytest.mark.long

AGENTS, FEATURES, RIDGE = 8, 4, 1e-3
FORMS = [("logistic", "full"), ("logistic", "scalar"), ("softmax", "full"), ("softmax", "scalar")]
every_form = pytest.mark.parametrize(("kind", "form"), FORMS)


def objectives(kind, seed=0, rows=12):
    """Agents whose few rows some plane separates, as it does not those of all."""
    rng, losses = np.random.default_rng(seed), []
    w = 1.5 * rng.normal(size=(FEATURES, 3 if kind == "softmax" else 1))
    for _ in range(AGENTS):
        X = rng.normal(size=(rows, FEATURES))
        if kind == "softmax":
            y = np.argmax(X @ w + rng.gumbel(size=(rows, 3)), axis=1) * 1.0
        else:
            y = (X @ w[:, 0] + rng.logistic(size=rows) > 0) * 1.0
        losses.append(build(kind, X, y, RIDGE))
    return losses


def optimum(losses):
    """Newton with a line search on the sum of all losses."""
    w = np.zeros(unknowns(losses[0]))
    for _ in range(60):
        g, H = sum(f.grad(w) for f in losses), sum(f.hessian(w) for f in losses)
        step, t = np.linalg.solve(H + 1e-13 * np.eye(len(w)), -g), 1.0
        before = sum(f.value(w) for f in losses)
        while t > 1e-9 and sum(f.value(w + t * step) for f in losses) > before + 1e-4 * t * (g @ step):
            t /= 2
        w = w + t * step
        if np.linalg.norm(step) < 1e-14 * np.linalg.norm(w):
            break
    return w


class Run:
    """Tokens and agents without a network. Every token may be in several hands at once: `issues` are all of them."""

    def __init__(self, kind, form, tokens, seed=0):
        self.fs = objectives(kind, seed)
        self.visits = visits_for(amble.Relay(tokens=tokens, form=form), unknowns(self.fs[0]), AGENTS)
        self.holders = [self.visits.holder(f) for f in self.fs]
        self.parcels = [self.visits.parcel(m) for m in range(tokens)]
        self.epochs, self.hops = [0] * tokens, [0] * tokens
        self.history = {}  # the gifts of each agent in each generation, in their order
        self.peak = 0.0

    def visit(self, m, i, check=True):
        self.hops[m] += 1
        with np.errstate(all="ignore"):
            self.holders[i], _, self.parcels[m] = self.visits.visit(
                self.fs[i], self.holders[i], self.visits.share(), self.parcels[m], i, self.hops[m], False
            )
        account, given = self.parcels[m].token.account, self.holders[i].agent.given
        count = int(account.gifts[:, i].sum())
        gifts = self.history.setdefault((account.order, i), {})
        gifts.setdefault(count, given)
        self.peak = max(self.peak, float(np.linalg.norm(self.holders[i].z)))
        if check:
            self.check(m)

    def check(self, m):
        """ "A sum of ledgers is therefore meaningful only if it has all differences of each agent up to some visit" """
        account = self.parcels[m].token.account
        counts = account.gifts.sum(axis=0)
        given = [self.history[account.order, i][int(counts[i])] for i in np.flatnonzero(counts)]
        v, w = sum(gift.v for gift in given), sum(gift.w for gift in given)
        np.testing.assert_allclose(account.board.total.sum(axis=0), v, rtol=0, atol=1e-9 * (1 + np.abs(v).max()))
        np.testing.assert_allclose(account.board.weight.sum(axis=0), w, rtol=0, atol=1e-9 * (1 + np.abs(w).max()))
        assert self.visits._sound(account, account.z)

    def lose(self, m, author, gone=(), copy=None):
        """Token m is reissued, from this copy of it, and these are counted out."""
        self.epochs[m] += 1
        flags = np.isin(np.arange(AGENTS), list(gone)) * 1.0
        parcel, hop = copy or (self.parcels[m], self.hops[m])
        self.parcels[m], self.hops[m] = self.visits.recount(parcel, Epoch(self.epochs[m], author), flags), hop

    def walk(self, rng, hops, agents, check=True):
        for _ in range(hops):
            self.visit(int(rng.integers(len(self.parcels))), int(rng.choice(agents)), check)

    def distance(self, agents):
        w = optimum([self.fs[i] for i in agents])
        return max(np.linalg.norm(self.visits.estimate(p) - w) / np.linalg.norm(w) for p in self.parcels)


def laps(form, count=1):
    return count * (60 if form == "full" else 150) * AGENTS


@every_form
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_half_the_agents_die_and_return(kind, form, tokens):
    """Every token buries them at another time. The model is the optimum of those who are there, and on its way there it
    is never larger than without failures: "the weight could become indefinite, and the model could diverge"."""
    rng, calm = np.random.default_rng(1), Run(kind, form, tokens)
    calm.walk(rng, 40 * AGENTS, range(AGENTS))
    run = Run(kind, form, tokens)
    run.walk(rng, 40 * AGENTS, range(AGENTS))
    for m in range(tokens):
        run.lose(m, int(rng.integers(4)), gone=(4, 5, 6, 7))
        run.walk(rng, 3 * AGENTS, range(4))
    run.walk(rng, laps(form), range(4))
    assert run.distance(range(4)) < 1e-5
    run.walk(rng, laps(form), range(AGENTS))
    assert run.distance(range(AGENTS)) < 1e-5
    largest = max(np.linalg.norm(optimum(run.fs[:4])), np.linalg.norm(optimum(run.fs)), calm.peak)
    assert run.peak < 3 * largest


@every_form
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_lost_every_sum_of_ledgers_is_whole(kind, form, seed):
    """Tokens reissued from old copies, while the older issue still walks; agents counted out that live; at every
    hop the account is the sum of whole gifts, and in the end it is that of those who are there."""
    rng, tokens = np.random.default_rng(seed), 2 + seed % 2
    run, copies, older = Run(kind, form, tokens, seed), [], []
    for _ in range(30 * AGENTS):
        m, i = int(rng.integers(tokens)), int(rng.integers(AGENTS))
        run.visit(m, i)
        if rng.random() < 0.1:
            copies.append((m, run.parcels[m], run.hops[m]))
        if copies and rng.random() < 0.05:
            m, *copy = copies[int(rng.integers(len(copies)))]
            older.append((m, run.parcels[m], run.hops[m]))
            run.lose(m, int(rng.integers(AGENTS)), rng.choice(AGENTS, int(rng.integers(3)), replace=False), tuple(copy))
        if older and rng.random() < 0.1:  # the older issue visits somebody, too
            m, *issue = older[-1]
            newest = run.parcels[m], run.hops[m]
            run.parcels[m], run.hops[m] = issue
            run.visit(m, int(rng.integers(AGENTS)))
            older[-1] = m, run.parcels[m], run.hops[m]
            run.parcels[m], run.hops[m] = newest
    there = range(AGENTS - seed % 3)
    for m in range(tokens):
        run.lose(m, 0, range(len(there), AGENTS))
    run.walk(rng, laps(form), there)
    assert run.distance(there) < 1e-5


@every_form
@pytest.mark.parametrize("lost", ["all", "newest"])
def test_an_agent_that_forgot_what_it_gave_is_not_counted_twice(kind, form, lost):
    """ "... or an agent that the board knows to have given more than it remembers." """
    rng, run = np.random.default_rng(3), Run(kind, form, 2)
    run.walk(rng, 5 * AGENTS, range(AGENTS))
    old = run.visits.holder(run.fs[2]) if lost == "all" else run.holders[2]
    run.walk(rng, 5 * AGENTS, range(AGENTS))
    run.holders[2] = old
    run.walk(rng, laps(form), range(AGENTS), check=False)
    assert run.distance(range(AGENTS)) < 1e-5


@every_form
@pytest.mark.parametrize("new", [True, False])
def test_what_a_copied_agent_gave_is_out_again_once_the_copy_is_gone(kind, form, new):
    """Two agents of one name, each with its own token, from an empty journal or from a copied one."""
    rng, run = np.random.default_rng(4), Run(kind, form, 2)
    others = [i for i in range(AGENTS) if i != 2]
    run.walk(rng, 5 * AGENTS, others if new else range(AGENTS))
    copied = run.holders[2]
    for _ in range(3):
        run.visit(0, 2, check=False)
        mine, run.holders[2] = run.holders[2], copied
        run.visit(1, 2, check=False)
        copied, run.holders[2] = run.holders[2], mine
        run.walk(rng, AGENTS // 2, others, check=False)
    run.walk(rng, laps(form), range(AGENTS), check=False)
    assert run.distance(range(AGENTS)) < 1e-5


def test_a_ledger_that_has_no_version_left_starts_again():
    run = Run("logistic", "full", 2)
    run.walk(np.random.default_rng(0), 40, range(AGENTS))
    account = run.parcels[0].token.account
    version = account.board.version.copy()
    version[0] = accounts.ISSUE_VERSIONS - 20
    worn = account._replace(board=account.board._replace(version=version))
    run.parcels[0] = run.parcels[0]._replace(token=run.parcels[0].token._replace(account=worn))
    for _ in range(8):
        for i in range(AGENTS):
            run.visit(0, i, check=False)
    assert run.parcels[0].token.account.generation[0] >= 1
    assert run.parcels[0].token.account.board.version[0] < accounts.ISSUE_VERSIONS / 2
    run.walk(np.random.default_rng(1), laps("full"), range(AGENTS), check=False)
    assert run.distance(range(AGENTS)) < 1e-5


def test_a_weight_that_is_no_sum_of_gifts_is_not_read():
    """Whatever made it so: the model stays, and all give their whole gifts again."""
    run = Run("logistic", "full", 2)
    run.walk(np.random.default_rng(0), 200, range(AGENTS))
    parcel, before = run.parcels[0], run.visits.estimate(run.parcels[0])
    account = parcel.token.account
    weight = account.board.weight - 2 * account.board.weight.sum(axis=0)
    spoilt = account._replace(board=account.board._replace(weight=weight, version=account.board.version + 1))
    run.parcels[0] = parcel._replace(token=parcel.token._replace(account=spoilt))
    run.visit(0, 3, check=False)
    assert run.parcels[0].recounting
    np.testing.assert_allclose(run.visits.estimate(run.parcels[0]), before, rtol=0, atol=1e-9)
    run.walk(np.random.default_rng(1), laps("full"), range(AGENTS))
    assert run.distance(range(AGENTS)) < 1e-5


def test_one_that_left_and_lost_its_journal_is_counted_in_again():
    """It is started once more, as the sentence about damaged journals invites to."""
    run, rng = Run("logistic", "full", 2), np.random.default_rng(0)
    run.walk(rng, 100, range(AGENTS))
    for m in (0, 1):
        run.hops[m] += 1
        run.holders[3], _, run.parcels[m] = run.visits.leave(
            run.holders[3], run.visits.share(), run.parcels[m], 3, run.hops[m], False
        )
    others = [i for i in range(AGENTS) if i != 3]
    run.walk(rng, laps("full"), others, check=False)
    assert run.distance(others) < 1e-5
    run.holders[3] = run.visits.holder(run.fs[3])
    run.walk(rng, laps("full"), range(AGENTS), check=False)
    assert run.distance(range(AGENTS)) < 1e-5
    for m in (0, 1):
        assert Counts.of(Packing(run.parcels[m])).wrong(flat(run.parcels[m]), run.hops[m]) == ""


@pytest.mark.parametrize("tokens", [2, 4])
def test_the_paper_s_N_is_that_of_the_agents_whose_gifts_are_read(tokens):
    """Whatever boards the ledgers came from: z = sum of gifts / number of agents in it, at every visit."""
    rng, fs = np.random.default_rng(1), objectives("logistic")
    run = Run("logistic", "full", tokens)
    run.visits = visits_for(amble.IBCD(tau=0.5, tokens=tokens), FEATURES, AGENTS)
    run.holders = [run.visits.holder(f) for f in fs]
    run.parcels = [run.visits.parcel(m) for m in range(tokens)]
    read = 0
    for k in range(60 * AGENTS):
        if k % 40 == 39:
            run.lose(int(rng.integers(tokens)), 0, rng.choice(AGENTS, 2, replace=False))
        m, i = int(rng.integers(tokens)), int(rng.integers(AGENTS))
        before = run.holders[i].agent
        recounting = run.parcels[m].recounting
        run.visit(m, i, check=False)
        account, given = run.parcels[m].token.account, run.holders[i].agent.given
        if recounting or account.order != before.account.order or not account.generation[0]:
            continue
        first = account.gifts[:, i].sum() == 1
        total = account.board.total.sum(axis=0) - (given.v - (0 if first else before.given.v))
        z = total / max(1, account.inside.sum() - first)
        if account.gifts[:, i].sum() > before.account.gifts[:, i].sum() and not run.parcels[m].recounting:
            np.testing.assert_allclose(run.holders[i].z, z, rtol=0, atol=1e-9)
            read += 1
    assert read > 50


def test_an_account_that_has_started_again_too_often_is_known():
    run = Run("logistic", "full", 2)
    account = run.parcels[0].token.account
    assert not run.visits.spent(run.parcels[0])
    last = account._replace(generation=np.array([accounts.GENERATIONS_MAX, 0.0]))
    assert run.visits.spent(run.parcels[0]._replace(token=run.parcels[0].token._replace(account=last)))
