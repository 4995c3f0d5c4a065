"""Records that were dropped: counted, the first ones named, and all of them written down where that was asked for."""

from __future__ import annotations

import contextlib
import json
import math
import os
import reprlib
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from flowcompute.elements.policy import ErrorPolicy
from flowcompute.errors import DestinationError, FlowError, Site
from flowcompute.files import FILES, Draft, Files, explain, shown
from flowcompute.metrics import FailedRecord, Skipped
from flowcompute.spec import is_float

NAMED = 100
"""Failed records that are kept by name; the others are only counted."""

LONGEST_TEXT = 1000
"""Characters of an error's text that are kept: it may quote the data."""

MOST_NUMBERS = 64
"""Numbers up to which an input is written to the dead-letter file."""

_WRITTEN_BYTES = 1 << 16


class Tally:
    """The dropped records of one element in one reading of its input.

    Used by one thread at a time; `skipped` may be read from any.

    Args:
        element: name of the element in the plan.
        policy: of the element.
        site: the user's line that made it.
        files: the file layer.
    """

    def __init__(self, element: str, policy: ErrorPolicy, site: Site | None, files: Files = FILES) -> None:
        self.element = element
        self.policy = policy
        self._site = site
        self._files = files
        self._count = 0
        self._first: list[FailedRecord] = []
        self._letters: Draft | None = None
        self._lines = bytearray()
        self._written = 0

    @property
    def skipped(self) -> Skipped:
        """What was dropped so far."""
        return Skipped(self._count, tuple(self._first))

    def open(self) -> None:
        """Begin the dead-letter file, if the policy names one; without this nothing is written.

        Raises:
            DestinationError: if there can be none of that name.
        """
        path = self.policy.path
        if path is None:
            return
        with self._errors("create"):
            self._refuse_special(path)
            self._letters = Draft(self._files, path)

    def add(self, record: int, error: BaseException, inputs: Iterable[object]) -> None:
        """Count a record that failed.

        Args:
            record: its index.
            error: what was raised for it.
            inputs: what it is made of, for the dead-letter file.

        Raises:
            DestinationError: if the dead-letter file cannot be written.
        """
        self._count += 1
        if self._letters is None and len(self._first) == NAMED:
            return
        failed = FailedRecord(self.element, record, type(error).__name__, _shortened(_text(error)))
        if len(self._first) < NAMED:
            self._first.append(failed)
        if self._letters is not None:
            self._lines += _line(failed, inputs)
            if len(self._lines) >= _WRITTEN_BYTES:
                self.flush()

    def flush(self) -> None:
        """Hand the lines that wait to the system, so that they can be looked at while the run goes on.

        Raises:
            DestinationError: if they cannot be written.
        """
        if self._letters is not None and self._lines:
            with self._errors("write"):
                self._letters.write(bytes(self._lines), self._written)
            self._written += len(self._lines)
            self._lines.clear()

    def close(self) -> None:
        """Give the dead-letter file its name, also after a failure; harmless when called twice.

        Raises:
            DestinationError: if it cannot be completed. Then it is gone.
        """
        letters = self._letters
        if letters is None:
            return
        try:
            self.flush()
            with self._errors("complete"):
                letters.commit()
        except BaseException:
            letters.discard()
            raise
        finally:
            self._letters = None

    def _refuse_special(self, path: str) -> None:
        """Refuse to replace a folder, device or pipe by a file."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISREG(self._files.stat(path).st_mode):
                raise DestinationError(
                    f"the dead-letter file {shown(path)} is there already and is no regular file",
                    element=self.element,
                    site=self._site,
                    expected="a new name, or a file to replace",
                    hint=f"dead_letter={os.path.join(path, 'failed.jsonl')!r}" if os.path.isdir(path) else None,
                )

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text, hint = explain(error)
            raise DestinationError(
                f"cannot {doing} the dead-letter file {shown(self.policy.path or '')}: {text}",
                element=self.element,
                site=self._site,
                hint=hint,
            ) from error

    # -- state ------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Count and named records, as plain data."""
        return {"count": self._count, "first": [[one.record, one.error, one.text] for one in self._first]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue counting from a snapshot."""
        self._count = state["count"]
        self._first = [FailedRecord(self.element, record, error, text) for record, error, text in state["first"]]


def skipped_by_policy(tallies: Sequence[Tally]) -> dict[ErrorPolicy, Skipped]:
    """What each element has dropped: of one that was read several times, the reading that dropped most.

    Each reading drops the same records, and one that was ended early not all of them.
    """
    found: dict[ErrorPolicy, Skipped] = {}
    for tally in tallies:
        now = tally.skipped
        if now.count >= found.setdefault(tally.policy, now).count:
            found[tally.policy] = now
    return found


def _text(error: BaseException) -> str:
    if not isinstance(error, FlowError):
        return str(error)
    parts = [f"{label} {part}" for label, part in (("expected", error.expected), ("got", error.got)) if part]
    return f"{error.message}: {', '.join(parts)}" if parts else error.message


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}\u2026"


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
    """A few numbers as nested lists, many as None, and what is no array of numbers by its `repr`, shortened."""
    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001 - whatever it is, it failed for being no array
        return reprlib.repr(value)
    if not (array.dtype.kind in "biu" or is_float(array.dtype)):
        return reprlib.repr(value)
    if array.size > MOST_NUMBERS:
        return None
    return _finite(array.astype(np.float64) if is_float(array.dtype) else array)


def _finite(array: np.ndarray) -> object:
    """JSON knows no NaN and no infinity: they are text, which Python's `float` reads."""
    numbers: list[Any] = array.reshape(-1).tolist()
    named = [number if not isinstance(number, float) or math.isfinite(number) else str(number) for number in numbers]
    return np.array(named, dtype=object).reshape(array.shape).tolist()
