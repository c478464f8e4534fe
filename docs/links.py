"""Whether the links of the pages to other sites still lead somewhere: python docs/links.py

A site that cannot be reached is named as not tried, which is no failure: without the internet that is every one.
"""

import re
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/gallery/*")]
LINK = re.compile(r"\]\((https?://[^)\s]+)\)|(?<=<)(https?://[^>\s]+)(?=>)")
TIMEOUT_S = 10
GONE = (404, 410)


class Outcome(Enum):
    THERE = "there"
    GONE = "gone"
    NOT_TRIED = "not tried"


def links() -> dict[str, list[str]]:
    """Each address, and the pages that it is on."""
    found = defaultdict(list)
    for page in PAGES:
        for match in LINK.finditer(page.read_text()):
            found[match[1] or match[2]].append(str(page.relative_to(ROOT)))
    return dict(found)


def outcome(address: str) -> tuple[Outcome, str]:
    """How it is with this address, and why. Many sites refuse programs, which says nothing about readers."""
    try:
        with urlopen(Request(address, headers={"User-Agent": "amble-docs"}), timeout=TIMEOUT_S):
            return Outcome.THERE, ""
    except HTTPError as error:
        return (Outcome.GONE if error.code in GONE else Outcome.THERE), f"{error.code}"
    except (URLError, OSError) as error:
        return Outcome.NOT_TRIED, f"{getattr(error, 'reason', error)}"


def main(addresses: dict[str, list[str]]) -> int:
    with ThreadPoolExecutor(8) as pool:
        outcomes = dict(zip(addresses, pool.map(outcome, addresses), strict=True))
    for address, (how, why) in sorted(outcomes.items()):
        if how is not Outcome.THERE:
            print(f"{address}: {how.value} ({why}); on {', '.join(addresses[address])}")
    count = Counter(how for how, _ in outcomes.values())
    print(f"{len(addresses)} links: {', '.join(f'{count[how]} {how.value}' for how in Outcome)}")
    return 1 if count[Outcome.GONE] else 0


if __name__ == "__main__":
    sys.exit(main(links()))
