"""The dead-letter file of an element: a line of JSON for each record that was dropped."""

from __future__ import annotations

import contextlib
import json
import math
import os
import reprlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from flowcompute.elements.keeping import State
from flowcompute.elements.policies.policy import ErrorPolicy
from flowcompute.errors import CheckpointError, DestinationError, Site
from flowcompute.files import (
    Draft,
    Sealed,
    Unfinished,
    explain,
    in_the_way,
    is_draft_of,
    roll_forward,
    shown,
    temporary_path,
)
from flowcompute.metrics import FailedRecord
from flowcompute.spec import is_float

MOST_NUMBERS = 64
"""Numbers up to which an input is written down."""

_WRITTEN_BYTES = 1 << 16


class DeadLetters:
    """The dead-letter file of one element in one run, begun before its first reading and completed after the last.

    Each reading drops the same records in the same order, and one that is ended early not all of them. Readings may
    also go on side by side. So a record is written by whichever reading drops it first. May be used by several threads.

    Args:
        policy: of the element, with a path.
        element: its name in the plan, for errors.
        site: the user's line that made it.
    """

    def __init__(self, policy: ErrorPolicy, element: str, site: Site | None) -> None:
        assert policy.path is not None
        self._path = policy.path
        self._files = policy.files
        self._element = element
        self._site = site
        self._draft: Draft | None = None
        self._lines = bytearray()
        self._written_bytes = 0
        self._is_sealed = False
        self._count = 0
        self._lock = threading.Lock()

    def open(self, token: str | None = None, state: State | None = None) -> None:
        """Begin the file under a temporary name.

        Args:
            token: tells that name, for a job that can be resumed.
            state: of a frozen job; its file goes on.

        Raises:
            DestinationError: if there can be none of that name.
        """
        with self._errors("create" if state is None else "go on with"):
            self._refuse_special()
            unfinished = None if state is None else Unfinished(self._checked(token, state), int(state["bytes"]))
            self._draft = Draft(self._files, self._path, token=token, unfinished=unfinished)
        if state is not None:
            self._count, self._written_bytes = int(state["count"]), int(state["bytes"])

    def lacks(self, ordinal: int) -> bool:
        """Check whether the `ordinal`-th dropped record, from 1, has no line yet."""
        return ordinal > self._count

    def add(self, ordinal: int, failed: FailedRecord, inputs: Iterable[object]) -> None:
        """Write a record down, unless another reading did.

        Args:
            ordinal: which of the dropped records it is, from 1.
            failed: its index, and what was raised.
            inputs: what it is made of.

        Raises:
            DestinationError: if the file cannot be written.
        """
        with self._lock:
            if self.lacks(ordinal):
                self._lines += _line(failed, inputs)
                self._count = ordinal
                if len(self._lines) >= _WRITTEN_BYTES:
                    self._flush()

    def flush(self) -> None:
        """Hand the lines that wait to the system, so that they can be looked at while the run goes on.

        Raises:
            DestinationError: if they cannot be written. They wait on, to be written by the next attempt.
        """
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if self._draft is not None and self._lines:
            with self._errors("write"):
                self._draft.write(bytes(self._lines), self._written_bytes)
            self._written_bytes += len(self._lines)
            self._lines.clear()

    def snapshot(self, token: str) -> State:
        """Return how much was written down, and where; it may be more than has been computed.

        Args:
            token: tells the temporary name, as for `open`.

        Raises:
            DestinationError: if it cannot be made durable.
        """
        with self._lock, self._errors("make durable"):
            self._flush()
            assert self._draft is not None
            path = self._draft.adopt(token)
            self._draft.sync()
            return {"count": self._count, "bytes": self._written_bytes, "draft": path}

    def seal(self, token: str) -> State:
        """Return the snapshot of the complete file, for `recover`.

        Args:
            token: as for `snapshot`.

        Raises:
            DestinationError: if it cannot be made durable.
        """
        state = self.snapshot(token)
        with self._lock, self._errors("make durable"):
            assert self._draft is not None
            sealed = self._draft.seal()
            self._is_sealed = True
            return {**state, **sealed._asdict()}

    def recover(self, token: str | None, state: State) -> None:
        """Give the complete file of a finished job its name if it has not got it yet.

        Args:
            token: tells the temporary name, as for `open`.
            state: by `seal`.

        Raises:
            DestinationError: if that fails.
            CheckpointError: if the state names a file that is none of this element's.
        """
        with self._errors("complete"):
            roll_forward(
                self._files, self._path, self._checked(token, state), Sealed(int(state["size"]), int(state["mtime_ns"]))
            )

    def _checked(self, token: str | None, state: State) -> str:
        """Return the temporary name that a state says, if it is one of this file's."""
        draft = state["draft"]
        if not is_draft_of(draft, self._path, token or ""):
            raise CheckpointError(
                f"cannot go on with unfinished dead letters of {shown(self._path)} that are none of its own",
                element=self._element,
                site=self._site,
                expected=shown(temporary_path(self._path, token or "")),
                got=repr(draft)[:200],
                hint="somebody has changed the checkpoint: restore it from a copy, or remove it to begin anew",
            )
        return str(draft)

    def suspend(self) -> None:
        """Close the file and leave it where it is; harmless when it was not begun or has ended."""
        with self._lock:
            draft, self._draft = self._draft, None
            if draft is not None:
                with self._errors("close"):
                    draft.suspend()

    def commit(self) -> None:
        """Give the file its name; harmless when it was not begun or has ended.

        Raises:
            DestinationError: if it cannot be completed. Then it is gone, unless it was sealed.
        """
        with self._lock:
            draft = self._draft
            if draft is None:
                return
            try:
                self._flush()
                with self._errors("complete"):
                    draft.commit()
            except BaseException:
                with contextlib.suppress(OSError):
                    (draft.suspend if self._is_sealed else draft.discard)()
                raise
            finally:
                self._draft = None

    def discard(self) -> None:
        """Remove what was written; an older file of its name stays. Harmless when it was not begun or has ended.

        Raises:
            DestinationError: if it cannot be removed.
        """
        with self._lock:
            draft, self._draft = self._draft, None
            if draft is not None:
                with self._errors("remove"):
                    draft.discard()

    def _refuse_special(self) -> None:
        """Refuse to replace a folder, device or pipe by a file."""
        other = in_the_way(self._files, self._path)
        if other is not None:
            inside = os.path.join(self._path, "failed.jsonl")
            raise DestinationError(
                f"cannot replace {other} by the dead-letter file {shown(self._path)}",
                element=self._element,
                site=self._site,
                expected="a new name, or a file to replace",
                hint=f"dead_letter={inside!r}" if other == "a folder" else "choose another name",
            )

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text, hint = explain(error)
            raise DestinationError(
                f"cannot {doing} the dead-letter file {shown(self._path)}: {text}",
                element=self._element,
                site=self._site,
                hint=hint,
            ) from error


def _line(failed: FailedRecord, inputs: Iterable[object]) -> bytes:
    fields = {
        "element": failed.element,
        "record": failed.record,
        "error": failed.error,
        "text": failed.text,
        "inputs": [_shown(value) for value in inputs],
    }
    return json.dumps(fields, allow_nan=False).encode() + b"\n"


def _shown(value: object) -> object:
    """Return a few numbers as nested lists, many as None, and what is no array of numbers by its `repr`, shortened."""
    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001 - whatever it is, it failed for being no array
        return _repr(value)
    if not (array.dtype.kind in "biu" or is_float(array.dtype)):
        return _repr(value)
    if array.size > MOST_NUMBERS:
        return None
    return _finite(array.astype(np.float64) if is_float(array.dtype) else array)


def _repr(value: object) -> str:
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001 - an integer may have too many digits, and a container's own `repr` may fail
        return object.__repr__(value)


def _finite(array: np.ndarray) -> object:
    """Return NaN and infinities as text, which Python's `float` reads: JSON has none."""
    numbers: list[Any] = array.reshape(-1).tolist()
    named = [number if not isinstance(number, float) or math.isfinite(number) else str(number) for number in numbers]
    return np.array(named, dtype=object).reshape(array.shape).tolist()
