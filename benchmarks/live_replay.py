"""A live run of 10,000 hops, 8 agents and 3 tokens, replayed; and another in which agents are killed all the time.

    python benchmarks/live_replay.py [--hops 10500] [--data diabetes]

Without kills the same is: amble up --data diabetes -m Relay:tokens=3 --tolerance 0 --hops 10500
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from amble.live.threads import one_thread

one_thread()

from amble.live.cluster import up
from amble.live.records import collect
from amble.simulation.experiment import Experiment

AGENTS, TOKENS = 8, 3
LATE_S = 20.0


def train(folder, data, hops, kills):
    """Kill -9 of a random agent, again and again; every third stays away until its tokens are reissued.

    None after the run's end; and who came back when all others had gone is not waited for.
    """
    settings = Experiment(data=data, agents=AGENTS, ridge=0.01, methods=[{"name": "Relay", "tokens": TOKENS}])
    plan = up.prepare(settings, {"hops": hops, "seconds": 600.0}, folder, again=False)
    chance, killed = random.Random(0), 0
    with up.start(plan) as agents:
        agents.start_all()
        ended_s = None
        while agents.running() and (ended_s is None or time.monotonic() < ended_s + LATE_S):
            time.sleep(0.5)
            name = chance.choice(plan.config.agents)
            if any(agents.status(each).stopped for each in plan.config.agents):
                ended_s = ended_s or time.monotonic()
            if kills and not ended_s and name in agents.running() and agents.status(name).visits:
                agents.kill(name)
                killed += 1
                time.sleep(plan.config.timing.patience_s + 1 if killed % 3 == 0 else 0.5)
                agents.start(name)
    return plan, agents, killed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hops", type=int, default=10_500)  # each token makes its third, so not all of them
    parser.add_argument("--data", default="diabetes")
    arguments = parser.parse_args()
    for kills in (False, True):
        with tempfile.TemporaryDirectory() as place:
            began = time.monotonic()
            plan, agents, killed = train(Path(place) / "run", arguments.data, arguments.hops, kills)
            trained_s = time.monotonic() - began
            folders = collect.agent_folders([plan.folder])
            events = collect.collect(folders).counts()
            began = time.monotonic()
            outcome = up.again(folders)
            replayed_s = time.monotonic() - began
            apart = max(up.distance(agents.model(name), plan.optimum()) for name in folders)
            print(f"kills: {killed}; events: {events}; trained in {trained_s:.1f} s, replayed in {replayed_s:.1f} s")
            print(f"  {outcome}; farthest from the optimum: {apart:.1e}")


if __name__ == "__main__":
    main()
