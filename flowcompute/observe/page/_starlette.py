"""The one import of starlette and uvicorn, which pages alone need. Without them the first page says what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flowcompute.errors import RunError
from flowcompute.imports import LateModule, import_problem

if TYPE_CHECKING:
    import uvicorn
    from starlette import responses
else:
    responses, uvicorn = map(LateModule, ("starlette.responses", "uvicorn"))


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
    problem = import_problem("starlette.responses", "uvicorn")
    if problem is not None:
        raise RunError(
            "cannot show a page of the run: starlette or uvicorn is not installed",
            element="page",
            got=str(problem),
            hint="run pip install 'flowcompute[page]'",
        ) from problem
    return Parts(responses.Response, responses.StreamingResponse, uvicorn.Config, uvicorn.Server)
