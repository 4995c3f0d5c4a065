"""Digest of all that a plan depends on, the same in each process of this code on this machine."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

from flowcompute.elements import RECORDS, Op
from flowcompute.errors import Site
from flowcompute.graph import TheVeryObject, UnknownError
from flowcompute.ir import DeviceCapabilities
from flowcompute.schedule.shaping import Shaping
from flowcompute.spec import SUPPORTED_DTYPES, Stream
from flowcompute.strategy import Config, KernelKnobs, Strategy
from flowcompute.version import __version__

_LOADED_NS = time.time_ns()
_SETTLED_NS = 10_000_000_000
"""Nanoseconds for which files of this code have to be as they are, before it is loaded."""

_PLAIN = frozenset({bool, int, str, bytes, type(None)})
_ROOMS = frozenset({"builtins", "flowcompute", "numpy"})
_RECORDS: dict[type, tuple[str, ...]] = {
    kind: tuple([one.name for one in fields(kind)])
    for kind in (Config, DeviceCapabilities, KernelKnobs, Shaping, Strategy, Stream)
}
"""Classes whose fields are all that they say, and these."""


def digest(key: object) -> str | None:
    """Return the digest of a key of `plan_key` and of this code; None where another process could not say the same.

    Equal digests are those of equal keys: each value is written with its type.
    """
    code = _code()
    if code is None:
        return None
    try:
        text = f"{code}\n{_written(key, {})}"
    except UnknownError:
        return None
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _written(value: Any, texts: dict[int, str]) -> str:
    """Return a value as text that no other value has.

    Args:
        value: a key or a part of it.
        texts: of parts of the key that were written, by identity: many are shared.

    Raises:
        UnknownError: for what is known by its identity, which another process does not have.
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is tuple or kind is Site:
        text = texts.get(id(value))
        if text is None:
            parts = [repr(one) if type(one) in _PLAIN else _written(one, texts) for one in value]
            text = texts[id(value)] = f"({','.join(parts)})"
        return text
    if kind is float:
        return str(value.hex())
    if isinstance(value, np.dtype):
        return _dtype(value)
    if kind is TheVeryObject:
        text = texts.get(id(value))
        if text is None:
            text = texts[id(value)] = _record(value.held)
        return text
    if isinstance(value, type | Enum):
        return _name(value)
    if kind in _RECORDS:
        return f"{kind.__name__}({','.join([_written(getattr(value, name), texts) for name in _RECORDS[kind]])})"
    if isinstance(value, Mapping):
        parts = [f"{_written(key, texts)}:{_written(one, texts)}" for key, one in value.items()]
        return f"{{{','.join(parts)}}}"
    if kind is frozenset:
        return f"<{','.join(sorted([_written(one, texts) for one in value]))}>"
    raise UnknownError


@functools.cache
def _dtype(dtype: np.dtype) -> str:
    if dtype.newbyteorder("=") not in SUPPORTED_DTYPES:
        raise UnknownError
    return f"dtype({dtype.name},{dtype.str})"


@functools.cache
def _name(value: type | FunctionType | Enum) -> str:
    """Return the name under which a class or a function is found in its module, or that of an entry of an Enum.

    Raises:
        UnknownError: if another one is found there, or none, or the module is not of a version that counts.
    """
    if isinstance(value, Enum):
        return f"{_name(type(value))}.{value.name}"
    if value in _PLAIN:
        return f"builtins.{value.__name__}"
    room = value.__module__.partition(".")[0]
    if room not in _ROOMS or getattr(sys.modules.get(value.__module__), value.__qualname__, None) is not value:
        raise UnknownError
    return f"{value.__module__}.{value.__qualname__}"


def _record(held: object) -> str:
    """Return what a record or a function is known by in all processes.

    Raises:
        UnknownError: if it is not found by that.
    """
    if isinstance(held, FunctionType):
        return _name(held)
    if isinstance(held, Op) and RECORDS.get(held.kept_name) is held:
        return f"op({held.kept_name})"
    raise UnknownError


@functools.cache
def _code() -> str | None:
    """Return what tells this code and what it runs on from others; None where there are no files of it.

    Of a file size and time count, by which Python itself tells whether a compiled file is the one of a source file.
    """
    root = os.path.abspath(__file__).removesuffix(os.path.join("schedule", "known_plans", "plan_digest.py"))
    try:
        files = sorted(_files(root, ""))
    except OSError:
        return None
    platform = sys.version, sys.platform, sys.byteorder, np.__version__, os.cpu_count()
    # This process may have loaded what a file was before it changed.
    if not files or max(changed for _, _, changed in files) > _LOADED_NS - _SETTLED_NS:
        return None
    return repr((__version__, root, platform, files))


def _files(root: str, below: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(os.path.join(root, below)) as entries:
        for entry in entries:
            path = os.path.join(below, entry.name)
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(root, path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield path, status.st_size, status.st_mtime_ns
