"""The one import of starlette and uvicorn, which only a page needs: at the first one, as it takes a while."""

from __future__ import annotations

from typing import Any, NamedTuple

from flowcompute.errors import RunError


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
    try:
        from starlette.responses import Response, StreamingResponse  # noqa: PLC0415 - see above
        from uvicorn import Config, Server  # noqa: PLC0415
    except ImportError as missing:
        raise RunError(
            "cannot show a page of the run: starlette or uvicorn is not installed",
            element="page",
            got=str(missing),
            hint="run pip install 'flowcompute[page]'",
        ) from missing
    return Parts(Response, StreamingResponse, Config, Server)
