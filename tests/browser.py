"""A real browser for tests: Debian's chromium, driven through chromedriver by the W3C WebDriver protocol, which is JSON
over HTTP. Selenium would do the same, and bring a dozen packages of which one changes how hypothesis starts."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

WITHIN_S = 60.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key that the protocol gives to elements
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Space": " ", "Escape": "\ue00c", "Home": "\ue011", "End": "\ue010",
        "Left": "\ue012", "Right": "\ue014"}  # fmt: skip


class Browser:
    """One window, without a screen."""

    def __init__(self, width=1280, height=900, dark=False, calm=False):
        for program in ("chromium", "chromedriver"):
            assert shutil.which(program), f"{program} is missing: apt-get install chromium chromium-driver"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.profile = tempfile.TemporaryDirectory(prefix="amble-browser-")
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        try:
            self._begin([*FLAGS, f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}"])
            self.resize(width, height)
            features = {"prefers-color-scheme": "dark" if dark else "light"}
            features |= {"prefers-reduced-motion": "reduce"} if calm else {}
            media = [{"name": name, "value": value} for name, value in features.items()]
            self.command("Emulation.setEmulatedMedia", features=media)
        except BaseException:
            self.close()
            raise

    def _begin(self, flags):
        wanted = {"goog:chromeOptions": {"args": flags}, "goog:loggingPrefs": {"browser": "ALL"}}
        end_s = time.monotonic() + WITHIN_S
        while self.session is None:
            try:
                self.session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            except OSError:  # it does not listen yet
                assert time.monotonic() < end_s, "chromedriver does not answer"
                time.sleep(0.05)

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from error

    def ask(self, method, path, body=None):
        return self._ask(method, f"/session/{self.session}{path}", body)

    def command(self, name, **params):
        """Of the protocol of Chromium's own tools."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": name, "params": params})

    def resize(self, width, height):
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """What a script gives back, in the page."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector)

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{found[ELEMENT]}/click", {})

    def press(self, *keys):
        """Keys by their names, to whatever has the focus."""
        actions = [{"type": kind, "value": KEYS[key]} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def wait(self, script, *arguments, within_s=WITHIN_S):
        """Until a script gives something true, which is returned."""
        end_s = time.monotonic() + within_s
        while not (value := self.run(script, *arguments)):
            assert time.monotonic() < end_s, (
                f"not within {within_s:g} s: {script}\n{self.run('return document.body.innerText')}"
            )
            time.sleep(0.1)
        return value

    def picture(self, path):
        Path(path).write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def log(self):
        """What the page has written to its console, errors of loading too, since it was last asked for."""
        return self.ask("POST", "/se/log", {"type": "browser"})

    def close(self):
        with contextlib.suppress(OSError, AssertionError):
            if self.session is not None:
                self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        with contextlib.suppress(OSError):
            self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
