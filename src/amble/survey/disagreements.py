"""What sites must have in common, or one sentence that names the site and the column."""

from collections.abc import Mapping, Sequence

from amble.data.tables import as_numbers
from amble.errors import AmbleError, few
from amble.survey.cells import EMPTY, NUMBER, REFUSE, ROLES, TEXT
from amble.survey.document import LEVELS_MAX, Document, Summary

NAME_COLUMNS = "name the columns to use in [model] columns"
FILL = 'fill them, or set missing = "mean" or "drop"'
LEAST = {"poisson": (0.0, "zero or more"), "gamma": (0.0, "above zero"), "cox": (0.0, "above zero")}

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
    levels = summaries[texts[0]].levels or ()
    example = next((level for level, _ in levels if as_numbers([str(level)]) is None), None)
    such = "" if example is None else f" ({str(example)[:40]!r}, for example)"
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
            raise AmbleError(
                f"{site} has no row left without missing cells ({worst.missing:,} of {document.rows:,} are missing in "
                f"{worst.name!r}); leave that column out, or leave {site} out."
            )


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


def check_range(loss: str | None, low: float, site: str, name: str) -> None:
    """Targets that the loss can take."""
    if loss not in LEAST:
        return
    least, words = LEAST[loss]
    if low < least or (low == least and words == "above zero"):
        raise AmbleError(f"{site} has {low:g} in its target {name!r}; {loss} needs targets that are {words}.")


def check_weights(sites: Sites) -> None:
    for site, document in sites.items():
        if document.weight is not None and document.weight.total <= 0:
            raise AmbleError(f"all weights of {site} are zero; leave {site} out, or give its rows some weight.")


def _who(sites: Sequence[str]) -> str:
    return f"site {sites[0]} has" if len(sites) == 1 else f"sites {_listed(sites)} have"


def _listed(sites: Sequence[str]) -> str:
    """ "east and south"; of many, the first ten and how many more there are."""
    if len(sites) == 1 or len(sites) > 10:
        return few(list(sites))
    return f"{', '.join(sites[:-1])} and {sites[-1]}"
