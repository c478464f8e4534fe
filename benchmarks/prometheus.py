"""What --prometheus costs: CPU time per scrape, and hops per second of a run that is scraped and of one that is not.

    python benchmarks/prometheus.py

A scrape is a request over HTTP to metrics of so many agents, whose status a program writes twice a second. CPU time is
that of the process that answers and asks, so it is more than the answer's. In the run, which goes on all the time,
rounds alternate between no scrapes and one per second, fifteen times as many as Prometheus makes by default, because
others may use the machine: compare within a round.
"""

import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from page import Written, create, start, window  # benchmarks/page.py

from amble.live.prometheus.server import Exporter
from amble.live.records import collect

SCRAPES, ROUNDS, ROUND_S = 50, 10, 10.0


def exporter_of(cluster):
    exporter = Exporter("0")
    exporter.folders = lambda: collect.folders_in(cluster.folder)
    return exporter


def scrape(url):
    with urllib.request.urlopen(url) as answer:
        return len(answer.read())


def per_scrape(agents):
    with (
        tempfile.TemporaryDirectory() as folder,
        Written(create(agents, 2, Path(folder)), 2, 100 * agents) as written,
        exporter_of(written) as exporter,
    ):
        size, begun_s = scrape(exporter.url), time.process_time()
        for _ in range(SCRAPES):
            scrape(exporter.url)
        spent_s = (time.process_time() - begun_s) / SCRAPES
    print(f"{agents:3} agents: {1e3 * spent_s:5.1f} ms of CPU time per scrape, {size / 1e3:.0f} kB", flush=True)


def ratio(agents=8):
    ratios = []
    with tempfile.TemporaryDirectory() as folder, create(agents, 2, Path(folder)) as cluster:
        start(cluster)
        for k in range(ROUNDS):
            rates = {}
            for scraped in ((False, True), (True, False))[k % 2]:
                with exporter_of(cluster) as exporter:
                    over = threading.Event()

                    def ask(url=exporter.url, over=over):
                        while not over.wait(1.0):
                            scrape(url)

                    thread = threading.Thread(target=ask)
                    if scraped:
                        thread.start()
                    rates[scraped], _ = window(cluster, ROUND_S)
                    over.set()
                    if scraped:
                        thread.join()
            ratios.append(rates[True] / rates[False])
            print(f"{k + 1:5} {rates[False]:7,.0f} {rates[True]:7,.0f} hops/s {ratios[-1]:7.3f}", flush=True)
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"with / without: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}, {ROUNDS} rounds of {ROUND_S:g} s")


if __name__ == "__main__":
    for count in (2, 8, 50):
        per_scrape(count)
    ratio()
