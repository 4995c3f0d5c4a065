"""Buffers that grow with the batch, as the memory plan counts them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class BatchBuffers:
    """Buffers of one kind.

    Attributes:
        what: for people.
        item_bytes: of one record.
        count: how many buffers.
        clock: whose batches lie in them.
        extra_items: records that each holds beside a batch.
    """

    what: str
    item_bytes: int
    count: int
    clock: int
    extra_items: int

    def line(self, rooms: list[int]) -> tuple[str, int]:
        """What it takes, with the batch size of each clock."""
        return f"{self.what} x {self.count}", self.item_bytes * self.count * (rooms[self.clock] + self.extra_items)
