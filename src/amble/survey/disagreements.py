"""What sites must have in common, or one sentence that names the site and the column."""

from collections.abc import Mapping, Sequence

import numpy as np

from amble.data.roles import ROLES
from amble.data.tables import as_numbers
from amble.errors import AmbleError, few
from amble.losses import LOSSES
from amble.survey.cells import EMPTY, NUMBER, REFUSE, TEXT
from amble.survey.summary import LEVELS_MAX, Document, Summary

NAME_COLUMNS = "name the columns to use (columns in [model], or --columns)"
FILL = 'fill them, or set missing = "mean" or "drop"'


IDENTITY, LOG, HAZARD = "identity", "log", "hazard"  # links: see amble.losses

Sites = Mapping[str, Document]


def check_columns(sites: Sites, columns: Sequence[str] | None) -> None:
    """Every site has the columns that are named or, without names, all have the same."""
    held = {site: {summary.name for summary in document.columns} for site, document in sites.items()}
    union = dict.fromkeys(summary.name for document in sites.values() for summary in document.columns)
    for name in union if columns is None else [*columns, *union]:
        have = [site for site in sites if name in held[site]]
        lack = [site for site in sites if name not in held[site]]
        if columns is not None and name not in columns:
            raise AmbleError(f"{have[0]} described {name!r}, which [model] columns does not name; use one run file.")

        if not lack:
            continue
        if not have:
            raise AmbleError(f"no site has a column {name!r}; {NAME_COLUMNS}, as their tables have them.")
        if columns is None and len(have) < len(lack):
            raise AmbleError(f"{_who(have)} a column {name!r}, which {_listed(lack)} lack; drop it, or {NAME_COLUMNS}.")
        theirs = f"{_listed(have)} {'has' if len(have) == 1 else 'have'}"
        raise AmbleError(f"{_who(lack)} no column {name!r}, which {theirs}; add it, or {NAME_COLUMNS}.")


def check_roles(sites: Sites) -> None:
    """Target, event, offset, exposure and weight are the same columns at all sites."""
    for role in ("target", *ROLES):
        names = {site: getattr(document, role) for site, document in sites.items()}
        called = {site: None if summary is None else summary.name for site, summary in names.items()}
        first, *others = called
        other = next((site for site in others if called[site] != called[first]), None)
        if other is not None:
            here, there = (repr(called[site]) if called[site] is not None else "no column" for site in (first, other))
            raise AmbleError(f"the {role} is {here} at {first} and {there} at {other}; give it one name at all sites.")


def check_kinds(summaries: Mapping[str, Summary]) -> None:
    """A column holds numbers at all sites, or text at all."""
    texts = [site for site, summary in summaries.items() if summary.kind == TEXT]
    numbers = [site for site, summary in summaries.items() if summary.kind == NUMBER]
    if not texts or not numbers:
        return
    levels = [str(tally.level) for tally in summaries[texts[0]].levels or ()]
    example = next((level for level in levels if as_numbers([level]) is None), None)
    such = "" if example is None else f" ({example[:40]!r}, for example)"
    if len(texts) <= len(numbers):
        problem = f"text at {_listed(texts)}{such} and numbers elsewhere"
    else:
        problem = f"numbers at {_listed(numbers)} and text elsewhere{such}"
    raise AmbleError(f"{summaries[texts[0]].name!r} is {problem}; make it the same at all sites.")


def check_gaps(sites: Sites, missing: str) -> None:
    """No cell may be missing unless a policy says what to do; and then some row must be left."""
    gaps = [(site, summary) for site, document in sites.items() for summary in document.all if summary.missing]
    if gaps and missing == REFUSE:
        (site, summary), total = gaps[0], sum(summary.missing for _, summary in gaps)
        refuse_gaps(site, summary.name, summary.missing, f" ({total:,} in all)" if len(gaps) > 1 else "")
    for site, _ in gaps:
        if sites[site].missing != missing:
            theirs = sites[site].missing
            raise AmbleError(
                f'{site} described its table for missing = "{theirs}" and the run has "{missing}"; use one run file.'
            )
    for site, document in sites.items():
        if not document.used:
            worst = max(document.all, key=lambda summary: summary.missing)
            cause = f"{worst.missing:,} of {document.rows:,} cells of {worst.name!r} are missing"
            cause = cause if worst.missing else "no row has a weight above zero"
            raise AmbleError(f"no row of {site} can be used: {cause}; leave that column out, or leave {site} out.")


def refuse_gaps(site: str, name: str, count: int, more: str = "", advice: str = FILL) -> None:
    cells = "1 missing cell" if count == 1 else f"{count:,} missing cells"
    raise AmbleError(f"{site} has {cells} in {name!r}{more}; {advice}.")


def check_levels(summaries: Mapping[str, Summary], role: str) -> None:
    """Every site could name its levels."""
    for site, summary in summaries.items():
        if summary.kind != EMPTY and summary.levels is None:
            count = f"{summary.distinct:,}" if summary.distinct else "too many"
            raise AmbleError(
                f"{site} has {count} different values in {summary.name!r}, and {role} has at most {LEVELS_MAX} per "
                "site; name other columns, or group its values."
            )


def check_range(loss: str, low: float, site: str, name: str) -> None:
    """The lowest target of a site is one that the loss can take."""
    if LOSSES[loss].link() == HAZARD:
        flaw = None if low > 0 else f"times above zero, and there is {low:g}"
    else:
        flaw = LOSSES[loss].flaw(np.array([low, 1.0]))  # with a 1, since one site's targets may all be zero
    if flaw:
        raise AmbleError(f"target {name!r} of {site}: {loss} needs {flaw}; fix it, or choose another loss.")


def check_loss(loss: str, target: Summary, document: Document, events: bool) -> None:
    """The loss goes with the roles that columns have, and with the targets of all sites together."""
    link = LOSSES[loss].link()
    if (link == HAZARD) != (document.event is not None):
        raise AmbleError('loss = "cox" and an event column need each other; give both, or neither.')
    for role in ("offset", "exposure"):
        if getattr(document, role) is not None and link != LOG:
            fit = " or ".join(name for name, kind in LOSSES.items() if kind.link() == LOG)
            raise AmbleError(f"an {role} is given, and {loss} has no log link; leave it out, or choose {fit}.")
    if link == HAZARD:
        flaw = None if events else "events, and every row of every site is censored"
    else:
        flaw = LOSSES[loss].flaw(np.array([target.min, target.max])) if LOSSES[loss].fits(0) else None
    if flaw:
        raise AmbleError(f"target {target.name!r}: {loss} needs {flaw}.")


def _who(sites: Sequence[str]) -> str:
    return f"site {sites[0]} has" if len(sites) == 1 else f"sites {_listed(sites)} have"


def _listed(sites: Sequence[str]) -> str:
    """As in a sentence, such as "east and south"; of many, the first ten and how many more there are."""
    if len(sites) == 1 or len(sites) > 10:
        return few(list(sites))
    return f"{', '.join(sites[:-1])} and {sites[-1]}"
