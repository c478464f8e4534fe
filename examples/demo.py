"""What `make demo` runs: the paper's methods, a synchronous baseline and Relay, side by side on embedded data."""

import numpy as np
from rich.console import Console
from rich.table import Table

import amble

FOLDER, HOPS, WITHIN = "demo", 20_000, 0.01
NEXT = {
    "source .venv/bin/activate": "so that the shell finds amble",
    "amble up": "train live: 8 agents, one process each",
    "amble compare --data digits -o digits": "ten classes instead of a number",
    "amble compare --help": "every method, every setting, your own data",
    "amble --help": "every command",
}


def reached(run, column, target):
    """The first record from which on a column of the history stays within 1 % of its target, or None."""
    outside = np.flatnonzero(~(np.abs(run.history[column] - target) <= WITHIN * (target or 1.0)))
    record = outside[-1] + 1 if len(outside) else 0
    return record if record < len(run.history[column]) else None


def cost(run, record):
    """Link crossings and virtual time up to a record."""
    if record is None:
        return "-", "-"
    return f"{run.history['comm_units'][record]:,}", f"{1e3 * run.history['time_s'][record]:.3g} ms"


screen = Console(highlight=False, soft_wrap=True)
data = amble.load("diabetes")
problem = amble.split(data, agents=20)
network = amble.networks.random(agents=20, density=0.7)
screen.print(f"{problem.agents} agents, {len(network.edges)} links; each agent holds a part of {len(data.y)} rows ...")
methods = [
    amble.IBCD(),
    amble.APIBCD(tokens=5),
    amble.APIBCD(tokens=5, token_rule="tracked"),
    amble.WPG(),
    amble.DADMM(),
    amble.Relay(),
]
runs = amble.compare(methods, problem, network, hops=HOPS, tune=True)
figure, page = runs.plot(f"{FOLDER}/compare.png"), runs.report(f"{FOLDER}/report.html")
runs.save(FOLDER)

good = {run: reached(run, "metric", runs.best_metric) for run in runs}
exact = {run: reached(run, "distance", 0.0) for run in runs}
table = Table("", "error:\nunits", "\ntime", "model:\nunits", "\ntime", box=None, padding=(0, 2, 0, 0))
for column in table.columns[1:]:
    column.justify = "right"
for run in runs:
    table.add_row(run.label, *cost(run, good[run]), *cost(run, exact[run]))
screen.print("\n[bold]What you see[/]")
screen.print("Link crossings (units) and virtual time until the test error, and the model itself,")
screen.print("stay within 1 % of the centralised optimum's; steps and penalties are tuned.\n")
screen.print(table, soft_wrap=False)
arrived = [run for run in runs if exact[run] is not None]
least = min(arrived, key=lambda run: run.history["comm_units"][exact[run]])
first = min(arrived, key=lambda run: run.history["time_s"][exact[run]])
screen.print(f"\n-: not within {HOPS:,} visits. For the model, {least.label} communicates least;")
screen.print(f"{first.label} is the first in virtual time.")
screen.print(f"The figure is {figure}; {page} opens in a browser.")

screen.print("\n[bold]What to type next[/]")
for command, purpose in NEXT.items():
    screen.print(f"  {command:38}  [dim]{purpose}[/]")
