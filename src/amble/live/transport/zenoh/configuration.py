"""Zenoh's configuration: an agent's address and neighbours, and who may send what."""

from typing import Any

from amble.live.transport.address import Address, Link
from amble.live.transport.zenoh.sending import PART_BYTES

# Messages are dropped when Zenoh's queue is full for so long; sending.py sees to it that it never is.
OPEN_S, OPEN_TRIPS = 10.0, 5  # for a link to be made, and the round trips that takes: TCP's, TLS's and Zenoh's
NEVER = {"wait_before_drop": 100_000, "max_wait_before_drop_fragments": 100_000}


def ask_key(run: str, to: str, sender: str) -> str:
    return f"amble/{run}/{to}/from/{sender}"


def alive_key(run: str, name: str) -> str:
    return f"amble/{run}/alive/{name}"


def door_key(run: str, name: str) -> str:
    return f"amble/{run}/door/{name}"


def settings(address: Address, only: Link | None = None) -> dict[str, Any]:
    """Zenoh's configuration: direct links to the neighbours, and nothing that looks for others. With `only`, of a
    session that dials one neighbour and listens to nobody.
    """
    protocol = "tcp" if address.insecure else "tls"
    lease_ms, open_ms = round(address.lease_s * 1000), round(max(address.lease_s, OPEN_S) * 1000)
    here = _endpoint(protocol, address.host, address.port)
    # One of each two dials: two links between them would be one too many.
    dialled = [_endpoint(protocol, link.host, link.port) for link in address.neighbours if address.name < link.name]
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
        "access_control": access(address) if only is None else {"enabled": False},
        "transport": {
            "shared_memory": {"enabled": False},
            "unicast": {"open_timeout": open_ms, "accept_timeout": open_ms},
            "link": {
                "protocols": [protocol],
                "tx": {"lease": lease_ms, "queue": {"size": {"data": 16}, "congestion_control": {"drop": NEVER}}},
                "rx": {"max_message_size": 2 * PART_BYTES},
                "tls": {} if address.insecure else _certificates(address),
            },
        },
    }


def access(address: Address) -> dict[str, Any]:
    """Who may send what: only a neighbour's own keys are allowed, by the common name of its certificate."""
    if address.insecure:
        return {"enabled": False}
    rules: list[dict[str, Any]] = []
    policies = []
    for link in address.neighbours:
        asked, asking = ask_key(address.run, address.name, link.name), ask_key(address.run, link.name, address.name)
        mine, theirs = alive_key(address.run, address.name), alive_key(address.run, link.name)
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
    subjects: list[dict[str, Any]] = [
        {"id": link.name, "cert_common_names": [link.name]} for link in address.neighbours
    ]
    door = [("ingress", ["query"]), ("egress", ["declare_queryable", "reply"])]  # for anybody with a certificate
    rules += [
        {"id": f"/{flow}", "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": [key]}
        for key in [door_key(address.run, address.name)]
        for flow, messages in door
    ]
    subjects.append({"id": "/anybody"})
    policies.append({"rules": [f"/{flow}" for flow, _ in door], "subjects": ["/anybody"]})
    everything = {"rules": rules, "subjects": subjects, "policies": policies}
    return {"enabled": True, "default_permission": "deny", **everything}


def _certificates(address: Address) -> dict[str, Any]:
    certificate, key = str(address.certificate), str(address.key)
    return {
        "root_ca_certificate": str(address.authority),
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
