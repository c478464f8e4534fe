"""The animation of tokens: every move in it is a hop of the run, at its time."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import amble
from amble.results.animation import HELD_S, PLAYED_S, RADIUS, animation
from browser import Browser

HOPS = 30
PROBLEM = amble.split(amble.load("diabetes"), agents=8)
STOP = re.compile(r"([\d.%,]+)\{(?:transform:translate\(([-\d.]+)px,([-\d.]+)px\)|fill:(none|var\(--c\d\)))\}")


@pytest.fixture(scope="module")
def run():
    timing = amble.Timing(low_s=1, high_s=2, compute=0.5)
    network = amble.networks.random(agents=8, density=0.5, seed=0)
    return amble.simulate(amble.Relay(tokens=2), PROBLEM, network, hops=HOPS, every=1, timing=timing, progress=False)


def stops(text, name):
    """Of the keyframes of this name: virtual shares of the time that is shown, and what is there."""
    (frames,) = re.findall(rf"@keyframes {name}\{{((?:[^{{}}]*\{{[^{{}}]*\}})*)\}}", text)
    return [
        ([float(at.rstrip("%")) / 100 * (PLAYED_S + HELD_S) / PLAYED_S for at in ats.split(",")], x, y, fill)
        for ats, x, y, fill in STOP.findall(frames)
    ]


def test_a_token_stands_at_each_agent_of_its_schedule_from_the_begin_to_the_end_of_its_visit(run):
    text = animation(run, HOPS)
    root = ElementTree.fromstring(text)
    circles = root.iterfind(".//{*}circle[@class]")
    places = np.array([[float(each.get("cx")), float(each.get("cy"))] for each in circles])
    assert len(places) == 8
    end_s = run.schedule.time_s[-1]
    for m in range(2):
        visits = stops(text, f"token{m}")
        mine = np.flatnonzero(run.schedule.token == m)
        assert len(visits) == len(mine)
        for (ats, x, y, _), k in zip(visits, mine, strict=True):
            near = np.hypot(*(places - [float(x), float(y)]).T)
            assert near[run.schedule.agent[k]] <= RADIUS + 5
            begin_s = run.schedule.time_s[k] - run.compute_s[run.schedule.agent[k]]
            inner = [at for at in ats if 0 < at < 1 + 1e-4] or ats
            assert inner[-1] == pytest.approx(run.schedule.time_s[k] / end_s, abs=1e-4)
            if begin_s > 0:
                assert inner[0] == pytest.approx(begin_s / end_s, abs=1e-4)
    for i in range(8):
        coloured = [fill for _, _, _, fill in stops(text, f"agent{i}") if fill != "none"]
        assert coloured == [f"var(--c{m})" for m in run.schedule.token[run.schedule.agent == i]]


def test_it_says_what_the_run_did(run):
    text = animation(run, HOPS)
    assert "2 tokens walk among 8 agents" in text
    first = run.history["hop"][np.flatnonzero(run.history["distance"] < 1e-6)[0]]
    assert f"below 1e-06 after {first} hops" in text
    assert len(text.encode()) < 100_000
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text.count("M") > len(run.network.edges)


def test_what_cannot_be_animated_is_said(run, tmp_path):
    rounds = amble.simulate(amble.DGD(), PROBLEM, hops=5, progress=False)
    for what, path, hops in ((rounds, "x.svg", 5), (run, "x.svg", 0), (run, "x.svg", 1000), (run, "x.gif", 5)):
        with pytest.raises(amble.AmbleError, match=r"animation of|end it in \.svg"):
            what.plot_walk(tmp_path / path, hops)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_browser_plays_it_as_a_picture_and_stands_still_if_asked_to(run, tmp_path):
    run.plot_walk(tmp_path / "walk.svg", HOPS)
    (tmp_path / "page.html").write_text('<!doctype html><body><img src="walk.svg">')
    for calm in (False, True):
        with Browser(720, 400, calm=calm) as browser:
            browser.open(
                f"file://{tmp_path}/{'walk.svg' if calm else 'page.html'}"
            )  # the wish is not passed on to pictures
            pictures = []
            for name in ("a", "b"):
                browser.run("return new Promise((done) => setTimeout(done, 900))")
                browser.picture(tmp_path / f"{name}.png")
                pictures.append((tmp_path / f"{name}.png").read_bytes())
            assert (pictures[0] == pictures[1]) is calm
