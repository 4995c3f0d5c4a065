"""Tiling of attention on tensor cores: queries of each sub-group, and the layout of local memory."""

from __future__ import annotations

from dataclasses import replace

from flowcompute.imports import dataclass
from flowcompute.lower.attention.attention_anchor import KEYS, AttentionAnchor
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.matmul import CHUNK_BYTES, EDGE, PITCH, SUBGROUP, TensorTile, lines_along_k
from flowcompute.spec import FLOAT32
from flowcompute.strategy import KernelKnobs

SUBGROUPS = 4
FEW = 64
"""Number of queries up to which a sub-group takes 16 of them."""
WIDE = 128
"""Length of a query or value beyond which a sub-group takes 16 queries, too: a work-item has only 255 registers."""
STAGES = 2
"""Tiles of keys, and of values, in local memory."""
KNOBS = FormKnobs(gpu=(Knob("work_group", (128, 256)), Knob("block_rows", (64, 128))))


@dataclass(frozen=True)
class TensorShape:
    """Tiling of a work-group.

    Attributes:
        exact: whether tensor cores multiply the operands without splitting them into terms.
        split: whether sub-groups take different keys for the same queries. The number of sub-groups is then
            part of the order of summation.
        adjustable: whether knobs choose the number of sub-groups and rows.
        rows: queries of all sub-groups; a query that several sub-groups have counts several times.
        edges: blocks of 16 queries that a sub-group has.
        group: work-items.
        step: numbers of k in one multiplication.
        parts: blocks of 16 keys that a sub-group takes of a tile.
        tiles: queries, keys and values in local memory.
        local_bytes: bytes of the tiles, or of the results that replace them.
    """

    exact: bool
    split: bool
    adjustable: bool
    rows: int
    edges: int
    group: int
    step: int
    parts: int
    tiles: tuple[TensorTile, TensorTile, TensorTile]
    local_bytes: int

    @property
    def knobs(self) -> KernelKnobs:
        """Knobs that the tiling applies."""
        return KernelKnobs(work_group=self.group, block_rows=self.rows) if self.adjustable else KernelKnobs()


def choose_shape(one: AttentionAnchor, style: KernelStyle) -> TensorShape | None:
    """Choose the tiling, as wanted where registers allow it.

    Return None where the layout of an operand does not suit tensor cores.
    """
    dtype = one.q.argument.dtype
    exact, split = dtype != FLOAT32, one.queries <= EDGE
    few = one.queries <= FEW
    most_edges = 2 if exact and max(one.size, one.columns) <= WIDE else 1
    edges = 1 if few else most_edges
    # Operands that are split into terms take so much local memory that one work-group runs at a time.
    subgroups = SUBGROUPS if exact or few else 2 * SUBGROUPS
    # A tile that a query does not see may change its last bit: the factor of its sums is 2 to the power of a rounding
    # error. Where blocks decide about such tiles, their size is a function of shape alone.
    adjustable = not split and not one.causal
    if adjustable:
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
        adjustable=adjustable,
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
    """Round up to whole lines of 64 bytes (half formats only) or 128 bytes."""
    if itemsize == 2 and numbers <= 32:
        return 32
    line = 128 // itemsize
    return -(-numbers // line) * line
