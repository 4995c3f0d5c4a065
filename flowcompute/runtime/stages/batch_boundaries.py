"""Where the batches of a clock end, when their size may change while they are read."""

from __future__ import annotations


class BatchBoundaries:
    """The ends of the batches of a root clock.

    Several sources of a clock are read each at its own pace, and their batches must fit each other.
    Who reads asks where a batch ends. A new size counts from the furthest end that anybody was told of, so that all are
    told the same. Only used from the trio thread.

    Args:
        items: records in a batch, at most; larger ones have no buffers.
        start: the first record.

    Attributes:
        most_items: as given.
        items: records in a batch from now on.
    """

    def __init__(self, items: int, start: int = 0) -> None:
        self.most_items = items
        self.items = items
        self._parts = [(start, items)]
        self._told = start

    def stop(self, start: int) -> int:
        """Return the record at which the batch ends that begins at `start`; streams may end before that."""
        position = len(self._parts) - 1
        while self._parts[position][0] > start:
            position -= 1
        end = start + self._parts[position][1]
        if position + 1 < len(self._parts):
            end = min(end, self._parts[position + 1][0])
        self._told = max(self._told, end)
        return end

    def change(self, items: int) -> int:
        """Let later batches have another size; gives the record from which on they have."""
        assert 0 < items <= self.most_items, "a batch that is larger than its buffers"
        if items != self.items:
            if self._parts[-1][0] == self._told:
                self._parts.pop()
            self._parts.append((self._told, items))
            self.items = items
        return self._told

    def passed(self, stop: int) -> None:
        """Nobody asks for what begins before `stop` any more."""
        while len(self._parts) > 1 and self._parts[1][0] <= stop:
            del self._parts[0]
