"""Batches on their way through a device across a bus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import numpy as np

from flowcompute.errors import DeviceFullError
from flowcompute.gpu.memory.device_memory import Memory
from flowcompute.schedule.memory import TransferPlan


class Slots:
    """What has come of each batch, and what is still to leave.

    A batch has a slot of buffers from `upload` to `download`, where there was room for it. Between `take_up` and
    `let_go` the device works on it. Each batch may be in a thread of its own; the device works on one at a time.

    Args:
        memory: of the device.
        transfer_plan: what crosses the bus, and when.
        count: how many there are.
        told: errors inside name the element of a value.
    """

    def __init__(
        self,
        memory: Memory,
        transfer_plan: TransferPlan,
        count: int,
        told: Callable[[int], AbstractContextManager[None]],
    ) -> None:
        self._memory = memory
        self._transfer_plan = transfer_plan
        self._late, self._moving = transfer_plan.late | transfer_plan.handed, transfer_plan.moving
        self._count = count
        self._told = told
        self._taken: dict[int, dict[int, np.ndarray]] = {}
        self._handed: dict[int, dict[int, np.ndarray]] = {}
        self._leaving: dict[int, np.ndarray] | None = None
        self._seq = 0

    def upload(self, seq: int, arrays: Mapping[int, np.ndarray]) -> int:
        """Begin to bring the sources that kernels read; gives the bytes. Where there is no room it has no slot."""
        slot = seq % self._count
        try:
            self._memory.expect(slot)
            for i in self._transfer_plan.ahead:
                with self._told(i):
                    self._memory.upload(i, arrays[i], slot)
        except DeviceFullError:
            self._memory.drop(slot)
            return 0
        self._taken[seq], self._handed[seq] = {}, {}
        return sum(arrays[i].nbytes for i in self._transfer_plan.ahead)

    def take_up(self, seq: int) -> bool:
        """Work on a batch, once what is uploaded of it has arrived; False where there was no room for it."""
        self._leaving, self._seq = None, seq
        if seq not in self._taken:
            return False
        try:
            for i in (*self._transfer_plan.ahead, *self._transfer_plan.received):
                with self._told(i):
                    self._memory.arrive(i, seq % self._count)
        except DeviceFullError:
            self.abandon(seq)
            return False
        self._memory.begin(seq % self._count)
        self._leaving = self._taken[seq]
        return True

    def let_go(self) -> None:
        """What follows belongs to no batch that has a slot."""
        self._leaving = None

    def holds(self, value: int) -> bool:
        """Whether a value has a buffer in the slot of the batch in hand."""
        return self._leaving is not None and value in self._moving

    def is_late(self, value: int) -> bool:
        """Whether something that is made of the batch in hand is to be downloaded later."""
        return self._leaving is not None and value in self._late

    def leave(self, value: int, array: np.ndarray) -> None:
        """Download something late of the batch in hand into an array, later."""
        assert self._leaving is not None
        (self._handed[self._seq] if value in self._transfer_plan.handed else self._leaving)[value] = array

    def hand_over(self, seq: int) -> None:
        """Download what others need of a batch."""
        arrays = self._handed.get(seq, {})
        while arrays:
            i, array = arrays.popitem()
            with self._told(i):
                self._memory.download(i, array, seq % self._count)

    def receive(self, seq: int, made: Mapping[int, np.ndarray]) -> None:
        """Begin to bring what others have made of a batch; the arrays stay as they are until it is over.

        Raises:
            DeviceFullError: if there is no room.
        """
        for i in self._transfer_plan.received & made.keys():
            if seq in self._taken:
                with self._told(i):
                    self._memory.upload(i, made[i], seq % self._count)

    def leave_of(self, seq: int, value: int, array: np.ndarray) -> None:
        """As `leave`, of a batch that the device has worked on."""
        self._taken[seq][value] = array

    def abandon(self, seq: int) -> None:
        """Give the slot of a batch back, with all that lies there; harmless where it has none."""
        self._handed.pop(seq, None)
        if self._taken.pop(seq, None) is not None:
            self._memory.drop(seq % self._count)

    def abandon_in_hand(self) -> None:
        """Give the slot of the batch in hand back; nothing of it is late any more."""
        if self._leaving is not None:
            self._leaving.clear()
            self._leaving = None
            self._memory.drop(self._seq % self._count)

    def leaves(self, seq: int) -> bool:
        """Whether something of a batch is still to be downloaded."""
        return bool(self._taken.get(seq))

    def download(self, seq: int, *, drop: bool) -> int:
        """Fetch what is still to leave; gives the bytes.

        Args:
            seq: of the batch.
            drop: whether to give the slot's buffers back to the device.
        """
        arrays, slot = self._taken.pop(seq, {}), seq % self._count
        self._handed.pop(seq, None)
        for i, array in arrays.items():
            with self._told(i):
                self._memory.download(i, array, slot)
        if drop:
            self._memory.drop(slot)
        return sum(array.nbytes for array in arrays.values())
