"""Grids of chunks: which of them hold a record, and which part of a chunk lies in the array."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from flowcompute.imports import dataclass


@dataclass(frozen=True)
class ChunkGrid:
    """An array in chunks of one shape. Those at its edges may reach beyond it.

    Attributes:
        shape: of the array; axis 0 counts records.
        chunk: of a chunk, with as many axes; each size at least 1.
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]

    @property
    def records(self) -> int:
        """Records of a row of chunks."""
        return self.chunk[0]

    @property
    def chunk_numbers(self) -> int:
        """Numbers of a chunk."""
        return math.prod(self.chunk)

    @property
    def across(self) -> tuple[int, ...]:
        """Chunks of a row, along each axis of the items."""
        return tuple(-(-size // part) for size, part in zip(self.shape[1:], self.chunk[1:], strict=True))

    @property
    def is_whole(self) -> bool:
        """True where each chunk holds whole items, so that it lies in memory as its records do."""
        return self.chunk[1:] == self.shape[1:]

    def row(self, number: int) -> Iterator[tuple[int, ...]]:
        """Yield the chunks of a row, by their indices."""
        for rest in itertools.product(*map(range, self.across)):
            yield (number, *rest)

    def within(self, index: tuple[int, ...]) -> tuple[slice, ...]:
        """Return the part of a chunk that lies in the array."""
        return tuple(
            slice(0, min(part, size - i * part)) for i, part, size in zip(index, self.chunk, self.shape, strict=True)
        )

    def items_of(self, index: tuple[int, ...]) -> tuple[slice, ...]:
        """Return which part of the items of its row a chunk is."""
        sizes = zip(index[1:], self.chunk[1:], self.shape[1:], strict=True)
        return tuple(slice(i * part, min((i + 1) * part, size)) for i, part, size in sizes)
