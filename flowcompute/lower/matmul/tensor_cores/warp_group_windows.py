"""Convolutions of half formats by groups of four sub-groups, whose windows tensor copies bring from images.

The rows of the result are output channels and its columns pixels. Windows are never stored. For each place of the
kernel and each 64 channels, a copy brings a *patch* of 64 pixels of the image, shifted by that place: a few rows of a
few pixels. Channels are innermost in the memory of images, so each pixel is a line along k. Four patches are the
columns of a tile; they may belong to several images. `rewrite.products.half_windows` makes such images.

A sum runs over the kernel's places, and within each over channels in steps of 16, in order. No tile changes a bit.
"""

from __future__ import annotations

import numpy as np

from flowcompute.fuse import Reason
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
    For,
    FreeStage,
    GroupMultiply,
    IndexLike,
    Kernel,
    N,
    Name,
    OpenRing,
    Planes,
    RingLoop,
    TensorMap,
    Var,
    all_of,
    index_min,
    to_int,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_resident_tiles
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, why_no_product
from flowcompute.lower.matmul.tensor_cores.tensor_results import LANES, PITCH, Results
from flowcompute.lower.matmul.tensor_cores.tensor_tile import CHUNK_BYTES, EDGE, SUBGROUP, TILES
from flowcompute.lower.matmul.tensor_cores.warp_group_matmul import (
    BARRIERS,
    DEPTH,
    FIELDS,
    ROWS,
    STAGES,
    WORK_GROUP,
    WORKERS,
)
from flowcompute.lower.matmul.tiled_matmul import STEP, TILE
from flowcompute.rewrite import ImageWindows, image_windows
from flowcompute.spec import FLOAT32, UINT8

