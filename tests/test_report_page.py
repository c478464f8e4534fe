"""The report in a real browser: on a desk and on a phone, light and dark.

Set AMBLE_PICTURES to a folder to keep a picture of each.
"""

import os
from itertools import combinations
from pathlib import Path

import pytest

import amble
from amble.look import PAIRS
from amble.report.export import write_page
from amble.report.page import Page
from amble.report.sections import group, lines
from browser import Browser
from page_samples import fits, quiet

pytestmark = pytest.mark.long

METHODS = [amble.IBCD(), amble.APIBCD(tokens=3), amble.WPG(alpha=0.2), amble.Relay(), amble.DADMM()]
QUICK = {"engine": "plain", "progress": False}
BOXES = """return [...document.querySelectorAll(arguments[0])].map((axis) => [...axis.querySelectorAll(arguments[1])]
  .map((each) => each.getBoundingClientRect()).map((box) => [box.left, box.right, box.top, box.bottom]))"""
WIDER = "return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth).length"
CUT = """return [...document.querySelectorAll('main *')].filter((each) => !each.closest('.scroll, figure, .plot')
  && each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""
STROKES = "return [...document.querySelectorAll('.scatterlayer .js-line')].map((each) => each.style.stroke)"


@pytest.fixture(scope="module")
def sections():
    runs = []
    for data, agents, hops in (("diabetes", 6, 300), ("digits", 4, 40)):
        problem = amble.split(amble.load(data), agents=agents)
        runs += amble.compare(METHODS, problem, hops=hops, **QUICK).runs
    return group(runs)


@pytest.fixture(scope="module")
def page(sections, tmp_path_factory):
    (path,) = write_page(tmp_path_factory.mktemp("report") / "report.html", Page("A report", sections))
    return path


def overlap(one, other):
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["desk", "phone"])
def test_everything_fits_and_ticks_do_not_touch(page, sections, width, dark):
    with Browser(width, 900, dark=dark) as browser:
        browser.open(page.as_uri())
        browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert fits(browser, width)
        assert browser.run(CUT) == []
        assert (browser.run(WIDER) > 0) is (width == 390)  # tables scroll by themselves
        for axis, ticks in ((".plot .xaxislayer-above", ".xtick text"), (".plot .yaxislayer-above", ".ytick text")):
            labels = browser.run(BOXES, axis, ticks)
            assert len(labels) == 2 * len(sections)
            for boxes in labels:
                assert len(boxes) > 1
                assert not [pair for pair in combinations(boxes, 2) if overlap(*pair)]
        if width == 390:
            assert "1" in browser.texts(".xtick text")  # an axis of units begins at the first message
        drawn = [stroke for stroke in browser.run(STROKES) if stroke]
        wanted = {f"rgb({', '.join(str(int(PAIRS[name][dark][k : k + 2], 16)) for k in (1, 3, 5))})" for name in PAIRS}
        assert drawn
        assert set(drawn) <= wanted
        pressed = browser.run("return document.querySelectorAll('.legend [aria-pressed=true]').length")
        assert pressed == sum(len(lines(section)) for section in sections)
        if folder := os.environ.get("AMBLE_PICTURES"):
            browser.resize(width, browser.run("return document.documentElement.scrollHeight"))
            Path(folder).mkdir(parents=True, exist_ok=True)
            browser.picture(Path(folder) / f"report-{width}{'-dark' * dark}.png")
        quiet(browser)
