"""The live page in a real browser, on real runs: agents are processes, and one of them is killed.

Set AMBLE_PICTURES to a folder to keep a picture of each moment.
"""

import contextlib
import inspect
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("uvicorn")

import amble
from amble.live import status
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.page.opened import open_page
from amble.live.page.server import Server
from browser import Browser

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
WITHIN_S = 90.0
ROWS = "return [...document.querySelectorAll('#agents tbody tr')].map((row) => [...row.cells].map((c) => c.innerText))"
ON_A_LINK = """
const at = (each) => each.getAttribute('transform').match(/-?[\\d.]+/g).map(Number);
const nodes = [...document.querySelectorAll('#network g.node')].map(at);
const away = ([x, y]) => Math.min(...nodes.map(([a, b]) => Math.hypot(a - x, b - y)));
return [...document.querySelectorAll('#network g.token')].some((each) => away(at(each)) > 40);
"""  # a token at an agent is within 20 pixels of its middle
SLIDE = "const at = document.querySelector('#time'); at.value = arguments[0]; at.dispatchEvent(new Event('input'))"
FOCUS = "const at = document.activeElement; return at.id || at.textContent"


def states(browser):
    """Of all agents, as the table has them."""
    return {row[0]: row[1] for row in browser.run(ROWS)}


def happened(browser, text):
    return any(event.startswith(text) for event in browser.texts("#events li span"))


def titles(browser):
    """Of the charts, without the numbers behind them."""
    return [re.match(r"[a-z A-Z/]+", text)[0].strip() for text in browser.texts("#charts figcaption")]


def count(browser, selector):
    return browser.run("return document.querySelectorAll(arguments[0]).length", selector)


def pressed(browser, selector):
    return browser.run("return document.querySelector(arguments[0]).ariaPressed === 'true'", selector)


def until(condition):
    end_s = time.monotonic() + WITHIN_S
    while not (outcome := condition()):
        assert time.monotonic() < end_s, inspect.getsource(condition)
        time.sleep(0.05)
    return outcome


def all_up(browser, agents):
    until(lambda: list(states(browser).values()) == ["up"] * agents)


def picture(browser, name):
    if folder := os.environ.get("AMBLE_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(folder) / f"{name}.png")


def fits(browser, width):
    """Nothing is wider than the window; tables scroll in themselves."""
    return browser.run("return document.documentElement.scrollWidth") <= width


def quiet(browser):
    """The console has no error and no warning."""
    assert [line for line in browser.log() if line["level"] in ("SEVERE", "WARNING")] == []


def tab_to(browser, wanted, limit=200):
    """Press Tab until this has the focus: an id, or a button's text."""
    for _ in range(limit):
        browser.press("Tab")
        if browser.run(FOCUS) == wanted:
            return
    raise AssertionError(f"{wanted} was not reached by Tab")


@pytest.fixture
def cluster(tmp_path):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=6, ridge=0.01)
    network = amble.networks.random(6, 0.6, 1)
    timing = {"pause_s": 0.25, "patience_s": 2.0}
    config = configure(problem, amble.Relay(tokens=2), network, {"hops": 10**9}, 0, timing)
    with Cluster.create(tmp_path / "run", config, rows_of(problem, data.X, data.y)) as made:
        yield made


def test_a_run_is_watched_an_agent_dies_and_comes_back_one_leaves_and_the_run_is_stopped(cluster):
    cluster.start_all()
    with (
        Server(open_page([cluster.folder])) as server,
        Browser(1280, 900) as wide,
        Browser(390, 844, dark=True) as phone,
    ):
        wide.open(server.url)
        phone.open(server.url)
        for browser in (wide, phone):
            all_up(browser, 6)
            browser.wait(ON_A_LINK)  # a token moves
            assert browser.text("#up") == "6 of 6"
        picture(wide, "1-running")
        picture(phone, "1-running-phone-dark")
        assert fits(phone, 390)
        assert wide.texts("#charts figcaption")[0].startswith("moved per lap")

        cluster.kill("agent02")
        for browser in (wide, phone):
            until(lambda browser=browser: states(browser)["agent02"] == "down")
            until(lambda browser=browser: happened(browser, "agent02 is down: its process is gone"))
            assert count(browser, "#network g.node.down") == 1
        picture(wide, "2-down")
        picture(phone, "2-down-phone-dark")
        cluster.start("agent02")
        until(lambda: states(wide)["agent02"] in ["up", "waiting"])
        until(lambda: happened(wide, "agent02 started again"))

        wide.click("#agents tbody tr:nth-child(5) button")
        wide.wait("return document.querySelector('#log').textContent.includes('agent04 listens')")
        facts = dict(zip(wide.texts("#facts dt"), wide.texts("#facts dd"), strict=True))
        assert facts["state"] == "up"
        assert facts["neighbours"].count("(up)") == len(cluster.config.agent("agent04").neighbours)
        assert re.fullmatch(r"[\d.]+ [kM]B", facts["journal"])
        assert re.fullmatch(r"valid until 20\d\d-\d\d-\d\d", facts["certificate"])
        assert re.match(r"token [01] at hop \d+, from agent0\d", facts["last visit"])
        picture(wide, "3-agent")
        wide.click("#leave")
        wide.click("#confirm-yes")
        until(lambda: states(wide)["agent04"] == "left")
        until(lambda: happened(wide, "agent04 has left: all that it gave is out of the model"))

        wide.click("#stop")
        wide.click("#confirm button[value=no]")
        assert "running" in wide.text("#state")
        phone.click("#stop")
        picture(phone, "4-stop-phone-dark")
        phone.click("#confirm-yes")
        for browser in (wide, phone):
            until(lambda browser=browser: browser.text("#headline").startswith("the run has ended: it was asked"))
            until(lambda browser=browser: count(browser, "#links a") == 1)
            until(lambda browser=browser: count(browser, "#network g.node.ended") == 5)
        picture(wide, "5-ended")
        picture(phone, "5-ended-phone-dark")
        assert fits(phone, 390)
        quiet(wide)
        quiet(phone)
    assert not cluster.running() or all(cluster.status(name).state in ("ended", "left") for name in cluster.running())


