"""Buffers whose size grows with the batch."""

from __future__ import annotations

from flowcompute.imports import dataclass


@dataclass
class BatchBuffers:
    """Buffers of one kind.

    Attributes:
        what: the name shown in plans.
        item_bytes: bytes of one record.
        count: number of buffers.
        clock: the clock whose batches they hold.
        extra_items: records that each buffer holds in addition to a batch.
        grows: whether they hold a batch at all.
    """

    what: str
    item_bytes: int
    count: int
    clock: int
    extra_items: int
    grows: bool = True

    def line(self, batch_sizes: list[int]) -> tuple[str, int]:
        """Return the name and the total bytes for the given batch size of each clock."""
        items = (batch_sizes[self.clock] if self.grows else 0) + self.extra_items
        return f"{self.what} x {self.count}", self.item_bytes * self.count * items
