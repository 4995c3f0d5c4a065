"""Products of float32 matrices in three terms of TF32, by groups of four sub-groups on Hopper.

A work-group keeps a compute unit to itself. Tensor copies bring boxes of both operands into a ring of stages. Four
sub-groups split each box of A in local memory into leading parts and rests, by which other groups then multiply. These
read B as fragments, which they split in registers. So B may lie across k, while tensor cores take 32-bit numbers of
local memory along k only. The result is computed as its transpose: columns of B stand for rows.

Parts, terms, steps of k and additions of 32 numbers of k are those of `tensor_matmul`, whose bits results have.
"""

from __future__ import annotations

import numpy as np

from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    MAP_BYTES,
    Array,
    ArrayItem,
    Assign,
    AwaitStage,
    BoxCopy,
    Combine,
    For,
    FreeStage,
    GroupMultiply,
    IndexLike,
    Join,
    Kernel,
    Leading,
    N,
    Name,
    OpenRing,
    Picked,
    PutItem,
    Rest,
    RingLoop,
    Splat,
    TensorMap,
    Var,
)
from flowcompute.ir.launches import by_resident_tiles
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor
from flowcompute.lower.matmul.tensor_cores.tensor_results import LANES, PITCH, results_of
from flowcompute.lower.matmul.tensor_cores.tensor_tile import SUBGROUP, TILES
from flowcompute.lower.matmul.tensor_cores.warp_group_matmul import BARRIERS, FIELDS, GROUP, why_no_groups
from flowcompute.lower.matmul.tiled_matmul import STEP, TILE, place_of_tile
from flowcompute.spec import FLOAT32, UINT8

ROWS = 128
GROUPS = 2
"""Groups that multiply; each has 64 columns of B."""
COLUMNS = 64 * GROUPS
DEPTH = 32
"""Numbers of k in a stage, whose sums are added before tensor cores truncate more: lines of 128 bytes."""
PART = 16
"""Numbers of k whose fragments are in registers at a time."""
STAGES = 4
WORKERS = GROUPS * GROUP
WORK_GROUP = WORKERS + GROUP
_SIDE = ROWS * DEPTH
"""Numbers of a stage of A; as many are its rests, and B."""
_STAGE_NUMBERS = 3 * _SIDE
_STAGE, _CHUNK = Name("stage"), Name("u")
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


