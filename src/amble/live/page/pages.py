"""What the page's server answers. It reads, but for two requests: to stop the run, and to let an agent leave."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, final

from amble.errors import AmbleError
from amble.live.codec import msgspec
from amble.live.control import leaving, stopping
from amble.live.page import ending
from amble.live.page.detail import detail_of
from amble.live.page.opened import Opened
from amble.look import css

WITHIN_S = 30.0  # to stop, and to leave
LOOK_S, END_S, ALIVE_S = 0.25, 1.0, 15.0  # between two looks: for a frame, for results; and between two signs of life
STREAMS_MAX = 16  # pages that may be open at once
WEB = files("amble.live.page").joinpath("web")
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}

# a report has its script inside; in a sandbox it has no origin, so nothing of this server is open to it
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:"
)


@final
class Pages:
    """What is answered to the page."""

    def __init__(self, opened: Opened, closing: threading.Event) -> None:
        self.opened, self.closing = opened, closing
        self.streams = 0
        self._ending: tuple[tuple[float, ...], bytes] | None = None
        self._report: bytes | None = None

    def app(self, secret: str) -> Any:
        from starlette.applications import Starlette
        from starlette.routing import Mount, Route

        routes = [
            Route("/", _file(WEB.joinpath("page.html"))),
            Route("/base.css", _file(files("amble.report").joinpath("base.css"), css().encode())),
            *(Route(f"/{file.name}", _file(file)) for file in WEB.iterdir() if _kind(file) is not None),
            Route("/film", self.film),
            Route("/frames", self.frames),
            Route("/agent/{name}", self.agent),
            Route("/end", self.end),
            Route("/model.npz", self.model),
            Route("/report", self.report),
            Route("/stop", self.stop, methods=["POST"]),
            Route("/leave/{name}", self.leave, methods=["POST"]),
        ]
        return Starlette(routes=[Mount(f"/{secret}", routes=routes)], exception_handlers={AmbleError: _sentence})

    def film(self, _: Any) -> Any:
        return _json(self.opened.film.whole())

    def agent(self, request: Any) -> Any:
        return _json(msgspec.json.encode(detail_of(*self._agent(request))))

    def end(self, _: Any) -> Any:
        return _json(self.ending())

    def ending(self) -> bytes:
        mark = ending.mark(self.opened)
        if self._ending is None or self._ending[0] != mark:
            self._ending = mark, msgspec.json.encode(ending.ending_of(self.opened))
        return self._ending[1]

    def model(self, _: Any) -> Any:
        from starlette.responses import FileResponse

        path = self.opened.model()
        if path is None:
            raise AmbleError("there is no model; a run has one when it has ended.")
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    def report(self, _: Any) -> Any:
        from starlette.responses import Response

        run = self.opened.run()
        if run is None:
            raise AmbleError("there is no report; amble up saves a run when it has replayed it.")
        self._report = self._report or ending.report_of(run)
        return Response(self._report, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

    def stop(self, _: Any) -> Any:
        if self.opened.sampler is None:
            raise AmbleError("the run has ended already.")
        seen, late = stopping.stop(self.opened.paths, WITHIN_S, lambda _: None)
        ended = f"the run has ended: {seen.words}" if seen.state == "ended" else "the run goes on"
        return _said("; ".join([ended, *(f"{name} has not ended in time" for name in late)]))

    def leave(self, request: Any) -> Any:
        if self.opened.sampler is None:
            raise AmbleError("the run has ended already.")
        name, folder = self._agent(request)
        leaving.ask(folder, WITHIN_S)
        return _said(f"{name} was asked to leave; it goes when the tokens have passed, within {WITHIN_S:g} s")

    def _agent(self, request: Any) -> tuple[str, Any]:
        name, folders = request.path_params["name"], self.opened.folders
        if name not in folders:
            raise AmbleError(f"the folder of {name} is not here.")
        return name, folders[name]

    async def frames(self, request: Any) -> Any:
        from starlette.responses import PlainTextResponse, StreamingResponse

        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        if self.streams >= STREAMS_MAX:
            return PlainTextResponse("", status_code=503)
        try:
            return StreamingResponse(self._stream(int(after)), media_type="text/event-stream")
        except ValueError:
            return PlainTextResponse("", status_code=400)

    async def _stream(self, n: int) -> AsyncIterator[bytes]:
        """Each new frame; what the run has come to; and that the server ends."""
        film, quiet_s, looked_s = self.opened.film, 0.0, 0.0
        shown: tuple[float, ...] = ()
        self.streams += 1
        try:
            while True:
                closing = self.closing.is_set()
                steps = film.after(n)
                if steps is None:
                    yield b"event: again\ndata: {}\n\n"
                    return
                for number, line in steps:
                    n, quiet_s = number, 0.0
                    yield b"id: %d\ndata: %b\n\n" % (number, line)
                over = film.last is not None and film.last.state in ("ended", "down")
                if over and (closing or looked_s >= END_S):
                    looked_s = 0.0
                    if shown != (mark := await asyncio.to_thread(ending.mark, self.opened)):
                        shown = mark
                        yield b"event: end\ndata: %b\n\n" % await asyncio.to_thread(self.ending)
                if closing:
                    yield b"event: closed\ndata: {}\n\n"
                    return
                if quiet_s >= ALIVE_S:
                    quiet_s = 0.0
                    yield b": \n\n"
                await asyncio.sleep(LOOK_S)
                quiet_s, looked_s = quiet_s + LOOK_S, looked_s + LOOK_S
        finally:
            self.streams -= 1


def _kind(file: Traversable) -> str | None:
    return KINDS.get(file.name.rpartition(".")[2])


def _file(file: Traversable, before: bytes = b"") -> Callable[[Any], Any]:
    from starlette.responses import Response

    content = before + file.read_bytes()
    return lambda _: Response(content, media_type=_kind(file))


def _json(content: bytes) -> Any:
    from starlette.responses import Response

    return Response(content, media_type="application/json")


def _said(sentence: str) -> Any:
    return _json(msgspec.json.encode({"said": sentence}))


def _sentence(_: Any, error: Exception) -> Any:
    answer = _said(str(error))
    answer.status_code = 409
    return answer
