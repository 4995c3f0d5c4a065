"""Who does what of attention on a GPU: queries and keys of a work-item, and what lies in local memory."""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.lower.attention.attention_anchor import KEYS, LANES, AttentionAnchor
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob

VECTOR_BYTES = 16
"""What one instruction reads from local memory for a work-item."""
MOST_QUERIES = 8
"""Of a work-item: more of their sums do not fit into its registers."""
MOST_DEPTH = 32
KNOBS = FormKnobs(gpu=(Knob("work_group", (128, 256)), Knob("block_rows", (16, 32, 64, 128))))
MULTIPLICATIONS = 1024
"""What one turn of a loop over a slab is to have at least, beside which its own instructions are few."""


def pitch_of(numbers: int, vector: int) -> int:
    """Numbers from a line of local memory to the next: an odd number of vectors, so that eight lines use all banks."""
    return -(-numbers // (2 * vector)) * 2 * vector + vector


@dataclass(frozen=True)
class Shape:
    """Of a work-group.

    Attributes:
        queries: of a work-item.
        down, across: rows of work-items, which share queries, and work-items in a row, which share keys and columns.
        vector: numbers that are read from local memory at once.
        size: numbers of a query and a key, in whole vectors.
        depth: of them in a slab of keys.
        value_depth: values in a slab of values.
        wide, parts: columns of a value that a work-item has side by side, and how often.
        resident: whether all of its queries lie in local memory all the time; else they come with the keys.
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

    @property
    def rows(self) -> int:
        """Queries of the work-group."""
        return self.queries * self.down

    @property
    def group(self) -> int:
        """Work-items."""
        return self.down * self.across

    @property
    def keys(self) -> int:
        """Keys of a tile that a work-item has."""
        return KEYS // self.across

    @property
    def classes(self) -> int:
        """Classes of keys of which a work-item has the sums."""
        return LANES // self.across

    @property
    def spread(self) -> int:
        """Columns that the work-items of a row have together."""
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
        """From a key of a slab to the next."""
        return pitch_of(self.depth, self.vector)

    @property
    def query_pitch(self) -> int:
        """From a query to the next."""
        return pitch_of(self.size if self.resident else self.depth, self.vector)

    @property
    def weight_pitch(self) -> int:
        """From the weights of a key to those of the next."""
        return self.rows + 4

    @property
    def slot(self) -> int:
        """Numbers of a slab: of keys, and of queries unless they are resident, or of values."""
        keys = KEYS * self.pitch + (0 if self.resident else self.rows * self.query_pitch)
        return max(keys if self.size else 0, self.value_depth * self.spread)

    @property
    def numbers(self) -> int:
        """Numbers in local memory: queries, two slabs, weights, and what work-items of a row exchange."""
        queries = self.rows * self.query_pitch if self.resident else 0
        return queries + 2 * self.slot + KEYS * self.weight_pitch + self.rows * LANES

    @property
    def unrolled(self) -> tuple[int, int]:
        """How many turns of the loops over keys' numbers and over values are written out."""
        scores = self.queries * self.keys * self.vector
        sums = self.queries * self.wide * self.parts
        return max(1, MULTIPLICATIONS // scores), max(1, MULTIPLICATIONS // sums)


def choose_shape(one: AttentionAnchor, style: KernelStyle) -> Shape:
    """As wanted, else a block not much larger than there are queries; with resident queries where they fit."""
    itemsize = one.dtype.itemsize
    most = 64 if itemsize <= 4 else 32
    rows = 16 if one.queries <= 16 and itemsize <= 4 else 32 if one.queries <= 32 else most
    if rows == 64 and one.columns <= 64 and one.block_count(128) >= style.capabilities.units:
        rows = 128
    group = 128 if rows > 32 and one.columns <= 128 else 256
    knobs = style.settled(KNOBS, work_group=group, block_rows=rows)
    group, rows = knobs.work_group or group, min(knobs.block_rows or rows, 2 * most)
    # Half the device's memory leaves room for two work-groups; 48 KiB have all.
    limit = max(48 << 10, style.capabilities.local_bytes // 2)
    for height in (rows, most, most // 2):
        for resident in (True, False):
            for depth in (MOST_DEPTH, 16, 8, 4, 2):
                shape = _shape(one, group, min(rows, height), depth, resident=resident)
                if shape is not None and shape.numbers * itemsize <= limit:
                    return shape
    raise AssertionError("the smallest shape fits")


def _shape(one: AttentionAnchor, group: int, rows: int, depth: int, *, resident: bool) -> Shape | None:
    vector = VECTOR_BYTES // one.dtype.itemsize
    size = -(-one.size // vector) * vector
    across = LANES if rows * LANES <= MOST_QUERIES * group else LANES // 2
    if depth < vector or size % depth:
        return None
    wide = 4 if one.columns > 2 * across else 2 if one.columns > across else 1
    parts = -(-one.columns // (across * wide))
    spread = across * wide * parts
    slab = KEYS * pitch_of(depth, vector)
    value_depth = next((deep for deep in (32, 16, 8) if deep * spread <= slab), 4)
    down = group // across
    return Shape(rows // down, down, across, vector, size, depth, value_depth, wide, parts, resident and one.size > 0)
