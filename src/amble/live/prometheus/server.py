"""The server that Prometheus asks: a thread, which does nothing until then."""

import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from amble.errors import AmbleError, need
from amble.live.prometheus import metrics

if TYPE_CHECKING:
    from prometheus_client import Metric

HERE = "127.0.0.1"
NAMES = {HERE, "localhost", "[::1]"}  # of this machine
ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+):)?(?P<port>\d{1,5})")
QUIET_S = 10.0  # after which a connection that says nothing is closed


@final
class Exporter:
    """Listens from the beginning, and has metrics as soon as there are `folders` of agents."""

    def __init__(self, address: str) -> None:
        """`address`: a port, or an address and a port."""
        library, host, port = need("prometheus_client", "prometheus"), *parse(address)
        from prometheus_client.exposition import ThreadingWSGIServer

        self.folders: Callable[[], Iterable[Path]] = list
        self.figures: Callable[[], Mapping[str, float]] = dict
        registry = library.CollectorRegistry()
        registry.register(self)
        try:
            family, *_, (listen, *_) = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
            kind = type("Server", (ThreadingWSGIServer,), {"address_family": family})
            app = guarded(library.make_wsgi_app(registry), host)
            self.server: Any = make_server(str(listen), port, app, kind, Handler)
        except OSError as error:
            raise AmbleError(
                f"--prometheus {address} cannot be used ({error.strerror}); give another port, or an address of this "
                "machine."
            ) from error
        self.url = f"http://{host}:{self.server.server_port}/metrics"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def collect(self) -> "Iterator[Metric]":
        """For the library: whenever somebody asks."""
        return metrics.families(metrics.look(self.folders()), self.figures())

    def describe(self) -> "Iterable[Metric]":
        return ()

    def __enter__(self) -> "Exporter":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@final
class Handler(WSGIRequestHandler):
    timeout = QUIET_S

    def log_message(self, *_: object) -> None:
        """Nothing."""


def parse(address: str) -> tuple[str, int]:
    match = ADDRESS.fullmatch(address)
    if match is None or not int(match["port"]) < 2**16:
        raise AmbleError(
            f"--prometheus {address} was given; give a port, such as 9464, or an address and a port, such as "
            "0.0.0.0:9464."
        )
    return match["host"] or HERE, int(match["port"])


def guarded(app: Any, host: str) -> Any:
    """On an address that only this machine has, others can ask under a name of theirs that leads here: a page in a
    browser. That is refused."""

    def answer(environ: dict[str, Any], start: Any) -> Any:
        asked = environ.get("HTTP_HOST", "").lower()
        if host in NAMES and re.sub(r":\d+$", "", asked) not in NAMES:
            start("421 Misdirected Request", [("Content-Length", "0")])
            return [b""]
        return app(environ, start)

    return answer
