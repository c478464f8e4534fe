"""Checks that an object has everything a method needs: methods/__init__ lists the parts."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from amble.errors import AmbleError
from amble.methods.parameters import label_of
from amble.methods.protocol import step_of

# what each kind of method needs besides its step
PARTS = {
    "gift": ("agent", "weigh", "tokens"),
    "local": ("token_rule", "tokens"),
    "visit": ("agent", "slot", "token", "estimate", "message_numbers", "tokens"),
    "pair": ("agent",),
    "round": ("agent", "say", "hears"),
}
WEIGH = ("agents", "scalar", "full")
HEARS = ("mixed", "sum", "mean")
WORK = ("grad", "prox", "hessian", "value")


def check_parts(method: Any) -> None:
    """Refuse what is no method, or one without a part that the engines call."""
    step = step_of(method)
    if isinstance(method, type | str) or not (hasattr(method, "label") or is_dataclass(method)):
        example = f"{method.__name__}()" if isinstance(method, type) and step else "amble.IBCD(tau=1)"
        raise AmbleError(f"{method!r} was given as a method; give one with its settings, such as {example}.")
    if step is None:
        raise AmbleError(f"{label_of(method)} was given as a method and has no step: write one of {', '.join(PARTS)}.")
    label = label_of(method)
    for part in ("label", "work", *PARTS[step]):
        if not hasattr(method, part):
            raise AmbleError(f"{label} has {step} and no {part}; a method with {step} needs {_listed(step)}.")
    work = method.work
    if not isinstance(work, Mapping) or not set(work) <= set(WORK):
        raise AmbleError(
            f"{label}: work is {work!r}; it says how often a visit calls the objective, such as {{'grad': 1}}: "
            f"name {', '.join(WORK)}."
        )
    for part, known in (("weigh", WEIGH), ("hears", HEARS)):
        if part in PARTS[step] and getattr(method, part) not in known:
            raise AmbleError(f"{label}: {part} is {getattr(method, part)!r}; it must be one of {', '.join(known)}.")


def _listed(step: str) -> str:
    return ", ".join(("label", "work", *PARTS[step]))
