"""Where an agent is, who its neighbours are, and what Zenoh is told of that."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amble.errors import AmbleError
from amble.live.transport.zenoh.sending import PART_BYTES

NAME = re.compile(r"[A-Za-z0-9_-]+")
# Messages are dropped when Zenoh's queue is full for so long; sending.py sees to it that it never is.
OPEN_S, OPEN_TRIPS = 10.0, 5  # for a link to be made, and the round trips that takes: TCP's, TLS's and Zenoh's
NEVER = {"wait_before_drop": 100_000, "max_wait_before_drop_fragments": 100_000}


@dataclass(frozen=True)
class Link:
    """A neighbour, and where it listens."""

    name: str
    host: str
    port: int


@dataclass(frozen=True)
class Place:
    """An agent's own address, its neighbours, and the certificates by which they know each other.

    Names are free of dots because Zenoh, when it dials, trusts the public web authorities besides the run's own: they
    certify no name without a dot.
    """

    name: str
    host: str  # to listen on
    port: int
    neighbours: tuple[Link, ...]
    run: str  # the digest of the run, in which the agents must agree
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False  # plain TCP, where everybody is believed: for tests and benchmarks on one machine
    lease_s: float = 2.0  # a neighbour that is not heard of for so long is taken for dead
    bytes_max: int = 2**28  # of one question
    waiting_max: int = 1024  # questions that were heard and are not yet answered

    def __post_init__(self) -> None:
        for name in (self.run, self.name, *(link.name for link in self.neighbours)):
            if not NAME.fullmatch(name):
                raise AmbleError(f"the name {name!r} was given; use only letters, digits, - and _.")
        names = [self.name, *(link.name for link in self.neighbours)]
        if len(set(names)) < len(names):
            raise AmbleError(
                f"the names {', '.join(names)} were given for an agent and its neighbours; let all differ."
            )
        files = (self.authority, self.certificate, self.key)
        if self.insecure != (files == (None, None, None)):
            raise AmbleError(
                f"{self.name} needs an authority, a certificate and a key, or insecure=True and none of these; give "
                "all three."
            )
        for file in files:
            if not self.insecure and not (file and file.is_file()):
                raise AmbleError(f"there is no file {file}; copy the folder that amble init made for {self.name}.")


def ask_key(run: str, to: str, sender: str) -> str:
    return f"amble/{run}/{to}/from/{sender}"


def alive_key(run: str, name: str) -> str:
    return f"amble/{run}/alive/{name}"


def door_key(run: str, name: str) -> str:
    return f"amble/{run}/door/{name}"


def settings(place: Place, only: Link | None = None) -> dict[str, Any]:
    """Zenoh's configuration: direct links to the neighbours, and nothing that looks for others. With `only`, of a
    session that dials one neighbour and listens to nobody.
    """
    protocol = "tcp" if place.insecure else "tls"
    lease_ms, open_ms = round(place.lease_s * 1000), round(max(place.lease_s, OPEN_S) * 1000)
    here = _endpoint(protocol, place.host, place.port)
    # One of each two dials: two links between them would be one too many.
    dialled = [_endpoint(protocol, link.host, link.port) for link in place.neighbours if place.name < link.name]
    listening: dict[str, Any] = {
        "mode": "peer",
        "listen": {"endpoints": [here], "timeout_ms": 0, "exit_on_failure": True},
        "connect": {
            "endpoints": dialled,
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 200, "period_max_ms": 1000, "period_increase_factor": 2},
        },
    }
    if only is not None:
        there = _endpoint(protocol, only.host, only.port)
        connect = {"endpoints": [there], "timeout_ms": open_ms, "exit_on_failure": True}
        listening = {"mode": "client", "connect": connect}
    return {
        **listening,
        "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "adminspace": {"enabled": False},
        "access_control": access(place) if only is None else {"enabled": False},
        "transport": {
            "shared_memory": {"enabled": False},
            "unicast": {"open_timeout": open_ms, "accept_timeout": open_ms},
            "link": {
                "protocols": [protocol],
                "tx": {"lease": lease_ms, "queue": {"size": {"data": 16}, "congestion_control": {"drop": NEVER}}},
                "rx": {"max_message_size": 2 * PART_BYTES},
                "tls": {} if place.insecure else _certificates(place),
            },
        },
    }


def access(place: Place) -> dict[str, Any]:
    """Who may say what: everything is denied but a neighbour's own part, by the common name of its certificate."""
    if place.insecure:
        return {"enabled": False}
    rules: list[dict[str, Any]] = []
    policies = []
    for link in place.neighbours:
        asked, asking = ask_key(place.run, place.name, link.name), ask_key(place.run, link.name, place.name)
        mine, theirs = alive_key(place.run, place.name), alive_key(place.run, link.name)
        allowed = [
            ("ingress", ["query"], asked),
            ("egress", ["declare_queryable", "reply"], asked),
            ("egress", ["query"], asking),
            ("ingress", ["declare_queryable", "reply"], asking),
            ("egress", ["liveliness_token"], mine),
            ("ingress", ["declare_liveliness_subscriber"], mine),
            ("ingress", ["liveliness_token"], theirs),
            ("egress", ["declare_liveliness_subscriber"], theirs),
        ]
        ids = [f"{link.name}/{number}" for number in range(len(allowed))]
        rules += [
            {"id": id, "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": [key]}
            for id, (flow, messages, key) in zip(ids, allowed, strict=True)
        ]
        policies.append({"rules": ids, "subjects": [link.name]})
    subjects: list[dict[str, Any]] = [{"id": link.name, "cert_common_names": [link.name]} for link in place.neighbours]
    door = [("ingress", ["query"]), ("egress", ["declare_queryable", "reply"])]  # for anybody with a certificate
    rules += [
        {"id": f"/{flow}", "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": [key]}
        for key in [door_key(place.run, place.name)]
        for flow, messages in door
    ]
    subjects.append({"id": "/anybody"})
    policies.append({"rules": [f"/{flow}" for flow, _ in door], "subjects": ["/anybody"]})
    everything = {"rules": rules, "subjects": subjects, "policies": policies}
    return {"enabled": True, "default_permission": "deny", **everything}


def _certificates(place: Place) -> dict[str, Any]:
    certificate, key = str(place.certificate), str(place.key)
    return {
        "root_ca_certificate": str(place.authority),
        "listen_certificate": certificate,
        "listen_private_key": key,
        "connect_certificate": certificate,
        "connect_private_key": key,
        "enable_mtls": True,
        "verify_name_on_connect": True,
        "close_link_on_expiration": True,
    }


def _endpoint(protocol: str, host: str, port: int) -> str:
    return f"{protocol}/[{host}]:{port}" if ":" in host else f"{protocol}/{host}:{port}"
