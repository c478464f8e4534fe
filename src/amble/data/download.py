"""Downloads one file: complete, of a bounded size, with a progress bar in a terminal."""

import http.client
import urllib.error
import urllib.request

from amble.errors import Unusable, unusable
from amble.progress import Meter

DOWNLOAD_BYTES_MAX = 64 * 2**20
PIECE_BYTES = 2**16
TIMEOUT_S = 30.0


def download(url: str, label: str) -> bytes:
    """The content of a web address; every error begins with the address."""
    pieces: list[bytes] = []
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            if size > DOWNLOAD_BYTES_MAX:
                raise _failed(url, f"it is {size:,} bytes long, more than the {DOWNLOAD_BYTES_MAX:,} that are taken")
            with Meter(label, size // 1000 or None, unit="kB") as meter:
                while piece := answer.read(PIECE_BYTES):
                    pieces.append(piece)
                    done += len(piece)
                    if done > DOWNLOAD_BYTES_MAX:
                        raise _failed(url, f"it is longer than the {DOWNLOAD_BYTES_MAX:,} bytes that are taken")
                    meter.update(done // 1000)
    except Unusable:
        raise
    except urllib.error.HTTPError as error:
        raise _failed(url, f"the server says {error.code} {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _failed(url, str(getattr(error, "reason", "") or error or type(error).__name__)) from error
    if size and done != size:
        raise _failed(url, f"{done:,} of {size:,} bytes came")
    return b"".join(pieces)


def _failed(url: str, why: str) -> Unusable:
    return unusable(f"{url} could not be downloaded ({why.rstrip('.')})", "try again")