PATCH = 64
"""Pixels of a patch."""
PATCHES = 4
"""Patches of a tile."""
COLUMNS = PATCH * PATCHES
SHAPES = ((1, 64), (2, 32), (4, 16), (8, 8))
"""Rows and columns of a patch."""
WIDE = 32
"""Pixels of a row that are stored together well."""
_STAGE_NUMBERS = DEPTH * (ROWS + COLUMNS)
_STAGE = Name("stage")
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def patch_shape(places: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of patches of which the fewest cover a result; of several shapes the widest one.

    A patch is as wide as the result or WIDE pixels, since narrow ones store parts of sectors of memory.
    """
    wide = [shape for shape in SHAPES if shape[1] >= min(places[1], WIDE)]
    return min(wide, key=lambda shape: -(-places[0] // shape[0]) * -(-places[1] // shape[1]))


class _WindowsLowering:
    def __init__(self, task: LoweringTask, seen: ImageWindows) -> None:
        self.task, self.seen = task, seen
        self.one = one = MatmulAnchor(task.graph, task.region)
        self.dtype = one.a.argument.dtype
        self.shape = patch_shape(seen.places)
        self.down, self.across = (-(-all // one) for all, one in zip(seen.places, self.shape, strict=True))
        self.high = -(-one.height // ROWS)
        lies = one.storage(seen.image)
        # Images over one axis have one row each.
        row = lies.strides[1] if len(lies.strides) == 3 else seen.sizes[1] * seen.channels
        image = one.arguments.input(task.graph, task.region, lies.base)
        self.left = TensorMap(
            one.a.argument, one.a.lies.offset, seen.channels, one.height, one.inner, (DEPTH, ROWS), seen.channels
        )
        self.right = TensorMap(
            image,
            lies.offset,
            seen.channels,
            seen.sizes[1],
            lies.strides[-1],
            (DEPTH, self.shape[1]),
            lies.record,
            Planes(seen.sizes[0], row, self.shape[0]),
            N // one.height,
        )
        room = one.arguments.get("maps", UINT8, one.node.id)
        self.ring = OpenRing((self.left, self.right), room, FIELDS, BARRIERS, STAGES, WORKERS)

    def lower(self) -> Kernel:
        """Return the kernel; its work counts rows of the result, all output channels of an image after the other."""
        one = self.one
        scope = Scope(one.names, lanes=LANES)
        images = scope.integer(N // one.height)
        self.patches = scope.integer(images * (self.down * self.across))
        row = scope.narrow(to_int(TILE % self.high) * ROWS)
        self.first = scope.integer(TILE // self.high * PATCHES)
        sums = [scope.let(one.zero(), FLOAT32, 4) for _ in range(COLUMNS // 8)]
        scope.add(self._product(scope, sums, row))
        self._results(row).add(scope, [sums], LID // SUBGROUP * EDGE, 0, lambda _, __, pair: pair)
        size = max(_STAGE_NUMBERS * STAGES // 2, ROWS * (COLUMNS + PITCH))
        many = (N // one.height * (self.down * self.across) + (PATCHES - 1)) // PATCHES * self.high
        return Kernel(
            self.task.name,
            self.task.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, size, local=True, alignment=1024),
                Array(BARRIERS, _UINT64, 1, 2 * STAGES, local=True),
                Array(FIELDS, _UINT32, 1, 2 * MAP_BYTES // 4, local=True, alignment=MAP_BYTES),
                self.ring,
                For(TILE, GID, many, GSIZE, tuple(scope.statements)),
            ),
            work="matmul",
            work_group=WORK_GROUP,
            units=one.units,
            lanes=LANES,
            # At least as many tiles as there are.
            tile=(one.height, -(-self.down * self.across // PATCHES) * self.high),
            tensor=True,
        )

    def _product(self, scope: Scope, sums: list[Var], row: IndexLike) -> RingLoop:
        seen = self.seen
        begin = _STAGE * _STAGE_NUMBERS
        right = begin + ROWS * DEPTH
        slices = -(-seen.channels // DEPTH)
        place, channel = STEP // slices, STEP % slices * DEPTH
        down, across = place // seen.kernel[1] * seen.dilation[0], place % seen.kernel[1] * seen.dilation[1]
        copies = [BoxCopy(self.left, begin, channel, row, place)]
        for part in range(PATCHES):
            # Patches behind the last one are of an image that is not there, and never stored.
            image, y, x = (scope.integer(index) for index in self._place(scope.integer(self.first + part)))
            copies.append(
                BoxCopy(
                    self.right,
                    right + part * (DEPTH * PATCH),
                    channel,
                    x + across,
                    image,
                    y + down,
                )
            )
        own = begin + RING_GROUP * (64 * DEPTH)
        work = GroupMultiply(tuple(sums), TILES, own, right, True, DEPTH, self.dtype)
        steps = seen.kernel[0] * seen.kernel[1] * slices
        body = (AwaitStage(self.ring, STEP, _STAGE), work, FreeStage(self.ring, _STAGE))
        return RingLoop(self.ring, TILES, STEP, _STAGE, steps, (tuple(copies),), (For(STEP, 0, steps, 1, body),))

    def _place(self, patch: IndexLike) -> tuple[IndexLike, IndexLike, IndexLike]:
        """Return the image of a patch, and its first row and column in the result."""
        within = patch % (self.down * self.across)
        rows, columns = self.shape
        return patch // (self.down * self.across), within // self.across * rows, within % self.across * columns

    def _results(self, top: IndexLike) -> Results:
        one, (_, columns) = self.one, self.shape
        height, width = self.seen.places

        def pixel(column: IndexLike) -> tuple[IndexLike, IndexLike, IndexLike, IndexLike]:
            """Return the patch of a column of the tile, its image, and row and column of the pixel in the result."""
            patch = self.first + column // PATCH
            image, y, x = self._place(patch)
            return patch, image, y + column % PATCH // columns, x + column % columns

        def exists(row: IndexLike, column: IndexLike) -> ConditionLike:
            patch, _, y, x = pixel(column)
            return all_of(top + row < one.height, patch < self.patches, y < height, x < width)

        def store(scope: Scope, row: IndexLike, column: IndexLike, made: Var) -> None:
            _, image, y, x = pixel(column)
            at = scope.integer(x)
            count = None if width % LANES == 0 else scope.integer(index_min(LANES, width - at))
            number = scope.integer(image * one.height + top + row)
            one.store(scope, one.row(scope, number), scope.integer(y * width + at), count, made)

        return Results(ROWS, COLUMNS, WORK_GROUP, store, exists, workers=WORKERS)


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