def test_the_page_is_used_with_the_keyboard_alone_and_goes_back_in_time(cluster):
    cluster.start_all()
    with Server(open_page([cluster.folder])) as server, Browser(1280, 900, calm=True) as browser:
        browser.open(server.url)
        all_up(browser, 6)
        assert not browser.run(ON_A_LINK)  # nothing moves between two agents: reduced motion is asked for
        tab_to(browser, "stop")
        browser.press("Enter")
        assert browser.run("return document.querySelector('#confirm').open")
        browser.press("Escape")
        assert browser.run("return !document.querySelector('#confirm').open")
        assert browser.run(FOCUS) == "stop"
        tab_to(browser, "visits")  # a title of the table
        browser.press("Enter")
        assert browser.run("return document.querySelector('#agents th:nth-child(3)').ariaSort") == "ascending"
        browser.press("Enter")
        assert browser.run("return document.querySelector('#agents th:nth-child(3)').ariaSort") == "descending"
        shown = [int(text.replace(",", "")) for text in browser.texts("#agents tbody td:nth-child(3)")]
        assert shown == sorted(shown, reverse=True)
        tab_to(browser, "agent03")
        browser.press("Space")
        browser.wait("return document.querySelector('#log').textContent.includes('agent03 listens')")
        browser.press("Escape")
        assert browser.run(FOCUS) == "agent03"
        tab_to(browser, "time")
        browser.press("Home")
        until(lambda: not pressed(browser, "#live"))
        assert browser.run("return document.querySelector('#time').value") == "0"
        then = browser.text("#clock")
        browser.press("Right", "Right")
        assert browser.run("return document.querySelector('#time').value") == "2"
        later = int(browser.run("return document.querySelector('#time').max"))
        browser.wait("return Number(document.querySelector('#time').max) > arguments[0] + 2", later)
        assert (
            browser.run("return document.querySelector('#time').value") == "2"
        )  # the past stays while the run goes on
        picture(browser, "6-back")
        browser.press("End")
        until(lambda: pressed(browser, "#live"))
        browser.wait("return document.querySelector('#clock').textContent > arguments[0]", then)
        quiet(browser)


def test_one_agents_page_shows_what_that_agent_knows_and_says_so(cluster):
    cluster.start_all()
    name = "agent01"
    near = {peer.name for peer in cluster.config.agent(name).neighbours}
    with Server(open_page([cluster.folder / name])) as server, Browser(390, 844) as browser:
        browser.open(server.url)
        all_up(browser, 1 + len(near))
        assert set(browser.texts("#agents tbody th")) == {name, *near}
        assert f"This page shows what {name} knows" in browser.text("#scope")
        for other in {*cluster.config.agents} - near - {name}:
            assert other in browser.text("#scope")
        browser.wait(ON_A_LINK)
        other = min(near)
        browser.click(f"#agents tbody tr:nth-child({1 + sorted({name, *near}).index(other)}) button")
        assert "not on this machine" in browser.text("#log-note")
        browser.press("Escape")
        cluster.kill(other)
        until(lambda browser=browser: states(browser)[other] == "down")
        picture(browser, "7-one-agent-phone")
        assert fits(browser, 390)
        quiet(browser)


# --- amble up --page ------------------------------------------------------------------------------------------------


