"""Messages between a run and its worker process: JSON behind a header. An open file may come with one.

Messages hold plain data only, so that a message can do no more harm than being wrong.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

_HEADER = struct.Struct("<IB")
"""Header of a message: bytes of the text, and whether a file comes with it."""

_MAX_BYTES = 64 << 20


def _do_nothing() -> None:
    """Do nothing while a message is awaited."""


def send(
    channel: socket.socket, message: Mapping[str, Any], file: int | None = None, check: Callable[[], None] = _do_nothing
) -> None:
    """Send a message.

    Args:
        channel: a stream socket.
        message: plain data.
        file: the descriptor of a file that is sent along.
        check: called whenever the socket times out. An exception that it raises ends the wait.

    Raises:
        OSError: if the other side has closed the socket.
    """
    text = json.dumps(message).encode()
    data = memoryview(_HEADER.pack(len(text), file is not None) + text)
    files = [] if file is None else [file]
    while data:
        try:
            data = data[socket.send_fds(channel, [data], files) :]
            files = []
        except TimeoutError:
            check()


def receive(channel: socket.socket, check: Callable[[], None] = _do_nothing) -> tuple[dict[str, Any], int | None]:
    """Receive the next message, and the file that came with it, which the caller must close.

    Raises:
        EOFError: if the other side is gone.
        ValueError: if the bytes are not a message.
    """
    files: list[int] = []
    size, with_file = _HEADER.unpack(_receive_exactly(channel, _HEADER.size, files, check))
    if size > _MAX_BYTES or len(files) != with_file:
        raise ValueError("cannot read a message: its bytes are malformed")
    message = json.loads(_receive_exactly(channel, size, files, check))
    if not isinstance(message, dict):
        raise ValueError("cannot read a message: its bytes are malformed")
    return message, files[0] if files else None


def _receive_exactly(channel: socket.socket, size: int, files: list[int], check: Callable[[], None]) -> bytes:
    data = b""
    while len(data) < size:
        try:
            part, came, _, _ = socket.recv_fds(channel, size - len(data), 1)
        except TimeoutError:
            check()
            continue
        except OSError as error:
            raise EOFError from error
        if not part:
            raise EOFError
        data += part
        files += came
    return data
