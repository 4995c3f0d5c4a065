"""Errors as the command tells them: the user's frames, the message, and options in place of arguments."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterator
from types import TracebackType

from flowcompute.errors import FlowError, PlanError, Site, SpecError

FAILED, REFUSED = 1, 2

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple(
    os.path.abspath(path) + os.sep
    for path in {sysconfig.get_path("stdlib"), *map(sysconfig.get_path, ("purelib", "platlib"))}
)

_ARGUMENT = re.compile(r'\b(?P<name>[a-z_]+)=(?:"(?P<quoted>[^"]*)"|(?P<plain>[\w.:/+-]+)(?![\w.(]))?(?![\w(\[{])')
_STRATEGY = re.compile(r"\bstrategy=fc\.Strategy\((.*?)\)")


def show_error(error: Exception, *, entry: Site | None, options: Collection[str], whole: bool) -> int:
    """Print an error on standard error, and return the exit code.

    Args:
        error: the error.
        entry: the line that called the command. It is no line of the user's, and not told.
        options: those of the command, as "--memory". What to do is told by them.
        whole: whether all frames are shown. Without it only those from the user's own on are, where there are any.

    Returns:
        2 if the job cannot be run as asked, 1 if it failed.
    """
    if not isinstance(error, FlowError):
        _show_frames(error, whole=whole or next(_from_user(error.__traceback__), None) is None)
        return FAILED
    misused = isinstance(error, PlanError) or (isinstance(error, SpecError) and error.site == entry)
    if error.site == entry:
        error.site = None
    if error.hint is not None:
        error.hint = as_options(error.hint, options)
    if whole:
        traceback.print_exception(error)
    elif error.__cause__ is not None:
        _show_frames(error.__cause__, whole=False)
    print(f"flowcompute: {error}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(f"  {note}", file=sys.stderr)
    return REFUSED if misused else FAILED


def user_line(error: BaseException) -> Site | None:
    """Return the line of the user's code at which an error was raised, or that cannot be read; None if none was."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return Site(error.filename, error.lineno or 1)
    frames = [Site(frame.tb_frame.f_code.co_filename, frame.tb_lineno) for frame in _frames(error.__traceback__)]
    return next((site for site in reversed(frames) if _is_user(site.file)), None)


def as_options(text: str, options: Collection[str]) -> str:
    """Return what to do in a command's words: `memory="1GiB"` becomes `--memory 1GiB`. Calls of Python stay.

    Args:
        text: the hint of an error.
        options: those of the command, as "--memory".
    """

    def worded(match: re.Match[str]) -> str:
        option = f"--{match['name'].replace('_', '-')}"
        inside = text.count("(", 0, match.start()) > text.count(")", 0, match.start())
        if inside or option not in options:
            return match[0]
        value = (match["quoted"] or match["plain"] or "").strip()
        return f"{option} {value}" if value else option

    text = _ARGUMENT.sub(worded, text)
    return (
        _STRATEGY.sub(lambda call: f"--strategy {call[1]}".replace('"', ""), text) if "--strategy" in options else text
    )


def _show_frames(error: BaseException, *, whole: bool) -> None:
    """Print the traceback of an error from the user's first frame on, or all of it."""
    if whole:
        traceback.print_exception(error)
        return
    first = next(_from_user(error.__traceback__), None)
    if first is not None or isinstance(error, SyntaxError):
        traceback.print_exception(type(error), error, first, chain=False)


def _from_user(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Yield the frames from the first of the user's on."""
    found = False
    for frame in _frames(trace):
        found = found or _is_user(frame.tb_frame.f_code.co_filename)
        if found:
            yield frame


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_user(file: str) -> bool:
    return not file.startswith((_PACKAGE, *_LIBRARIES, "<frozen "))
