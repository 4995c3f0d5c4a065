"""Large tensors that lie in the file of a model itself: found without being read, so that they can be mapped.

Protobuf copies each field that it parses. Here the messages around tensors are walked by hand. Where a tensor holds
its numbers as plain bytes, the bytes are left out, and the place in the file is written in their stead, as of external
data. What is not understood stays as it is, and is for protobuf to parse or to refuse.
"""

from __future__ import annotations

from flowcompute.imports import dataclass

LEAST_BYTES = 4096
"""Least size of a tensor that is left in the file."""

DEEPEST = 64
"""Messages within messages that are walked."""

_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
"""By message the fields that hold messages in which tensors may lie, by number."""

_DATA_TYPE, _FLOATS, _RAW, _EXTERNAL, _LOCATION = 2, 4, 9, 13, 14
_FLOAT, _BOOL = 1, 9


class _NotUnderstoodError(Exception):
    """Bytes that are left to protobuf."""


@dataclass(frozen=True)
class _Field:
    """A field of a message: its number and wire type, where it begins, and from where to where its value is."""

    number: int
    kind: int
    begin: int
    start: int
    stop: int


def without_tensors(data: memoryview, mark: str) -> bytes:
    """Return a model without the bytes of its large tensors.

    Args:
        data: the file.
        mark: the key of the external data that stands for them; its value is "offset length".
    """
    parts: list[bytes | memoryview] = []
    try:
        _walk(data, 0, len(data), "model", mark.encode(), parts, 0)
    except _NotUnderstoodError:
        return bytes(data)
    return b"".join(parts)


def _walk(
    data: memoryview, begin: int, end: int, message: str, mark: bytes, parts: list[bytes | memoryview], depth: int
) -> None:
    """Add a message to `parts`, without the bytes of large tensors."""
    inside, done = _INSIDE[message], begin
    for field in _fields(data, begin, end):
        child = inside.get(field.number)
        if child is None or field.kind != _LENGTH or field.stop - field.start < LEAST_BYTES or depth == DEEPEST:
            continue
        own: list[bytes | memoryview] = []
        if child == "tensor":
            own = _tensor(data, field, mark)
        else:
            _walk(data, field.start, field.stop, child, mark, own, depth + 1)
        size = sum(map(len, own))
        if size == field.stop - field.start:
            continue
        parts += [data[done : field.begin], _varint(field.number << 3 | _LENGTH), _varint(size), *own]
        done = field.stop
    parts.append(data[done:end])


def _tensor(data: memoryview, whole: _Field, mark: bytes) -> list[bytes | memoryview]:
    """Return a tensor without its bytes, or as it is."""
    fields = list(_fields(data, whole.start, whole.stop))
    as_it_is: list[bytes | memoryview] = [data[whole.start : whole.stop]]
    types = [field for field in fields if field.number == _DATA_TYPE]
    held = [field for field in fields if field.number == _RAW]
    dtype = _read_varint(data, types[0].start, types[0].stop)[0] if len(types) == 1 else _BOOL
    if not held and dtype == _FLOAT:
        held = [field for field in fields if field.number == _FLOATS]
    others = any(field.number in (_EXTERNAL, _LOCATION) for field in fields)
    if (
        len(held) != 1
        or held[0].kind != _LENGTH
        or held[0].stop - held[0].start < LEAST_BYTES
        or others
        or dtype == _BOOL
    ):
        return as_it_is
    (one,) = held
    text = f"{one.start} {one.stop - one.start}".encode()
    entry = b"".join((b"\x0a", _varint(len(mark)), mark, b"\x12", _varint(len(text)), text))
    placed = b"".join((_varint(_EXTERNAL << 3 | _LENGTH), _varint(len(entry)), entry, _varint(_LOCATION << 3), b"\x01"))
    return [data[whole.start : one.begin], data[one.stop : whole.stop], placed]


def _fields(data: memoryview, begin: int, end: int) -> list[_Field]:
    """Return the fields of a message.

    Raises:
        _NotUnderstoodError: where it is none.
    """
    found, at = [], begin
    while at < end:
        first = at
        key, at = _read_varint(data, at, end)
        kind = key & 7
        if kind == _VARINT:
            start, at = at, _read_varint(data, at, end)[1]
        elif kind in (_EIGHT, _FOUR):
            start, at = at, at + (8 if kind == _EIGHT else 4)
        elif kind == _LENGTH:
            size, start = _read_varint(data, at, end)
            at = start + size
        else:
            raise _NotUnderstoodError
        if at > end:
            raise _NotUnderstoodError
        found.append(_Field(key >> 3, kind, first, start, at))
    return found


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise _NotUnderstoodError


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)
