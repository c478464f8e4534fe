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

    from amble.methods import METHODS, is_pair, is_round

    def setting(kind: Any, name: str, default: Any) -> str:
        others = [f"|{choice}" for choice in getattr(kind, "choices", {}).get(name, ()) if choice != default]
        return (
            name if default is None else f"{name}={default:g}" if not others else f"{name}={default}{''.join(others)}"
        )

    titles = ("Walks", "Rounds, in which all agents compute at once", "Pairs of agents, each at its own pace")
    lists: dict[str, list[str]] = {title: [] for title in titles}
    for label, kind in METHODS.items():
        settings = ", ".join(setting(kind, each.name, each.default) for each in fields(kind))
        title = titles[1 if is_round(kind) else 2 if is_pair(kind) else 0]
        lists[title].append(f"- {label}: {settings}" if settings else f"- {label}")
    listed = "".join(f"\n\n{title}:\n\n" + "\n".join(lines) for title, lines in lists.items())
    title = "**Methods** and the defaults of their settings; `-m all` runs every one."
    return f"{title}{listed}"
