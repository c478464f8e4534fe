"""amble up --page and amble page, in a real browser: the model's metric, the results at the end, and the replay."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("uvicorn")

from amble.live import status
from browser import Browser
from page_samples import (
    ADDRESS,
    ON_A_LINK,
    WITHIN_S,
    Up,
    all_up,
    all_up_at,
    count,
    fits,
    happened,
    picture,
    quiet,
    states,
    tab_to,
    titles,
    until,
)

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent

DIABETES = ("--data", "diabetes", "-n", 4, "--tolerance", 0, "--hops", 10**8, "--pause", 0.1)
HOSPITALS = ("--data", ROOT / "examples/hospitals", "--target", "readmitted", "--missing", "mean", "--pause", 0.05)


def test_amble_up_with_a_page_shows_the_metric_and_ends_with_the_results_and_a_replay(tmp_path):
    folder = tmp_path / "run"
    with Up("up", *DIABETES, "-o", folder, "--page") as up, Browser(1280, 900) as browser:
        url = up.wait(ADDRESS)
        browser.open(url)
        all_up(browser, 4)
        until(lambda: count(browser, "#charts figure") == 5)
        assert titles(browser) == ["NMSE", "distance to the optimum", "moved per lap", "hops/s", "heard"]
        os.kill(status.read(folder / "agent01").process.pid, signal.SIGKILL)
        until(lambda: states(browser)["agent01"] == "down")
        browser.click("#stop")
        browser.click("#confirm-yes")
        until(lambda: count(browser, "#links a") > 0)
        up.wait("the page stays open; Ctrl-C ends it")
        until(lambda: browser.text("#lines p").startswith("test NMSE 0.4"))
        until(lambda: count(browser, "#links a") == 2)
        picture(browser, "8-up-ended")
        quiet(browser)
        browser.open(f"{url}report")
        until(lambda: count(browser, ".plot svg.main-svg") > 0)  # the plots are drawn, in their sandbox
        picture(browser, "9-report")
        quiet(browser)
        assert up.interrupt() == 1  # of the run: an agent was lost
    assert re.search(r"agent01 failed: .{0,9}killed by SIGKILL", up.said)
    replay(folder)


def replay(folder):
    """The same page, from the record, with a slider over the whole run."""
    with Up("page", folder) as up, Browser(1280, 900) as browser:
        browser.open(up.wait(ADDRESS))
        until(lambda: count(browser, "#links a") == 2)
        assert "A finished run, from its record" in browser.text("#scope")
        assert browser.run("return document.querySelector('#stop').hidden")
        assert titles(browser) == ["NMSE", "distance to the optimum", "hops/s", "heard"]
        assert all_up_at(browser) < int(browser.run("return document.querySelector('#time').max"))
        then = browser.text("#clock")
        browser.click("#play")
        until(lambda: browser.text("#clock") > then)
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
        until(lambda: "agent00 listens" in browser.text("#log"))
        quiet(browser)
        assert up.interrupt() == 0


def test_sites_end_with_the_table_of_their_model(tmp_path):
    with Up("up", *HOSPITALS, "-o", tmp_path / "study", "--page") as up, Browser(390, 844, dark=True) as browser:
        browser.open(up.wait(ADDRESS))
        until(lambda: "std err" in browser.text("#summary"))
        assert "ward=surgical" in browser.text("#summary")
        assert browser.text("#headline").startswith("the run has ended: the survey is complete")
        browser.run("document.querySelector('#results').scrollIntoView()")
        picture(browser, "11-sites-phone-dark")
        assert fits(browser, 390)
        quiet(browser)
        up.wait("the page stays open")
        assert up.interrupt() == 0


def test_without_a_terminal_the_page_ends_with_the_run(tmp_path):
    words = ("up", "--data", "diabetes", "-n", 3, "-o", tmp_path / "run", "--page", "--no-browser")
    command = [sys.executable, "-m", "amble", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^page: {ADDRESS}$", done.stdout, re.M)
    assert "stays open" not in done.stdout
