"""The live page in a real browser, on a real run: agents are processes, and one of them is killed.

Set AMBLE_PICTURES to a folder to keep a picture of each moment.
"""

import re
from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("uvicorn")

import amble
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.page.opened import open_page
from amble.live.page.server import Server
from browser import Browser
from page_samples import (
    FOCUS,
    ON_A_LINK,
    all_up,
    count,
    covered,
    facts_of,
    fits,
    happened,
    picture,
    pressed,
    quiet,
    states,
    tab_to,
    until,
)

pytestmark = pytest.mark.long

KEPT = Path(__file__).parent / "formats"


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
        assert covered(phone) == covered(wide) == []
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
        near = len(cluster.config.agent("agent04").neighbours)
        until(lambda: facts_of(wide)["neighbours"].count("(up)") == near)  # agent02 is back there too
        facts = facts_of(wide)
        assert facts["state"] == "up"
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


SPREAD = """
return import(`${location.href}network.js`).then(({ spread }) => {
  const points = arguments[0].map((each) => [...each]);
  spread(points, 48, 50, 40, 300);
  return points;
});
"""


def test_agents_that_stand_too_near_for_their_names_move_apart():
    crowd = [[100, 60], [110, 80], [90, 95], [200, 80], [105, 250]]
    with Server(open_page([KEPT / "live-4" / "record.npz"])) as server, Browser(390, 844) as browser:
        browser.open(server.url)
        moved = browser.run(SPREAD, crowd)
        assert browser.run(SPREAD, moved) == moved
    assert [x for x, _ in moved] == [x for x, _ in crowd]
    assert moved[3:] == crowd[3:]  # those with room stay
    assert all(40 <= y <= 260 for _, y in moved)
    for (a, b), (c, d) in combinations(moved, 2):
        assert abs(a - c) >= 48 or abs(b - d) >= 49.5
