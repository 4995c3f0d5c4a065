"""JSON that somebody else may have written: traces, kept strategies, exports. The one place where it is read.

It is read in three steps: its size is looked at, it is parsed, and it is compared with a shape. Whatever goes wrong on
the way, too many brackets and too large numbers included, is one error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from flowcompute.files.file_layer import FILES, Files

T = TypeVar("T")

_MOST = 1 << 63
"""Absolute value below which whole numbers are taken: they become floats, indices and times."""

_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""Errors that reading data of any form may raise."""


class ForeignJsonError(ValueError):
    """Data that is no JSON, or has another shape than asked for."""


class Maybe(NamedTuple):
    """A shape that may also be null."""

    shape: Any


class Each(NamedTuple):
    """A mapping from any names to values of one shape."""

    shape: Any


def read_json(data: bytes | str, read: Callable[[Any], T], *, limit_bytes: int, unique: bool = False) -> T:
    """Parse JSON and return what `read` makes of it.

    Args:
        data: the text.
        read: turns the parsed data into what is wanted; may fail with any error on data of another form.
        limit_bytes: the largest size that is parsed.
        unique: whether a name that stands twice in a mapping is refused; otherwise the last one counts.

    Raises:
        ForeignJsonError: in place of any error of parsing and of `read`, except those of the family that it raises.
    """
    try:
        if len(data) > limit_bytes:
            raise ForeignJsonError(f"it has {len(data):,} bytes, and at most {limit_bytes:,} are read")
        return read(json.loads(data, object_pairs_hook=_once if unique else None))
    except ForeignJsonError:
        raise
    except _UNREADABLE as error:
        raise ForeignJsonError(f"{type(error).__name__}: {str(error)[:200]}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ForeignJsonError("a name stands twice in it")
    return made


def read_json_file(path: str, read: Callable[[Any], T], *, limit_bytes: int, files: Files = FILES) -> T:
    """Read a regular file as `read_json` does.

    Raises:
        OSError: if it cannot be read.
        ForeignJsonError: as `read_json`; a larger file is not read at all.
    """
    handle = files.open_read(path)
    try:
        size = files.status(handle).st_size
        if size > limit_bytes:
            raise ForeignJsonError(f"it has {size:,} bytes, and at most {limit_bytes:,} are read")
        data = bytearray(size)
        count = files.read_into(handle, memoryview(data), 0)
    finally:
        files.close(handle)
    return read_json(bytes(data[:count]), read, limit_bytes=limit_bytes)


def expect(data: object, shape: Any, where: str = "it") -> Any:
    """Return parsed JSON that has a shape.

    Args:
        data: what was parsed.
        shape: `str`, `bool`, `int` (of 64 bits) or `float` (or such an int). A tuple has the texts that may stand
            there. A list has the shape of all items. A dict has the shapes of entries that must be there, beside which
            there may be others. Else `Each` or `Maybe`.
        where: the place of the data, for errors.

    Raises:
        ForeignJsonError: naming the first place that has another shape.
    """
    if isinstance(shape, Maybe):
        return None if data is None else expect(data, shape.shape, where)
    if isinstance(shape, Each | dict):
        if not isinstance(data, Mapping):
            raise ForeignJsonError(f"{where} is no mapping")
        names = shape if isinstance(shape, dict) else dict.fromkeys(data, shape.shape)
        for name, one in names.items():
            if name not in data:
                raise ForeignJsonError(f"{where} has no entry {name!r}")
            expect(data[name], one, f"{where}.{name}"[:200])
    elif isinstance(shape, list):
        if not isinstance(data, list | tuple):
            raise ForeignJsonError(f"{where} is no list")
        for i, one in enumerate(data):
            expect(one, shape[0], f"{where}[{i}]")
    elif isinstance(shape, tuple):
        if not isinstance(data, str) or data not in shape:
            raise ForeignJsonError(f"{where} is none of {', '.join(shape)}")
    elif shape is float or shape is int:
        kinds = (int, float) if shape is float else (int,)
        if isinstance(data, bool) or not isinstance(data, kinds) or (isinstance(data, int) and abs(data) >= _MOST):
            raise ForeignJsonError(f"{where} is no number of at most 64 bits")
    elif not isinstance(data, shape):
        raise ForeignJsonError(f"{where} is no {shape.__name__}")
    return data