class Up:
    """A command in a terminal of its own."""

    def __init__(self, *words):
        self.screen, inner = pty.openpty()
        command = [sys.executable, "-m", "amble", *map(str, words)]
        environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
        )
        os.close(inner)
        self.said = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # it has ended
            while data := os.read(self.screen, 65_536):
                self.said += data.decode(errors="replace")

    def wait(self, pattern):
        end_s = time.monotonic() + WITHIN_S
        while not (match := re.search(pattern, self.said)):
            assert time.monotonic() < end_s, self.said
            time.sleep(0.05)
        return match[0]

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WITHIN_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        os.close(self.screen)


ADDRESS = r"http://127\.0\.0\.1:\d+/[\w-]+/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("up") / "run"


def test_amble_up_with_a_page_shows_the_metric_and_ends_with_the_results(folder):
    words = (
        "up",
        "--data",
        "diabetes",
        "-n",
        4,
        "--tolerance",
        0,
        "--hops",
        10**8,
        "--pause",
        0.1,
        "-o",
        folder,
        "--page",
    )
    with Up(*words) as up, Browser(1280, 900) as browser:
        url = up.wait(ADDRESS)
        browser.open(url)
        all_up(browser, 4)
        until(lambda browser=browser: count(browser, "#charts figure") == 5)
        assert titles(browser) == ["NMSE", "distance to the optimum", "moved per lap", "hops/s", "heard"]
        pid = status.read(folder / "agent01").process.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda browser=browser: states(browser)["agent01"] == "down")
        browser.click("#stop")
        browser.click("#confirm-yes")
        until(lambda browser=browser: count(browser, "#links a") > 0)
        up.wait("the page stays open; Ctrl-C ends it")
        until(lambda: browser.text("#lines p").startswith("test NMSE 0.4"))
        until(lambda browser=browser: count(browser, "#links a") == 2)
        picture(browser, "8-up-ended")
        quiet(browser)
        browser.open(f"{url}report")
        browser.wait("return document.querySelectorAll('.plot svg.main-svg').length > 0")  # the plots are drawn
        picture(browser, "9-report")
        quiet(browser)
        assert up.interrupt() == 1  # of the run: an agent was lost
    assert re.search(r"agent01 failed: .{0,9}killed by SIGKILL", up.said)


def all_up_at(browser):
    """Where the slider must be for the first moment at which all agents are up."""
    for k in range(0, 1000, 20):
        browser.run(SLIDE, k)
        if set(states(browser).values()) == {"up"}:
            return k
    raise AssertionError("never")


def test_the_run_is_replayed_from_its_record(folder):
    """The same page as before, with a slider over the whole run."""
    with Up("page", folder) as up, Browser(1280, 900) as browser:
        browser.open(up.wait(ADDRESS))
        until(lambda browser=browser: count(browser, "#links a") == 2)
        assert "A finished run, from its record" in browser.text("#scope")
        assert browser.run("return document.querySelector('#stop').hidden")
        assert titles(browser) == ["NMSE", "distance to the optimum", "hops/s", "heard"]
        assert all_up_at(browser) < int(browser.run("return document.querySelector('#time').max"))
        then = browser.text("#clock")
        browser.click("#play")
        browser.wait("return document.querySelector('#clock').textContent > arguments[0]", then)
        browser.wait(ON_A_LINK)
        browser.click("#play")
        assert browser.text("#play") == "Play"
        picture(browser, "10-replay")
        tab_to(browser, "time")
        browser.press("End")
        assert browser.text("#state") == "ended"
        assert states(browser) == {"agent00": "ended", "agent01": "down", "agent02": "ended", "agent03": "ended"}
        assert happened(browser, "agent01 is down")
        browser.click("#agents tbody tr:nth-child(1) button")
        browser.wait("return document.querySelector('#log').textContent.includes('agent00 listens')")
        quiet(browser)
        assert up.interrupt() == 0


def test_sites_end_with_the_table_of_their_model(tmp_path):
    words = (
        "--data",
        ROOT / "examples/hospitals",
        "--target",
        "readmitted",
        "--missing",
        "mean",
        "-o",
        tmp_path / "study",
    )
    with Up("up", *words, "--page", "--pause", 0.05) as up, Browser(390, 844, dark=True) as browser:
        browser.open(up.wait(ADDRESS))
        browser.wait("return document.querySelector('#summary').textContent.includes('std err')")
        assert "ward=surgical" in browser.text("#summary")
        assert browser.text("#headline").startswith("the run has ended: the survey is complete")
        browser.run("document.querySelector('#results').scrollIntoView()")
        picture(browser, "11-sites-phone-dark")
        assert fits(browser, 390)
        quiet(browser)
        up.wait("the page stays open")
        assert up.interrupt() == 0


def test_without_a_terminal_the_page_ends_with_the_run(tmp_path):
    command = [
        sys.executable,
        "-m",
        "amble",
        "up",
        "--data",
        "diabetes",
        "-n",
        "3",
        "-o",
        str(tmp_path / "run"),
        "--page",
    ]
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^page: {ADDRESS}$", done.stdout, re.M)
    assert "stays open" not in done.stdout
