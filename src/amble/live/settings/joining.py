"""Agents that join later: the authority invites them, and their neighbours accept them."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from amble.errors import AmbleError
from amble.files import lock
from amble.live import toml
from amble.live.core import visits
from amble.live.model import start as starts
from amble.live.settings import agent_config
from amble.live.settings.agent_config import AgentConfig, Peer
from amble.live.settings.config import TAKEN
from amble.live.trust import identity, invitation
from amble.live.trust.certificates import read_certificate
from amble.live.trust.invitation import Invitation


def invite(bundle: Path, own: Peer, near: tuple[str, ...], data: str | None, days: int) -> Invitation:
    """Makes a folder for the newcomer, in the bundle: completely or not at all. No other agent's folder changes."""
    authority = bundle / TAKEN
    if not authority.is_dir():
        raise AmbleError(f"there is no authority in {bundle}; give the folder that amble init made with --out.")
    values = {**own._asdict(), "data": data}
    for key, kind in (*agent_config.PEER.items(), ("data", toml.file_name)):
        if not kind.fits(values[key]) and (key, data) != ("data", None):
            raise AmbleError(f"{key} = {values[key]!r} was given; it must be {kind.description}.")
    if not near:
        raise AmbleError(f"no neighbour was given for {own.name}; name one or more agents of the run with --near.")
    with (authority / identity.CERTIFICATE).open("rb") as file:
        lock(file, wait=True)  # one invitation at a time, so that each has its own place
        return _invite(bundle, own, near, data, days)


def _invite(bundle: Path, own: Peer, near: tuple[str, ...], data: str | None, days: int) -> Invitation:
    authority, known = bundle / TAKEN, _all(bundle)
    _check_free(bundle, own, near, known)
    first = next(iter(known.values()))
    others = list(invitation.kept(authority, identity.CERTIFICATE))
    index = len(first.agents) + len(others)
    if index >= len(first.agents) + first.room:
        raise AmbleError(
            f"the run has room for {first.room} agents besides its first {len(first.agents)}, and {len(others)} were "
            "invited; a new run needs a larger room = in its file."
        )
    whole = [config.start for config in known.values() if config.start and config.start.numbers is not None]
    if first.start and not whole:
        raise AmbleError(
            f"the run has an initial model, and {starts.FILE} is in no agent's folder in {bundle}; copy it back "
            "into one of them from a machine where an agent runs."
        )
    after, following = _on_the_way(known, others, near, first.method.tokens)
    made = Invitation(first.digest, own.name, own.host, own.port, index, near, after)
    config = replace(
        first,
        **own._asdict(),
        neighbours=tuple(Peer(name, known[name].host, known[name].port) for name in near),
        next=tuple({own.name: to} if to else {} for to in following),
        data=data,
        test=None,
        start=whole[0] if whole else None,
        guests={own.name: index} | {name: known[name].index for name in near if name not in first.agents},
    )
    aside = None
    try:
        signed = invitation.sign(made, authority)
        aside = Path(tempfile.mkdtemp(prefix=f".{own.name}-", dir=bundle))
        identity.issue(authority, own.name, [own.host], aside / own.name, days)
        config.write(aside / own.name)
        (aside / own.name / invitation.FILE).write_bytes(signed)
        invitation.keep(authority, own.name, signed)
        (aside / own.name).rename(bundle / own.name)
    except BaseException as error:
        (authority / invitation.GUESTS / f"{own.name}.json").unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise AmbleError(f"{bundle} cannot be written ({error.strerror}); run as the user who owns it.") from error
    finally:
        if aside is not None:
            shutil.rmtree(aside)
    return made


def _all(bundle: Path) -> dict[str, AgentConfig]:
    """All agents' settings, as amble init and amble join made them; who came later is not in their files."""
    folders = agent_config.agents_in(bundle)
    known = {
        config.name: config for config in (AgentConfig.read(folder, guests=False, agreed=False) for folder in folders)
    }
    if not known:
        raise AmbleError(f"{bundle} has no agents' folders; give the folder that amble init made with --out.")
    return known


def _check_free(bundle: Path, own: Peer, near: tuple[str, ...], known: dict[str, AgentConfig]) -> None:
    first = next(iter(known.values()))
    kind = visits.visits_for(first.method, first.dimension, len(first.agents))
    if not kind.exact:
        raise AmbleError(f"{first.method.label} counts its agents at the start, so no agent can join its runs later.")
    taken = {name.lower() for name in (*known, *first.agents, TAKEN)} | {
        path.stem.lower() for path in (bundle / TAKEN / invitation.GUESTS).glob("*.json")
    }
    if own.name.lower() in taken or (bundle / own.name).exists():
        raise AmbleError(f"there is already an agent or a folder named {own.name!r}; give the newcomer another name.")
    for name in near:
        if name not in known:
            raise AmbleError(f"{name!r} was given as a neighbour; {bundle} has {', '.join(known)}: give one of them.")
    if len(set(near)) < len(near):
        raise AmbleError(f"a neighbour was given twice: {', '.join(near)}; give each once.")
    for config in known.values():
        if (config.host.lower(), config.port) == (own.host.lower(), own.port):
            raise AmbleError(f"{config.name} has host {own.host} and port {own.port} already; give another port.")


def pairs(bundle: Path, m: int) -> list[str]:
    """Agents that follow each other on the way of token m, as words: a newcomer beside two of them is on it."""
    return [f"{name} and {to}" for name, config in _all(bundle).items() if (to := config.next[m].get(name, ""))]


def _on_the_way(
    known: dict[str, AgentConfig], others: list[Invitation], near: tuple[str, ...], tokens: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """For each token, two neighbours of the newcomer of which one sends to the other: it goes between them."""
    after, following = [], []
    for m in range(tokens):
        ways = {name: config.next[m].get(name, "") for name, config in known.items()}
        for other in others:
            if other.after[m]:
                ways[other.after[m]] = other.name
        before = next((name for name in near if ways.get(name) in near), "")
        after.append(before)
        following.append(ways[before] if before else "")
    return tuple(after), tuple(following)


def admit(config: AgentConfig, folder: Path, data: bytes) -> str:
    """A newcomer shows its invitation: its name if it is let in by this, "" if it was before; an error if it is not."""
    guest = invitation.read(data, read_certificate(folder / identity.AUTHORITY))
    if guest.run != config.digest:
        raise AmbleError(f"{guest.name} is invited to another run ({guest.run}, and this is {config.digest}).")
    if config.name not in guest.near:
        raise AmbleError(f"{guest.name} is invited beside {', '.join(guest.near)}, and this is {config.name}.")
    if len(guest.after) != config.method.tokens or not 0 <= guest.index - len(config.agents) < config.room:
        raise AmbleError(f"the invitation of {guest.name} does not fit this run; make a new one with amble join.")
    for accepted in invitation.kept(folder):
        if accepted == guest:
            return ""
        if accepted.name == guest.name or accepted.index == guest.index:
            raise AmbleError(
                f"{accepted.name} has already been accepted at place {accepted.index}, so {guest.name} is too late."
            )
    if guest.name in (config.name, *config.agents, *config.guests):
        raise AmbleError(f"there is an agent named {guest.name} already.")
    invitation.keep(folder, guest.name, data)
    return guest.name
