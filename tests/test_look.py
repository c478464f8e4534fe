"""One look: its colours can be told apart by readers with any colour vision and seen on their paper, pages and figures
take them from one place, and headlines and labels say what the data say."""

import dataclasses
import re
from itertools import combinations, pairwise

import numpy as np
import pytest

import amble
from amble.drawing import LINE_PT, End, label_ends, new_figure, spread
from amble.look import COLOURS, PAIRS, css, look
from amble.report.curves import section_curves
from amble.report.figures import section_figure
from amble.report.headline import headline
from amble.report.looks import looks
from amble.report.sections import Section, group, lines
from doc_blocks import ROOT

# Machado, Oliveira and Fernandes 2009, table of severity 1: what linear RGB looks like
VISIONS = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
# the least distance of two colours; of Okabe and Ito's eight it is 22, 12, 12 and 11, and one cannot be seen on white
APART = {"all cones": 18, "protanopia": 15, "deuteranopia": 15, "tritanopia": 10}
TEXT = ("ink", "quiet", "link", "held", "failed", "part")
STYLES = [ROOT / "src/amble/report/base.css", ROOT / "src/amble/report/page.css", ROOT / "docs/static/site.css",
          ROOT / "src/amble/live/page/web/page.css"]  # fmt: skip


def linear(colour):
    part = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB, for white D65."""
    ratio = np.asarray(TO_XYZ) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    """WCAG 2: 3 is enough for lines, 4.5 for text."""
    dark, light = sorted(float(np.dot(linear(each), [0.2126, 0.7152, 0.0722])) for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


def distance(one, other):
    """CIEDE2000 of two colours in L*a*b*."""
    c = np.hypot(one[1:3:2], one[2:]).item(), np.hypot(other[1:3:2], other[2:]).item()
    stretch = 1.5 - 0.5 * np.sqrt(np.mean(c) ** 7 / (np.mean(c) ** 7 + 25**7))
    (c1, h1), (c2, h2) = (
        (np.hypot(stretch * a, b), np.degrees(np.arctan2(b, stretch * a)) % 360) for _, a, b in (one, other)
    )
    turn = (h2 - h1 + 180) % 360 - 180
    h, c, light = h1 + turn / 2, (c1 + c2) / 2, (one[0] + other[0]) / 2
    wave = sum(size * np.cos(np.radians(times * h - at)) for size, times, at in
               ((-0.17, 1, 30), (0.24, 2, 0), (0.32, 3, -6), (-0.2, 4, 63)))  # fmt: skip
    dl = (other[0] - one[0]) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * c)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * c * (1 + wave))
    bent = np.sin(np.radians(60 * np.exp(-(((h % 360 - 275) / 25) ** 2)))) * 2 * np.sqrt(c**7 / (c**7 + 25**7))
    return float(np.sqrt(dl**2 + dc**2 + dh**2 - bent * dc * dh))


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_of_two_colours_is_that_of_sharma_wu_and_dalal(one, other, apart):
    """Their table 1, of 2005."""
    assert distance(np.array(one), np.array(other)) == pytest.approx(apart, abs=5e-5)


def least_distance(colours, vision):
    return min(distance(*(lab(VISIONS[vision] @ linear(each)) for each in pair)) for pair in combinations(colours, 2))


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("paper", [0, 1], ids=["light", "dark"])
def test_colours_can_be_told_apart_with_any_colour_vision(vision, paper):
    assert least_distance([PAIRS[f"c{k}"][paper] for k in range(8)], vision) > APART[vision]
    assert least_distance(["#D55E00", "#999933"], "deuteranopia") < 6  # two that cannot


@pytest.mark.parametrize("paper", [0, 1], ids=["light", "dark"])
def test_lines_and_text_can_be_seen_on_their_paper(paper):
    colours = {name: pair[paper] for name, pair in PAIRS.items()}
    assert min(contrast(colours[f"c{k}"], colours["paper"]) for k in range(8)) >= 3
    assert min(contrast(colours[name], colours[under]) for name in TEXT for under in ("paper", "raised")) >= 4.5


def test_colours_are_in_one_place():
    """No other file of the package, of its pages or of the site has a colour of its own."""
    sources = [*ROOT.glob("src/amble/**/*.py"), *ROOT.glob("src/amble/**/*.js"), *STYLES, *ROOT.glob("docs/*.py")]
    with_colours = [path.name for path in sources if re.search(r"#(?!000000)[0-9a-fA-F]{6}\b", path.read_text())]
    assert with_colours == ["look.py"]
    defined = set(re.findall(r"--([\w-]+):", css()))
    assert defined == set(PAIRS)
    for path in STYLES:
        own = set(re.findall(r"--([\w-]+):", path.read_text()))
        used = {name for name in re.findall(r"var\(--([\w-]+)", path.read_text()) if not name.startswith("color-")}
        assert used <= defined | own, path


# --- headlines and labels -------------------------------------------------------------------------------------------

PROBLEM = amble.split(amble.load("diabetes"), agents=6)


def test_a_headline_names_who_is_first_by_the_runs_own_numbers():
    runs = amble.compare([amble.WPG(alpha=0.2), amble.Relay(), amble.DADMM()], PROBLEM, hops=600)
    told = headline(group(runs)[0])
    assert told.startswith("First within 0.1 % of the optimum's test NMSE: ")
    for cost, name in (("time_s", "time"), ("comm_units", "communication")):
        costs = {run.method.label: run.time_to(within=0.001, cost=cost) for run in runs}
        least = min(costs, key=lambda label: np.inf if np.isnan(costs[label]) else costs[label])
        assert re.search(rf"{least} in [^;]*{name}", told), (told, costs)
    assert section_figure(group(runs)[0]).get_suptitle().replace("\n", " ") == told


def test_a_headline_of_one_run_and_of_runs_that_come_nowhere_near():
    run = amble.compare([amble.Relay()], PROBLEM, hops=300)
    units = run[0].time_to(within=0.001, cost="comm_units")
    assert headline(group(run)[0]).endswith(f"and {units:.0f} units")
    short = amble.compare([amble.WPG(alpha=0.01), amble.WPG(alpha=0.02)], PROBLEM, hops=20)
    best = min(each.history["metric"][-1] for each in short)
    assert headline(group(short)[0]) == (
        f"WPG (alpha=0.02) ends with the best test NMSE, {best:.4f}; no method is within 1 % of the optimum's"
    )
    nowhere = amble.compare([amble.IBCD(), amble.Relay()], PROBLEM, hops=300, optimum=False)
    best = min(nowhere, key=lambda each: each.history["metric"][-1])
    told = f"{best.method.label} ends with the best test NMSE, {best.history['metric'][-1]:.4f}"
    assert headline(group(nowhere)[0]) == told


def test_a_headline_of_one_method_is_of_its_model_though_it_is_read_in_two_ways():
    relay, other = amble.Relay(tokens=3, form="scalar"), amble.APIBCD(tau=0.1, tokens=3)
    for method, reading, within in ((relay, "Relay", "0.1 %"), (other, "API-BCD (mean of x)", "1 %")):
        section = group(amble.compare([method], PROBLEM, hops=600))[0]
        assert len(lines(section)) == 2  # the mean of the tokens, and that of the agents' models
        told = rf"{re.escape(reading)} is within {within} of the optimum's test NMSE after [\d.]+ (µs|ms) and \d+ units"
        assert re.fullmatch(told, headline(section))


def test_times_of_a_live_run_are_not_called_virtual():
    run = amble.compare([amble.Relay()], PROBLEM, hops=60)[0]
    live = dataclasses.replace(run, walk="live")
    for runs, name in (((run,), "virtual time"), ((live,), "time"), ((run, live), "time")):
        section = Section("s", runs)
        assert [panel.get_xlabel() for panel in section_figure(section).axes] == [
            f"{name} (s)",
            "communication (units)",
        ]
        assert section_curves(section, looks([section])[0])["costs"][0]["title"] == name
    labels = [line.label for line in lines(Section("s", (run, live)))]
    assert labels == ["Relay (full), walk: cycle", "Relay (full), walk: live"]


def test_labels_do_not_touch_and_stay_near_their_lines():
    rng = np.random.default_rng(0)
    for count in range(1, 9):
        heights = rng.uniform(0.04, 0.12, count)
        wanted = np.sort(rng.uniform(0, 1, count))
        places = spread(wanted, heights)
        edges = np.column_stack([places - heights / 2, places + heights / 2])
        assert edges.min() > -1e-12
        assert edges.max() < 1 + 1e-12
        assert all(below[1] <= above[0] + 1e-12 for below, above in pairwise(edges))
    assert np.array_equal(spread(np.array([0.2, 0.5, 0.8]), np.full(3, 0.1)), [0.2, 0.5, 0.8])


@pytest.mark.parametrize(
    ("ends", "room"), [([1, 2, 3], True), ([1] * 12, False), ([1, 1.01, 1.02, 1.03, 1.04, 3], False)]
)
def test_lines_are_labelled_at_their_ends_where_there_is_room(ends, room):
    with look():
        figure = new_figure(5, 3)
        panel = figure.subplots()
        for y in ends:
            panel.plot([0, 1], [0, y])
        own = [End(1, y, f"line {k}", COLOURS[k % 8]) for k, y in enumerate(ends)]
        assert label_ends(panel, own) is room
    figure.draw_without_rendering()
    boxes = sorted((each.get_window_extent() for each in panel.texts), key=lambda box: box.y0)
    assert len(boxes) == room * len(ends)
    height = LINE_PT / 72 * figure.dpi
    for text, y in zip(panel.texts, ends, strict=False):
        wanted = panel.transData.transform((1, y))[1]
        assert abs(panel.transAxes.transform(text.xyann)[1] - wanted) < height
