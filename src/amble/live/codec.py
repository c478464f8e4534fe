"""msgspec, which makes the types, files and messages of live runs. Whoever lacks it is told here what to install."""

from amble.errors import need

need("msgspec", "live")
import msgspec as msgspec  # noqa: E402 - after the sentence above; exported
