"""The command line's root: one typer application, which each file of commands adds to."""

from typing import Annotated, Any

import typer

app = typer.Typer(
    name="amble",
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
