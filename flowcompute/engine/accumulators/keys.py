"""Streams of keys: integers from 0 up to a given number."""

from __future__ import annotations

import numpy as np

from flowcompute.errors import RunError


def checked_keys(keys: np.ndarray, count: int, start: int, *, rows: int = 1) -> np.ndarray:
    """Return the keys as indices.

    Args:
        keys: integers or bools, one for each row.
        count: how many keys there are.
        start: index of the first record.
        rows: that a record has.

    Raises:
        RunError: naming the first record whose key is none of them.
    """
    # In the keys' own dtype, so that none wraps around.
    outside = keys >= count if keys.dtype.kind in "bu" else (keys < 0) | (keys >= count)
    if outside.any():
        position = int(np.argmax(outside))
        record = start + position // rows
        raise RunError(
            "cannot use a key that is out of range",
            records=(record, record + 1),
            expected=f"keys from 0 to {count - 1}" if count else "no records, as there are no keys",
            got=f"key {int(keys[position])} at record {record}",
            hint="raise the number of keys, or clip or filter the stream",
        )
    return keys.astype(np.intp, copy=False)
