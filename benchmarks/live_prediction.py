"""Predicted and measured time to accuracy: the timing of one live run, fed to the simulator, beside other live runs.

    python benchmarks/live_prediction.py [--pause 0.05] [--method WPG:alpha=0.05] [--reach metric=0.92] [--runs 3]

8 agents; each visit takes a stated pause longer, so that this machine's cores are not what is measured. Timing is
measured once, in a live run with one token, and predicts the time to the accuracy with 1, 2 and 4 tokens; none of the
runs that it is compared with is the one that was measured. Where tokens meet, and wait for each other, is chance: what
is predicted and what is measured are medians over the same few walks.

WPG with a small step needs some hundreds of hops to its accuracy, on a smooth curve; Relay is there after a few.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from amble.live.threads import one_thread

one_thread()

from rich.console import Console
from rich.table import Table

import amble
from amble.live.cluster import up
from amble.live.records import collect
from amble.live.settings.config import Walk
from amble.simulation.experiment import Experiment, parse

AGENTS, TOKENS = 8, (1, 2, 4)
WALK = "cycles"  # as amble up has it; a token begins elsewhere on its cycle than in the simulator
MEASURED_HOPS = 20 * AGENTS
LIMIT_S = 120.0
screen = Console(highlight=False, soft_wrap=True)


def settings_of(arguments, tokens):
    return Experiment(
        data=arguments.data, agents=AGENTS, ridge=0.01, methods=[parse(arguments.method) | {"tokens": tokens}]
    )


def predict(arguments, tokens, timing):
    """Seconds and hops to the accuracy on each walk; problem and network are those of the live runs."""
    (method,), problem, network = settings_of(arguments, tokens).build()
    options = {"walk": WALK, "timing": timing, "time_s": LIMIT_S, "progress": False}
    with screen.status(f"{tokens} tokens: predicting"):
        runs = [amble.simulate(method, problem, network, seed=seed, **options) for seed in range(arguments.runs)]
    return [reached(run, arguments.reach) for run in runs]


def live(arguments, tokens, hops, seed, title):
    """A live run, from its record. Who has a token at first starts last: then all are up when the tokens set out."""
    with tempfile.TemporaryDirectory() as place:
        stop = {"hops": hops, "seconds": LIMIT_S}
        plan = up.prepare(
            settings_of(arguments, tokens), stop, Path(place) / "run", again=False, pause_s=arguments.pause
        )
        plan = replace(plan, config=replace(plan.config, walk=Walk(WALK, seed)))
        names = plan.config.agents
        with up.start(plan) as agents, screen.status(title) as status:
            for name in names[tokens:]:
                agents.start(name)
            while any(agents.status(name).state == "unstarted" for name in names[tokens:]):
                if agents.failed():
                    raise SystemExit(f"agents failed: {agents.failed()}")
                time.sleep(0.1)
            for name in names[:tokens]:
                agents.start(name)
            while agents.running():
                time.sleep(0.5)
                made = sum(agents.status(name).visits for name in names)
                status.update(f"{title}: {made:,} of about {hops:,} hops")
            if agents.failed():
                raise SystemExit(f"agents failed: {agents.failed()}")
        outcome = up.again(collect.agent_folders([plan.folder]), plan=plan)
        screen.print(f"{title}: {outcome}")
        return amble.load_run(plan.folder / up.RUN)


def reached(run, target):
    """Seconds and hops to the first record that is as good as that."""
    column, level = target.split("=")
    values = run.history[column]
    good = values >= float(level) if column == "metric" else values <= float(level)
    if not good.any():
        raise SystemExit(f"{run} has not reached {target}; choose another --reach.")
    return float(run.history["time_s"][good.argmax()]), int(run.history["hop"][good.argmax()])


def seconds(numbers):
    """The median, and from where to where."""
    times = [time_s for time_s, _ in numbers]
    return f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pause", type=float, default=0.05, help="seconds added to each visit")
    parser.add_argument("--data", default="digits")
    parser.add_argument("--method", default="WPG:alpha=0.05")
    parser.add_argument("--reach", default="metric=0.92", help="a column of the history, and what it is to reach")
    parser.add_argument("--runs", type=int, default=3, help="walks with each number of tokens")
    arguments = parser.parse_args()
    timing = live(arguments, 1, MEASURED_HOPS, 0, "measuring with 1 token").timing
    hop_s = timing.low_s + timing.mean_s
    screen.print(f"a visit takes {1e3 * timing.compute:.1f} ms, a hop {1e3 * hop_s:.1f} ms")
    table = Table("tokens", "predicted s", "measured s", "off by", "hops predicted", "hops measured")
    for tokens in TOKENS:
        predicted = predict(arguments, tokens, timing)
        most = int(1.1 * max(hops for _, hops in predicted)) + 4 * AGENTS  # should it take longer than predicted
        measured = [
            reached(live(arguments, tokens, most, seed, f"{tokens} tokens, live run {seed + 1}"), arguments.reach)
            for seed in range(arguments.runs)
        ]
        (predicted_s, predicted_hops), (measured_s, measured_hops) = (
            map(statistics.median, zip(*repeated, strict=True)) for repeated in (predicted, measured)
        )
        off = f"{predicted_s / measured_s - 1:+.0%}"
        hops = f"{predicted_hops:,.0f}", f"{measured_hops:,.0f}"
        table.add_row(str(tokens), seconds(predicted), seconds(measured), off, *hops)
    where = f"{arguments.method} on {arguments.data} to {arguments.reach}"
    screen.print(f"{where}; {AGENTS} agents, a pause of {arguments.pause:g} s per visit")
    screen.print(table)


if __name__ == "__main__":
    main()
