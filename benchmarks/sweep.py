"""Hops per second of a sweep, against the same runs one after another by amble.simulate; CPU time of one core.

    python benchmarks/sweep.py

N = 20, p = 12, 5 tokens, 10,000 hops, float64, another network and schedule for each seed, all included. What is
compiled is compiled before.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import time

import numpy as np

import amble

HOPS, ALONE = 10_000, 4
LANES = (64, 256, 1024)


def seconds(function):
    begun = time.process_time()
    function()
    return time.process_time() - begun


def main():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 11))
    y = X @ rng.standard_normal(11) + rng.standard_normal(2000)
    problem = amble.Problem.from_arrays(X, y, task="regression", agents=20)
    for method in (amble.APIBCD(tau=0.1, tokens=5), amble.Relay(tokens=5)):

        def alone(count, method=method):
            for seed in range(count):
                amble.simulate(method, problem, hops=HOPS, seed=seed, progress=False)

        def lanes(count, method=method):
            amble.sweep(method, problem, hops=HOPS, seeds=range(count), workers=1, progress=False)

        alone(1)
        one = seconds(lambda: alone(ALONE)) / ALONE
        for count in LANES:
            lanes(min(count, 256))
            each = seconds(lambda: lanes(count)) / count  # noqa: B023
            print(
                f"{method.label}, {count} lanes: {HOPS / each / 1e6:.2f} million hops/s, {one / each:.1f} times "
                f"those of one after another ({HOPS / one / 1e6:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
