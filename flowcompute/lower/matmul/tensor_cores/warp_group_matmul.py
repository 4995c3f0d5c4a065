"""Products of matrices by groups of four sub-groups, whose operands tensor copies bring: halves and bytes on Hopper.

A work-group keeps a compute unit to itself and computes one tile of the result after the other. One work-item
copies boxes of both operands into a ring of stages in local memory. Eight sub-groups multiply the stages that are
full, four together, and give them back. Sums go from registers to the epilogue and to memory, while copies for the
next tile arrive.

A sum runs over k in steps of 16, in order, from k = 0. It has the bits of the products by single sub-groups
(`tensor_matmul`), so no tile size and no form changes a bit on a device. Sums of bytes are whole numbers, which wrap:
they have the bits of every other form. Both their factors lie along k (`rewrite.products.byte_factors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from flowcompute.fuse import Reason
from flowcompute.ir import (
    ANY_ROWS,
    GID,
    GSIZE,
    LID,
    MAP_BYTES,
    RING_GROUP,
    Array,
    AwaitStage,
    BoxCopy,
    FillStages,
    For,
    FreeStage,
    GroupMultiply,
    HandOver,
    If,
    Kernel,
    N,
    Name,
    OpenRing,
    PassSteps,
    RingRoles,
    Stmt,
    TakeOver,
    TensorMap,
)
from flowcompute.ir.launches import by_resident_tiles
from flowcompute.lower.anchor_point import Axes
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.handed_tasks import PLACE, SharedTasks, TaskPart
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, why_no_product
from flowcompute.lower.matmul.tensor_cores.tensor_results import LANES, results_of
from flowcompute.lower.matmul.tensor_cores.tensor_tile import CHUNK_BYTES, EDGE, SUBGROUP, TILES
from flowcompute.lower.matmul.tiled_matmul import STEP, TILE, TilePosition, place_of_tile
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, INT8, INT32, UINT8, UINT64

LEAST = 128
"""Fewest rows, where their number is known, and columns: a tile of that size keeps the tensor cores busy."""
ROWS = 128
LINE_BYTES = 128
"""Bytes of k in a stage: lines in which copies exchange chunks."""
DEPTH = LINE_BYTES // FLOAT16.itemsize
"""Halves of k in a stage."""
STAGES = 4
GROUP = 4 * SUBGROUP
"""Work-items that multiply together; each group has 64 rows."""
WORKERS = ROWS // 64 * GROUP
WORK_GROUP = WORKERS + GROUP
SUMS = {FLOAT16: FLOAT32, BFLOAT16: FLOAT32, INT8: INT32, UINT8: INT32}
"""Dtype of the sums by that of a factor."""
BARRIERS, FIELDS = "barriers", "fields"
"""Local arrays of the barriers of stages, and of the maps that are being made."""
LEAST_STEPS = 32
"""Fewest steps of k of tiles that are handed over: their sums take the time of some."""
_STAGE = Name("stage")
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def _columns(one: MatmulAnchor) -> int:
    """Return the columns of a tile."""
    return 256 if one.columns > LEAST else LEAST


class _WarpGroupLowering:
    def __init__(self, task: LoweringTask, *, shares: bool) -> None:
        self.task = task
        self.one = one = MatmulAnchor(task.graph, task.region)
        self.columns = _columns(one)
        self.along_k = one.b.rows.stride == 1
        self.dtype, self.right_dtype = one.a.argument.dtype, one.b.argument.dtype
        self.depth = LINE_BYTES // self.dtype.itemsize
        assert one.row_stride is not None
        # Rows that multiply several matrices are those of one matrix of the stack.
        steps = (0, 0) if one.shared else matrix_steps(one)
        assert steps is not None
        self.left_step, self.right_step = steps
        self.turned = one.a.columns.stride != 1
        width, rows, pitch, box = one.inner, N if one.shared else one.height, one.row_stride, (self.depth, ROWS)
        if self.turned:
            width, rows, pitch, box = one.height, one.inner, one.a.columns.stride, (self.depth, self.depth)
        self.left = TensorMap(one.a.argument, one.a.lies.offset, width, rows, pitch, box, self.left_step)
        width, rows, pitch = one.columns, one.inner, one.b.rows.stride
        box = (self.depth, self.depth)
        if self.along_k:
            width, rows, pitch, box = one.inner, one.columns, one.b.columns.stride, (self.depth, self.columns)
        self.right = TensorMap(one.b.argument, one.b.lies.offset, width, rows, pitch, box, self.right_step)
        room = one.arguments.get("maps", UINT8, one.node.id)
        self.ring = OpenRing((self.left, self.right), room, FIELDS, BARRIERS, STAGES, WORKERS)
        self.units = task.style.capabilities.units
        self.shared: SharedTasks | None = None
        if shares:
            tiles = place_of_tile(Scope(one.names), one, ROWS, self.columns).many
            self.shared = SharedTasks(one.arguments.get("words", UINT64, -1), tiles, self._steps)

    def lower(self) -> Kernel:
        """Return the kernel; its work counts rows of the result."""
        one, ring = self.one, self.ring
        across = -(-one.columns // self.columns)
        roles = RingRoles(ring, (self._each_tile(self._copies),), (self._each_tile(self._multiply),))
        # Whoever draws makes no maps meanwhile.
        drawn = self.shared.draw(one.names, SUBGROUP) if self.shared else []
        opened = self.shared.open() if self.shared else []
        return Kernel(
            self.task.name,
            self.task.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, self._stage * STAGES * self.dtype.itemsize // 4, local=True, alignment=1024),
                Array(BARRIERS, _UINT64, 1, 2 * STAGES, local=True),
                Array(FIELDS, _UINT32, 1, 2 * MAP_BYTES // 4, local=True, alignment=MAP_BYTES),
                *drawn,
                ring,
                *opened,
                roles,
            ),
            work="matmul",
            work_group=WORK_GROUP,
            units=one.units,
            lanes=LANES,
            # At least as many tiles as there are.
            tile=(ROWS, across) if one.shared else (one.height, -(-one.height // ROWS) * across),
            shares=self.units if self.shared else 0,
            tensor=True,
        )

    def _each_tile(self, add: Callable[[Scope, TilePosition, TaskPart], None]) -> Stmt:
        """Return the loop over the tiles of a work-group, or parts of them along k."""
        scope = Scope(self.one.names, lanes=LANES)
        place = place_of_tile(scope, self.one, ROWS, self.columns)
        if self.shared is None:
            add(scope, place, TaskPart(0, self._steps, 0))
            return For(TILE, GID, place.many, GSIZE, tuple(scope.statements))
        add(scope, place, self.shared.part(scope))
        return self.shared.loop(TILE, scope.statements)

    @property
    def _stage(self) -> int:
        """Numbers of a stage."""
        return self.depth * (ROWS + self.columns)

    @property
    def _steps(self) -> int:
        return -(-self.one.inner // self.depth)

    def _copies(self, scope: Scope, place: TilePosition, task: TaskPart) -> None:
        """Add the copies for a tile."""
        begin = _STAGE * self._stage
        right = begin + ROWS * self.depth
        k = (STEP + task.first) * self.depth
        matrix = 0 if self.one.shared else scope.integer(place.row // self.one.height)
        row = scope.integer(place.row - matrix * self.one.height)
        left, other = (matrix if step else 0 for step in (self.left_step, self.right_step))
        copies = [BoxCopy(self.left, begin, k, row, left)]
        if self.turned:
            # A box holds the rows of one group.
            copies = [
                BoxCopy(self.left, begin + part * self.depth * self.depth, row + part * self.depth, k, left)
                for part in range(ROWS // self.depth)
            ]
        if self.along_k:
            copies.append(BoxCopy(self.right, right, k, place.column, other))
        else:
            copies += [
                BoxCopy(self.right, right + part * self.depth * self.depth, place.column + part * self.depth, k, other)
                for part in range(self.columns // self.depth)
            ]
        steps = task.stop - task.first
        scope.add(FillStages(self.ring, TILES, STEP, _STAGE, steps, (tuple(copies),), (), behind=0))

    def _multiply(self, scope: Scope, place: TilePosition, task: TaskPart) -> None:
        """Add what the workers do for a tile."""
        sums = [scope.let(self.one.zero(), self.one.dtype, 4) for _ in range(self.columns // 8)]
        begin = _STAGE * self._stage
        own, right = begin + RING_GROUP * (64 * self.depth), begin + ROWS * self.depth
        work = GroupMultiply(
            tuple(sums),
            TILES,
            own,
            right,
            self.along_k,
            self.depth,
            self.dtype,
            turned=self.turned,
            right_dtype=self.right_dtype,
        )
        body = (AwaitStage(self.ring, STEP, _STAGE), work, FreeStage(self.ring, _STAGE))
        steps, results = task.stop - task.first, results_of(self.one, place, (ROWS, self.columns), WORK_GROUP, WORKERS)
        every = (For(STEP, 0, steps, 1, body), PassSteps(self.ring, steps))
        if self.shared is None:
            scope.add(*every)
            results.add_from_registers(scope, sums, LID // SUBGROUP * EDGE)
            return
        room = self.one.arguments.get("room", FLOAT32, -1, numbers=self.units * ROWS * self.columns)
        handed = tuple(sums), WORKERS, WORKERS // GROUP
        scope.add(If(task.first > 0, (TakeOver(room, self.shared.words, PLACE + 1, *handed),)), *every)
        storing = scope.inner()
        results.add_from_registers(storing, sums, LID // SUBGROUP * EDGE)
        hand = HandOver(room, self.shared.words, PLACE, *handed)
        scope.add(If(task.left > 0, (hand,), tuple(storing.statements)))


def matrix_steps(one: MatmulAnchor) -> tuple[int, int] | None:
    """Return the distances between the matrices of both factors, 0 where all rows have one; None where they vary."""
    steps = []
    for side in (one.a, one.b):
        sizes, strides = side.spec.shape[: side.stack], side.lies.strides[: side.stack]
        if not side.lies.record and math.prod(sizes) == 1:
            steps.append(0)
            continue
        # No index is divided by the first axis, so any length stands for that of the stream.
        records = ((2,), (side.lies.record,)) if one.node.spec.is_stream else ((), ())
        matrices = Axes.of((*records[0], *sizes), (*records[1], *strides))
        if sizes != one.stack or not matrices.single:
            return None
        steps.append(matrices.stride)
    return steps[0], steps[1]


def why_no_groups(
    task: LoweringTask,
    dtypes: Mapping[np.dtype, np.dtype],
    local_bytes: Callable[[MatmulAnchor], int],
    *,
    matrices: bool = False,
) -> Reason | None:
    """Return why groups do not multiply factors of such dtypes with so many bytes of local memory, if they do not.

    Args:
        task: what is lowered.
        dtypes: of the sums, by those of factors. Factors of a byte may differ in having signs.
        local_bytes: returns the bytes of local memory that a product takes.
        matrices: whether rows may multiply several matrices.
    """
    if (reason := why_no_product(task)) is not None:
        return reason
    capabilities = task.style.capabilities
    if not capabilities.warp_groups:
        return task.refuse(f"four sub-groups of {capabilities.name} do not multiply together")
    one = MatmulAnchor(task.graph, task.region)
    sides, dtype = (one.a, one.b), one.a.argument.dtype
    alike = one.b.argument.dtype == dtype or {dtype, one.b.argument.dtype} == {INT8, UINT8}
    if not alike or dtypes.get(dtype) != one.dtype:
        return task.refuse("tensor cores do not multiply its factors' dtypes in this way, or have no such sums")
    if one.row_stride is None or one.chosen is not None or task.region.weight_tiles is not None:
        return task.refuse("its rows lie at several distances, choose matrices, or come in weight tiles")
    steps = (0, 0) if one.shared else matrix_steps(one) if matrices else None
    if steps is None:
        return task.refuse("its rows multiply several matrices, which lie at several distances")
    rows = one.rows_together
    if not one.inner or one.columns < LEAST or (rows is not None and rows < LEAST):
        return task.refuse(f"its result has fewer than {LEAST} rows or columns, or no products")
    if any(side.argument.value in task.region.nodes for side in sides):
        return task.refuse("a factor is computed where it is loaded")
    if not all(axes.single for side in sides for axes in (side.rows, side.columns)):
        return task.refuse("no single stride serves a factor's rows and columns")
    # Rows of all records may be neighbours too, but their number is unknown, and a map has a width.
    of_a = (one.row_stride, one.a.columns.stride)
    along = of_a if matrices and not one.shared else of_a[1:]
    if 1 not in along or 1 not in (one.b.rows.stride, one.b.columns.stride):
        return task.refuse("no neighbours lie along its factors")
    pitches = (of_a[0] if of_a[1] == 1 else of_a[1], max(one.b.rows.stride, one.b.columns.stride))
    places = (*pitches, *steps, one.a.lies.offset, one.a.lies.record, one.b.lies.offset)
    if any(place * dtype.itemsize % CHUNK_BYTES for place in places) or min(pitches) <= 0 or min(steps) < 0:
        return task.refuse(f"rows of a factor do not begin at multiples of {CHUNK_BYTES} bytes")
    if capabilities.local_bytes < local_bytes(one) + 1024:
        return task.refuse("local memory is too small")
    return None


def _local_bytes(one: MatmulAnchor) -> int:
    return STAGES * LINE_BYTES * (ROWS + _columns(one))


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_groups(task, SUMS, _local_bytes, matrices=True)) is not None:
        return reason
    one = MatmulAnchor(task.graph, task.region)
    if one.a.argument.dtype.itemsize == 1 and (one.a.columns.stride, one.b.rows.stride) != (1, 1):
        return task.refuse("tensor cores multiply bytes that are neighbours along k alone")
    return None


def _lower(task: LoweringTask) -> Kernel:
    kernel = _WarpGroupLowering(task, shares=False).lower()
    one = MatmulAnchor(task.graph, task.region)
    if one.inner * one.a.argument.dtype.itemsize < LEAST_STEPS * LINE_BYTES:
        return kernel
    few = _WarpGroupLowering(task, shares=True).lower()
    return replace(kernel, few=few, few_rows=ANY_ROWS)


WARP_GROUP_MATMUL = Form(name="warp-group matmul", accepts=_why_not, lower=_lower, geometry=by_resident_tiles)
"""Products of half formats, and of whole numbers of a byte, by groups of four sub-groups."""
