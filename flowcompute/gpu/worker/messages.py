"""Messages between a run and its worker process: JSON behind a header; an open file may come with one.

Plain data only, so that nothing that arrives can do more than say something wrong.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

_HEADER = struct.Struct("<IB")
"""Bytes of the text, and whether a file comes with it."""

_LONGEST_BYTES = 64 << 20


def _wait() -> None:
    """Nothing to look after: wait on."""


def send(
    channel: socket.socket, message: Mapping[str, Any], file: int | None = None, check: Callable[[], None] = _wait
) -> None:
    """Send a message.

    Args:
        channel: a stream socket.
        message: plain data.
        file: the descriptor of a file that the other side gets as well.
        check: called now and then while the socket times out; what it raises ends the wait.

    Raises:
        OSError: if nobody is there any more.
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


def receive(channel: socket.socket, check: Callable[[], None] = _wait) -> tuple[dict[str, Any], int | None]:
    """The next message, and the file that came with it, which is the caller's to close.

    Raises:
        EOFError: if the other side is gone.
        ValueError: if what comes is no message.
    """
    files: list[int] = []
    size, with_file = _HEADER.unpack(_exactly(channel, _HEADER.size, files, check))
    if size > _LONGEST_BYTES or len(files) != with_file:
        raise ValueError("no message")
    message = json.loads(_exactly(channel, size, files, check))
    if not isinstance(message, dict):
        raise ValueError("no message")
    return message, files[0] if files else None


def _exactly(channel: socket.socket, size: int, files: list[int], check: Callable[[], None]) -> bytes:
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
