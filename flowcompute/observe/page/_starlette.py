"""The one import of starlette and uvicorn, which pages alone need. Without them the first page says what to install."""

from __future__ import annotations

from typing import Any, NamedTuple

from flowcompute.errors import RunError

try:
    from starlette.responses import Response, StreamingResponse
    from uvicorn import Config, Server
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None


class Parts(NamedTuple):
    """The classes of starlette and uvicorn that serve a page."""

    response: Any
    streaming_response: Any
    config: Any
    server: Any


def serving_parts() -> Parts:
    """Return the classes that serve a page.

    Raises:
        RunError: where starlette or uvicorn is not installed.
    """
    if _problem is not None:
        raise RunError(
            "cannot show a page of the run: starlette or uvicorn is not installed",
            element="page",
            got=str(_problem),
            hint="run pip install 'flowcompute[page]'",
        ) from _problem
    return Parts(Response, StreamingResponse, Config, Server)
