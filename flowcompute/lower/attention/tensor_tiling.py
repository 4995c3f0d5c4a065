"""How attention on tensor cores is divided: queries among teams, and what lies where in local memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flowcompute.lower.attention.attention_anchor import KEYS, AttentionAnchor
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.matmul import CHUNK_BYTES, EDGE, PITCH, SUBGROUP, TensorTile, lines_along_k
from flowcompute.spec import FLOAT32
from flowcompute.strategy import KernelKnobs

SUBGROUPS = 4
FEW = 64
"""Of so many queries or fewer a team takes 16."""
WIDE = 128
"""Of longer queries or values, too: 255 registers are all there are."""
STAGES = 2
"""Tiles of keys, and of values, in local memory."""
KNOBS = FormKnobs(gpu=(Knob("work_group", (128, 256)), Knob("block_rows", (64, 128))))


@dataclass(frozen=True)
class TensorShape:
    """Of a work-group.

    Attributes:
        exact: whether tensor cores multiply the operands as they are.
        split: whether teams take parts of the keys, and all of them the same queries; their number then is part
            of the order.
        rows: queries of all teams, the same ones counted as often as they are taken.
        edges: 16 queries each that a team has.
        group: work-items.
        step: numbers of k that are multiplied at once.
        parts: 16 keys each of a tile that a team takes.
        tiles: queries, keys and values in local memory.
        local_bytes: of these, and of the results that take their place.
    """

    exact: bool
    split: bool
    rows: int
    edges: int
    group: int
    step: int
    parts: int
    tiles: tuple[TensorTile, TensorTile, TensorTile]
    local_bytes: int

    @property
    def knobs(self) -> KernelKnobs:
        """What was applied of them."""
        return KernelKnobs() if self.split else KernelKnobs(work_group=self.group, block_rows=self.rows)


def choose_shape(one: AttentionAnchor, style: KernelStyle) -> TensorShape | None:
    """The shape, as wanted where there are registers for it; None where operands do not lie as they must."""
    dtype = one.q.argument.dtype
    exact, split = dtype != FLOAT32, one.queries <= EDGE
    few = one.queries <= FEW
    most_edges = 2 if exact and max(one.size, one.columns) <= WIDE else 1
    edges = 1 if few else most_edges
    # What is multiplied in parts takes so much local memory that there is one work-group at a time.
    subgroups = SUBGROUPS if exact or few else 2 * SUBGROUPS
    if not split:
        rows = subgroups * edges * EDGE
        knobs = style.settled(KNOBS, work_group=subgroups * SUBGROUP, block_rows=rows)
        subgroups = (knobs.work_group or subgroups * SUBGROUP) // SUBGROUP
        edges = min(max((knobs.block_rows or rows) // (subgroups * EDGE), 1), most_edges)
    rows = subgroups * edges * EDGE
    along = (
        lines_along_k(one.q.columns, one.q.rows),
        lines_along_k(one.k.columns, one.k.rows),
        lines_along_k(one.v.rows, one.v.columns),
    )
    if None in along or (along[2] and not exact):
        return None
    size, columns = (_whole(numbers, dtype.itemsize) for numbers in (one.size, one.columns))
    tiles, begin = [], 0
    sizes = ((rows, size, 1), (KEYS, size, STAGES), (columns, KEYS, STAGES))
    for position, (along_k, (other, k, stages)) in enumerate(zip(along, sizes, strict=True)):
        lines, width = (other, k) if along_k else (k, other)
        tiles.append(TensorTile(begin, dtype, lines, width, bool(along_k), paired=not exact and position == 2))
        begin += stages * lines * width
    results = rows * (columns + PITCH) * FLOAT32.itemsize
    queries, keys, values = tiles
    return TensorShape(
        exact=exact,
        split=split,
        rows=rows,
        edges=edges,
        group=subgroups * SUBGROUP,
        step=2 * CHUNK_BYTES // dtype.itemsize,
        parts=KEYS // EDGE // (subgroups if split else 1),
        tiles=(queries, keys, values),
        local_bytes=max(begin * dtype.itemsize, results),
    )


def fitting_shape(one: AttentionAnchor, style: KernelStyle) -> TensorShape | None:
    """Return the shape as wanted, or by default where that is too much for local memory; None where none fits."""
    # What is wanted may be too much, and is no reason for another order.
    for own in (style, replace(style, wanted=KernelKnobs())):
        shape = choose_shape(one, own)
        if (
            shape is not None
            and shape.local_bytes + 2 * shape.rows * FLOAT32.itemsize <= style.capabilities.local_bytes
        ):
            return shape
    return None


def _whole(numbers: int, itemsize: int) -> int:
    """As many as fill lines of 64 bytes (of half formats only) or of 128."""
    if itemsize == 2 and numbers <= 32:
        return 32
    line = 128 // itemsize
    return -(-numbers // line) * line
