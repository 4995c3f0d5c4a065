"""Serves the numbers of a run to Prometheus, as long as it runs."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import MetricsHandler

from flowcompute.errors import PlanError, RunError, short_repr
from flowcompute.metrics import Snapshot
from flowcompute.observe.collector import RunCollector
from flowcompute.observe.consumer import Consumer

LOOPBACK = "127.0.0.1"

_POLL_S = 0.02

_SILENCE_S = 5.0
"""Seconds after which a client that says nothing is left."""

_LAST_PORT = 65535


def parse_port(port: object) -> tuple[str, int]:
    """Host and port of `metrics_port=`: a number, or "host:port".

    Raises:
        PlanError: if it is neither.
    """
    host, number = LOOPBACK, port
    if isinstance(port, str):
        host, _, text = port.rpartition(":")
        host, number = host.strip("[]"), int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None
    if not host or not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _LAST_PORT:
        raise PlanError(
            "cannot use this value",
            element="metrics_port",
            expected='a port, 0 for any free one, or "0.0.0.0:9464" to be seen from other machines',
            got=short_repr(port),
        )
    return host, number


class _Server(ThreadingHTTPServer):
    """A server that can be ended at once, whatever its clients do."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, address: tuple[str, int], handler: Callable[..., Any]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._lock = threading.Lock()
        self._clients: set[socket.socket] = set()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without asking a name server who we are, as the class above does."""
        if os.name == "posix":
            # Elsewhere this would take the port from whoever has it.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a client, and know of it."""
        client, address = super().get_request()
        client.settimeout(_SILENCE_S)
        with self._lock:
            self._clients.add(client)
        return client, address

    def shutdown_request(self, request: Any) -> None:
        """Let a client go."""
        with self._lock:
            self._clients.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a client that went away, or was sent away at the end, is no event of the run."""

    def hang_up(self) -> None:
        """End what clients are being told."""
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)


class Exporter(Consumer):
    """Serves from its making until `close`.

    Args:
        port: as for `parse_port`.
        snapshot: gives the numbers.

    Attributes:
        port: where it serves.

    Raises:
        RunError: if the port cannot be had.
    """

    def __init__(self, port: int | str, snapshot: Callable[[], Snapshot]) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(RunCollector(snapshot))
        address = parse_port(port)
        try:
            self._server = _Server(address, MetricsHandler.factory(registry))
        except OSError as error:
            raise RunError(
                f"cannot serve the numbers of the run at {address[0]}:{address[1]}: {error.strerror or error}",
                element="metrics_port",
                hint="metrics_port=0 takes any free port, and run.metrics_port says which",
            ) from error
        self.port = self._server.server_port
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(_POLL_S,), name="flowcompute-metrics", daemon=True)
        self._thread.start()

    def close(self) -> str | None:
        """Stop serving; leaves no thread and no socket."""
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()
        return None
