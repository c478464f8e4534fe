"""The reference of the command line, from the commands themselves."""

import re
from inspect import cleandoc, unwrap
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from amble.cli import app
from amble.cli.app import PANELS
from amble.cli.listed import with_names

VALUES = {int: "number", float: "number", Path: "path", str: "text"}
DEFAULT = re.compile(r"\s*\[default: (.*)\]\s*$")


def commands() -> str:
    """Every command with its help, its examples and its options, as Markdown."""
    root: Any = typer.main.get_command(app)
    context = typer.Context(root, info_name="amble")
    parts = []
    for panel, names in PANELS.items():
        parts.append(f"## {panel}")
        parts += [section(["amble", name], root.get_command(context, name), "###") for name in names]
    return "\n\n".join(parts)


def section(words: list[str], command: Any, level: str) -> str:
    hints = get_type_hints(unwrap(command.callback)) if command.callback else {}
    shown = [param for param in command.params if not getattr(param, "hidden", False) and param.opts[0] != "--help"]
    arguments = [param for param in shown if not param.opts[0].startswith("-")]
    options = [param for param in shown if param.opts[0].startswith("-")]
    inner = command.list_commands(None) if hasattr(command, "list_commands") else []
    usage = [*words, *(usage_of(param) for param in arguments), *(["[options]"] if options else [])]
    parts = [f"{level} `{' '.join(words)}`", f"```text\n{' '.join(usage)}\n```", help_text(command.help or "")]
    if arguments:
        parts.append(
            table(("argument", "what it is"), [(cell(f"`{each.name}`"), described(each)[0]) for each in arguments])
        )
    for panel in dict.fromkeys(each.rich_help_panel for each in options):
        own = [each for each in options if each.rich_help_panel == panel]
        parts += [f"**{panel}**"] * bool(panel)
        rows = [(names_of(each), value_of(each, hints), *described(each)) for each in own]
        parts.append(table(("option", "value", "what it does", "default"), rows))
    context = typer.Context(command)
    parts += [section([*words, name], command.get_command(context, name), f"{level}#") for name in inner]
    return "\n\n".join(parts)


def help_text(text: str) -> str:
    """The help as it is; its examples, which are lines of code and what they do, as a list."""
    body = re.sub(
        r"^(`amble [^`]+`)(?: - )?",
        lambda m: f"- {m[1]}: " if m[0][-1] == " " else f"- {m[1]}",
        with_names(cleandoc(text)),
        flags=re.M,
    )
    return re.sub(r"(?<!\*)\n\n(?=- `amble )", "\n", body)


def usage_of(param: Any) -> str:
    name = f"{param.name} ..." if param.nargs == -1 else param.name
    return name if param.required else f"[{name}]"


def names_of(param: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))


def value_of(param: Any, hints: dict[str, Any]) -> str:
    if getattr(param, "is_flag", False):
        return ""
    if param.metavar:
        return cell(f"`{param.metavar.strip('<>')}`")
    kinds = _leaves(hints.get(param.name))
    return next((value for kind, value in VALUES.items() if kind in kinds), "")


def described(param: Any) -> tuple[str, str]:
    """What it does, and its default: in words of its help or, where it has none there, its own."""
    text = with_names(param.help or "")
    told = DEFAULT.search(text)
    none = param.default is None or callable(param.default) or getattr(param, "is_flag", False)
    default = told[1] if told else "required" if param.required else "" if none else f"{param.default}"
    return cell(DEFAULT.sub("", text)), cell(default)


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ("---",) * len(heads), *rows])


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _leaves(hint: Any) -> set[Any]:
    return {hint}.union(*(_leaves(part) for part in get_args(hint)))
