"""A runner whose batches cross a bus: uploaded ahead of the kernels, downloaded behind them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine import RegionRunner
from flowcompute.gpu.memory import Memory, Slots
from flowcompute.schedule.memory import TransferPlan


class TransferringRunner(RegionRunner):
    """A runner with slots for the batches that are on their way. Whoever computes sets memory and slots.

    Attributes:
        _transfer_plan: which values cross, and when.
        _moves: whether batches are uploaded ahead and downloaded later at all.
    """

    _transfer_plan: TransferPlan
    _moves: bool
    _memory: Memory | None = None
    _slots: Slots | None = None

    @property
    def memory(self) -> Memory:
        """The memory of the device, while it is open."""
        assert self._memory is not None
        return self._memory

    @property
    def slots(self) -> Slots:
        """The slots of batches on their way through the device, while it is open."""
        assert self._slots is not None
        return self._slots

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Return pinned memory, where batches are uploaded."""
        return self.memory.room(size_bytes)

    def upload(self, batch: Batch) -> int:
        """Bring the sources that kernels read to the device; where there is no room, each kernel brings its own."""
        return self.slots.upload(batch.seq, batch.arrays)

    def uploads_at_once(self, batch: Batch) -> bool:
        """Tell whether the device reads all of it by itself."""
        return all(self.memory.is_pinned(batch.arrays[i]) for i in self._transfer_plan.ahead)

    def downloads_at_once(self, batch: Batch) -> bool:
        """Tell whether nothing is late."""
        return not self.slots.leaves(batch.seq)

    def take_up(self, batch: Batch, *, drop: bool) -> bool:
        """Go on with what was uploaded of a batch; see `RegionRunner.take_up`."""
        if drop:
            self.slots.abandon(batch.seq)
        return self.slots.take_up(batch.seq) or not self._moves

    def let_go(self) -> None:
        """Leave the batch in hand: what follows belongs to none that was uploaded."""
        self.slots.let_go()

    @property
    def late(self) -> frozenset[int]:
        """Results that are downloaded later; see `RegionRunner.late`."""
        return self._transfer_plan.late if self._moves else frozenset()

    def hand_over(self, batch: Batch) -> None:
        """See `RegionRunner.hand_over`."""
        self.slots.hand_over(batch.seq)

    def receive(self, batch: Batch, made: Mapping[int, np.ndarray]) -> None:
        """See `RegionRunner.receive`."""
        self.slots.receive(batch.seq, made)

    def leave(self, batch: Batch, value: int, array: np.ndarray) -> None:
        """See `RegionRunner.leave`."""
        self.slots.leave_of(batch.seq, value, array)

    def abandon(self, batch: Batch) -> None:
        """See `RegionRunner.abandon`."""
        self.slots.abandon(batch.seq)

    def download(self, batch: Batch, *, drop: bool) -> int:
        """Fetch what destinations take."""
        return self.slots.download(batch.seq, drop=drop)
