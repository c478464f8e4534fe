"""survey.json in an agent's folder: what all sites said of their tables in the opening survey."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from amble.errors import AmbleError
from amble.files import write_whole
from amble.survey.document import from_bytes
from amble.survey.summary import Document

FILE, FORMAT = "survey.json", 1


def write(folder: Path, documents: Mapping[str, bytes]) -> None:
    sites = {name: base64.b64encode(document).decode() for name, document in documents.items()}
    write_whole({folder / FILE: json.dumps({"format": FORMAT, "sites": sites}).encode()})


def read(path: Path) -> dict[str, Document]:
    """The sites' documents, everything checked."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise AmbleError(f"{path} is a survey of format {content['format']}, and this amble reads {FORMAT}.")
        sites = {str(name): base64.b64decode(document) for name, document in content["sites"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AmbleError(f"{path} is no survey, or it is damaged; run the survey again.") from error
    return {name: from_bytes(document, name) for name, document in sites.items()}
