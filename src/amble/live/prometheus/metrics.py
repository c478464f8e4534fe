"""The metrics of agents, made when they are asked for: from status.json, the certificate and the size of the journals.

Nothing else is read, so nothing of an agent's rows, gifts, duals or gradients can be sent. Sentences of the status,
which may quote rows, are left out.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

from amble.live import status
from amble.live.control import glance
from amble.live.records import collect
from amble.live.status import Status
from amble.live.trust import identity

if TYPE_CHECKING:
    from prometheus_client import Metric

EVENTS = ("start", "reissue", "recount", "doubt", "absorbed", "refused")  # with 0 where there was none
LATELY = "over the last 5 s."


class Seen(NamedTuple):
    """An agent at one moment."""

    said: Status
    agent: glance.Agent
    folder: Path

    def now(self, value: float | None) -> float | None:
        """A value that is only true of an agent that runs."""
        return value if self.agent.runs else None


Value = Callable[[Seen], float | None]  # None: there is none

COUNTERS: dict[str, tuple[str, Value]] = {
    "amble_visits": ("Visits of tokens at the agent.", lambda seen: seen.said.visits),
    "amble_heard_bytes": ("Bytes of messages that the agent has heard.", lambda seen: seen.said.bytes),
}
GAUGES: dict[str, tuple[str, Value]] = {
    "amble_hops_per_second": (f"Visits per second, {LATELY}", lambda seen: seen.agent.hops_per_s),
    "amble_visit_seconds": (f"Mean seconds of a visit, {LATELY}", lambda seen: seen.now(seen.said.visit_s)),
    "amble_wait_seconds": (
        f"Mean seconds that a token waited for its visit, {LATELY}",
        lambda seen: seen.now(seen.said.wait_s),
    ),
    "amble_neighbours_up": ("Neighbours with a link to the agent.", lambda seen: seen.now(len(seen.said.up))),
    "amble_neighbours_down": ("Neighbours without one.", lambda seen: seen.now(len(seen.said.down))),
    "amble_neighbours_doubted": (
        "Neighbours with a link that do not work; tokens avoid them.",
        lambda seen: seen.now(len(seen.said.doubts)),
    ),
    "amble_missing_agents": (
        "Agents whose data the agent's model does not have.",
        lambda seen: len(seen.said.missing) if seen.said.visits else None,
    ),
    "amble_journal_bytes": (
        "Size of the agent's journals.",
        lambda seen: collect.journal_bytes(seen.folder),
    ),
    "amble_certificate_expiry_timestamp_seconds": (
        "When the agent's certificate ends, in seconds since 1970.",
        lambda seen: identity.valid_until_s(seen.folder),
    ),
    "amble_status_timestamp_seconds": (
        "When the agent last wrote its status, in seconds since 1970.",
        lambda seen: seen.agent.status_s,
    ),
}


def look(paths: Iterable[Path]) -> dict[str, Seen]:
    """At the agents whose folders these are."""
    read = [(path, status.read(path)) for path in paths]
    folders = {said.name or path.name: path for path, said in read}
    statuses = {said.name or path.name: said for path, said in read}
    agents = glance.overview(statuses, folders, time.time()).agents
    return {name: Seen(said, agents[name], folders[name]) for name, said in statuses.items()}


def families(agents: Mapping[str, Seen], figures: Mapping[str, float]) -> "Iterator[Metric]":
    """All metrics: of agents, by their names, and of the model."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for name, (sentence, value_of) in COUNTERS.items():
        counter = CounterMetricFamily(name, sentence, labels=["agent"])
        for agent, seen in agents.items():
            counter.add_metric([agent], value_of(seen) or 0.0)
        yield counter
    for name, (sentence, value_of) in GAUGES.items():
        gauge = GaugeMetricFamily(name, sentence, labels=["agent"])
        for agent, seen in agents.items():
            if (value := value_of(seen)) is not None:
                gauge.add_metric([agent], value)
        yield gauge

    state = GaugeMetricFamily("amble_state", "1 for the state that the agent is in.", labels=["agent", "state"])
    events = CounterMetricFamily("amble_events", "What happened at the agent.", labels=["agent", "kind"])
    hop = GaugeMetricFamily("amble_token_hop", "The token's hop, as the agent last saw it.", labels=["agent", "token"])
    moved = GaugeMetricFamily(
        "amble_moved",
        "How far the model moved between the agent's last two visits of the token, relative to its length.",
        labels=["agent", "token"],
    )
    for agent, seen in agents.items():
        for each in get_args(glance.State):
            state.add_metric([agent, each], float(seen.agent.state == each))
        for kind in sorted({*EVENTS, *seen.said.counts}):
            events.add_metric([agent, kind], seen.said.counts.get(kind, 0))
        for m, sight in seen.said.tokens.items():
            hop.add_metric([agent, str(m)], sight.hop)
            if sight.moved is not None:
                moved.add_metric([agent, str(m)], sight.moved)
    model = GaugeMetricFamily("amble_model", "How good the newest model is, as amble up knows.", labels=["measure"])
    for measure, figure in figures.items():
        model.add_metric([measure], figure)
    yield from (state, events, hop, moved, model)
