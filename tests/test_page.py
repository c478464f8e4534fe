"""The page of saved runs: its numbers are the runs' own; it is one file, asks nothing of a network, and opens."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import amble
from amble.cli import main
from amble.drawing import save
from amble.report.claims import Cell, Claim, Row, Verdict
from amble.report.curves import section_curves
from amble.report.export import COLUMNS, curves_text, find_runs, write_page, write_report
from amble.report.figures import section_figure
from amble.report.looks import looks
from amble.report.measures import band
from amble.report.page import LINKS_MAX, Page, pictures
from amble.report.sections import Line, Section, columns, group, lines, slugs
from amble.report.text import reach_text
from amble.results.reaching import reach

METHODS = [amble.IBCD(), amble.APIBCD(tokens=3), amble.WPG(alpha=0.2)]
SEEDS = (0, 1, 2)
QUICK = {"engine": "plain", "progress": False}
EMPTY_TAGS = {"meta", "input"}
WHERE_FROM = re.compile(
    r"""(src|href|action|srcset|data)\s*=\s*["']?\s*(https?:|//)|url\((?!#)|@import""", re.IGNORECASE
)


@pytest.fixture(scope="module")
def runs():
    found = []
    for seed in SEEDS:
        problem = amble.split(amble.load("diabetes"), agents=6, seed=seed)
        found += amble.compare(METHODS, problem, hops=300, seed=seed, **QUICK).runs
    return found


@pytest.fixture(scope="module")
def digits():
    problem = amble.split(amble.load("digits"), agents=4)
    return amble.compare(METHODS[:2], problem, hops=60, **QUICK).runs


