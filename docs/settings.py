"""The reference of run files and experiment files, from the types that read them."""

from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import typer
from commands import DEFAULT, cell, table
from comments import comments

from amble.cli import app
from amble.cli.listed import with_names
from amble.live import toml
from amble.live.model.model import Model
from amble.live.settings import bundle, config, links
from amble.live.settings.config import Walk
from amble.live.settings.parts import LiveTiming, Retention, Stop
from amble.live.settings.surveyed import SURVEY, Surveyed
from amble.simulation.experiment import EXPECTED, Experiment, plain_type

IN_FILES = (
    "sizes",
    "positive",
    "intercept",
    "scale",
    "timing",
    "start",
    "methods",
)  # written otherwise than as options
HEADS = ("key", "value", "default", "what it is")
RUN = {  # what a dict of kinds has no comment for
    "name": "of the run",
    "room": "places for agents that join later",
    "links": "who is linked to whom; or a table `[network]`",
    "method": "how tokens learn",
    "model": "what they learn",
    "stop": "when the run ends",
    "agents": "who takes part",
}
NETWORK = {
    "kind": "ring, complete, random, grid or geometric",
    "density": 'of kind = "random": the share of all links that it has',
    "seed": "of the kinds that are drawn at random",
}
AGENT = {
    "name": "of the agent, and of its folder",
    "host": "where others reach it",
    "port": "where it listens",
    "data": "its rows; or name them when the agent is started",
    "test": "of a run with `[survey]`: rows to test the model on, in place of a share of its rows",
}


def run_file() -> str:
    """Every table of a run file, and an example."""
    tables = {
        "The run": kinds_table({key: config.RUN[key] for key in RUN}, RUN),
        "`[method]`": "`name`, one of the walks in [methods.md](methods.md), and its settings by their names.",
        "`[model]`": fields_table(
            Model, more=(("start", config.START["start"], "the initial model; without it, zeros"),)
        ),
        "`[model]` of a run with `[survey]`": fields_table(Surveyed, without=SURVEY),
        "`[survey]`": fields_table(Surveyed, only=SURVEY),
        "`[stop]`": fields_table(Stop),
        "`[network]`": kinds_table(links.NETWORK, NETWORK),
        "`[walk]`": f"{Walk.__doc__}\n\n{fields_table(Walk)}",
        "`[timing]`": fields_table(LiveTiming),
        "`[record]`": fields_table(Retention),
        "`[[agents]]`": kinds_table(config.AGENT, AGENT),
    }
    parts = [f"## {title}\n\n{text}" for title, text in tables.items()]
    return "\n\n".join([*parts, f"## The file of `amble init --example`\n\n```toml\n{bundle.EXAMPLE}```"])


def experiment_file() -> str:
    """Every key of an experiment file, with the help of the option that it stands for."""
    command: Any = typer.main.get_command(app)
    options = {param.name: param.help for param in command.get_command(typer.Context(command), "compare").params}
    told, hints = comments(Experiment), get_type_hints(Experiment)
    rows = []
    for field in fields(Experiment):
        text = told[field.name] if field.name in IN_FILES else DEFAULT.sub("", with_names(options[field.name]))
        rows.append((f"`{field.name}`", EXPECTED.get(plain_type(hints[field.name]), ""), default_of(field), cell(text)))
    return table(HEADS, rows)


def fields_table(settings: type, more: Any = (), only: Any = None, without: Any = ()) -> str:
    told, kinds = comments(settings), toml.kinds_of(settings)
    rows = [
        (f"`{field.name}`", cell(kinds[field.name].description), default_of(field), cell(told.get(field.name, "")))
        for field in fields(settings)
        if field.name not in without and (only is None or field.name in only)
    ]
    rows += [(f"`{key}`", cell(kind.description), "", note) for key, kind, note in more]
    return table(HEADS, rows)


def kinds_table(kinds: dict[str, toml.Kind], notes: dict[str, str]) -> str:
    rows = [(f"`{key}`", cell(kind.description), cell(notes[key])) for key, kind in kinds.items()]
    return table(("key", "value", "what it is"), rows)


def default_of(field: Any) -> str:
    """As TOML has it; nothing for a setting that is left out."""
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else ""
    if field.default is None or field.default == ():
        return ""
    shown = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"`{shown!r}`".replace("'", "") if isinstance(shown, str) else f"`{shown:,}`".replace(",", "_")
