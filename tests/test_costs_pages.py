"""The pages on asynchrony and on time against bytes are those of their kept figures; who holds models, and who is on
the front."""

import importlib.util
import json
import sys

import numpy as np
import pytest

import amble
from amble import engines
from doc_blocks import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import holders

PROBLEM = amble.split(amble.load("diabetes"), agents=6)


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = {name: loaded(name) for name in ("asynchrony", "pareto", "parallel", "convex")}
DRAWN = ("asynchrony", "pareto")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_that_of_the_kept_figures(name):
    module = PAGES[name]
    page, kept = module.PAGE.read_text(), json.loads(module.KEPT.read_text())
    texts = module.blocks(kept)
    assert {block[1] for block in module.BLOCK.findall(page)} == set(texts)
    assert module.rewritten(page, texts) == page, f"run python docs/{name}.py"


@pytest.mark.parametrize("name", DRAWN)
def test_the_figure_is_drawn(name, tmp_path):
    module = PAGES[name]
    module.draw(json.loads(module.KEPT.read_text()), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 20_000


def point(time_s, sent):
    return {"time_s": time_s, "bytes": sent}


def test_the_front_is_what_nothing_beats_in_both():
    points = {"Relay, M=1": point(3, 1), "Relay, M=2": point(2, 2), "WPG": point(2, 3), "DGD": point(None, None)}
    pareto = PAGES["pareto"]
    assert pareto.front(points) == ["Relay, M=2", "Relay, M=1"]
    assert pareto.verdict({"a": points}) == "Relay's line is the whole front on 1 of 1 data sets: a"
    points["EXTRA"] = point(1, 9)
    assert pareto.front(points)[0] == "EXTRA"
    assert pareto.sentence("a", points) == (
        "**a.** On the front: Relay with M = 2, 1, and EXTRA. 1 of 5 are not there within the budget."
    )
    assert pareto.verdict({"a": points}) == "Relay's line is the whole front on 0 of 1 data sets"


def test_the_fastest_of_each_kind():
    def cell(early, late):
        return {"times": [[early] * 3, [late] * 3]}

    cells = {"Relay": cell(5.0, 9.0), "WPG": cell(4.0, None), "FedAvg": cell(4.5, 20.0), "AD-PSGD": cell(None, None)}
    asynchrony = PAGES["asynchrony"]
    best = asynchrony.fastest(cells, 0)
    assert best["tokens"] == (4.0, "WPG")
    assert best["a server"] == (4.5, "FedAvg")
    assert best["gossip in pairs"] == (np.inf, "none")
    assert asynchrony.winners(cells, 0) == ["tokens", "a server"]  # 4.5 is less than 1.2 times 4
    assert asynchrony.winners(cells, 1) == ["tokens"]


@pytest.mark.parametrize("method", [amble.Relay(tokens=3), amble.EXTRA(), amble.ADPSGD(), amble.APIBCD()], ids=repr)
def test_all_who_hold_a_model_are_asked(method):
    """The first record from which on the holders' mean loss is below a bound, by replaying to each record afresh."""
    run = amble.simulate(method, PROBLEM, hops=300, progress=False)
    machine = engines.engine_for("plain", run.method, PROBLEM, run.network, meets=run.meets)
    losses = []
    for hop in run.recorded.tolist():
        state = machine.advance(machine.start(), run.schedule, 0, hop)
        if holders.holders(run) == "agents":
            losses.append(np.mean([PROBLEM.value(x) for x in state.agents.x]))
        else:
            rule = amble.methods.rules(run.method, meets=run.meets)
            tokens = [amble.arrays.tree_map(lambda a, m=m: a[m], state.tokens) for m in range(run.method.tokens)]
            losses.append(np.mean([PROBLEM.value(rule.estimate(token)) for token in tokens]))
    bound = losses[-1] + 0.1 * (losses[0] - losses[-1])
    good = [loss <= bound for loss in losses]
    last_bad = max(k for k, fine in enumerate(good) if not fine)

    def fine(models):
        return np.mean([PROBLEM.value(w) for w in models]) <= bound

    found = holders.first_good(run, PROBLEM, [0, None], [fine, fine])
    assert found[1] is None
    assert good[found[0]]
    assert not good[found[0] - 1]
    assert found[0] <= last_bad + 1


def test_one_token_and_a_server_hold_the_model_of_the_run():
    for method in (amble.Relay(), amble.FedAvg()):
        run = amble.simulate(method, PROBLEM, hops=60, progress=False)
        assert holders.holders(run) == "one"
        assert holders.first_good(run, PROBLEM, [4, None], [lambda _: False] * 2) == [4, None]
