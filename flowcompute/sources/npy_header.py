"""Reader of .npy headers with a grammar of its own: nothing in a header is evaluated, unpickled or allocated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import numpy as np

from flowcompute.spec import INSTEAD

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 1 << 16
"""Limit of a header. No array of plain numbers needs more: NumPy writes 118 bytes and refuses more than 10,000."""

_MAX_AXES = 64  # NumPy's own limit
_MAX_BYTES = 1 << 63

_DICT = re.compile(r"\s*\{(?P<entries>.*)\}\s*", re.ASCII | re.DOTALL)
_ENTRY = re.compile(
    r"""\s*(?P<quote>['"])(?P<key>[^'"\\]*)(?P=quote)\s*:\s*
        (?: (?P<mark>['"])(?P<text>[^'"\\]*)(?P=mark)
          | (?P<flag>True|False)
          | \((?P<sizes>[^()]*)\) )
        \s*(?P<comma>,|\Z)\s*""",
    re.ASCII | re.VERBOSE,
)
_SIZES = re.compile(r"\s*(?:[0-9]+L?\s*,\s*)*(?:[0-9]+L?\s*)?", re.ASCII)
_NUMBER = re.compile(r"(?P<order>[<>|=]?)(?P<kind>[biuf])(?P<size>[1248])", re.ASCII)
_UNSUPPORTED = {
    "O": "object: Python objects are never unpickled",
    "c": "complex numbers",
    "S": "byte strings",
    "a": "byte strings",
    "U": "text",
    "M": "dates",
    "m": "time spans",
    "V": "raw bytes (void)",
}


_SAVE_PLAIN = "convert it to a plain numeric dtype (bool, int, uint or float) and save it anew"


class HeaderError(ValueError):
    """A header that is refused: the message with its expected and found values."""

    def __init__(self, message: str, expected: str | None = None, got: str | None = None, hint: str | None = None):
        super().__init__(message)
        self.message, self.expected, self.got, self.hint = message, expected, got, hint


class Header(NamedTuple):
    """Content of a .npy header.

    The dtype has the byte order of the file (void of 2 bytes for bfloat16). `fortran` is the order, and
    `offset` the first byte of the data.
    """

    dtype: np.dtype
    fortran: bool
    shape: tuple[int, ...]
    offset: int


def read_header(read: Callable[[int, int], bytes], file_bytes: int) -> Header:
    """Read and check a header.

    Args:
        read: `read(offset, count)` returns bytes of the file, fewer at its end.
        file_bytes: size of the file; nothing beyond it is requested.

    Raises:
        HeaderError: if it is not the header of a .npy file of plain numbers.
    """
    start = read(0, 12)
    if start[:6] != MAGIC:
        got = "an empty file" if not start else f"the bytes {start[:6]!r}"
        raise HeaderError(
            "it is not a .npy file",
            r"a file that begins with b'\x93NUMPY'",
            got,
            'check the path; for plain numbers without a header use format="raw"',
        )
    version = tuple(start[6:8])
    if version not in ((1, 0), (2, 0), (3, 0)):
        got = "the end of the file" if len(version) < 2 else f"version {version[0]}.{version[1]}"
        raise HeaderError("its .npy version is unknown", "version 1.0, 2.0 or 3.0", got, "save it anew with np.save")
    begin = 10 if version == (1, 0) else 12
    if len(start) < begin:
        _truncated(f"at least {begin} bytes", file_bytes)
    size = int.from_bytes(start[8:begin], "little")
    if size > MAX_HEADER_BYTES:
        raise HeaderError(
            "its header is too large for an array of plain numbers",
            f"at most {MAX_HEADER_BYTES} bytes",
            f"{size} bytes",
            "save it anew with np.save",
        )
    if begin + size > file_bytes:
        _truncated(f"at least {begin + size} bytes, by the size of the header", file_bytes)
    data = read(begin, size)
    if len(data) != size:
        _truncated(f"{begin + size} bytes of header", begin + len(data))
    try:
        text = data.decode("utf-8" if version == (3, 0) else "latin-1")
    except UnicodeDecodeError as error:
        raise HeaderError("its header is not UTF-8 text", got=str(error)) from None
    if not text.endswith("\n"):
        raise HeaderError("its header does not end with a line break", got=_shorten(text[-20:]))
    return Header(*_parse(text), begin + size)


def _truncated(expected: str, file_bytes: int) -> NoReturn:
    raise HeaderError("the file ends inside its header", expected, f"{file_bytes} bytes", "copy or write it again")


def _parse(text: str) -> tuple[np.dtype, bool, tuple[int, ...]]:
    """Parse dtype, Fortran order and shape from the text of a header."""
    whole = _DICT.fullmatch(text)
    if whole is None:
        _not_understood(text)
    entries: dict[str, re.Match[str]] = {}
    rest, end = whole["entries"], 0
    while end < len(rest):
        entry = _ENTRY.match(rest, end)
        if entry is not None and entry["key"] in entries:
            raise HeaderError(f"its header has the key {_shorten(entry['key'])} twice")
        if entry is None or entry["key"] not in ("descr", "fortran_order", "shape"):
            if re.match(r"\s*['\"]descr['\"]\s*:\s*\[", rest[end:]):
                raise HeaderError(
                    "its numbers have a structured dtype",
                    "one plain dtype",
                    _shorten(rest[end:]),
                    "save one field at a time: np.save(path, array['field'])",
                )
            _not_understood(text)
        entries[entry["key"]] = entry
        end = entry.end()
    if len(entries) != 3:
        missing = ", ".join(key for key in ("descr", "fortran_order", "shape") if key not in entries)
        raise HeaderError("its header is incomplete", "descr, fortran_order and shape", f"no {missing}")
    descr, flag, sizes = entries["descr"]["text"], entries["fortran_order"]["flag"], entries["shape"]["sizes"]
    if descr is None or flag is None or sizes is None:
        _not_understood(text)
    shape = _parse_shape(sizes)
    dtype = parse_descr(descr)
    return dtype, flag == "True", shape


def _not_understood(text: str) -> NoReturn:
    expected = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 96), }"
    raise HeaderError("its header cannot be parsed", expected, _shorten(text), "save it anew with np.save")


def _parse_shape(sizes: str) -> tuple[int, ...]:
    if _SIZES.fullmatch(sizes) is None or (sizes.strip() and "," not in sizes):
        raise HeaderError(
            "the shape in its header is not a tuple of whole numbers", "(1000, 96)", f"({_shorten(sizes)})"
        )
    digits = [size.strip().rstrip("L") for size in sizes.split(",") if size.strip()]
    if len(digits) > _MAX_AXES:
        raise HeaderError("the shape in its header has too many axes", f"at most {_MAX_AXES}", str(len(digits)))
    # The digits are counted first: converting a million of them takes quadratic time.
    if any(len(size) > 19 or int(size) >= _MAX_BYTES for size in digits):
        raise HeaderError("a size in its header is too large", "less than 2**63", f"({_shorten(sizes)})")
    return tuple(int(size) for size in digits)


def parse_descr(descr: str) -> np.dtype:
    """Return the dtype of a descr like `<f4`. NumPy writes bfloat16 as `<V2`, a void of 2 bytes.

    Raises:
        HeaderError: if it is not one of the supported dtypes.
    """
    if re.fullmatch(r"[<>|=]?V2", descr):
        return np.dtype("V2")
    number = _NUMBER.fullmatch(descr)
    if number is not None and number["kind"] + number["size"] not in ("b2", "b4", "b8", "f1"):
        if number["size"] == "1" or number["order"] in ("<", ">"):
            return np.dtype(descr)
        raise HeaderError(
            "the dtype in its header has no byte order",
            "like '<f4' or '>f4'",
            repr(descr),
            'name it: fc.open(path, format="raw", dtype="<f4", shape=..., offset=...)',
        )
    letter = descr.lstrip("<>|=")[:1]
    what = _UNSUPPORTED.get(letter)
    got = f"{_shorten(descr)!r}" + (f", {what}" if what else "")
    hint = f"save it anew: {INSTEAD[letter]}" if letter in INSTEAD and letter != "V" else _SAVE_PLAIN
    raise HeaderError(
        "its numbers have a dtype that is not supported", "bool, int, uint or float of 1 to 8 bytes", got, hint
    )


def _shorten(text: str) -> str:
    """Return text from a file as messages show it: short, on one line, with control characters escaped."""
    text = text if len(text) <= 100 else text[:97] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
