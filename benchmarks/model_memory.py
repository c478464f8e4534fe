"""Peak memory of simulations of a large model: one million unknowns, 20 agents, 5 tokens.

Each method runs in a process of its own, whose peak resident memory includes Python, JAX and the data.
"""

import argparse
import multiprocessing
import resource

AGENTS, TOKENS, ROWS, BATCH, HOPS = 20, 5, 100, 16, 200
INPUTS, OUTPUTS = 784, 10


def measure(name: str, hidden: int) -> tuple[str, int, float, float, float]:
    import time

    import jax
    import jax.numpy as jnp
    import numpy as np

    import amble
    from amble.losses import JaxLoss

    rng = np.random.default_rng(0)
    params = {
        "A": np.float32(rng.normal(size=(INPUTS, hidden)) / np.sqrt(INPUTS)),
        "B": np.float32(rng.normal(size=(hidden, OUTPUTS)) / np.sqrt(hidden)),
    }

    def loss(params, batch):
        x, y = batch
        scores = jax.nn.log_softmax(jnp.tanh(x @ params["A"]) @ params["B"])
        return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))

    data = [(rng.normal(size=(ROWS, INPUTS)).astype(np.float32), rng.integers(0, OUTPUTS, ROWS)) for _ in range(AGENTS)]
    methods = {
        "WPG": amble.WPG(alpha=0.1, tokens=TOKENS),
        "gAPI-BCD": amble.GAPIBCD(tau=0.1, rho=10.0, tokens=TOKENS, token_rule="tracked"),
        "DGD": amble.DGD(alpha=0.1),
    }
    problem = amble.Problem.from_objectives(JaxLoss(loss, params, data, batch_size=BATCH))
    begun = time.process_time()
    run = amble.simulate(methods[name], problem, hops=HOPS, every=HOPS, progress=False)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in kB
    kept = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(run.state)) / 2**30
    return run.label, problem.dimension, peak, kept, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--hidden", type=int, default=1260, help="width of the hidden layer; 1260 is a million unknowns"
    )
    parser.add_argument("--methods", nargs="+", default=["WPG", "gAPI-BCD", "DGD"])
    chosen = parser.parse_args()
    for name in chosen.methods:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            label, unknowns, peak, kept, seconds = pool.apply(measure, (name, chosen.hidden))
        sizes = f"peak {peak:.2f} GiB, of which the state is {kept:.2f}"
        print(f"{label}: {unknowns:,} unknowns, {sizes}; {seconds:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
