"""Headers of safetensors files: JSON behind its length.

Source: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.files import ForeignJsonError, expect, read_json
from flowcompute.sources.safetensors.tensors import (
    MOST_BYTES,
    ReadAt,
    Tensor,
    WeightsHeader,
    check_places,
    checked_numbers,
    refuse,
)
from flowcompute.spec import BFLOAT16

_MOST_HEADER_BYTES = 100_000_000
"""As of the format's own library."""

DTYPES: dict[str, np.dtype] = {
    "BF16": BFLOAT16,
    **{
        name: np.dtype(dtype)
        for name, dtype in (
            ("BOOL", "?"), ("U8", "u1"), ("I8", "i1"), ("U16", "u2"), ("I16", "i2"), ("U32", "u4"), ("I32", "i4"),
            ("U64", "u8"), ("I64", "i8"), ("F16", "f2"), ("F32", "f4"), ("F64", "f8"),
        )
    },
}  # fmt: skip
"""Types that elements may have. Tensors of other types can be had as bytes only."""


def read_safetensors(read: ReadAt, size_bytes: int) -> WeightsHeader:
    """Read the header of a safetensors file.

    Raises:
        WeightsHeaderError: if it is not sound.
    """
    if size_bytes < 8:
        refuse("it ends before its header does", expected="at least 8 bytes", got=f"{size_bytes} bytes")
    length = int.from_bytes(read(0, 8), "little")
    begin = 8 + length
    if begin > size_bytes or length > _MOST_HEADER_BYTES:
        most = min(size_bytes - 8, _MOST_HEADER_BYTES)
        refuse("its header is longer than it can be", expected=f"at most {most} bytes", got=f"{length} bytes")
    try:
        data = read_json(read(8, length), _described, limit_bytes=_MOST_HEADER_BYTES, unique=True)
    except ForeignJsonError as error:
        refuse(f"its header is none: {error}")
    metadata = data.pop("__metadata__", {})
    tensors = []
    for name, one in data.items():
        shape, (first, last) = tuple(one["shape"]), one["data_offsets"]
        size, numbers = last - first, checked_numbers(name, shape)
        dtype = DTYPES.get(one["dtype"])
        if dtype is not None and numbers * dtype.itemsize != size:
            refuse(
                f"tensor {name!r} has another size than its shape says",
                expected=f"{numbers * dtype.itemsize} bytes",
                got=f"{size} bytes",
            )
        tensors.append(Tensor(name, one["dtype"], shape, begin + first, size))
    check_places(tensors, begin, size_bytes)
    return WeightsHeader(metadata, tuple(tensors))


def _described(data: Any) -> dict[str, Any]:
    """Return the header, which has the shape that the format gives it."""
    expect(data, {}, "it")
    for name, one in data.items():
        if name == "__metadata__":
            expect(one, dict.fromkeys(one, str) if isinstance(one, dict) else {}, name)
            continue
        expect(one, {"dtype": str, "shape": [int], "data_offsets": [int]}, repr(name)[:200])
        first, last = one["data_offsets"] if len(one["data_offsets"]) == 2 else (1, 0)
        if not 0 <= first <= last < MOST_BYTES or any(size < 0 for size in one["shape"]):
            raise ForeignJsonError(f"{name!r:.200} has a size or a place that is none")
    return dict(data)
