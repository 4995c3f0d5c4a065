"""Convolutions of half formats by groups of four sub-groups, whose windows tensor copies bring from images.

The rows of the result are output channels and its columns pixels. Windows are never stored. For each place of the
kernel and each 64 channels, a copy brings a *patch* of pixels of the image, shifted by that place: a few rows of a few
pixels. Channels are innermost in the memory of images, so each pixel is a line along k. Patches are the columns of a
tile; they may belong to several images. `rewrite.products.half_windows` makes such images.

A sum runs over the kernel's places, and within each over channels in steps of 16, in order. No tile changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from flowcompute.fuse import Reason
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    MAP_BYTES,
    RING_GROUP,
    Array,
    AwaitStage,
    BoxCopy,
    ConditionLike,
    FillStages,
    For,
    FreeStage,
    GroupMultiply,
    IndexLike,
    Kernel,
    N,
    Name,
    OpenRing,
    PassSteps,
    Planes,
    RingRoles,
    TensorMap,
    Var,
    all_of,
    index_min,
    to_int,
)
from flowcompute.ir.launches import by_resident_tiles
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, why_no_product
from flowcompute.lower.matmul.tensor_cores.tensor_results import LANES, Results
from flowcompute.lower.matmul.tensor_cores.tensor_tile import CHUNK_BYTES, EDGE, SUBGROUP, TILES
from flowcompute.lower.matmul.tensor_cores.warp_group_matmul import (
    BARRIERS,
    DEPTH,
    FIELDS,
    ROWS,
    WORK_GROUP,
    WORKERS,
)
from flowcompute.lower.matmul.tiled_matmul import STEP, TILE
from flowcompute.rewrite import ImageWindows, image_windows
from flowcompute.spec import FLOAT32, UINT8

GROUP_ROWS = 64
"""Rows that four sub-groups multiply."""
LINES = 8
"""Pixels among whose lines chunks are exchanged: patches begin at multiples of them."""
COLUMNS = 256
"""Most columns of a tile."""
PATCHES = 8
"""Most patches of a tile: one work-item copies them all."""
WIDE = 32
"""Pixels of a row that are stored together well."""
FIXED = 16
"""Columns that take about as long as what a tile takes beside its products; a copy takes about one."""
MOST_STAGES = 5
SPARE_BYTES = 2048
"""Bytes of local memory beside stages: barriers, maps, and what aligns the stages."""
REGISTERS = (40, 232)
"""Registers of those who copy and of those who multiply: 128 sums and the places of results take more than 168."""
_STAGE = Name("stage")
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


@dataclass(frozen=True)
class Patches:
    """Patches of pixels that are the columns of a tile.

    Attributes:
        rows, columns: of a patch, at least one line of 8 pixels together.
        count: patches of a tile.
    """

    rows: int
    columns: int
    count: int

    @property
    def pixels(self) -> int:
        """Pixels of a patch."""
        return self.rows * self.columns


@cache
def patches_of(places: tuple[int, int], step: int) -> Patches:
    """Return the patches whose tiles cover a result with the fewest columns.

    A patch is as wide as the result or WIDE pixels, since narrow ones store parts of sectors of memory. Among equals
    few and wide ones are taken.

    Args:
        places: rows and columns of the result.
        step: of which the columns of a tile are a multiple.
    """
    height, width = places

    def cost(one: Patches) -> tuple[float, int, int]:
        covering = -(-height // one.rows) * -(-width // one.columns)
        return covering * (one.pixels + 1 + FIXED / one.count), one.count, -one.columns

    widest = min(COLUMNS, -(-width // LINES) * LINES)
    shapes = (
        Patches(rows, columns, count)
        for columns in range(-(-min(width, WIDE) // LANES) * LANES, widest + 1, LANES)
        for rows in range(1, COLUMNS // columns + 1)
        for count in range(1, min(PATCHES, COLUMNS // (rows * columns)) + 1)
        if rows * columns % LINES == 0 and rows * columns * count % step == 0
    )
    return min(shapes, key=cost)


@dataclass(frozen=True)
class _Tile:
    """Place of a tile: its first output channel, how many images there are, and image and number of its first patch."""

    row: IndexLike
    images: IndexLike
    image: IndexLike
    patch: IndexLike


class _WindowsLowering:
    def __init__(self, task: LoweringTask, seen: ImageWindows) -> None:
        self.task, self.seen = task, seen
        self.one = one = MatmulAnchor(task.graph, task.region)
        self.dtype = one.a.argument.dtype
        # Groups of four sub-groups share the columns of a tile where one of them has all rows.
        self.rows = ROWS if one.height > GROUP_ROWS else GROUP_ROWS
        self.shares = ROWS // self.rows
        self.patches = patches_of(seen.places, 2 * EDGE)
        self.columns = self.patches.pixels * self.patches.count
        self.across = -(-seen.places[1] // self.patches.columns)
        self.each = -(-seen.places[0] // self.patches.rows) * self.across
        self.high = -(-one.height // self.rows)
        lies = one.storage(seen.image)
        # Images over one axis have one row each.
        row = lies.strides[1] if len(lies.strides) == 3 else seen.sizes[1] * seen.channels
        image = one.arguments.input(task.graph, task.region, lies.base)
        self.left = TensorMap(
            one.a.argument, one.a.lies.offset, seen.channels, one.height, one.inner, (DEPTH, self.rows), seen.channels
        )
        self.right = TensorMap(
            image,
            lies.offset,
            seen.channels,
            seen.sizes[1],
            lies.strides[-1],
            (DEPTH, self.patches.columns),
            lies.record,
            Planes(seen.sizes[0], row, self.patches.rows),
            N // one.height,
        )
        room = one.arguments.get("maps", UINT8, one.node.id)
        self.stage = DEPTH * (self.rows + self.columns)
        stages = (task.style.capabilities.local_bytes - SPARE_BYTES) // (self.stage * self.dtype.itemsize)
        self.ring = OpenRing((self.left, self.right), room, FIELDS, BARRIERS, min(stages, MOST_STAGES), WORKERS)
        self.slices = -(-seen.channels // DEPTH)
        self.steps = seen.kernel[0] * seen.kernel[1] * self.slices

    def lower(self) -> Kernel:
        """Return the kernel; its work counts rows of the result, all output channels of an image after the other."""
        one = self.one
        copies, work = (self._each_tile(self._copies),), (self._each_tile(self._multiply),)
        roles = RingRoles(self.ring, copies, work, REGISTERS)
        return Kernel(
            self.task.name,
            self.task.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, self.stage * self.ring.stages // 2, local=True, alignment=1024),
                Array(BARRIERS, _UINT64, 1, 2 * self.ring.stages, local=True),
                Array(FIELDS, _UINT32, 1, 2 * MAP_BYTES // 4, local=True, alignment=MAP_BYTES),
                self.ring,
                roles,
            ),
            work="matmul",
            work_group=WORK_GROUP,
            units=one.units,
            lanes=LANES,
            # At least as many tiles as there are.
            tile=(one.height, -(-self.each // self.patches.count) * self.high),
            tensor=True,
        )

    def _each_tile(self, add: Callable[[Scope, _Tile], None]) -> For:
        """Return the loop over the tiles of a work-group."""
        scope = Scope(self.one.names, lanes=LANES)
        images = scope.integer(N // self.one.height)
        row = scope.narrow(to_int(TILE % self.high) * self.rows)
        first = scope.integer(TILE // self.high * self.patches.count)
        image = scope.integer(first // self.each)
        add(scope, _Tile(row, images, image, scope.narrow(to_int(first - image * self.each))))
        count = self.patches.count
        many = (N // self.one.height * self.each + (count - 1)) // count * self.high
        return For(TILE, GID, many, GSIZE, tuple(scope.statements))

    def _copies(self, scope: Scope, tile: _Tile) -> None:
        """Add the copies for a tile."""
        seen = self.seen
        begin = _STAGE * self.stage
        right = begin + self.rows * DEPTH
        place, channel = STEP // self.slices, STEP % self.slices * DEPTH
        down, across = place // seen.kernel[1] * seen.dilation[0], place % seen.kernel[1] * seen.dilation[1]
        copies = [BoxCopy(self.left, begin, channel, tile.row, place)]
        for part in range(self.patches.count):
            # Patches behind the last one are of an image that is not there, and never stored.
            image, y, x = (scope.integer(index) for index in self._place(tile, part))
            to = right + part * (DEPTH * self.patches.pixels)
            copies.append(BoxCopy(self.right, to, channel, x + across, image, y + down))
        scope.add(FillStages(self.ring, TILES, STEP, _STAGE, self.steps, (tuple(copies),), (), behind=0))

    def _multiply(self, scope: Scope, tile: _Tile) -> None:
        """Add what the workers do for a tile."""
        own = self.columns // self.shares
        sums = [scope.let(self.one.zero(), FLOAT32, 4) for _ in range(own // 8)]
        begin = _STAGE * self.stage
        left: IndexLike = begin
        right = begin + self.rows * DEPTH
        top, column = LID // SUBGROUP % (self.rows // EDGE) * EDGE, RING_GROUP * own
        if self.shares == 1:
            left, column = begin + RING_GROUP * (GROUP_ROWS * DEPTH), RING_GROUP * 0
        else:
            right += RING_GROUP * (own * DEPTH)
        work = GroupMultiply(tuple(sums), TILES, left, right, True, DEPTH, self.dtype)
        body = (AwaitStage(self.ring, STEP, _STAGE), work, FreeStage(self.ring, _STAGE))
        scope.add(For(STEP, 0, self.steps, 1, body), PassSteps(self.ring, self.steps))
        self._results(tile).add_from_registers(scope, sums, top, column)

    def _place(self, tile: _Tile, part: IndexLike) -> tuple[IndexLike, IndexLike, IndexLike]:
        """Return the image of a patch of a tile, and its first row and column in the result."""
        at = tile.patch + part
        # One patch at a time crosses no image.
        image = tile.image if self.patches.count == 1 else tile.image + at // self.each
        within = at if self.patches.count == 1 else at % self.each
        return image, within // self.across * self.patches.rows, within % self.across * self.patches.columns

    def _results(self, tile: _Tile) -> Results:
        one, patches = self.one, self.patches
        height, width = self.seen.places

        def pixel(column: IndexLike) -> tuple[IndexLike, IndexLike, IndexLike]:
            """Return the image of a column of the tile, and row and column of the pixel in the result."""
            single = patches.count == 1
            part = 0 if single else column // patches.pixels
            within = column if single else column % patches.pixels
            image, y, x = self._place(tile, part)
            return image, y + within // patches.columns, x + within % patches.columns

        def exists(row: IndexLike, column: IndexLike) -> ConditionLike:
            image, y, x = pixel(column)
            return all_of(
                True if one.height % self.rows == 0 else tile.row + row < one.height,
                True if patches.count == 1 else image < tile.images,
                True if height % patches.rows == 0 else y < height,
                True if width % patches.columns == 0 else x < width,
            )

        def store(scope: Scope, row: IndexLike, column: IndexLike, made: Var) -> None:
            image, y, x = pixel(column)
            at = scope.integer(x)
            count = None if width % LANES == 0 else scope.integer(index_min(LANES, width - at))
            number = scope.integer(image * one.height + tile.row + row)
            one.store(scope, one.row(scope, number), scope.integer(y * width + at), count, made)

        return Results(self.rows, self.columns, WORK_GROUP, store, exists, workers=WORKERS)


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    capabilities = task.style.capabilities
    if not capabilities.warp_groups:
        return task.refuse(f"four sub-groups of {capabilities.name} do not multiply together")
    assert task.anchor is not None
    seen = image_windows(task.graph, task.anchor.id)
    if seen is None:
        return task.refuse("it multiplies no windows of images of half formats")
    one = MatmulAnchor(task.graph, task.region)
    if any(value in task.region.nodes for value in (one.a.argument.value, one.b.argument.value)):
        return task.refuse("a factor is computed where it is loaded")
    if capabilities.local_bytes < SPARE_BYTES + 2 * DEPTH * (ROWS + COLUMNS) * one.a.argument.dtype.itemsize:
        return task.refuse("local memory is too small")
    lies = one.storage(seen.image)
    places = (lies.offset, lies.record, *lies.strides[1:], seen.channels, one.a.lies.offset)
    if lies.strides[0] != 1 or any(place * one.a.argument.dtype.itemsize % CHUNK_BYTES for place in places):
        return task.refuse(
            f"channels of a pixel are no neighbours, or do not begin at multiples of {CHUNK_BYTES} bytes"
        )
    return None


def _lower(task: LoweringTask) -> Kernel:
    assert task.anchor is not None
    seen = image_windows(task.graph, task.anchor.id)
    assert seen is not None
    return _WindowsLowering(task, seen).lower()


WARP_GROUP_WINDOWS = Form(name="warp-group windows", accepts=_why_not, lower=_lower, geometry=by_resident_tiles)
"""Convolutions of half formats by groups of four sub-groups."""
