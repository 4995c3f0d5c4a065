"""Order of scans: the sizes of their runs and tiles, and their initial carries."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.streams import KernelScan
from flowcompute.graph import Node
from flowcompute.ir.nodes import register_dtype

RUN = 64


def scan_tile(numbers: int) -> int:
    """Return the records in a tile of a scan over items of `numbers` numbers."""
    return min(max((1 << 14) // max(numbers, 1), 1), 1 << 14)


def first_carries(node: Node) -> list[np.ndarray]:
    """Return the initial carries of a scan by a typed function, in the dtypes of its computation."""
    assert isinstance(node.element, KernelScan)
    return [init.astype(register_dtype(init.dtype)) for init in node.element.inits]
