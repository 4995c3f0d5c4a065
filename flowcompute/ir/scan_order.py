"""What all scans have in common: the sizes of their order, and what they carry from batch to batch."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.streams import KernelScan
from flowcompute.graph import Node
from flowcompute.ir.nodes import register_dtype

RUN = 64


def scan_tile(numbers: int) -> int:
    """Records in a tile of a scan over items of so many numbers."""
    return min(max((1 << 14) // max(numbers, 1), 1), 1 << 14)


def first_carries(node: Node) -> list[np.ndarray]:
    """What a scan by a typed function begins with, in the dtypes that it is computed in."""
    assert isinstance(node.element, KernelScan)
    return [init.astype(register_dtype(init.dtype)) for init in node.element.inits]
