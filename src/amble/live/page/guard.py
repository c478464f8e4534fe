"""Who may ask the page's server: only the page itself, in a browser on this machine.

Every address begins with a secret, /SECRET/..., so only those who were given the page's address can use it. Requests
must name the server (Host): no page of the internet can reach it under a name of its own. A request that changes
something must also come from the page (Origin).
"""

import secrets
from typing import Any, final

NAMES = ("127.0.0.1", "localhost")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@final
class Guard:
    """Refuses what does not come from the page, and adds the headers that every answer has."""

    def __init__(self, app: Any, secret: str, port: int) -> None:
        self.app, self.secret = app, secret
        self.hosts = {f"{name}:{port}" for name in NAMES}
        self.origins = {f"http://{host}" for host in self.hosts}

    def refusal(self, method: str, path: str, headers: dict[str, str]) -> int | None:
        """The status code of a request that is refused."""
        if headers.get("host") not in self.hosts:
            return 421
        if not secrets.compare_digest(f"{path}/".split("/")[1].encode(), self.secret.encode()):
            return 403
        origin, reads = headers.get("origin"), method in ("GET", "HEAD")
        return None if origin in self.origins or (reads and origin is None) else 403

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        code = self.refusal(scope["method"], scope["path"], headers)

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {key.lower() for key, _ in message["headers"]}
                own = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in own if each[0] not in names)]
            await send(message)

        if code is None:
            await self.app(scope, receive, answer)
        else:
            await answer({"type": "http.response.start", "status": code, "headers": []})
            await answer({"type": "http.response.body", "body": b""})
