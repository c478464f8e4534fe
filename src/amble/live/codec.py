"""msgspec, for the types, files and messages of live runs; without it, an error that says what to install."""

from amble.errors import need

need("msgspec", "live")
import msgspec as msgspec  # noqa: E402 - after the sentence above; exported
