"""Prompts of chats by the template of a file, which nobody has checked: a process of its own writes them."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from flowcompute.errors import SourceError, SpecError
from flowcompute.imports import subprocess

LIMIT_S = 5
"""Seconds of the processor that a template may take. Those of known models take some milliseconds."""

LIMIT_BYTES = 1 << 29
"""Memory that its process may take, Python included."""

_WAIT_S = 60.0
"""Seconds of the clock: a machine may be busy, and some systems count none of the processor."""

_START = (
    "import sys, json, runpy; sys.path[:] = json.loads(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
)


def rendered(template: str, path: str, **values: Any) -> str:
    """Return what a template of a file makes of values. It is not trusted: it sees nothing else, and changes nothing.

    Args:
        template: in the language of jinja2.
        path: of the file, for errors.
        values: what JSON can say.

    Raises:
        SourceError: where jinja2 is not installed, or the template fails, or takes too long or too much memory.
        SpecError: if values are what JSON cannot say.
    """
    try:
        limits = {"seconds": LIMIT_S, "bytes": LIMIT_BYTES}
        job = json.dumps({"template": template, "values": values, **limits}, default=dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(
            "cannot hand these messages to a template",
            element="chat",
            expected="mappings of texts, numbers and lists",
            got=str(error)[:200],
        ) from error
    program = os.path.join(os.path.dirname(__file__), "_jinja2.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _START, json.dumps([str(place) for place in sys.path]), program],
            input=job.encode(),
            capture_output=True,
            timeout=_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(path, f"no answer within {_WAIT_S:g} s") from None
    if done.returncode == -getattr(signal, "SIGXCPU", 0):
        raise _refusal(path, f"no answer within {LIMIT_S} s of the processor")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _refusal(path, f"its process ended with {done.returncode}: {said[-1][:200] if said else 'no word'}")
    answer: dict[str, str] = json.loads(done.stdout)
    if "problem" in answer:
        raise SourceError(
            "cannot make a prompt of a chat: jinja2 is not installed",
            element="models",
            got=answer["problem"],
            hint="run pip install 'flowcompute[models]'",
        )
    if "error" in answer:
        raise _refusal(path, answer["error"])
    return answer["text"]


def _refusal(path: str, got: str) -> SourceError:
    return SourceError("cannot write the chat by the file's template", element=path, got=got)
