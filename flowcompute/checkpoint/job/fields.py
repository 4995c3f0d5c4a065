"""Reading plain data that somebody else may have written: every field is asked for by name, type and range."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from flowcompute.checkpoint.store import DTYPES
from flowcompute.elements import MOST, MOST_AXES, UserCall
from flowcompute.errors import CheckpointError, Site

T = TypeVar("T")

MOST_NODES = 1 << 20
"""Nodes of a job, and files of one of them."""

LONGEST_TEXT = 1 << 16
"""Characters of a name or a path."""


UNSOUND = "restore the checkpoint from a copy, or remove it to begin anew"
"""The advice about data that nobody of ours has written."""


class _Brief(reprlib.Repr):
    """A short form of data, however large or deep it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 120
        self.maxlist = self.maxtuple = self.maxdict = 8
        self.maxlevel = 3

    def repr_bytes(self, value: bytes, _: int) -> str:
        """Show bytes by their number."""
        return f"{len(value)} bytes"

    def repr_int(self, value: int, _: int) -> str:
        """Show whole numbers that Python writes out, others by their bits."""
        return repr(value) if value.bit_length() <= 256 else f"a number of {value.bit_length()} bits"


_BRIEF = _Brief()


def brief(value: object) -> str:
    """Shorten a value for an error: text stays as it is where it can be printed."""
    text = value[:201] if isinstance(value, str) and value[:201].isprintable() else _BRIEF.repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def refused(
    message: str, *, expected: str | None = None, got: object = None, hint: str | None = None
) -> CheckpointError:
    """Return a CheckpointError whose `got` is shortened."""
    return CheckpointError(message, expected=expected, got=None if got is None else brief(got), hint=hint)


def refuse(message: str, *, expected: str | None = None, got: object = None, hint: str | None = None) -> NoReturn:
    """Raise the error that `refused` gives."""
    raise refused(message, expected=expected, got=got, hint=hint)


class Fields:
    """The fields of one map of plain data. Each is taken once; `close` refuses what nobody asked for.

    Args:
        data: the map.
        what: what it describes, for errors.
    """

    def __init__(self, data: object, what: str) -> None:
        if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
            refuse(f"cannot read {what}", expected="a map with names", got=type(data).__name__, hint=UNSOUND)
        self._data: Mapping[str, Any] = data
        self._what = what
        self._taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def take(self, key: str) -> Any:
        """Return a field as it is, unchecked."""
        if key not in self._data:
            refuse(f"cannot read {self._what}", expected=f"an entry {key!r}", hint=UNSOUND)
        self._taken.add(key)
        return self._data[key]

    def close(self) -> None:
        """Raise CheckpointError where there are fields that were not taken."""
        if others := sorted(self._data.keys() - self._taken):
            refuse(f"cannot read all of {self._what}", expected="known entries only", got=others, hint=UNSOUND)

    def wrong(self, key: str, expected: str) -> NoReturn:
        """Raise CheckpointError for a field's value."""
        message = f"cannot read {key!r} of {self._what}"
        refuse(message, expected=expected, got=self._data.get(key), hint=UNSOUND)

    def whole(self, key: str, least: int = 0, most: int = MOST - 1) -> int:
        """Return a whole number of that range."""
        value = self.take(key)
        if type(value) is not int or not least <= value <= most:
            self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def flag(self, key: str) -> bool:
        """Return True or False."""
        value = self.take(key)
        if type(value) is not bool:
            self.wrong(key, "True or False")
        return value

    def text(self, key: str) -> str:
        """Return text of no more than `LONGEST_TEXT` characters."""
        value = self.take(key)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            self.wrong(key, f"text of at most {LONGEST_TEXT} characters")
        return value

    def printable(self, key: str) -> str:
        """Return text that is shown as it is."""
        value = self.text(key)
        if not value.isprintable():
            self.wrong(key, "printable text")
        return value

    def choice(self, key: str, options: Sequence[str]) -> str:
        """Return one of these words."""
        value = self.text(key)
        if value not in options:
            self.wrong(key, ", ".join(options))
        return value

    def real(self, key: str) -> float:
        """Return a float."""
        value = self.take(key)
        if type(value) is not float:
            self.wrong(key, "a float")
        return value

    def dtype(self, key: str) -> np.dtype:
        """Return a dtype by its name."""
        value = self.take(key)
        if not isinstance(value, str) or value not in DTYPES:
            self.wrong(key, ", ".join(DTYPES))
        return DTYPES[value]

    def items(self, key: str, most: int = MOST_AXES) -> Sequence[Any]:
        """Return a list of no more than so many things."""
        value = self.take(key)
        if not isinstance(value, list | tuple) or len(value) > most:
            self.wrong(key, f"a list of at most {most}")
        return value

    def wholes(self, key: str, least: int = 0, most: int = MOST - 1, length: int = MOST_AXES) -> tuple[int, ...]:
        """Return a list of whole numbers of that range."""
        values = self.items(key, length)
        if not all(type(value) is int and least <= value <= most for value in values):
            self.wrong(key, f"whole numbers from {least} to {most}")
        return tuple(values)

    def maybe(self, key: str, read: Callable[[str], T]) -> T | None:
        """Return a field that may be None, read by another method."""
        return None if self.take(key) is None else read(key)

    def site(self, key: str) -> Site | None:
        """Return the user's line, or None."""
        return self.maybe(key, self._line)

    def _line(self, key: str) -> Site:
        items = self.items(key, 2)
        file: Any = items[0] if len(items) == 2 else None
        line: Any = items[-1] if len(items) == 2 else None
        # It is shown in errors as it is.
        printable = isinstance(file, str) and file.isprintable() and len(file) <= LONGEST_TEXT
        if not printable or type(line) is not int or not 0 <= line < MOST:
            self.wrong(key, "a file and a line")
        return Site(file, line)


def read_calls(job: Fields) -> list[UserCall]:
    """Read the calls of public functions that made the nodes of a job. Jobs kept before calls were have none."""
    return [_read_call(one) for one in job.items("calls", MOST_NODES)] if "calls" in job else []


def _read_call(data: object) -> UserCall:
    fields = Fields(data, "a call")
    call = UserCall(fields.printable("name"), fields.site("site"), fields.maybe("arguments", fields.printable))
    fields.close()
    return call
