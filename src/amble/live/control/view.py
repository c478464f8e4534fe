"""What a user sees of a live run: tables that are refreshed, or lines if there is no terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amble.data.datasets import count
from amble.live.control.glance import Agent, Overview, Waiting, as_line, look, size
from amble.live.core.message import printable

LINE_S = 3.0
SURVEYS = {"opening": "opening survey", "training": "training", "closing": "closing survey"}
LOOK_S = 0.5
DISTANCE = "distance to the optimum"  # the name of a figure
STYLES = {"up": "green", "joining": "cyan", "leaving": "cyan", "ending": "cyan", "down": "red", "refused": "red"}


def tables(overview: Overview) -> Any:
    """Agents, tokens, waits and warnings, in 80 columns."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    agents = Table(box=None, pad_edge=False)
    for title in ("agent", "state", "links up", "visits", "hops/s", "heard"):
        agents.add_column(title, justify="left" if title in ("agent", "state") else "right", overflow="fold")
    for name, agent in overview.agents.items():
        state = Text(agent.state, STYLES.get(agent.state, "dim"))
        links = f"{len(agent.up)} of {len(agent.up) + len(agent.down)}" if agent.up or agent.down else ""
        known = (f"{agent.visits:,}", f"{agent.hops_per_s:,.1f}" if agent.runs else "", size(agent.bytes))
        agents.add_row(Text(printable(name)), state, links, *(known if agent.folder else ("", "", "")))
    tokens = Table(box=None, pad_edge=False)
    for title in ("token", "epoch", "hop", "moved per lap", "where"):
        tokens.add_column(title, justify="left" if title in ("token", "where") else "right", overflow="fold")
    for m, token in overview.tokens.items():
        where = f"at {token.agent}, for {token.to or 'any neighbour'}" if token.here else f"passed on by {token.agent}"
        moved = "" if token.moved is None else f"{token.moved:.1e}"
        tokens.add_row(str(m), str(token.epoch), f"{token.hop:,}", moved, Text(printable(where)))
    more = [Padding(Text(sentence), (0, 0, 0, 2), expand=False) for sentence in sentences(overview)]
    parts: list[Any] = [Text(headline(overview)), "", agents]
    parts += ["", tokens] if overview.tokens else []
    parts += ["", *more] if more else []
    return Group(*parts)


def headline(overview: Overview) -> str:
    """The run in one line."""
    states = {
        "unstarted": "no agent has been started yet",
        "running": "running",
        "down": "no agent runs",
        "ended": f"the run has ended: {overview.words}",
    }
    if overview.state == "unstarted":
        return states["unstarted"]
    if overview.stages:
        states["running"] = f"running ({' and '.join(SURVEYS[stage] for stage in overview.stages)})"
    counts = [count(overview.visits, "visit"), f"{size(overview.bytes)} heard"]
    if up := sum(agent.runs for agent in overview.agents.values()):
        visits, heard = counts
        counts = [f"{up} of {len(overview.agents)} up", visits, f"{overview.hops_per_s:,.0f}/s", heard]
    return printable(f"{states[overview.state]}; {', '.join(counts)}")


def sentences(overview: Overview) -> list[str]:
    """What the run waits for, and what is wrong with whom."""
    said = [waiting(wait, overview.time_s) for wait in overview.waits]
    for name, agent in overview.agents.items():
        said += [f"{name}: {sentence}" for sentence in _notes(agent) if sentence != overview.words]
    said += _lacking(overview.agents.values())
    return [printable(sentence) for sentence in said]


def _lacking(agents: Collection[Agent]) -> list[str]:
    """Who is not in which stage."""
    opening = {name for agent in agents if agent.stage == "opening" for name in agent.missing}
    model = {name for agent in agents if agent.stage != "opening" for name in agent.missing}
    closing = {name for agent in agents for name in agent.silent}
    sentences = {
        "the opening survey does not have the description of": opening,
        "the model does not have the data of": model,
        "the model has the data, and the closing survey does not have the sums, of": closing,
    }
    return [f"{words} {', '.join(sorted(names))}" for words, names in sentences.items() if names]


def _notes(agent: Agent) -> list[str]:
    begin = {"refused": "did not start: ", "left": "has left: "}.get(agent.state, "")
    said = [begin + agent.words if agent.words and agent.state != "unstarted" else ""]
    said += [f"{name} {why}; tokens avoid it" for name, why in agent.doubts.items()]
    if agent.down and not agent.up:
        said.append(
            "has no link to any neighbour; if all others have ended, start one of them again: it tells this one"
        )
    return [sentence for sentence in (*said, agent.likely_cause, *agent.doubled.values()) if sentence]


