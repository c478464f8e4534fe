"""What an open page costs a run, and whether it keeps up with many agents.

    python benchmarks/page.py                 # 8 agents, 2 tokens: hops/s with and without a page in a real browser
    python benchmarks/page.py --reader        # with a program that reads the frames, in place of the browser
    python benchmarks/page.py --many          # 50 agents, 10 tokens: CPU time of server and browser, frames, lags
    python benchmarks/page.py --written       # the same at 2,000 hops/s: a program writes what 50 such agents would

The run goes on all the time. Rounds alternate between no page and an open one, because others may use the machine:
compare within a round. CPU time is the kernel's count, of the server's process and of all processes of the browser. The
browser draws without a graphics card, on the cores that the agents use. A lag is how much later than asked for the
browser calls a timer: what a click would wait for.
"""

import argparse
import contextlib
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import amble
from amble.live import process, status
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.page.opened import open_page
from amble.live.page.server import Server

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from browser import Browser

TICK = os.sysconf("SC_CLK_TCK")
SETTLE_S = 2.0
LAGS = """
window.lags = []; let due = performance.now() + 50;
window.timer = setInterval(() => { const now = performance.now(); window.lags.push(now - due); due = now + 50; }, 50);
"""


def cpu_s(pids):
    """CPU seconds of these processes so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / TICK


def below(pid):
    """A process and all that it has started."""
    pids = [pid]
    for each in pids:
        found = subprocess.run(["pgrep", "-P", str(each)], capture_output=True, text=True).stdout.split()
        pids += map(int, found)
    return pids


def visits(cluster):
    return sum(cluster.status(name).visits for name in cluster.config.agents)


class Reader:
    """Reads frames as a browser does, and draws nothing."""

    def __init__(self):
        self.frames, self.bytes = 0, 0

    def open(self, url):
        self.stop = False
        self.thread = threading.Thread(target=self._read, args=(url,), daemon=True)
        self.thread.start()

    def _read(self, url):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}frames?after=-1") as stream:
            for line in stream:
                self.frames += line.startswith(b'data: {"frame"')
                self.bytes += len(line)
                if self.stop:
                    return


def create(agents, tokens, folder):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=agents, ridge=1e-2)
    network = amble.networks.random(agents, min(1.0, 6 / (agents - 1)), 0)
    timing = {"patience_s": max(4.0, 0.5 * agents)}
    config = configure(problem, amble.Relay(tokens=tokens), network, {"hops": 10**9}, 0, timing)
    return Cluster.create(folder / "run", config, rows_of(problem, data.X, data.y))


def start(cluster):
    cluster.start_all()
    while not all(cluster.status(name).visits > 5 for name in cluster.config.agents):
        time.sleep(0.2)


class Written:
    """Agents that walk nowhere: a process writes their status twice a second, as at so many hops per second."""

    def __init__(self, cluster, tokens, hops_per_s):
        self.cluster, self.config, self.folder = cluster, cluster.config, cluster.folder
        self.tokens, self.rate = tokens, hops_per_s
        self.status = cluster.status
        self.process = multiprocessing.get_context("fork").Process(target=self._write, daemon=True)
        self.process.start()
        while not all(self.status(name).visits > 5 for name in self.config.agents):
            time.sleep(0.2)

    def _write(self):
        names, begun_s = self.config.agents, time.time()
        near = {name: tuple(peer.name for peer in self.config.agent(name).neighbours) for name in names}
        lap = {name: near[name][k % len(near[name])] for k, name in enumerate(names)}
        events = (status.Told("start", begun_s),)
        mine = process.this_process()
        while True:
            now_s = time.time()
            made = int(self.rate * (now_s - begun_s))  # of all; the k-th is of token k % tokens, at agent k // tokens
            for place, name in enumerate(names):
                own = [k for k in range(max(0, made - 1000), made) if k // self.tokens % len(names) == place]
                recent = tuple(
                    status.Recent(
                        begun_s + k / self.rate, k % self.tokens, 0, k // self.tokens + 1, near[name][0], lap[name]
                    )
                    for k in own[-status.RECENT_MAX :]
                )
                sights = {v.token: status.Sight((0, 0), v.hop, False, "", 1e-3) for v in recent}
                said = status.Status(
                    name=name, time_s=now_s, state="up", process=mine, visits=made // len(names),
                    hops_per_s=self.rate / len(names), visit_s=1e-3, wait_s=1e-4, bytes=made * 1000, up=near[name],
                    tokens=sights, recent=recent, events=events,
                )  # fmt: skip
                status.write(self.folder / name, said)
            time.sleep(max(0.0, 0.5 - (time.time() - now_s)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()


def window(cluster, seconds, pids=()):
    """Hops per second, and cores that these processes kept busy."""
    begun_s, before, cpu = time.monotonic(), visits(cluster), cpu_s(pids)
    time.sleep(seconds)
    took_s = time.monotonic() - begun_s
    return (visits(cluster) - before) / took_s, (cpu_s(pids) - cpu) / took_s


def compare(cluster, client, driver, rounds, seconds):
    print(f"{'round':>5} {'without':>9} {'with':>9} {'ratio':>7}   cores of the server and the client")
    ratios = []
    for k in range(rounds):
        rates = {}
        for shown in ((False, True), (True, False))[k % 2]:
            if not shown:
                client.open("about:blank") if driver else None
                time.sleep(SETTLE_S)
                rates[shown], _ = window(cluster, seconds)
                continue
            with Server(open_page([cluster.folder])) as server:
                client.open(server.url)
                time.sleep(SETTLE_S)
                pids = [os.getpid(), *(below(driver) if driver else [])]
                rates[shown], cores = window(cluster, seconds, pids)
                if not driver:
                    client.stop = True
        ratios.append(rates[True] / rates[False])
        print(f"{k + 1:5} {rates[False]:9,.0f} {rates[True]:9,.0f} {ratios[-1]:7.3f}   {cores:.3f}", flush=True)
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"with / without: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}, {rounds} rounds of {seconds:g} s")


def many(cluster, seconds):
    reader = Reader()
    with Browser(1280, 900) as browser:
        without, _ = window(cluster, seconds)
        with Server(open_page([cluster.folder])) as server:
            own = cpu_s([os.getpid()])
            begun_s = time.monotonic()
            browser.open(server.url)
            reader.open(server.url)
            time.sleep(SETTLE_S)
            browser.run(LAGS)
            drawn, frames, size = browser.text("#elapsed"), reader.frames, reader.bytes
            rate, cores = window(cluster, seconds, below(browser.driver.pid))
            lags = sorted(browser.run("clearInterval(window.timer); return window.lags"))
            share = (cpu_s([os.getpid()]) - own) / (time.monotonic() - begun_s)
            frames, size = (reader.frames - frames) / seconds, (reader.bytes - size) / seconds
            reader.stop = True
            errors = [line for line in browser.log() if line["level"] == "SEVERE"]
            print(f"hops/s: {without:,.0f} without a page, {rate:,.0f} with one")
            print(f"server, with its looks at the folders: {share:.3f} cores; browser: {cores:.3f} cores")
            print(f"frames/s delivered: {frames:.2f}, {size / 1e3:.1f} kB/s; errors in the console: {len(errors)}")
            print(
                f"lag of the browser: median {lags[len(lags) // 2]:.1f} ms, 99 % {lags[int(0.99 * len(lags))]:.1f} ms"
            )
            print(f"shown: {drawn} s at the beginning, {browser.text('#elapsed')} s at the end")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--written", action="store_true")
    parser.add_argument("--reader", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    agents, tokens = (50, 10) if options.many or options.written else (8, 2)
    with tempfile.TemporaryDirectory() as folder, create(agents, tokens, Path(folder)) as cluster:
        if options.written:
            with Written(cluster, tokens, 2000) as written:
                many(written, 3 * options.seconds)
            return
        start(cluster)
        if options.many:
            many(cluster, 3 * options.seconds)
        elif options.reader:
            compare(cluster, Reader(), 0, options.rounds, options.seconds)
        else:
            with Browser(1280, 900) as browser:
                compare(cluster, browser, browser.driver.pid, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
