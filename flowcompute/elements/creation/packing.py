"""Resident values as bytes, one behind the other: what a file of several arrays holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowcompute.elements.compute import Compute
from flowcompute.elements.element import Element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.spec import UINT8, Spec

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
