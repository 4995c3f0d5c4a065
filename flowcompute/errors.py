"""Errors of flowcompute: one class hierarchy, whose members say what failed, where, why, and what to do.

A message reads "cannot X". `str` adds the element, the user's line, the records, and both sides of a mismatch.

FlowError
├── SpecError         a mistake in composing: shapes, dtypes, arguments; also a ValueError
│   ├── SpecIndexError    an index or an axis that is not there; also an IndexError
│   └── SpecTypeError     an argument of a type that cannot be used; also a TypeError
├── SourceError       data that cannot be read, or is not what its header says
├── DestinationError  a result that cannot be written
├── PlanError         a job that cannot be run as asked (budget, device, passes)
├── RunError          a failure while batches flow
│   └── DeviceError       a device that failed during a run and is no longer used
│       └── DeviceFullError  a device with too little memory for the smallest batch
├── KernelError       a kernel that cannot be generated or compiled
└── CheckpointError   a frozen state that cannot be used
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_CELL = re.compile(r"<ipython-input-(\d+)-|.*[/\\]ipykernel_\d+[/\\]()")
"""Files that IPython and its kernel name the code of a cell."""


class Site(NamedTuple):
    """The user's line that made an element."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """The file's own name and the line: "script.py:7"; "cell 3:7", or "cell:7", for a cell of a notebook."""
        cell = _CELL.match(self.file)
        if cell is not None:
            return f"cell{' ' + cell[1] if cell[1] else ''}:{self.line}"
        return f"{os.path.basename(self.file)}:{self.line}"


_LONGEST_REPR = 200
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECRETS = re.compile(r"(?<=://).*@|[?#].*", re.DOTALL)


def short_repr(value: object) -> str:
    """Return the repr of a value as messages show it: at most a few lines, whatever the value is.

    Of a URL what may be secret is left out: a user, a password, a query and a fragment.
    """
    if isinstance(value, str) and _URL.match(value) is not None:
        return f"the URL {_SECRETS.sub('', value)[:_LONGEST_REPR]!r}"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail for what it tells of: repr is the user's code
        text = f"an unprintable {type(value).__name__}"
    return text if len(text) <= _LONGEST_REPR else f"{text[:_LONGEST_REPR]}..."


class FlowError(Exception):
    """Base of all errors of flowcompute.

    Args:
        message: the failure in one sentence, as "cannot X".
        element: name of the element at which it happened.
        site: the user's line where that element was made.
        records: half-open range of the record indices in progress.
        expected, got: the two sides of a mismatch, in words.
        hint: the remedy.
    """

    def __init__(
        self,
        message: str,
        *,
        element: str | None = None,
        site: Site | None = None,
        records: tuple[int, int] | None = None,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        # What a user gave for a name may be anything until it is checked, which is not always first.
        self.element = element if isinstance(element, str) else None
        self.site = site
        self.records = records
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.element}: {self.message}" if self.element else self.message]
        if self.site is not None:
            lines.append(f"  made at   {self.site}")
        if self.records is not None:
            lines.append(f"  records   {self.records[0]} to {self.records[1]}")
        for label, text in (("expected", self.expected), ("got", self.got), ("do", self.hint)):
            if text is not None:
                lines.append(f"  {label:<9} {text}")
        return "\n".join(lines)


class SpecError(FlowError, ValueError):
    """A mistake in composing elements: shapes, dtypes or arguments that do not fit."""


class SpecIndexError(SpecError, IndexError):
    """An index, a position or an axis that the value does not have."""


class SpecTypeError(SpecError, TypeError):
    """An argument of a type that cannot be used for it."""


class SourceError(FlowError):
    """A source that cannot be read, or whose data does not match its header or declaration."""


class DestinationError(FlowError):
    """A result that cannot be written to its destination."""


class PlanError(FlowError):
    """A job that cannot be run as asked: budget, device, precision, passes."""


class RunError(FlowError):
    """A failure while batches flow."""


class DeviceError(RunError):
    """A device that failed during a run: it was lost, or a kernel left it in an unusable state.

    The process releases everything it had on the device, and the next run starts it again. With `checkpoint=` the same
    program continues from the last checkpoint, on this device or on another one.
    """


class DeviceFullError(DeviceError):
    """A device with too little memory for a run, even with the smallest batch."""


class KernelError(FlowError):
    """A kernel that cannot be generated, compiled or launched."""


class CheckpointError(FlowError):
    """A frozen state that cannot be used."""


class CheckpointWarning(UserWarning):
    """A warning about a checkpoint that is damaged but can be used."""


class DestinationWarning(UserWarning):
    """A warning that the results of a run may find no room on their disk."""


class MetricsWarning(UserWarning):
    """A warning that the metrics of a run could not be written. Its results are not affected."""


class DeviceWarning(UserWarning):
    """A warning that a run deviates from its plan, since its device had less memory than expected.

    No bit of the results depends on it.
    """


class EventLoopWarning(UserWarning):
    """A warning that a blocking call holds up the asyncio loop that it is made in."""
