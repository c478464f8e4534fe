"""What tests read off the live page, agents that only pretend to run, and a command in a terminal of its own."""

import contextlib
import http.client
import inspect
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import amble
from amble.live import process, status
from amble.live.cluster.cluster import Cluster, configure, rows_of

WITHIN_S = 90.0
ROWS = "return [...document.querySelectorAll('#agents tbody tr')].map((row) => [...row.cells].map((c) => c.innerText))"
ON_A_LINK = """
const at = (each) => each.getAttribute('transform').match(/-?[\\d.]+/g).map(Number);
const nodes = [...document.querySelectorAll('#network g.node')].map(at);
const away = ([x, y]) => Math.min(...nodes.map(([a, b]) => Math.hypot(a - x, b - y)));
return [...document.querySelectorAll('#network g.token')].some((each) => away(at(each)) > 40);
"""  # a token at an agent is within 20 pixels of its middle
COVERED = """
const nodes = [...document.querySelectorAll('#network g.node')];
const box = (node, part) => node.querySelector(part).getBoundingClientRect();
const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
return nodes.filter((node) => nodes.some((other) => other !== node && !apart(box(node, '.name'), box(other, 'path'))))
  .map((node) => node.querySelector('.name').textContent);
"""
FACTS = """
const facts = [...document.querySelectorAll('#facts div')];
return Object.fromEntries(facts.map((fact) => [...fact.children].map((each) => each.textContent)));
"""
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


def facts_of(browser):
    """Of the agent that is shown: read at once, because they are drawn again every two seconds."""
    return browser.run(FACTS)


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


def covered(browser):
    """Names of agents that another agent's node covers."""
    return browser.run(COVERED)


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


def all_up_at(browser):
    """Where the slider must be for the first moment at which all agents are up."""
    for k in range(0, 1000, 20):
        browser.run(SLIDE, k)
        if set(states(browser).values()) == {"up"}:
            return k
    raise AssertionError("never")


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


# --- a server and agents that this process pretends to be ------------------------------------------------------------


def pretended(folder):
    """Four agents that this process pretends to be."""
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=4, ridge=0.01)
    config = configure(problem, amble.Relay(tokens=2), amble.networks.ring(4), {"hops": 9}, 0, {})
    folder = Cluster.create(folder, config, rows_of(problem, data.X, data.y)).folder
    pretend(folder)
    return folder


def pretend(folder, **fields):
    for path in folder.glob("*/agent.toml"):
        said = status.Status(name=path.parent.name, time_s=time.time(), state="up", process=process.this_process())
        status.write(path.parent, status.changed(said, **fields))


class Client:
    """Asks one server as a browser would."""

    def __init__(self, server):
        self.server = server
        self.root = f"/{server.secret}/"

    def ask(self, path="", method="GET", *, whole=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        sent = {"Host": f"127.0.0.1:{self.server.port}"} | headers
        connection.putrequest(method, self.root + path if whole is None else whole, skip_host=True)
        for key, value in sent.items():
            if value is not None:
                connection.putheader(key, value)
        connection.endheaders()
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def json(self, path, method="GET", **headers):
        answer, content = self.ask(path, method, **headers)
        return answer.status, json.loads(content)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server.port}"