class _ThreeTermLowering:
    def __init__(self, task: LoweringTask) -> None:
        self.task = task
        self.one = one = MatmulAnchor(task.graph, task.region)
        assert one.row_stride is not None
        self.left = TensorMap(one.a.argument, one.a.lies.offset, one.inner, N, one.row_stride, (DEPTH, ROWS))
        pitch, box = one.b.rows.stride, (DEPTH, DEPTH)
        self.right = TensorMap(one.b.argument, one.b.lies.offset, one.columns, one.inner, pitch, box)
        room = one.arguments.get("maps", UINT8, one.node.id)
        self.ring = OpenRing((self.left, self.right), room, FIELDS, BARRIERS, STAGES, WORKERS, GROUP)

    def lower(self) -> Kernel:
        """Return the kernel; its work counts rows of the result."""
        one = self.one
        scope = Scope(one.names, lanes=LANES)
        place = place_of_tile(scope, one, ROWS, COLUMNS)
        self._places(scope)
        totals = [scope.let(one.zero(), FLOAT32, 4) for _ in range(ROWS // 8)]
        scope.add(self._product(scope, totals, place.row, place.column))
        results = results_of(one, place, (ROWS, COLUMNS), WORK_GROUP, WORKERS)
        results.add_held(scope, lambda held: self._hold(held, totals))
        size = max(_STAGE_NUMBERS * STAGES, ROWS * (COLUMNS + PITCH))
        return Kernel(
            self.task.name,
            self.task.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, size, local=True, alignment=1024),
                Array(BARRIERS, _UINT64, 1, 3 * STAGES, local=True),
                Array(FIELDS, _UINT32, 1, 2 * MAP_BYTES // 4, local=True, alignment=MAP_BYTES),
                self.ring,
                For(TILE, GID, place.many, GSIZE, tuple(scope.statements)),
            ),
            work="matmul",
            work_group=WORK_GROUP,
            units=one.units,
            lanes=LANES,
            tile=(ROWS, place.across),
        )

    def _product(self, scope: Scope, totals: list[Var], row: IndexLike, column: IndexLike) -> RingLoop:
        begin, k = _STAGE * _STAGE_NUMBERS, STEP * DEPTH
        of_b = begin + 2 * _SIDE
        copies = [BoxCopy(self.left, begin, k, row)]
        copies += [
            BoxCopy(self.right, of_b + part * DEPTH * DEPTH, column + part * DEPTH, k)
            for part in range(COLUMNS // DEPTH)
        ]
        body = scope.inner()
        sums = [body.let(self.one.zero(), FLOAT32, 4) for _ in totals]
        body.add(AwaitStage(self.ring, STEP, _STAGE))
        for part in range(0, DEPTH, PART):
            whole = [self._fragment(body, of_b, step) for step in range(part // 8, (part + PART) // 8)]
            leading = tuple(body.let(Leading(one), _UINT32, 4) for one in whole)
            rest = tuple(body.let(Rest(*pair), _UINT32, 4) for pair in zip(whole, leading, strict=True))
            of_a, rest_of_a = begin + part, begin + part + _SIDE
            before = ((leading, rest_of_a), (rest, of_a))
            fresh = part == 0
            body.add(GroupMultiply(tuple(sums), TILES, leading, of_a, True, PART, FLOAT32, fresh=fresh, before=before))
        body.add(FreeStage(self.ring, _STAGE))
        for total, one in zip(totals, sums, strict=True):
            body.add(Assign(total, Splat(body.let(Combine("sum", (total,), (one,), 0), FLOAT32, 4))))
        steps = -(-self.one.inner // DEPTH)
        work = (For(STEP, 0, steps, 1, tuple(body.statements)),)
        prepare = self._split(scope, begin)
        return RingLoop(self.ring, TILES, STEP, _STAGE, steps, (tuple(copies),), work, prepare=prepare)

    def _split(self, scope: Scope, begin: IndexLike) -> tuple[For, ...]:
        """Return the statements that split a stage of A: leading parts in its place, rests behind it."""
        body = scope.inner()
        place = body.narrow(begin + (LID - WORKERS + _CHUNK * GROUP) * 4)
        whole = body.let(ArrayItem(TILES, place, vector=True), _UINT32, 4)
        leading = body.let(Leading(whole), _UINT32, 4)
        rest = body.let(Rest(whole, leading), _UINT32, 4)
        body.add(PutItem(TILES, place, leading, vector=True), PutItem(TILES, place + _SIDE, rest, vector=True))
        return (For(_CHUNK, 0, _SIDE // (4 * GROUP), 1, tuple(body.statements), unroll=8),)

    # -- columns of B -------------------------------------------------------------------------------------

    def _places(self, scope: Scope) -> None:
        """Declare the first of the work-item's two columns in the tile, and where its fragments are.

        Rows r and r + 8 of a fragment are any two columns, as long as results go to the same: here neighbours, eight
        bytes of one of the four chunks that a sub-group has in a line. So it reads all banks at once.
        """
        subgroup = LID // SUBGROUP
        row, k = scope.narrow(LID % SUBGROUP // 4), scope.narrow(LID % 4)
        chunk = scope.narrow(row // 2 % 2 * 4 + row // 4 + subgroup % 2 * 2)
        pair = scope.narrow(row % 2 * 2)
        box = scope.narrow(subgroup // 2)
        self.column = scope.narrow(box * DEPTH + chunk * 4 + pair)
        self.base = scope.narrow(box * (DEPTH * DEPTH) + k * DEPTH + pair)
        self.chunk = scope.narrow(chunk ^ k)

    def _fragment(self, scope: Scope, begin: IndexLike, step: int) -> Var:
        """Read a fragment of 16 columns and 8 numbers of k."""
        halves = []
        for further in (0, 4):
            at = self.chunk ^ further if further else self.chunk
            place = begin + self.base + (step * 8 + further) * DEPTH + at * 4
            halves.append(scope.let(ArrayItem(TILES, place, vector=True), _UINT32, 2))
        return scope.let(Join(*halves), _UINT32, 4)

    # -- results ------------------------------------------------------------------------------------------

    def _hold(self, scope: Scope, totals: list[Var]) -> None:
        """Put a worker's sums into the tile of results."""
        pitch = COLUMNS + PITCH
        place = scope.narrow(LID % 4 * 2 * pitch + self.column)
        for i, total in enumerate(totals):
            for row in (0, 1):
                pair = scope.let(Picked((total,), (row, 2 + row)), FLOAT32, 2)
                scope.add(PutItem(TILES, place + (8 * i + row) * pitch, pair, vector=True))


def _why_not(task: LoweringTask) -> Reason | None:
    dtypes = {FLOAT32: FLOAT32} if task.style.precision == "tf32x3" else {}
    if (reason := why_no_groups(task, dtypes, lambda _: 4 * STAGES * _STAGE_NUMBERS)) is not None:
        return reason
    if MatmulAnchor(task.graph, task.region).b.columns.stride != 1:
        return task.refuse("no neighbours of the right factor lie across k")
    return None


def _lower(task: LoweringTask) -> Kernel:
    return _ThreeTermLowering(task).lower()


WARP_GROUP_TERMS = Form(name="warp-group terms", accepts=_why_not, lower=_lower, geometry=by_resident_tiles)
"""Products of float32 in three terms of TF32 by groups of four sub-groups."""
