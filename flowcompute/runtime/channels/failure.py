"""How a failure reaches the user: as one error of the family that says where it happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

from flowcompute.errors import FlowError, RunError, Site
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")


class attributed(AbstractContextManager[None]):  # noqa: N801 - used as a function is
    """Whatever fails inside is an error of the family that names the element, the user's line and the records.

    A class, since it is entered several times for each batch, and a generator takes three times as long.

    Raises:
        FlowError: the one raised inside, with what it did not say filled in.
        RunError: in place of any other exception, which becomes its cause.
    """

    __slots__ = ("_element", "_records", "_site")

    def __init__(self, element: str, site: Site | None = None, records: tuple[int, int] | None = None) -> None:
        self._element = element
        self._site = site
        self._records = records

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FlowError):
            if error.element is None:
                error.element = self._element
            # The site is this element's, so it must not be put on an error that names another one.
            if error.site is None and error.element == self._element:
                error.site = self._site
            if error.records is None:
                error.records = self._records
        elif isinstance(error, Exception):
            text = str(error)
            raise RunError(
                f"{type(error).__name__}: {text}" if text else type(error).__name__,
                element=self._element,
                site=self._site,
                records=self._records,
                hint="run with a smaller memory=" if isinstance(error, MemoryError) else None,
            ) from error


def first_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error to raise for a group: an interrupt if there is one, else the first; others are notes.

    A group of nothing but trio's cancellations is returned as it is.
    """
    failures = [leaf for leaf in _leaves(group) if not isinstance(leaf, trio.Cancelled)]
    if not failures:
        return group
    failure = next((leaf for leaf in failures if isinstance(leaf, KeyboardInterrupt)), failures[0])
    for other in failures:
        if other is not failure:
            add_note(failure, other)
    return failure


def add_note(error: BaseException, other: BaseException) -> None:
    """Mention `other` in what is printed for `error`."""
    error.add_note(f"also failed: {type(other).__name__}: {other}")


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
