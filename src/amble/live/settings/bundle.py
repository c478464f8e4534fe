"""A bundle: the run's authority, and one folder per agent, to be copied to its machine."""

import errno
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from amble.errors import AmbleError
from amble.live.settings.agent_config import FILE, AgentConfig
from amble.live.settings.config import TAKEN, Config
from amble.live.trust import identity, invitation
from amble.live.trust.certificates import common_name, read_certificate

AUTHORITY_DAYS = 7300  # it signs again at each renewal, so it outlives the agents' certificates

EXAMPLE = """\
# amble init run.toml -o bundle
name = "plant"                      # of the run
links = [["north", "south"], ["south", "west"], ["west", "north"]]
room = 8                            # for agents that join later: amble join
# Instead of links, a table [network] with kind = "ring", "complete" or "random" (then also density and seed).

[method]
name = "Relay"                      # any method with tokens: amble compare --help lists them and their settings
tokens = 2

[model]
task = "regression"                 # or "classification", with labels = ["no", "yes"]
columns = 12                        # how many, or their names; "colour=red" is a category of the column colour
ridge = 1e-4
# l1 = 0.01                         # for Relay: a lasso; also positive = ["age"] and unpenalised = ["sex"]
intercept = true
# target = "price"                  # of agents' files: its name or number; without it, the last column
# header = true                     # of agents' files: whether the first row has names
# start = "model.npz"               # the initial model: such a file, a .npy of numbers, or a list; without it, zeros
# Nobody sees all rows, so the scaling is fixed here: X_mean and X_std, one number per column, and of the target:
y_mean = 0.0
y_std = 1.0

[stop]                              # the run ends at the first of these
tolerance = 1e-8                    # the model has converged; 0: never
hops = 1_000_000                    # of all tokens together
seconds = 3600                      # per agent, since its first token from another agent

[walk]
kind = "cycles"                     # a cycle for each token; "cycle": one for all; "random": any neighbour
seed = 0

[timing]
patience_s = 2.0                    # for a neighbour that is down, before its tokens are reissued
stall_s = 10.0                      # for an answer of a neighbour that is up, before tokens avoid it
silence_s = 120.0                   # for a token that nobody has seen
lease_s = 2.0                       # for a sign of life on a link
retry_s = 0.1                       # before a question is asked again
pause_s = 0.0                       # added to each visit: a slower device, or a run to watch

[record]
visits_max = 1_000_000              # per agent's journal; beyond it the oldest are dropped; 0 keeps them all

[[agents]]
name = "north"                      # letters, digits, - and _
host = "127.0.0.1"                  # where the others reach it: a name or an address
port = 7447                         # below 32768
data = "rows.csv"                   # the file in its folder; or give one when the agent is started

[[agents]]
name = "south"
host = "127.0.0.1"
port = 7448
data = "rows.csv"

[[agents]]
name = "west"
host = "127.0.0.1"
port = 7449
data = "rows.csv"
"""


def check_not_here(out: Path) -> None:
    """The new folder replaces this one, so this one must not be the current directory."""
    if Path.cwd().is_relative_to(out.resolve()):
        raise AmbleError(f"you are in {out}, which would be replaced; give another with --out, or leave it (cd).")


def make_bundle(config: Config, out: Path, days: int) -> None:
    """Complete or not at all: it is made in a temporary folder, which is renamed when it is complete."""
    identity.check_days(days)
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise AmbleError(f"{out} exists and is not empty; give another folder, or --renew for new certificates only.")
    check_not_here(out)
    aside = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        identity.make_authority(aside / TAKEN, config.name, AUTHORITY_DAYS)
        for peer in config.peers:
            identity.issue(aside / TAKEN, peer.name, [peer.host], aside / peer.name, days)
            config.agent(peer.name).write(aside / peer.name)
        aside.rename(out)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and out.is_dir():
            raise AmbleError(f"{out} exists now and is not empty; give another folder.") from error
        raise AmbleError(f"{out} cannot be written ({error.strerror}); give a folder that you can write to.") from error
    finally:
        if aside is not None and aside.exists():
            shutil.rmtree(aside)


def guests(out: Path) -> dict[str, str]:
    """Agents that were invited later, and their hosts."""
    return {guest.name: guest.host for guest in invitation.kept(out / TAKEN, identity.CERTIFICATE)}


def renew(config: Config, out: Path, days: int) -> None:
    """New certificates and keys for all agents, signed by the existing authority; settings do not change."""
    if not (out / TAKEN).is_dir():
        raise AmbleError(f"there is no authority in {out}; give the folder that amble init made with --out.")
    run = common_name(read_certificate(out / TAKEN / identity.CERTIFICATE))
    if run != config.name:
        raise AmbleError(f"the authority in {out} is of the run {run!r}, and {config.name!r} was given; give its own.")
    for peer in config.peers:
        folder = out / peer.name
        if not (folder / FILE).is_file():
            continue
        own = AgentConfig.read(folder, guests=False, agreed=False)
        if own != replace(config.agent(peer.name), record=own.record):
            raise AmbleError(
                f"the run's settings are not those of {folder / FILE}, and --renew makes certificates only; "
                "give the settings as they were, or make a new bundle."
            )
    hosts = {peer.name: [peer.host] for peer in config.peers}
    hosts |= {name: [host] for name, host in guests(out).items() if (out / name / FILE).is_file()}
    identity.renew(out / TAKEN, hosts, out, days)
