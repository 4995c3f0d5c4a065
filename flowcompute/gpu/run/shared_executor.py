"""Several devices of one kind that share the batches of a pass."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine import Made, Pushes, close_all
from flowcompute.errors import DeviceFullError
from flowcompute.gpu.device import Device
from flowcompute.gpu.run.gpu_executor import OpenCLExecutor
from flowcompute.schedule import Clock, ExecutionPlan
from flowcompute.schedule.memory import batches_of_each
from flowcompute.schedule.placement import alignment


@dataclass(frozen=True)
class _Computed:
    """A batch that a device has computed; its results are there, or in `values`."""

    batch: Batch
    values: Mapping[int, np.ndarray]
    pushes: Pushes
    launches: int


class _Share(OpenCLExecutor):
    """One of the devices: computes batches of the root clock, and touches no state."""

    def __init__(
        self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray], device: Device, in_flight: int
    ) -> None:
        super().__init__(plan, pass_index, resident, device)
        self.in_flight = in_flight
        if device.capabilities.host_memory:
            # Computed where it lies.
            self._transfer_plan = replace(self._transfer_plan, ahead=frozenset(), late=frozenset())
        self.full: DeviceFullError | None = None
        self._uploading, self._computing, self._downloading = threading.Lock(), threading.Lock(), threading.Lock()

    def serve(self, owner: OpenCLExecutor, *, tunes: bool) -> None:
        """Work for an executor, once both are open."""
        self.folds, self._adopted, self.log = owner.folds, owner._adopted, owner.log  # noqa: SLF001 - a part of it
        self.tuner = owner.tuner if tunes else None

    def take(self, batch: Batch, slot: int) -> tuple[int, _Computed | None]:
        """Upload and compute a batch in a slot; gives the bytes uploaded, and None where there was no room.

        Several threads may ask. Batches come and go in any order, so each is numbered by its slot.
        """
        mine = replace(batch, seq=slot)
        with self._uploading:
            size = self.upload(mine)
        with self._computing:
            return size, self._compute_ahead(mine)

    def _compute_ahead(self, batch: Batch) -> _Computed | None:
        if not self.slots.take_up(batch.seq):
            return None
        specs = {i: self.nodes[i].spec for i in self._transfer_plan.late}
        # Only their sizes are of use: results are fetched when the destinations' memory is known.
        outputs = {i: np.empty((batch.items, *spec.shape), spec.dtype) for i, spec in specs.items()}
        # What folds will be given must outlast the next batch.
        self._between.forget()
        self._blocks.forget()
        before = self.launches
        try:
            clock = self.one_pass.clocks[batch.clock]
            values = self.run_steps(clock, batch.start, batch.items, dict(batch.arrays), outputs)
        except DeviceFullError as error:
            self.make_room()
            self.slots.abandon(batch.seq)
            self.full = error
            return None
        finally:
            self.slots.let_go()
        pushes, self._pushes = self._pushes, []
        return _Computed(batch, values, pushes, self.launches - before)

    def leave_result(self, one: _Computed, value: int, array: np.ndarray) -> None:
        """Bring a result of a batch into an array, whose memory may change until it is downloaded, or at once."""
        if value in self._transfer_plan.late:
            self.slots.leave_of(one.batch.seq, value, array)
        else:
            np.copyto(array, one.values[value])

    def bring(self, one: _Computed) -> int:
        """Download what was left; gives the bytes. Several threads."""
        with self._downloading:
            return self.download(one.batch)


class SharedExecutor(OpenCLExecutor):
    """Runs a pass whose batches know nothing of each other on several devices.

    Whichever device is free takes the next batch. What kernels make of folds' blocks is added up in record order,
    and derived clocks, host folds and resident values are computed on the first device, so that results have the
    bits of one device.

    Args:
        plan, pass_index, resident: as for `OpenCLExecutor`.
        devices: of one kind.
    """

    def __init__(
        self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray], devices: Sequence[Device]
    ) -> None:
        super().__init__(plan, pass_index, resident, devices[0])
        each = batches_of_each(plan.depth, plan.backend.capabilities)
        self.lanes = self.in_flight = plan.depth
        self._shares = [_Share(plan, pass_index, resident, device, each) for device in devices]
        # At least as many as are in flight: whoever asks finds one.
        self._free: queue.SimpleQueue[tuple[_Share, int]] = queue.SimpleQueue()
        for slot in range(each):
            for share in self._shares:
                self._free.put((share, slot))
        self._taken: dict[int, tuple[_Share, int, _Computed | None]] = {}
        self._given: tuple[_Share, _Computed] | None = None
        self._alignment = alignment(self.one_pass)

    def open(self) -> None:
        """See `OpenCLExecutor.open`; on each device."""
        super().open()
        for share in self._shares:
            share.open()
        self._employ()

    def reset(self) -> None:
        """See `StepExecutor.reset`."""
        super().reset()
        self._employ()

    def _employ(self) -> None:
        for position, share in enumerate(self._shares):
            share.serve(self, tunes=position == 0)

    def upload(self, batch: Batch) -> int:
        """Let a device that is free upload and compute a batch, unless it begins or ends inside a block of a fold."""
        if self._is_left(batch):
            return 0
        share, slot = self._free.get()
        size, computed = share.take(batch, slot)
        self._taken[batch.seq] = (share, slot, computed)
        return size

    def _is_left(self, batch: Batch) -> bool:
        """Whether a batch is left to `process`."""
        return self.is_sliced or any(
            at % self._alignment and at != self.one_pass.length for at in (batch.start, batch.stop)
        )

    def uploads_at_once(self, batch: Batch) -> bool:
        """Devices compute in `upload`, each in the thread that has its batch, wherever that lies."""
        return self._is_left(batch)

    def downloads_at_once(self, batch: Batch) -> bool:
        """Nothing is late of a batch that no device has taken."""
        return batch.seq not in self._taken

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Made:
        """Go on with what a device has computed, or compute it here."""
        share, _, computed = self._taken.get(batch.seq, (None, 0, None))
        self._given = None if share is None or computed is None else (share, computed)
        if share is not None and share.full is not None:
            # Keys of clocks are not negative.
            devices = self.plan.backend.capabilities.name
            note = f"one of {devices} had no room for a batch: the first computes what finds none"
            self.note(-1, note, share.full)
        try:
            return super().process(batch, outputs)
        finally:
            self._given = None

    def _run_batch(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        if self._given is None or not clock.is_root or items != self._given[1].batch.items:
            return super()._run_batch(clock, start, items, arrays, outputs)
        share, computed = self._given
        for value, array in outputs.items():
            share.leave_result(computed, value, array)
        self.settle(clock, start, items, computed.pushes)
        self.launches += computed.launches
        return computed.values

    def download(self, batch: Batch) -> int:
        """Fetch what is still on the device that has computed a batch."""
        if batch.seq not in self._taken:
            return 0
        share, slot, computed = self._taken.pop(batch.seq)
        size = 0 if computed is None else share.bring(computed)
        self._free.put((share, slot))
        return size

    def step_seconds(self) -> dict[str, tuple[int, float]]:
        """Batches, and the seconds of all devices, by step."""
        found = super().step_seconds()
        for share in self._shares:
            for name, (_, seconds) in share.step_seconds().items():
                batches, spent = found[name]
                found[name] = (batches, spent + seconds)
        return found

    def close(self) -> None:
        """See `OpenCLExecutor.close`; all devices are told, also where one fails."""
        try:
            close_all(self._shares)
        finally:
            super().close()
