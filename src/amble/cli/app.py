"""The command line's root: one typer application, which each file of commands adds to."""

from typing import Annotated, Any, final

import typer
from typer.core import TyperGroup

# the groups of `amble --help` and the order of their commands; every command must be here
PANELS = {
    "Simulate": ("compare", "sweep", "path", "reproduce", "report", "draw"),
    "Live": ("up", "survey", "init", "agent", "status", "page", "stop", "join", "leave", "collect", "replay", "chaos"),
    "Data": ("data", "predict", "summary"),
}
ARGUMENTS = "amble.arguments"  # where a context keeps the arguments of the command line
ORDER = [name for names in PANELS.values() for name in names]


@final
class Commands(TyperGroup):
    """Commands in groups. Types are plain words in their help; a flag takes no value, so it has no type."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            _with_plain_types(command.get_params(ctx))
            panels = [panel for panel, names in PANELS.items() if cmd_name in names]
            command.rich_help_panel = panels[0] if panels else None
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """A word in place of a number gives one sentence, like all other bad input."""
        arguments = ctx.meta[ARGUMENTS]
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            sentence = _no_number(error, arguments)
            if sentence is None:
                raise
            raise sentence from error

    def get_params(self, ctx: Any) -> Any:
        return _with_plain_types(super().get_params(ctx))


def _no_number(error: Any, arguments: list[str]) -> Exception | None:
    """The sentence for an option that needs a number and got something else; None for any other mistake."""
    from inspect import unwrap
    from itertools import pairwise
    from typing import get_type_hints

    from amble.errors import AmbleError

    param, callback = error.param, getattr(getattr(error.ctx, "command", None), "callback", None)
    if param is None or callback is None:
        return None
    kinds = _leaves(get_type_hints(unwrap(callback)).get(param.name))
    values = [after for word, after in pairwise(arguments) if word in param.opts]
    values += [word.partition("=")[2] for word in arguments if word.partition("=")[0] in param.opts and "=" in word]
    if not kinds & {int, float} or not values:
        return None
    least = getattr(param, "min", getattr(getattr(param, "type", None), "min", None))  # typer's, or click's
    expected = ("a whole number" if int in kinds else "a number") + ("" if least is None else f", {least} or more")
    return AmbleError(f"{param.opts[0]} {', '.join(values)} was given; it must be {expected}.")


def _leaves(hint: Any) -> set[Any]:
    """int and None of int | None, and so on."""
    from typing import get_args

    return {hint}.union(*(_leaves(part) for part in get_args(hint)))


def _with_plain_types(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.nargs == -1:  # several paths, which typer would show as Python's list[Path]
            param.display_type_rich = lambda **_: "<path>"
    return params


app = typer.Typer(
    name="amble",
    cls=Commands,
    help="Train one model across many agents that keep their data, with no server.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def show_version(asked: bool) -> None:
    if asked:
        from amble import __version__

        typer.echo(f"amble {__version__}")
        raise typer.Exit


@app.callback()
def amble(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=show_version)
    ] = False,
) -> None:
    pass


def console() -> Any:
    from rich.console import Console

    return Console()


def say_written(folder: Any, names: list[str], more: str = "") -> None:
    """Print which files were written, wrapped at the width of the screen."""
    console().print(f"written to {folder}/: {', '.join(names)}{more}", markup=False, highlight=False)


def say(sentence: str, label: str = "", style: str = "yellow") -> None:
    """Print a sentence unchanged, after a coloured label: quoted text such as [model] may look like markup."""
    from rich.text import Text

    line = Text.assemble((f"{label} ", style), sentence) if label else Text(sentence)
    console().print(line, highlight=False, soft_wrap=True)
