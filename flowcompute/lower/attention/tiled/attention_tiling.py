"""Tiling of attention on a GPU: queries and keys of a work-item, and the layout of local memory."""

from __future__ import annotations

from flowcompute.imports import dataclass
from flowcompute.lower.attention.attention_anchor import KEYS, LANES, AttentionAnchor
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob

VECTOR_BYTES = 16
"""Bytes that a work-item reads from local memory with one instruction."""
FEW_QUERIES = (8, 16)
"""Queries of a work-group that has few of them, one a work-item. With 4, each of 64 work-items would load as much as
two do."""
MOST_QUERIES = 8
"""Most queries of a work-item; the sums of more do not fit into its registers."""
MOST_DEPTH = 32
LOCAL_BYTES = 48 << 10
"""Local memory that every GPU has."""
KNOBS = FormKnobs(gpu=(Knob("work_group", (128, 256)), Knob("block_rows", (16, 32, 64, 128))))
MULTIPLICATIONS = 1024
"""Fewest multiplications in one iteration of a loop over a slab, so that loop overhead is small beside them."""


def pitch_of(numbers: int, vector: int) -> int:
    """Return the pitch of lines in local memory: an odd number of vectors, so that eight lines use all banks."""
    return -(-numbers // (2 * vector)) * 2 * vector + vector


@dataclass(frozen=True)
class Shape:
    """Tiling of a work-group.

    Attributes:
        queries: queries of a work-item.
        down: rows of work-items; the work-items of a row share queries.
        across: work-items in a row; the work-items of a column share keys and result columns.
        vector: numbers of one read from local memory.
        size: numbers of a query and a key, in whole vectors.
        depth: numbers of each key in a slab of keys.
        value_depth: values in a slab of values.
        wide: adjacent result columns of a work-item.
        parts: groups of `wide` columns that a work-item has.
        resident: whether all its queries stay in local memory; else they are loaded with the keys.
        slabs: slabs in local memory: two, or one that is as large as both.
    """

    queries: int
    down: int
    across: int
    vector: int
    size: int
    depth: int
    value_depth: int
    wide: int
    parts: int
    resident: bool
    slabs: int = 2

    @property
    def rows(self) -> int:
        """Queries of the work-group."""
        return self.queries * self.down

    @property
    def group(self) -> int:
        """Work-items of the work-group."""
        return self.down * self.across

    @property
    def keys(self) -> int:
        """Keys of a tile per work-item."""
        return KEYS // self.across

    @property
    def classes(self) -> int:
        """Classes of keys whose weights a work-item sums."""
        return LANES // self.across

    @property
    def spread(self) -> int:
        """Columns that the work-items of a row cover together."""
        return self.across * self.wide * self.parts

    @property
    def steps(self) -> int:
        """Slabs of keys in a tile."""
        return self.size // self.depth if self.size else 0

    @property
    def value_steps(self) -> int:
        """Slabs of values in a tile."""
        return KEYS // self.value_depth

    @property
    def pitch(self) -> int:
        """Pitch from one key of a slab to the next."""
        return pitch_of(self.depth, self.vector)

    @property
    def query_pitch(self) -> int:
        """Pitch from one query to the next."""
        return pitch_of(self.size if self.resident else self.depth, self.vector)

    @property
    def weight_pitch(self) -> int:
        """Pitch from the weights of one key to those of the next."""
        return self.rows + 4

    @property
    def slot(self) -> int:
        """Size of a slab in numbers: of keys, with queries unless these are resident, or of values."""
        keys = KEYS * self.pitch + (0 if self.resident else self.rows * self.query_pitch)
        return max(keys if self.size else 0, self.value_depth * self.spread)

    @property
    def tiles(self) -> int:
        """Size in numbers of resident queries and slabs."""
        queries = self.rows * self.query_pitch if self.resident else 0
        return queries + self.slabs * self.slot

    @property
    def numbers(self) -> int:
        """Size of local memory in numbers: tiles, weights, and exchange between work-items of a row."""
        return self.tiles + KEYS * self.weight_pitch + self.rows * LANES

    @property
    def unrolled(self) -> tuple[int, int]:
        """Unroll factors of the loop over a key's numbers and of the loop over values."""
        scores = self.queries * self.keys * self.vector
        sums = self.queries * self.wide * self.parts
        return max(1, MULTIPLICATIONS // scores), max(1, MULTIPLICATIONS // sums)


def choose_shape(one: AttentionAnchor, style: KernelStyle) -> Shape:
    """Choose the tiling: the wanted knobs, else a block not much larger than the queries.

    Queries are resident where they fit.
    """
    itemsize = one.dtype.itemsize
    most = 64 if itemsize <= 4 else 32
    rows = 16 if one.queries <= 16 and itemsize <= 4 else 32 if one.queries <= 32 else most
    if rows == 64 and one.columns <= 64 and one.block_count(128) >= style.capabilities.units:
        rows = 128
    group = 128 if rows > 32 and one.columns <= 128 else 256
    knobs = style.settled(KNOBS, work_group=group, block_rows=rows)
    group, rows = knobs.work_group or group, min(knobs.block_rows or rows, 2 * most)
    # Half of the local memory leaves room for two work-groups.
    limit = max(LOCAL_BYTES, style.capabilities.local_bytes // 2)
    for height in (rows, most, most // 2):
        for resident in (True, False):
            for depth in (MOST_DEPTH, 16, 8, 4, 2):
                shape = _shape(one, group, min(rows, height), depth, resident=resident)
                if shape is not None and shape.numbers * itemsize <= limit:
                    return shape
    raise AssertionError("the smallest shape fits")


def few_shape(one: AttentionAnchor, queries: int) -> Shape | None:
    """Choose the tiling of a work-group that has no more than so many queries; None if 16 are too few.

    There is one such work-group for each head of keys. It waits for memory most of its time, so what is on its way
    counts: a slab is as large as local memory allows.
    """
    rows = next((rows for rows in FEW_QUERIES if rows >= queries), None)
    if rows is None:
        return None
    vector = VECTOR_BYTES // one.dtype.itemsize
    for depth in (-(-one.size // vector) * vector, 128, 64, MOST_DEPTH, 16, 8, 4, 2):
        shape = _shape(one, rows * LANES, rows, depth, resident=True, slabs=1)
        if shape is not None and shape.numbers * one.dtype.itemsize <= LOCAL_BYTES:
            return shape
    return None


def _shape(one: AttentionAnchor, group: int, rows: int, depth: int, *, resident: bool, slabs: int = 2) -> Shape | None:
    vector = VECTOR_BYTES // one.dtype.itemsize
    size = -(-one.size // vector) * vector
    across = LANES if rows * LANES <= MOST_QUERIES * group else LANES // 2
    if depth < vector or size % depth or (one.gate and (one.size - one.gate) % depth):
        return None
    wide = 4 if one.columns > 2 * across else 2 if one.columns > across else 1
    parts = -(-one.columns // (across * wide))
    spread = across * wide * parts
    slab = KEYS * pitch_of(depth, vector)
    value_depth = next((deep for deep in (64, 32, 16, 8)[slabs - 1 :] if deep * spread <= slab), 4)
    down = group // across
    resident = resident and one.size > 0
    return Shape(rows // down, down, across, vector, size, depth, value_depth, wide, parts, resident, slabs)
