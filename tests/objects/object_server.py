"""A small HTTP server of objects on loopback, which fails as it is told."""

from __future__ import annotations

import gc
import hashlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

CHANGED = "Mon, 23 Nov 2026 10:00:00 GMT"


class Request(NamedTuple):
    method: str
    path: str
    range: str | None
    condition: str | None
    authorization: str | None


class FirstFaults:
    """Faults of what is asked for the first time, in turns.

    Requests come beside each other, so that a fault in turns alone could meet one of them until its client gives up.

    Attributes:
        told: the fault of each thing that was asked for.
    """

    def __init__(self, asked: Callable[[Request], object], *faults: str | None) -> None:
        """`asked` says what a request asks for: the same whenever it is asked again, None for what never fails."""
        self.told: dict[object, str | None] = {}
        self._asked, self._turns = asked, itertools.cycle(faults)

    def __call__(self, request: Request) -> str | None:
        asked = self._asked(request)
        if asked is None or asked in self.told:
            return None
        self.told[asked] = next(self._turns)
        return self.told[asked]


class ObjectServer:
    """Objects by path, as a web server or an S3 endpoint gives them.

    Attributes:
        objects: bytes by path, "/bucket/x.npy".
        fault: says of a request what goes wrong; None for nothing.
        requests: what was asked for.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.fault: Callable[[Request], str | None] = lambda request: None
        self.requests: list[Request] = []
        self.elsewhere = ""
        self.released = threading.Event()
        self.connections: list[socket.socket] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each body waits 40 ms for the header to be acknowledged

            def setup(self) -> None:
                super().setup()
                outer.connections.append(self.connection)

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                outer.answer(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        # A connection that is kept open holds its thread, which closing the server waits for.
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        headers = handler.headers
        condition = headers["If-Match"] or headers["If-Unmodified-Since"]
        request = Request(handler.command, handler.path, headers["Range"], condition, headers["Authorization"])
        self.requests.append(request)
        fault = self.fault(request)
        data = self.objects.get(handler.path)
        listed = parse_qs(urlsplit(handler.path).query).get("prefix")
        if fault in (None, "bare etags") and listed is not None:
            found = self.listing(handler.path.partition("?")[0] + "/", listed[0])
            return self._say(handler, 200, found.replace(b'"', b"") if fault else found)
        if fault in ("500", "503", "403"):
            return self._say(handler, int(fault), b"<Error>very-secret, as a server may echo</Error>")
        if fault == "redirect":
            return self._say(handler, 302, Location=self.elsewhere + handler.path)
        if fault == "circle":
            return self._say(handler, 302, Location=handler.path)
        if fault == "silent":
            self.released.wait(30)
            handler.close_connection = True
            return None
        if data is None:
            return self._say(handler, 404)
        etag = {"weak": 'W/"a"', "no etag": "", "nothing known": ""}.get(fault or "", self.etag(data))
        known = {"ETag": etag} if etag else {}
        if fault != "nothing known":
            known["Last-Modified"] = CHANGED
        if condition is not None and condition not in (etag, CHANGED) and fault != "no conditions":
            return self._say(handler, 412)
        if request.range is None or fault == "no ranges":
            return self._give(handler, 200, data, fault, known)
        first, _, last = request.range.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(data)), len(data) - 1)
        shift = 1 if fault == "other range" else 0
        said = f"bytes {begin + shift}-{end + shift}/{len(data)}"
        return self._give(handler, 206, data[begin : end + 1], fault, {**known, "Content-Range": said})

    def listing(self, bucket: str, prefix: str) -> bytes:
        """Objects as S3 lists them (ListObjectsV2), all in one answer."""
        keys = {path.removeprefix(bucket): data for path, data in sorted(self.objects.items()) if bucket in path}
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-11-23T10:00:00.000Z</LastModified>"
            f"<ETag>{self.etag(data)}</ETag><Size>{len(data)}</Size></Contents>"
            for key, data in keys.items()
            if key.startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>".encode()

    @staticmethod
    def etag(data: bytes) -> str:
        return f'"{hashlib.sha256(data).hexdigest()}"'

    def _say(self, handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def _give(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, fault: str | None, headers: dict[str, str]
    ) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(1 << 60 if fault == "absurd length" else len(body)))
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if fault in ("short", "absurd length"):
            body = body[: min(len(body) // 2, 1000)]
            handler.close_connection = True
        handler.wfile.write(body)


S = TypeVar("S", bound=ObjectServer)


@contextmanager
def serving(kind: type[S] = ObjectServer) -> Iterator[S]:
    """Serve until the end of the block, without collecting garbage.

    A thread of the server that collects what h5py left waits for h5py's lock. Whoever reads a file through h5py holds
    that lock, and waits for the answer of the server.
    """
    server = kind()
    collects = gc.isenabled()
    gc.disable()
    server.start()
    try:
        yield server
    finally:
        server.stop()
        if collects:
            gc.enable()
