"""What `make demo` runs: the paper's methods, a synchronous baseline and Relay, side by side on embedded data."""

import numpy as np
from rich.console import Console
from rich.table import Table

import amble

FOLDER, HOPS, WITHIN = "demo", 20_000, 0.01
COSTS = ("comm_units", "time_s")
NEXT = {
    "source .venv/bin/activate": "so that the shell finds amble",
    "amble up": "train live: 8 agents, one process each",
    "amble compare --data digits -o digits": "ten classes instead of a number",
    "amble compare --help": "methods, settings, your own data",
    "amble --help": "every command",
}


def model_cost(run, cost):
    """What the run had cost when its model came within 1 % of the optimum for good; nan if it never did."""
    last_away = np.flatnonzero(~(run.history["distance"] <= WITHIN))[-1]
    return float([*run.history[cost], np.nan][last_away + 1])


def shown(units, time_s):
    return ("-", "-") if np.isnan(units) else (f"{units:,.0f}", f"{1e3 * time_s:.3g} ms")


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
runs.save(FOLDER, again=True)
figure, page = runs.plot(f"{FOLDER}/compare.png"), runs.report(f"{FOLDER}/report.html")

error_costs = {run.label: [run.time_to(within=WITHIN, cost=cost) for cost in COSTS] for run in runs}
model_costs = {run.label: [model_cost(run, cost) for cost in COSTS] for run in runs}
table = Table("", "error:\nunits", "\ntime", "model:\nunits", "\ntime", box=None, padding=(0, 2, 0, 0), pad_edge=False)
for column in table.columns[1:]:
    column.justify = "right"
for label in model_costs:
    table.add_row(label, *shown(*error_costs[label]), *shown(*model_costs[label]))
screen.print("\n[bold]What you see[/]")
screen.print("Link crossings (units) and virtual time until the test error, and the model")
screen.print("itself, stay within 1 % of the centralised optimum's; steps are tuned.\n")
screen.print(table, soft_wrap=False)
screen.print(f"\n-: it never came so close and stayed there in {HOPS:,} visits; a method with a")
screen.print("fixed step or penalty can converge to a point beside the optimum.")
for name, costs in (("test error", error_costs), ("model", model_costs)):
    units, time_s = (min(costs, key=lambda label: np.nan_to_num(costs[label][k], nan=np.inf)) for k in range(2))
    screen.print(f"To the {name}: least communication: {units};\n  least time: {time_s}.")
screen.print(f"The figure is {figure}; {page} opens in a browser.")

screen.print("\n[bold]What to type next[/]")
for command, purpose in NEXT.items():
    screen.print(f"  {command:38}  [dim]{purpose}[/]")
