"""What agents say of themselves, put together: who is up, where the tokens are, and how fast they go."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

FROZEN_S = 5.0  # an agent writes its status twice a second

Status = Mapping[str, Any]


class Place(NamedTuple):
    """The newest that is known of a token."""

    epoch: tuple[int, int]
    hop: int
    where: str


def tokens(statuses: Mapping[str, Status]) -> dict[int, Place]:
    """Where each token was last seen: of all agents' words the newest, by epoch and hop."""
    found: dict[int, Place] = {}
    for name, status in statuses.items():
        for key, said in status.get("tokens", {}).items():
            epoch = (int(said["epoch"][0]), int(said["epoch"][1]))
            where = f"at {name}" + (f", waits {said['waits']}" if said["waits"] else "")
            place = Place(epoch, int(said["hop"]), where if said["here"] else f"went on from {name}")
            m = int(key)
            if m not in found or place[:2] > found[m][:2]:
                found[m] = place
    return dict(sorted(found.items()))


def newest(statuses: Mapping[str, Status]) -> str | None:
    """The agent with the newest model: of those that have one, who has seen most hops of all tokens."""
    seen = {
        name: (sum(said["hop"] for said in status["tokens"].values()), status["visits"])
        for name, status in statuses.items()
        if status.get("tokens") and status.get("model", True)
    }
    return max(seen, key=lambda name: seen[name]) if seen else None


def hops(statuses: Iterable[Status]) -> int:
    return sum(int(status.get("visits", 0)) for status in statuses)


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def sentences(status: Status, now_s: float | None = None) -> list[str]:
    """One agent's status in words."""
    if not status:
        return ["has not said anything yet: it was never started in this folder, or not got so far"]
    age_s = (time.time() if now_s is None else now_s) - status["time_s"]
    told = f"{age_s:.0f} s ago" if age_s >= 1 else "now"
    if status.get("left"):
        words = [f"has left the run: {status['left']}"]
    elif status["stopped"]:
        words = [f"the run has ended: {status['stopped']}"]
    elif status.get("ended"):
        words = [f"ended early, {told}; start it again and it goes on from its journal"]
    elif age_s > FROZEN_S:
        words = [f"stopped writing {told}: it is frozen or dead; start it again and it goes on from its journal"]
    else:
        words = [f"{'leaves' if status.get('leaving') else 'runs'} (said {told})"]
    words.append(f"{status['visits']:,} visits, {size(status['bytes'])} heard")
    if status.get("missing") and status["visits"]:
        words.append(f"the model does not have the data of {', '.join(status['missing'])}")
    if status["stopped"] or status.get("left"):
        return words
    words += [f"up: {', '.join(status['up']) or 'nobody'}"]
    if status["down"]:
        ended = "" if status["up"] else " (if they have ended, start one of them again: it says so to this one)"
        words.append(f"down or gone: {', '.join(status['down'])}{ended}")
    words += [f"in doubt: {name} {why}; tokens go round it" for name, why in status.get("doubts", {}).items()]
    words += status.get("doubled", {}).values()
    for m, said in status["tokens"].items():
        where = f"here, waits {said['waits']}" if said["here"] else "went on"
        words.append(f"token {m}: {where}; epoch {said['epoch'][0]}, hop {said['hop']:,}")
    return words
