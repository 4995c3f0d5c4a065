"""Products of blocks that were multiplied in one launch, added to one node of the tree."""

from __future__ import annotations

import numpy as np

from flowcompute.gpu.device import cl
from flowcompute.gpu.run.folds.fold_device import FoldDevice
from flowcompute.spec import INT64

WORK_GROUP = 128
GROUPS_PER_UNIT = 16

_TYPES = {4: "float", 8: "double"}

_TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define P1(i) (double)mine[(i) * numbers]
#define P2(i) (P1(i) + P1(i + 1))
#define P4(i) (P2(i) + P2(i + 2))
#define P8(i) (P4(i) + P4(i + 4))
kernel void add_blocks(global const %(T)s *products, global double *node, const long numbers, const long blocks) {
    // Neighbours first, as in the tree.
    for (long j = get_global_id(0); j < numbers; j += get_global_size(0)) {
        global const %(T)s *mine = products + j;
        node[j] = blocks == 2 ? P2(0) : blocks == 4 ? P4(0) : blocks == 8 ? P8(0) : P8(0) + P8(8);
    }
}
"""


def add_products(
    there: FoldDevice, products: cl.Buffer, node: cl.Buffer, dtype: np.dtype, numbers: int, blocks: int
) -> None:
    """Add the products of some blocks in float64, neighbours first; nobody waits for it.

    Args:
        there: the device.
        products: `(blocks, numbers)`.
        node: takes the sum.
        dtype: of the products, float32 or float64.
        numbers: of a product.
        blocks: 2, 4, 8 or 16.
    """
    kernel = there.build(_TEXT % {"T": _TYPES[dtype.itemsize]}, "add_blocks", [None, None, INT64, INT64])
    groups = min(-(-numbers // WORK_GROUP), GROUPS_PER_UNIT * there.style.capabilities.units)
    values = [products, node, numbers, blocks]
    there.launcher.launch(kernel, values, groups, WORK_GROUP, [node], timed=False, deferred=True)
