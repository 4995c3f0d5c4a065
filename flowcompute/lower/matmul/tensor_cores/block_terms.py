"""The kernels of products by terms of rows: one for each number of rows that shares instructions."""

from __future__ import annotations

from dataclasses import replace

from flowcompute.fuse import Reason
from flowcompute.graph import Graph
from flowcompute.ir import Array, Kernel
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, reads_along_blocks, why_no_product
from flowcompute.lower.matmul.tensor_cores.block_term_lowering import SUBGROUPS, TermLowering
from flowcompute.lower.matmul.tensor_cores.block_term_tiles import SLICES, Geometry, chunks_of

NARROW = 64
"""Columns for each compute unit up to which sub-groups share columns."""
ROWS = (1, 2, 5, 8, 16)
"""Rows of a tile: three terms of each fill whole instructions, or nearly so. More rows take tiles of the last ones."""
WIDE = {
    1: Geometry(2, 1, 2, 1, 256),
    2: Geometry(2, 1, 2, 2, 256),
    5: Geometry(2, 1, 2, 1, 256),
    8: Geometry(1, 2, 2, 1, 256),
    16: Geometry(1, 2, 2, 1, 128),
}
"""By rows of a tile the geometry where columns are many."""
SHARED = {
    1: Geometry(SLICES, 1, 2, 1, 256),
    2: Geometry(SLICES, 1, 2, 2, 256),
    5: Geometry(SLICES, 1, 2, 2, 256),
    8: Geometry(SLICES, 1, 2, 1, 256),
    16: Geometry(SLICES, 2, 2, 1, 128),
}
"""The same where columns are few, and sub-groups share them."""
UNEVEN = {True: Geometry(SLICES, 1, 2, 1, 256), False: Geometry(1, 1, 2, 1, 256)}
"""By whether columns are shared, the geometry whose sub-groups do not meet while one has less to do than another."""
SMALL = Geometry(1, 1, 2, 1, 128)
"""Geometry that takes the least local memory: up to `LOCAL_BYTES` for the largest blocks."""
LOCAL_BYTES = 128 << 10
GROUPS = 2
"""Work-groups that a compute unit has room for, where columns are many."""


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    capabilities = task.style.capabilities
    if not task.style.block_terms or not capabilities.tensor_cores:
        return task.refuse("tensor cores may not multiply decoded numbers, or there are none")
    assert task.anchor is not None
    if not reads_along_blocks(task.graph, task.anchor.id):
        return task.refuse("its right factor is not decoded from blocks along the sum")
    one = MatmulAnchor(task.graph, task.region)
    if not one.is_computed(one.b) or chunks_of(task.graph, one) is None:
        return task.refuse("its numbers are no scale times a whole number, or its columns no whole blocks of words")
    if capabilities.local_bytes < LOCAL_BYTES:
        return task.refuse(f"its tiles take up to {LOCAL_BYTES} of {capabilities.local_bytes} bytes of local memory")
    return None


def _lower(task: LoweringTask) -> Kernel:
    """Return the kernel of tiles of the most rows, with those of fewer rows."""
    one, capabilities = MatmulAnchor(task.graph, task.region), task.style.capabilities
    is_shared = one.columns <= NARROW * capabilities.units
    room = capabilities.local_bytes if is_shared else capabilities.local_bytes // GROUPS
    kernels: list[Kernel] = []
    for rows in ROWS[:1] if one.rows_together == 1 else ROWS:
        tries = [SHARED[rows] if is_shared else WIDE[rows], UNEVEN[is_shared]]
        made = (_tile(task, rows, each) for each in tries if _is_even(task.graph, one, each))
        kernel = next((each for each in made if _room(each) <= room), None) or _tile(task, rows, SMALL)
        kernels.append(replace(kernel, few=kernels[-1], few_rows=kernels[-1].tile[0]) if kernels else kernel)
    return kernels[-1]


def _tile(task: LoweringTask, rows: int, geometry: Geometry) -> Kernel:
    return TermLowering(task.graph, task.region, rows, geometry).lower(task.name)


def _is_even(graph: Graph, one: MatmulAnchor, geometry: Geometry) -> bool:
    """Check whether sub-groups that wait for each other have as many chunks of k."""
    chunks = chunks_of(graph, one)
    assert chunks is not None
    return geometry.parts in (1, SUBGROUPS) or one.inner == SLICES * chunks.slice


def _room(kernel: Kernel) -> int:
    """Return the bytes of the local arrays of a kernel."""
    return sum(one.size * one.dtype.itemsize for one in kernel.body if isinstance(one, Array))


TERM_MATMUL = Form(name="term matmul", accepts=_why_not, lower=_lower, geometry=by_tiles, joins=True, leads=True)
"""Products of rows and decoded numbers by tensor cores."""
