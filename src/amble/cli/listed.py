"""Lists for the help, from the registries: methods, losses, networks."""

from typing import Any, final

from typer.core import TyperCommand


@final
class WithNames(TyperCommand):
    """In the help, {methods}, {losses} and {networks} become lists of their registries. Only the help loads them."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        parts: tuple[Any, ...] = (self, *self.params)
        for part in parts:
            part.help = with_names(part.help or "")
        super().format_help(ctx, formatter)


def with_names(text: str) -> str:
    """The help with its lists."""
    from amble.losses import LOSSES
    from amble.networks import KINDS

    for mark, names in (("{losses}", LOSSES), ("{networks}", KINDS)):
        text = text.replace(mark, ", ".join(names))
    return text.replace("{methods}", methods_help()) if "{methods}" in text else text


def methods_help() -> str:
    """Every method with its settings, their defaults and then their other choices."""
    from dataclasses import fields

    from amble.methods import METHODS, is_round

    def setting(kind: Any, name: str, default: Any) -> str:
        others = [f"|{choice}" for choice in getattr(kind, "choices", {}).get(name, ()) if choice != default]
        return (
            name if default is None else f"{name}={default:g}" if not others else f"{name}={default}{''.join(others)}"
        )

    lists: dict[bool, list[str]] = {False: [], True: []}
    for label, kind in METHODS.items():
        settings = ", ".join(setting(kind, each.name, each.default) for each in fields(kind))
        lists[is_round(kind)].append(f"- {label}: {settings}" if settings else f"- {label}")
    walks, rounds = ("\n".join(lines) for lines in lists.values())
    title = "**Methods** and the defaults of their settings; `-m all` runs every one."
    return f"{title}\n\nWalks:\n\n{walks}\n\nRounds, in which all agents compute at once:\n\n{rounds}"
