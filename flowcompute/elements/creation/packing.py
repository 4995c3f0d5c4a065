"""Values as bytes, one behind the other: what a file of several arrays or columns holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.compute import Compute
from flowcompute.elements.element import Element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.spec import UINT8, Spec, Stream

MOST_PACKED = 1 << 16
"""Values that are packed together."""


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("bytes have one dtype")


def _bytes(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in arrays])


def _rebuild(kept: KeptOp) -> Compute:
    kept.require(0 < len(kept.inputs) <= MOST_PACKED, f"1 to {MOST_PACKED} values")
    kept.require(not any(one.spec.is_stream for one in kept.inputs), "resident values")
    return packed(kept.inputs)


PACK = Op("pack", 1, Kind.HOST, _bytes, _declared, doc="Resident values as bytes.", rebuild=_rebuild)


def packed(values: Sequence[Element]) -> Compute:
    """Return the bytes of resident values in C order and in this machine's byte order, one value behind the other."""
    size = sum(one.spec.item_bytes for one in values)
    return Compute(PACK, tuple(values), Spec(UINT8, (size,)))


def row_dtype(columns: Sequence[tuple[np.dtype, tuple[int, ...]]]) -> np.dtype:
    """Return the structure of a row: a field for each column, by its number, without bytes between them."""
    return np.dtype([(str(i), dtype, shape) for i, (dtype, shape) in enumerate(columns)])


def _rows(*columns: np.ndarray) -> np.ndarray:
    rows = np.empty(len(columns[0]), row_dtype([(one.dtype, one.shape[1:]) for one in columns]))
    for i, one in enumerate(columns):
        rows[str(i)] = one
    return rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize)


def _rebuild_rows(kept: KeptOp) -> Compute:
    kept.require(0 < len(kept.inputs) <= MOST_PACKED, f"1 to {MOST_PACKED} columns")
    kept.require(all(one.spec.is_stream for one in kept.inputs), "streams")
    return packed_rows(kept.inputs)


PACK_ROWS = Op("pack_rows", 1, Kind.HOST, _rows, _declared, doc="Streams as rows of bytes.", rebuild=_rebuild_rows)


def packed_rows(columns: Sequence[Element]) -> Compute:
    """Return a stream of rows: the bytes of a record of each column, one behind the other.

    Args:
        columns: streams of one length, or of unknown lengths that are one.

    Raises:
        SpecError: if their lengths differ.
    """
    size = sum(one.spec.item_bytes for one in columns)
    return Compute(PACK_ROWS, tuple(columns), Spec(UINT8, (size,), Stream(common_length("table", list(columns)))))
