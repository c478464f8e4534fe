"""One who is not to be heard: it tries to ask `a` as if it were `b`, and prints what it got."""

import json
import sys
import time

import zenoh

KEYS = ("amble/run1/a/from/b", "amble/run1/a/from/*", "**")


def opened(given, port, **changes):
    """A session without any rules, dialling this port."""
    tls = {"root_ca_certificate": given["authority"], "verify_name_on_connect": True}
    if given["certificate"]:
        own = {"connect_certificate": given["certificate"], "connect_private_key": given["key"], "enable_mtls": True}
        tls |= own
    settings = {
        "mode": "client",  # a client sends to whom it dialled even what nobody there asked for
        "connect": {
            "endpoints": [f"{given['protocol']}/127.0.0.1:{port}"],
            "timeout_ms": 1500,
            "exit_on_failure": True,
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {"link": {"tls": tls}, "shared_memory": {"enabled": False}},
    }
    return zenoh.open(zenoh.Config.from_json5(json.dumps(settings | changes)))


def main():
    given = json.loads(sys.argv[1])
    changes = {}
    try:
        if given["claims_session_at"]:
            session = opened(given, given["claims_session_at"])
            changes = {"id": str(session.info.links()[0].zid), "mode": "peer", "listen": {"endpoints": []}}
            session.close()
        session = opened(given, given["port"], **changes)
    except zenoh.ZError as error:
        print(json.dumps({"refused": str(error), "answers": []}))  # noqa: T201
        return
    time.sleep(0.5)
    token = session.liveliness().declare_token("amble/run1/alive/b")
    answers = []
    for key in KEYS:
        replies = session.get(key, payload=b"evil", timeout=1.0, target=zenoh.QueryTarget.ALL)
        answers += [bytes(reply.ok.payload).decode() for reply in replies if reply.ok is not None]
        session.put(key, b"evil")
    token.undeclare()
    session.close()
    print(json.dumps({"refused": "", "answers": answers}))  # noqa: T201


if __name__ == "__main__":
    main()