def waiting(wait: Waiting, now_s: float) -> str:
    """Who waits for whom, since when and until when."""
    whom, token = ", ".join(wait.whom), f"token {wait.token}"
    what, then = {
        "down": (f"{whom} to come back; it had {token}", "then the token is reissued"),
        "answer": (f"{whom} to take {token}", "then the token avoids it"),
        "passing": (f"{whom} to pass on {token}", "then it is asked whether it works"),
        "neighbour": (f"any neighbour, to pass {token} on", ""),
        "meeting": (f"{whom}, which no token has visited", "then the run may end without them"),
    }[wait.why]
    since = f"{wait.agent} waits for {what}: for {_time(now_s - wait.since_s)}"
    if wait.until_s is None:
        return f"{since}, without a limit"
    return f"{since}, {_time(wait.until_s - now_s)} more at most, {then}"


def _time(seconds: float) -> str:
    return f"{max(0.0, seconds):.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def changes(before: Overview | None, now: Overview) -> list[str]:
    """Lines about changes: agents in another state, new waits, and the state of the run."""
    if before is None:
        states = [printable(f"{name}: {agent.state}") for name, agent in now.agents.items()]
        return [headline(now), *states, *sentences(now)]
    said = []
    for name, agent in now.agents.items():
        if name not in before.agents or agent.state != before.agents[name].state:
            said.append(f"{name}: {agent.state}" + (f": {agent.words}" if agent.words else ""))
    old = {(wait.agent, wait.why, wait.whom, wait.token) for wait in before.waits}
    said += [
        waiting(wait, now.time_s) for wait in now.waits if (wait.agent, wait.why, wait.whom, wait.token) not in old
    ]
    said = [printable(line) for line in said]
    return [*said, headline(now)] if (now.state, now.over) != (before.state, before.over) else said


def hint(overview: Overview) -> str:
    """What to do while no agent runs."""
    nobody = overview.state in ("unstarted", "down")
    return "waiting for an agent to be started (amble agent FOLDER); Ctrl-C ends this" if nobody else ""


def watch(folders: Mapping[str, Path], halt: Callable[[float], bool], as_json: bool) -> Overview:
    """Show these agents until their run is over, or `halt`, which waits for so many seconds, says so; the last look."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    screen = Console()
    before, now = None, look(folders)
    with contextlib.ExitStack() as stack:
        live = None
        if screen.is_terminal and not as_json:
            live = stack.enter_context(Live(console=screen, auto_refresh=False))
        while True:
            if live is not None:
                below = [Text(f"\n{hint(now)}")] if hint(now) else []
                live.update(Group(tables(now), *below), refresh=True)
            else:
                new_hint = hint(now) if before is None or hint(before) != hint(now) else ""
                lines = [as_line(now)] if as_json else [*changes(before, now), *filter(None, [new_hint])]
                for line in lines:
                    sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
            if now.over or halt(LOOK_S):
                return now
            before, now = now, look(folders)


@dataclass
class View:
    """Shows the run of amble up."""

    title: str
    began_s: float = field(default_factory=time.monotonic)
    said_s: float = field(default_factory=time.monotonic)
    live: Any = None

    def __enter__(self) -> "View":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def note(self, sentence: str) -> None:
        """Shows an important message, above the table or between the lines."""
        sentence = printable(sentence)
        if self.live is not None:
            self.live.console.print(sentence, style="yellow", highlight=False, markup=False)
        else:
            sys.stderr.write(f"{sentence}\n")

    def show(self, overview: Overview, figures: Mapping[str, float]) -> None:
        """`figures`: what is known of the newest model, by their names."""
        if self.live is not None:
            from rich.console import Group
            from rich.text import Text

            parts = Text(self.title), tables(overview), "", Text(self._figures(figures))
            self.live.update(Group(*parts), refresh=True)
        elif time.monotonic() - self.said_s >= LINE_S:
            self.said_s = time.monotonic()
            sys.stderr.write(f"{headline(overview)}; {self._figures(figures)}\n")

    def _figures(self, figures: Mapping[str, float]) -> str:
        values = [f"{name} {value:.4g}" for name, value in figures.items()]
        return ", ".join([f"{time.monotonic() - self.began_s:.0f} s", *values])
