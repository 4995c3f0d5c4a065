"""Records that were dropped: counted, and the first ones named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowcompute.elements.policies.dead_letters import DeadLetters
from flowcompute.elements.policies.policy import ErrorPolicy
from flowcompute.errors import FlowError
from flowcompute.metrics import FailedRecord, Skipped

NAMED = 100
"""Failed records that are kept by name; the others are only counted."""

LONGEST_TEXT = 1000
"""Characters of an error's text that are kept: it may quote the data."""


class SkipCounter:
    """The dropped records of one element in one reading of its input.

    Used by one thread at a time; `skipped` may be read from any.

    Args:
        element: name of the element in the plan.
        policy: of the element.

    Attributes:
        dead_letters: where each of them is written down; None for nowhere.
    """

    def __init__(self, element: str, policy: ErrorPolicy) -> None:
        self.element = element
        self.policy = policy
        self.dead_letters: DeadLetters | None = None
        self._count = 0
        self._first: tuple[FailedRecord, ...] = ()
        self._take: Callable[[SkipCounter], object] | None = None

    @property
    def skipped(self) -> Skipped:
        """The records dropped so far."""
        return Skipped(self._count, self._first)

    def watch(self, take: Callable[[SkipCounter], object]) -> None:
        """Hand the counter to a function now, and whenever its count has changed."""
        self._take = take
        take(self)

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
        named = self._count <= NAMED
        dead_letters = (
            self.dead_letters if self.dead_letters is not None and self.dead_letters.lacks(self._count) else None
        )
        if named or dead_letters is not None:
            failed = FailedRecord(self.element, record, type(error).__name__, _shortened(_text(error)))
            if named:
                self._first = (*self._first, failed)
            if dead_letters is not None:
                dead_letters.add(self._count, failed, inputs)
        if self._take is not None:
            self._take(self)

    def flush(self) -> None:
        """Let what was written down be seen.

        Raises:
            DestinationError: if the dead-letter file cannot be written.
        """
        if self.dead_letters is not None:
            self.dead_letters.flush()

    # -- state ------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Count and named records, as plain data."""
        return {"count": self._count, "first": [[one.record, one.error, one.text] for one in self._first]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue counting from a snapshot."""
        self._count = state["count"]
        self._first = tuple(FailedRecord(self.element, record, error, text) for record, error, text in state["first"])
        if self._take is not None:
            self._take(self)


def error_text(error: BaseException) -> str:
    """Return the text of an error of a user's own code, also where its `__str__` fails."""
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - that class may be as broken as the data
        return f"(its text cannot be had: {type(second).__name__})"


def _text(error: BaseException) -> str:
    if not isinstance(error, FlowError):
        return error_text(error)
    parts = [f"{label} {part}" for label, part in (("expected", error.expected), ("got", error.got)) if part]
    return f"{error.message}: {', '.join(parts)}" if parts else error.message


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}\u2026"