@pytest.fixture(scope="module")
def saved(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    for k, run in enumerate(runs, 1):
        run.save(folder / f"seed-{run.seed}" / f"{k}-{run.method.label.lower()}")
    return folder


def with_history(run, **given):
    return replace(run, history=run.history | {key: np.array(value, float) for key, value in given.items()})


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps the text of table rows."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in EMPTY_TAGS:
            self.open.append(tag)
        self.ids += [value for key, value in attrs if key == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += f"{data} "


def read(path):
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    return [[cell.strip() for cell in row] for row in reader.rows]


def own_text(path):
    """The page without Plotly's code, which names addresses that it never asks for here."""
    return re.sub(r"<script>/\*\*.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL)


def test_runs_of_the_same_data_make_a_section_and_seeds_make_a_line(runs, digits):
    sections = group([runs[0], digits[0], *runs[1:], digits[1]])
    titles = [section.title for section in sections]
    assert titles == ["diabetes, 6 agents, random(0.7)", "digits, 4 agents, random(0.7)"]
    assert sections[0].runs == tuple(runs)
    found = lines(sections[0])
    plain = {line.label: line.runs for line in found if not line.column_suffix}
    assert plain == {run.label: tuple(each for each in runs if each.label == run.label) for run in runs[:3]}
    assert [line.label for line in found if line.column_suffix] == [f"{runs[1].label}, mean of x"]
    assert slugs([sections[0], sections[0]]) == ["diabetes-6-agents-random-0-7", "diabetes-6-agents-random-0-7-2"]


def test_other_settings_of_the_data_or_network_are_another_section(runs):
    other = replace(runs[0], problem=runs[0].problem | {"settings": {**runs[0].problem["settings"], "ridge": 1.0}})
    ring = replace(runs[0], network=amble.networks.ring(6))
    assert [section.title for section in group([runs[0], other, ring])] == [
        "diabetes, 6 agents, random(0.7)",
        "diabetes, 6 agents, random(0.7) (2)",
        "diabetes, 6 agents, ring",
    ]


def test_runs_that_differ_in_more_than_the_seed_are_never_one_line(runs):
    run = runs[0]
    slow = replace(run, timing=replace(run.timing, compute=0.5))
    shown = lines(Section("x", (run, replace(run, walk="metropolis"), slow, run)))
    assert [(line.label.removeprefix(run.label), len(line.runs)) for line in shown] == [
        (", walk: cycle, compute=model", 1),
        (", walk: metropolis, compute=model", 1),
        (", walk: cycle, compute=0.5", 1),
        (", walk: cycle, compute=model, run 2", 1),
    ]


def test_a_method_tuned_for_each_seed_is_one_line(runs):
    record = {"setting": "alpha", "hops": 9, "tried": {"1": 2.0, "2": 3.0}}
    chosen = zip(runs[2::3], (0.1, 0.2, 0.2), strict=True)
    tuned = [replace(run, method=amble.WPG(alpha=a), tuning=record | {"chosen": a}) for run, a in chosen]
    assert [line.label for line in lines(Section("x", tuple(tuned)))] == ["WPG (alpha tuned)"]
    assert [line.label for line in lines(Section("x", tuple(tuned[1:])))] == ["WPG (alpha=0.2, tuned)"]


def test_runs_tuned_for_one_reading_are_read_so_only(runs):
    """API-BCD tuned once for each reading: two lines, one reading each, in one colour."""
    record = {"setting": "tau", "hops": 9, "tried": {"0.1": 2.0}}
    tokens, local = (replace(runs[1], tuning=record | {"chosen": 0.1, "reading": each}) for each in ("", "_local"))
    section = Section("x", (tokens, local))
    shown = lines(section)
    assert [line.column_suffix for line in shown] == ["", "_local"]
    assert [line.runs for line in shown] == [(tokens,), (local,)]
    assert shown[1].details == (f"{local.settings_text}, tuned", "mean of x")
    first, second = looks([section])[0]
    assert second == first._replace(dotted=True)


def test_nothing_beyond_a_budget_is_drawn_or_counted(runs):
    long = with_history(runs[0], time_s=[0, 1, 4, 16], comm_units=[0, 1, 2, 3], metric=[9, 8, 2, 9])
    assert lines(Section("x", (runs[0],), budgets={"time_s": 5.0}))[0].budgets == {"time_s": 5.0}
    x, *_ = band(Line("x", (long,), "", budgets={"time_s": 5.0}), "time_s", "metric")
    assert x[-1] == pytest.approx(5.0)
    assert reach(long, "metric", "time_s", 0.5, 2.0, 5.0) == 4
    assert np.isnan(reach(long, "metric", "time_s", 0.5, 2.0))


def test_a_band_is_the_least_the_median_and_the_most_over_the_seeds(runs):
    made = [
        with_history(runs[0], time_s=[0, 1, 4, 16], metric=[9, 8, 4, 2]),
        with_history(runs[3], time_s=[0, 2, 8, 64], metric=[9, 6, 5, 1]),
        with_history(runs[6], time_s=[0, 1, 2, 32], metric=[9, 7, 3, 0]),
    ]
    x, low, middle, high = band(Line("x", tuple(made), ""), "time_s", "metric")
    assert (x[0], x[-1]) == (1, 16)  # from the first cost above zero to where the first run ends
    assert np.allclose(np.diff(np.log(x)), np.log(16) / (len(x) - 1))
    for cost, expected in ((1.0, (7, 8, 9)), (1.5, (7, 8, 9)), (3.0, (3, 6, 8)), (5.0, (3, 4, 6)), (16.0, (2, 3, 5))):
        k = int(np.searchsorted(x, cost))
        assert (low[k], middle[k], high[k]) == expected
    alone = band(Line("x", (made[0],), ""), "time_s", "metric")
    assert np.array_equal(alone[1], alone[2])
    assert np.array_equal(alone[1], alone[3])
    free = with_history(runs[0], comm_units=np.zeros(4), metric=np.ones(4))
    assert [len(part) for part in band(Line("x", (free,), ""), "comm_units", "metric")] == [0, 0, 0, 0]


def test_reach_is_from_where_on_it_stays_within(runs, digits):
    near = {"metric": [2, 1.005, 1.02, 1.01, 0.9], "distance": [1, 0.1, 0, 0, 0.01]}
    run = with_history(runs[0], time_s=[0, 1, 2, 3, 4], **near)
    assert reach(run, "metric", "time_s", 0.01, 1.0) == 3  # 1.005 was left again; better than the optimum is within
    assert reach(run, "metric", "time_s", 0.001, 1.0) == 4
    assert np.isnan(reach(run, "metric", "time_s", 0.01, 0.5))
    assert reach(run, "metric", "time_s", 1.0, 1.0) == 0
    assert reach(run, "metric", "time_s", 0.01, None) == 2  # no test rows: the distance
    assert np.isnan(reach(run, "metric", "time_s", 0.001, None))
    upward = with_history(digits[0], bytes=[0, 8, 16], metric=[0.5, 0.95, 0.991])
    assert reach(upward, "metric", "bytes", 0.01, 1.0) == 16
    assert np.isnan(reach(with_history(upward, metric=[1, 1, np.nan]), "metric", "bytes", 0.01, 1.0))


def test_a_seed_that_never_got_there_counts_as_infinite():
    nan = float("nan")
    assert reach_text([1e-3, 3e-3, 2e-3], "time_s") == "2 ms"
    assert reach_text([1e-3, nan, 2e-3], "time_s") == "2 ms (2 of 3)"
    assert reach_text([1e-3, nan, nan], "time_s") == "– (1 of 3)"
    assert reach_text([nan], "comm_units") == "–"
    assert reach_text([1234.0], "comm_units") == "1,234"
    assert reach_text([999_999.0], "bytes") == "1 MB"


def expected_cells(line):
    """The table's row, computed here from the histories alone."""
    cells = []
    for within in (0.01, 0.001):
        for cost in ("time_s", "comm_units", "bytes"):
            found = []
            for run in line.runs:
                limit = run.problem["optimum_metric"] * (1 + within)
                values = run.history[f"metric{line.column_suffix}"]
                stays = [k for k in range(len(values)) if (values[k:] <= limit).all()]
                found.append(float(run.history[cost][stays[0]]) if stays else float("nan"))
            cells.append(reach_text(found, cost))
    for column, form in (("metric", ".4f"), ("distance", ".2g")):
        ended = [run.history[column + line.column_suffix][-1] for run in line.runs]
        cells.append(format(np.median(ended), form))
    return cells


def test_the_page_holds_every_method_with_its_numbers_and_the_claims(runs, digits, tmp_path):
    rows = (Row("Mine", (Cell(9.0), Cell(np.inf, 20.0)), claimed=True), Row("Yours", (Cell(3.0), Cell(np.nan))))
    held = Claim("It is fast.", Verdict.HELD)
    lost = Claim(
        "It is cheap.", Verdict.FAILED, "comm_units", ("50 %", "90 %"), rows, (Verdict.FAILED, Verdict.UNDECIDED)
    )
    claims = (held, lost)
    one, two = group([*runs, *digits])
    sections = [replace(one, claims=claims, about="Figure 3."), replace(two, claims=claims[1:])]
    page = Page("Title here", sections, "One.\n\nTwo.", ["The sky is blue."], {"computer": "an abacus"})
    (path,) = write_page(tmp_path / "page.html", page)
    rows = read(path)
    for line in lines(one):
        name, _, rest = line.label.partition(" (")
        settings, _, more = rest.partition(")")
        head = " ".join(filter(None, (name, settings, more.lstrip(", "))))
        matching = [row for row in rows if re.sub(r"\s+", " ", row[0]) == head and len(row) == 9]
        assert expected_cells(line) in [row[1:] for row in matching]
    assert ["It is fast.", "held", "–"] in rows
    assert ["It is cheap.", "did not hold", "did not hold"] in rows
    table = rows.index(["", "50 %", "90 %"])
    assert rows[table + 1 : table + 4] == [
        ["Mine", "9", "not within 20"],
        ["Yours", "3", "–"],
        ["verdict", "did not hold", "undecided"],
    ]
    text = own_text(path)
    for words in ("Title here", "<p>One.</p><p>Two.</p>".replace("><", ">\n<"), "Figure 3.",
                  "The sky is blue.", "an abacus", "0, 1, 2"):  # fmt: skip
        assert words in text
    assert "numpy" not in text  # the machine given, not this one
    assert not list(tmp_path.glob("*.part"))


def test_the_drawn_numbers_are_the_bands(runs):
    section = group(runs)[0]
    drawn = section_curves(section, looks([section])[0])
    assert [each["key"] for each in drawn["columns"]] == list(columns(section)) == ["metric", "distance"]
    for line, shown in zip(lines(section), drawn["lines"], strict=True):
        assert shown["label"] == line.label
        for cost in ("time_s", "comm_units", "bytes"):
            x, *parts = band(line, cost, "distance")
            assert np.allclose(shown["curves"][cost]["x"], x, rtol=1e-4)
            assert np.allclose(shown["curves"][cost]["distance"], parts, rtol=1e-4)


def test_a_method_has_one_colour_in_every_section(runs):
    other = [replace(runs[2], method=amble.WPG(alpha=0.7)), runs[0], replace(runs[0], method=amble.IBCD(tau=5))]
    first, second = looks([Section("a", tuple(runs)), Section("b", tuple(other))])
    assert second[0] == first[3]  # WPG, whatever its step
    assert second[1] == first[0]
    assert second[2] not in first  # but two of a kind in one section are told apart
    assert first[2] == first[1]._replace(dotted=True)


def test_the_page_asks_nothing_of_a_network_and_escapes_what_runs_say(runs, tmp_path):
    bad = '<script>alert("x")</script>'
    hostile = replace(runs[0], problem=runs[0].problem | {"name": bad}, network=replace(runs[0].network, name="<b>&"))
    section = Section(
        bad, (hostile,), about=bad, claims=(Claim(bad, Verdict.HELD, columns=(bad,), rows=(Row(bad, (Cell(1.0),)),)),)
    )
    (path,) = write_page(tmp_path / "page.html", Page(bad, [section], bad, [bad], {bad: bad}))
    read(path)
    text = own_text(path)
    assert bad not in text
    assert "<b>&" not in text.replace("<b>&lt;", "")
    assert text.count("<script") == 2  # the numbers and the page's own code
    assert not WHERE_FROM.search(text)
    assert "default-src 'none'" in text
    json.loads(re.search(r'id="curves">(.*?)</script>', text, re.DOTALL)[1])
    assert path.stat().st_size < 6e6


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_runs_make_a_page_too(runs, tmp_path):
    """Diverged, without test rows, and alone: no cost to draw against."""
    problem = amble.split(amble.load("diabetes"), agents=6)
    lost = amble.simulate(amble.WPG(alpha=50.0), problem, hops=2000, **QUICK)
    assert lost.stopped == "diverged"
    rng = np.random.default_rng(0)
    untested = amble.Problem.from_arrays(rng.normal(size=(40, 3)), rng.normal(size=40), agents=4)
    alone = amble.Problem.from_arrays(rng.normal(size=(40, 3)), rng.normal(size=40), agents=1)
    single = amble.networks.from_edges(1, [])
    more = [amble.simulate(amble.APIBCD(tokens=2), untested, hops=50, **QUICK),
            amble.simulate(amble.IBCD(), alone, single, hops=20, **QUICK)]  # fmt: skip
    sections = group([runs[0], lost, *more])
    written = write_report(tmp_path / "page.html", Page("Odd", sections))
    rows = read(written[0])
    assert ["WPG alpha=50 diverged (1 of 1)", *["–"] * 6] in [[re.sub(r"\s+", " ", row[0]), *row[1:7]] for row in rows]
    assert list(columns(sections[1])) == ["distance"]
    assert len(written) == 2 + 2 * len(sections)


def texts(drawn):
    return re.findall(r"<text[^>]*>([^<]*)<", drawn)


def test_holdings_and_the_network_are_drawn(runs):
    def drawn(name="x", **given):
        return pictures(name, replace(runs[0], problem=runs[0].problem | given))

    labels = {"labels": ["<a> costs $5, not $6", "日本"], "counts": [[3, 0], [1, 2]], "agents": ["north", "south"]}
    bars, _ = drawn(holdings=labels)
    assert {"north", "south", "&lt;a&gt; costs $5, not $6", "日本"} <= set(texts(bars))
    assert bars.count("fill: var(--c0)") == 3  # a bar per agent, and the key
    targets = {"rows": [5, 7], "target": [[0, 1, 2, 3, 4], [1, 1, 1, 1, 1.0]]}
    assert "target: least, middle half, median, most" in texts(drawn(holdings=targets)[0])
    (network,) = drawn(holdings=None)
    assert {str(i) for i in range(6)} <= set(texts(network))
    links = max(re.findall(r'd="(.*?)"', network), key=lambda path: path.count("M"))
    assert links.count("L") == links.count("M") == len(runs[0].network.edges)
    large = replace(runs[0], network=amble.networks.complete(120))
    assert len(large.network.edges) > LINKS_MAX
    assert "too many links" in pictures("x", large)[-1]


def test_a_picture_takes_the_colours_and_the_font_of_its_page_and_is_the_same_twice(runs):
    both = [pictures("x", runs[1]), pictures("x", runs[1])]
    assert both[0] == both[1]
    for drawn in both[0]:
        assert "#000000" not in drawn
        assert "#ffffff" not in drawn
        assert "font-family" not in drawn
        assert "<style" not in drawn
    ids = [re.findall(r' id="([^"]*)"', "".join(pictures(name, runs[1]))) for name in ("x", "y")]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_figure_is_the_same_bytes(runs, ending, tmp_path):
    one, two = (runs[1].plot_network(tmp_path / f"{name}.{ending}").read_bytes() for name in "ab")
    assert one == two


def test_the_csv_is_the_histories(runs):
    sections = group(runs)
    rows = list(csv.DictReader(curves_text(sections).splitlines()))
    assert len(rows) == sum(len(run.recorded) for run in runs)
    for run in runs:
        mine = [row for row in rows if (row["method"], row["seed"]) == (run.label, str(run.seed))]
        assert {(row["section"], row["data"]) for row in mine} == {(sections[0].title, "diabetes")}
        for column in COLUMNS:
            assert np.array_equal([float(row[column]) for row in mine], run.history[column])


def test_the_csv_has_the_penalised_f_where_a_run_has_it(runs):
    penalised = np.arange(float(len(runs[0].recorded)))
    more = replace(runs[0], history={**runs[0].history, "penalised": penalised})
    rows = list(csv.DictReader(curves_text(group([more, runs[1]])).splitlines()))
    values = {label: [float(row["penalised"]) for row in rows if row["method"] == label]
              for label in (more.label, runs[1].label)}  # fmt: skip
    assert values[more.label] == penalised.tolist()
    assert np.isnan(values[runs[1].label]).all()
    assert "penalised" not in curves_text(group(runs))


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_figure_for_a_paper(runs, digits, ending, tmp_path):
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for k, section in enumerate(group([*runs, *digits])):
        path = save(section_figure(section), tmp_path / f"{k}.{ending}")
        assert path.read_bytes().startswith(begins[ending])


def test_a_comparison_makes_its_page_and_one_without_runs_is_refused(digits, tmp_path):
    path = amble.Comparison(digits).report(tmp_path / "new" / "page.html")
    assert any(row[0].startswith("I-BCD") for row in read(path))
    with pytest.raises(amble.AmbleError, match="at least one section"):
        write_page(tmp_path / "page.html", Page("x", []))


def run_report(*words, cwd):
    command = [sys.executable, "-m", "amble", "report", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def test_the_command_makes_the_page_the_curves_and_the_figures(saved, tmp_path):
    done = run_report(saved, saved / "seed-0", "-o", "out/page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    stem = "diabetes-6-agents-random-0-7"
    assert names == {"page.html", "curves.csv", f"{stem}.png", f"{stem}.svg"}
    assert max(map(len, done.stdout.splitlines())) <= 80
    said = done.stdout.replace("\n", "")
    assert all(name in said for name in names)
    assert len((tmp_path / "out" / "curves.csv").read_text().splitlines()) == 1 + sum(
        len(run.recorded) for run in find_runs([saved])
    )  # a run named twice counts once
    assert [run.seed for run in find_runs([saved])] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    one = saved / "seed-0" / "1-i-bcd"
    for name in (one, one.with_suffix(".json"), one.with_suffix(".npz")):
        assert [run.label for run in find_runs([name])] == ["I-BCD (tau=1)"]


BAD = [
    ([], "no saved run was given"),
    (["nothere"], "there is no nothere.json"),
    (["empty"], "there is no saved run in the folder empty"),
    (["cut"], "the saved run cut is damaged or cut short"),
    (["good", "cut.json"], "the saved run cut is damaged or cut short"),
    (["good", "-o", "page.pdf"], "'page.pdf' was given for the page; give a file that ends in .html"),
    (["good", "-o", "good.json/page.html"], "nothing can be written to the folder good.json"),
    (["live"], "live holds agents of a live run and no saved run, which amble up writes; use amble replay live."),
    (["live/north"], "live/north holds agents of a live run and no saved run"),
    (["record"], "record holds the record of a live run and no saved run"),
    (["good", "-o", "old.html"], "old.html exists already; give another page with --out, or --again to replace it."),
    (["good", "-o", "blocked/page.html"], "the report cannot be written to blocked/"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD])
def test_bad_input_is_one_sentence_with_nothing_written(words, sentence, runs, tmp_path, monkeypatch, capsys):
    for name in ("good", "cut"):
        runs[0].save(tmp_path / name)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:100])
    (tmp_path / "empty").mkdir()
    (tmp_path / "old.html").write_text("another page")
    (tmp_path / "live" / "north").mkdir(parents=True)
    (tmp_path / "live" / "north" / "agent.toml").touch()
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "record.npz").touch()
    (tmp_path / "blocked" / "page.html.part").mkdir(parents=True)  # stands in the way of the page
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["amble", "report", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("amble: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "old.html").read_text() == "another page"


def test_again_replaces_a_page(runs, tmp_path):
    runs[0].save(tmp_path / "good")
    (tmp_path / "report.html").write_text("another page")
    assert run_report("good", cwd=tmp_path).returncode == 2
    assert run_report("good", "--again", cwd=tmp_path).returncode == 0
    assert "another page" not in (tmp_path / "report.html").read_text()
