"""Serves a page and its events on this machine: to GET alone, with the token, and under no other host's name."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from flowcompute.errors import RunError
from flowcompute.imports import LateModule
from flowcompute.observe.page._starlette import serving_parts

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = LateModule("asyncio")

LOOPBACK = "127.0.0.1"

MOST_LISTENERS = 16
"""Listeners to events at a time; each has at most one message and a socket's buffer in memory."""

_MOST_CONNECTIONS = 64

EVERY_S = 0.25

_FAREWELL_S = 0.5
"""Seconds that listeners have to take the last event."""

_POLL_S = 0.01

_FILES = {
    "": ("live.html", "text/html; charset=utf-8"),
    "live.css": ("live.css", "text/css; charset=utf-8"),
    "live.js": ("live.js", "text/javascript; charset=utf-8"),
}

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Messages = Mapping[str, str]
"""Event name -> JSON. A text that is the same object as the one before is not sent again."""


class PageServer:
    """Serves from its making until `close`, in a thread with an event loop of its own.

    Args:
        port: where to serve; 0 for any free port.
        messages: gives what there is to tell; called in the server's thread, at most four times a second.

    Attributes:
        address: of the page, with the token.

    Raises:
        RunError: if the port cannot be had, or a package is not installed.
    """

    def __init__(self, port: int, messages: Callable[[], Messages]) -> None:
        self._parts = serving_parts()
        self._messages = messages
        self._token = secrets.token_urlsafe(24)
        self._texts: Messages = {}
        self._made_s = -EVERY_S
        self._listeners = 0
        self._over: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files = {
            name: (files(__package__).joinpath(file).read_bytes(), kind) for name, (file, kind) in _FILES.items()
        }
        self._socket = _bound(port)
        self._host = f"{LOOPBACK}:{self._socket.getsockname()[1]}"
        self.address = f"http://{self._host}/{self._token}/"
        config = self._parts.config(
            self._app,
            access_log=False,
            date_header=False,
            h11_max_incomplete_event_size=16 << 10,
            http="h11",
            interface="asgi3",
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            log_config=None,
            loop="asyncio",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=5,
            ws="none",
        )
        self._server = self._parts.server(config)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flowcompute-page", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Tell listeners the last event, and stop; leaves no thread and no socket."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                asyncio.run_coroutine_threadsafe(self._farewell(), self._loop)
        self._thread.join()
        self._socket.close()

    # -- in the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        # What a client does is no line in the user's log.
        log = logging.getLogger("uvicorn.error")

        def is_news(record: logging.LogRecord) -> bool:
            return record.thread != threading.get_ident() or record.levelno >= logging.ERROR

        log.addFilter(is_news)
        try:
            asyncio.run(self._serve())
        finally:
            log.removeFilter(is_news)
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._server.serve(sockets=[self._socket])

    async def _farewell(self) -> None:
        assert self._over is not None
        self._made_s = -EVERY_S
        self._over.set()
        until_s = time.monotonic() + _FAREWELL_S
        while time.monotonic() < until_s and (self._listeners or any(map(_unsent, self._transports()))):
            await asyncio.sleep(_POLL_S)
        self._server.should_exit = True
        # Whoever does not read would keep the run waiting.
        for transport in self._transports():
            transport.abort()

    def _transports(self) -> list[Any]:
        connections = tuple(self._server.server_state.connections)
        return [one.transport for one in connections if getattr(one, "transport", None) is not None]

    async def _app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send)
            return
        self._listeners += 1
        try:
            stream = self._parts.streaming_response(
                self._events(), media_type="text/event-stream", headers=dict(_HEADERS)
            )
            await stream(scope, receive, send)
        finally:
            self._listeners -= 1

    def _answer(self, scope: dict[str, Any]) -> Any:
        """Return the answer to a request, None where it is the stream of events."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if hosts != [self._host.encode()]:
            return self._refusal(421, "this page has another address")
        if scope["method"] != "GET":
            return self._refusal(405, "this page can only be read", {"Allow": "GET"})
        _, _, rest = scope["path"].partition("/")
        token, slash, name = rest.partition("/")
        if not slash or not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
            return self._refusal(403, "the token of the address is missing or wrong")
        if name == "events":
            if self._listeners >= MOST_LISTENERS:
                return self._refusal(503, f"{MOST_LISTENERS} listeners are the most", {"Retry-After": "5"})
            return None
        if name == "snapshot":
            parts = ", ".join(f'"{part}": {text}' for part, text in self._now().items())
            return self._parts.response(f"{{{parts}}}", media_type="application/json", headers=dict(_HEADERS))
        if name not in self._files:
            return self._refusal(404, "there is no such page")
        body, kind = self._files[name]
        return self._parts.response(body, headers={**_HEADERS, "Content-Type": kind})

    def _refusal(self, status: int, text: str, more: Mapping[str, str] | None = None) -> Any:
        headers = {**_HEADERS, **(more or {})}
        return self._parts.response(f"{text}\n", status_code=status, media_type="text/plain", headers=headers)

    def _now(self) -> Messages:
        """Return what there is to tell, made at most four times a second however many ask."""
        now_s = time.monotonic()
        if now_s - self._made_s >= EVERY_S:
            self._texts, self._made_s = self._messages(), now_s
        return self._texts

    async def _events(self) -> AsyncIterator[str]:
        """Give each listener the newest of each message: who is slow misses some, and nothing is queued."""
        assert self._over is not None
        told: dict[str, str] = {}
        while True:
            last = self._over.is_set()
            for name, text in self._now().items():
                if told.get(name) is not text:
                    told[name] = text
                    yield f"event: {name}\ndata: {text}\n\n"
            if last:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), EVERY_S)


def _unsent(transport: Any) -> bool:
    return not transport.is_closing() and transport.get_write_buffer_size() > 0


def _bound(port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.bind((LOOPBACK, port))
        # Listening at once: the port of somebody who listens can be bound with SO_REUSEADDR until then.
        server.listen(_MOST_CONNECTIONS)
    except OSError as error:
        server.close()
        raise RunError(
            f"cannot show a page of the run at {LOOPBACK}:{port}: {error.strerror or error}",
            element="page",
            hint="page=0 takes any free port, and run.page says the address",
        ) from error
    return server
