"""The errors a user can meet: one family, and every member says where, what was expected, what came and what to do.

FlowError
├── SpecError         a mistake in composing: shapes, dtypes, arguments
├── SourceError       data that cannot be read, or is not what its header says
├── DestinationError  a result that cannot be written
├── PlanError         a job that cannot be run as asked (budget, device, passes)
├── RunError          a failure while batches flow
│   └── DeviceError       a device that failed under a run, and has been given up
│       └── DeviceFullError  no room on a device, not even for the smallest batch
├── KernelError       a kernel that cannot be generated or compiled
└── CheckpointError   a frozen state that cannot be used
"""

from __future__ import annotations

from typing import NamedTuple


class Site(NamedTuple):
    """The user's line that made an element."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class FlowError(Exception):
    """Base of all errors of flowcompute.

    Args:
        message: what happened, in one sentence.
        element: name of the element it happened at.
        site: the user's line where that element was made.
        records: half-open range of record indices being worked on.
        expected, got: the two sides of a mismatch, in words.
        hint: what to do about it.
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
        self.element = element
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


class SpecError(FlowError):
    """A mistake in composing elements: shapes, dtypes or arguments that do not fit."""


class SourceError(FlowError):
    """Data that cannot be read, or that is not what its header or declaration says."""


class DestinationError(FlowError):
    """A result that cannot be written where it was asked to go."""


class PlanError(FlowError):
    """A job that cannot be run as asked: budget, device, precision, passes."""


class RunError(FlowError):
    """A failure while batches flow."""


class DeviceError(RunError):
    """A device that failed under a run: it was lost, or a kernel left it in no state to go on.

    What the process had on it is given up, and the next run starts it anew. With `checkpoint=` the
    same program goes on from the last checkpoint, on this device or on another one.
    """


class DeviceFullError(DeviceError):
    """A device that has no room for what a run needs at a time, not even for its smallest batch."""


class KernelError(FlowError):
    """A kernel that cannot be generated, compiled or launched."""


class CheckpointError(FlowError):
    """A frozen state that cannot be used."""


class CheckpointWarning(UserWarning):
    """Something is wrong with a checkpoint that can be used all the same."""


class MetricsWarning(UserWarning):
    """The numbers of a run could not be written where it was asked; its results are not touched by it."""


class DeviceWarning(UserWarning):
    """A run goes on otherwise than planned, since its device had less room than expected; no bit depends on it."""
