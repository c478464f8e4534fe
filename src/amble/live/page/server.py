"""The page's server: a thread that answers on 127.0.0.1, and one that looks at the run."""

import secrets
import socket
import threading

from amble.errors import AmbleError, need
from amble.live.page.guard import Guard
from amble.live.page.opened import Opened
from amble.live.page.pages import Pages
from amble.progress import Flag

HOST = "127.0.0.1"
CLOSE_S = 3  # for pages to be told that the server ends


class Server:
    """Serves a page until the `with` block ends."""

    def __init__(self, opened: Opened, port: int = 0) -> None:
        uvicorn = need("uvicorn", "page")
        need("starlette", "page")
        if not 0 <= port < 2**16:
            raise AmbleError(f"--port {port} was given; give 1 to 65535, or 0 for any free one.")
        self.opened = opened
        self._closing, self._halt = threading.Event(), Flag()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen()  # from now on a browser waits for an answer, and is not refused
        except OSError as error:
            self._socket.close()
            raise AmbleError(f"port {port} cannot be used ({error.strerror}); give another with --port.") from error
        self.secret, self.port = secrets.token_urlsafe(16), self._socket.getsockname()[1]
        app = Guard(Pages(opened, self._closing).app(self.secret), self.secret, self.port)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, lifespan="off", ws="none", http="h11", loop="asyncio", interface="asgi3", log_config=None,
                log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=CLOSE_S,
            )
        )  # fmt: skip
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        if opened.sampler is not None:
            self._threads.append(threading.Thread(target=opened.sampler.run, args=(self._halt.wait,), daemon=True))

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.secret}/"

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> "Server":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Pages that are open get the last frame, what the run has come to, and that this is all."""
        self._halt.set()
        for thread in self._threads[1:]:
            thread.join()
        self._closing.set()
        self._server.should_exit = True
        self._threads[0].join()
