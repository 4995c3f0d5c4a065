"""Slots of device buffers for batches in flight between a host and a discrete device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import numpy as np

from flowcompute.errors import DeviceFullError
from flowcompute.gpu.memory.kernel_memory import Memory
from flowcompute.schedule.memory import TransferPlan


class Slots:
    """Slots of buffers for the batches that a discrete device has in flight.

    A batch has a slot from `upload` to `download`, if there was room for it. The device works on it between
    `take_up` and `let_go`. Each batch may be in a thread of its own, but the device works on one at a time.

    Args:
        memory: of the device.
        transfer_plan: the transfers, and when they are made.
        count: number of slots.
        told: makes errors inside name the element of a value.
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
        """Begin to upload the sources that kernels read, and return their bytes.

        Without room the batch gets no slot.
        """
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
        """Begin to work on a batch once its uploads have arrived. Return False if there was no room for it."""
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
        """End the work on the present batch."""
        self._leaving = None

    def holds(self, value: int) -> bool:
        """Check whether a value has a buffer in the slot of the present batch."""
        return self._leaving is not None and value in self._moving

    def is_late(self, value: int) -> bool:
        """Check whether a value of the present batch is downloaded later."""
        return self._leaving is not None and value in self._late

    def leave(self, value: int, array: np.ndarray) -> None:
        """Download a late value of the present batch into `array`, later."""
        assert self._leaving is not None
        (self._handed[self._seq] if value in self._transfer_plan.handed else self._leaving)[value] = array

    def hand_over(self, seq: int) -> None:
        """Download the values of a batch that other devices need."""
        arrays = self._handed.get(seq, {})
        while arrays:
            i, array = arrays.popitem()
            with self._told(i):
                self._memory.download(i, array, seq % self._count)

    def receive(self, seq: int, made: Mapping[int, np.ndarray]) -> None:
        """Begin to upload values of a batch that other devices have made. The arrays must not change until its end.

        Raises:
            DeviceFullError: if there is no room.
        """
        for i in self._transfer_plan.received & made.keys():
            if seq in self._taken:
                with self._told(i):
                    self._memory.upload(i, made[i], seq % self._count)

    def leave_of(self, seq: int, value: int, array: np.ndarray) -> None:
        """Download a late value of a batch that the device has worked on into `array`, later."""
        self._taken[seq][value] = array

    def abandon(self, seq: int) -> None:
        """Free the slot of a batch with its contents. Nothing happens where it has none."""
        self._handed.pop(seq, None)
        if self._taken.pop(seq, None) is not None:
            self._memory.drop(seq % self._count)

    def abandon_in_hand(self) -> None:
        """Free the slot of the present batch. None of its values is late from then on."""
        if self._leaving is not None:
            self._leaving.clear()
            self._leaving = None
            self._memory.drop(self._seq % self._count)

    def leaves(self, seq: int) -> bool:
        """Check whether values of a batch are still to be downloaded."""
        return bool(self._taken.get(seq))

    def download(self, seq: int, *, drop: bool) -> int:
        """Download the late values of a batch and return their bytes.

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
