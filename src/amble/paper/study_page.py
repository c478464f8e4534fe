"""The page's section of other claims: each study with its claims, and the worked example's time line."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from amble.paper.other_claims import Study
from amble.report.markup import Markup, tag
from amble.report.results import claim_block
from amble.results.pictures import timeline_picture
from amble.results.run import Run


def studies_section(studies: Sequence[Study], note: str = "") -> Markup:
    parts = [tag("h2", "Other claims"), *([tag("p", note)] if note else [])]
    for study in studies:
        parts += [tag("h3", study.title), tag("p", study.about), *(claim_block(claim) for claim in study.claims)]
        if study.drawn is not None:
            parts.append(_time_line(study.drawn, study.title))
    return tag("section", *parts, id="other-claims")


def _time_line(run: Run, title: str) -> Markup:
    """The picture inside the page, which asks nothing of any network."""
    with TemporaryDirectory() as folder:
        drawn = timeline_picture(run, Path(folder) / "time-line.png", first=1).read_bytes()
    source = f"data:image/png;base64,{b64encode(drawn).decode()}"
    return tag("figure", tag("img", src=source, alt=f"{title}: which agent updates which copy when"), class_="wide")
