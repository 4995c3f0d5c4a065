"""Attributes of operations as plain data, and back.

None, bools, whole numbers and text stay what they are. A float becomes `{"float": "0x1.8p+0"}`, so that NaN
equals itself and -0 differs from 0; a tuple becomes a list; a dtype `{"dtype": "float32"}`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.checkpoint.job.fields import LONGEST_TEXT, refuse, refused
from flowcompute.checkpoint.store import DTYPES
from flowcompute.elements import Attrs

_MOST_INT = 1 << 127
_DEEPEST = 8
_LONGEST = 1 << 20
"""Things in one list: a quantile of so many places."""


def encode_attrs(attrs: Attrs) -> dict[str, Any]:
    """Return attributes as plain data.

    Raises:
        CheckpointError: for what plain data cannot say.
    """
    return {key: encode(value) for key, value in attrs.items()}


def encode(value: Any) -> Any:
    """Return one attribute as plain data."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) and -_MOST_INT <= value < _MOST_INT:
        return int(value)
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return [encode(one) for one in value]
    raise refused("cannot keep this attribute in a checkpoint", expected="plain data", got=value)


def decode_attrs(data: object) -> Attrs:
    """Return the attributes that plain data say.

    Raises:
        CheckpointError: if it says none.
    """
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        refuse("cannot read attributes", expected="a map with names", got=type(data).__name__)
    return {key: decode(value) for key, value in data.items()}


def decode(data: Any, depth: int = 0) -> Any:
    """Return the attribute that plain data says."""
    if data is None or isinstance(data, bool):
        return data
    if isinstance(data, str) and len(data) <= LONGEST_TEXT:
        return data
    if isinstance(data, int) and -_MOST_INT <= data < _MOST_INT:
        return data
    if isinstance(data, list | tuple) and len(data) <= _LONGEST and depth < _DEEPEST:
        return tuple(decode(one, depth + 1) for one in data)
    match data:
        case {"float": str(text), **rest} if not rest and len(text) < 64:
            try:
                return float.fromhex(text)
            except (ValueError, OverflowError):
                pass
        case {"dtype": str(name), **rest} if not rest and name in DTYPES:
            return DTYPES[name]
    raise refused("cannot read an attribute", expected="plain data", got=data)
