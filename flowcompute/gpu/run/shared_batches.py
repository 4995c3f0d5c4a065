"""Several devices of one kind that share the batches of a pass."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine import (
    Arrays,
    BatchesAhead,
    BatchSlice,
    KernelTuner,
    PassState,
    Runners,
    StepRunner,
    close_all,
)
from flowcompute.errors import DeviceFullError
from flowcompute.gpu.device import Device
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.schedule import Clock, LaunchLog


@dataclass(frozen=True)
class _Computed:
    """A batch that a device has computed; its results are there, or in `taken`."""

    batch: Batch
    taken: BatchSlice


class _Share:
    """One of the devices: computes batches of the root clock, and touches no state.

    Args:
        state: of the pass.
        device: what computes.
        beside: runs on the first device what is computed in record order.

    Attributes:
        runner: runs its regions.
        steps: runs its steps.
        full: why there was no room for a batch.
    """

    def __init__(self, state: PassState, device: Device, beside: OpenCLRunner) -> None:
        self.runner = OpenCLRunner(state, device, beside=beside)
        self._runners = Runners([self.runner])
        self._between = state.intermediates()
        self.steps = StepRunner(state, self._runners, self._between.array)
        self.full: DeviceFullError | None = None
        self._state = state
        self._uploading, self._computing, self._downloading = threading.Lock(), threading.Lock(), threading.Lock()

    def open(self) -> None:
        """Get the device ready, and compute whole values there, too."""
        self._runners.attach(None, None)
        self.steps.run_resident(self._state.one_pass.before)

    def take(self, batch: Batch, slot: int) -> tuple[int, _Computed | None]:
        """Upload and compute a batch in a slot; gives the bytes uploaded, and None where there was no room.

        Several threads may ask. Batches come and go in any order, so each is numbered by its slot.
        """
        mine = replace(batch, seq=slot)
        with self._uploading:
            size = self.runner.upload(mine)
        with self._computing:
            return size, self._compute_ahead(mine)

    def _compute_ahead(self, batch: Batch) -> _Computed | None:
        runner, clock = self.runner, self._state.one_pass.clocks[batch.clock]
        if not runner.take_up(batch, drop=False):
            return None
        specs = {i: self._state.nodes[i].spec for i in runner.late}
        # Only their sizes are of use: results are fetched when the destinations' memory is known.
        outputs = {i: np.empty((batch.items, *spec.shape), spec.dtype) for i, spec in specs.items()}
        # What folds will be given must outlast the next batch.
        self._between.forget()
        runner.keep_blocks()
        try:
            taken = self.steps.begin(clock, batch.start, batch.items, dict(batch.arrays), outputs)
            self.steps.go_through(clock.steps, taken, outputs)
            runner.forget_streams()
        except DeviceFullError as error:
            runner.make_room(in_hand=True)
            runner.abandon(batch)
            self.full = error
            return None
        finally:
            runner.let_go()
        return _Computed(batch, taken)

    def leave_result(self, one: _Computed, value: int, array: np.ndarray) -> None:
        """Bring a result of a batch into an array, whose memory may change until it is downloaded, or at once."""
        if value in self.runner.late:
            self.runner.leave(one.batch, value, array)
        else:
            np.copyto(array, one.taken.values[value])

    def bring(self, one: _Computed) -> int:
        """Download what was left; gives the bytes. Several threads may ask."""
        with self._downloading:
            return self.runner.download(one.batch, drop=False)

    def close(self) -> None:
        """Release the device's buffers."""
        self._between.forget()
        self.runner.close()


class SharedBatches(BatchesAhead):
    """Batches that know nothing of each other, computed by several devices of one kind.

    Whichever device is free takes the next batch. What kernels make of folds' blocks is added up in record order,
    and derived clocks, host folds and resident values are computed on the first device, so that results have the
    bits of one device.

    Args:
        state: of the pass.
        runner: runs on the first device what is computed in record order.
        devices: of one kind.
        each: batches in flight on each of them.
    """

    def __init__(self, state: PassState, runner: OpenCLRunner, devices: Sequence[Device]) -> None:
        super().__init__(state)
        self.lanes = self.in_flight = state.plan.depth
        self._shares = [_Share(state, device, runner) for device in devices]
        # At least as many as are in flight: whoever asks finds one.
        self._free: queue.SimpleQueue[tuple[_Share, int]] = queue.SimpleQueue()
        for slot in range(self._shares[0].runner.in_flight):
            for share in self._shares:
                self._free.put((share, slot))
        self._taken: dict[int, tuple[_Share, int, _Computed | None]] = {}
        self._turn: tuple[_Share, _Computed] | None = None

    def open(self, log: LaunchLog | None, tuner: KernelTuner | None) -> None:
        """Get all devices ready; the first one's kernels are tuned."""
        for share in self._shares:
            share.open()
            share.runner.log = log
        self._shares[0].runner.tuner = tuner

    def upload(self, batch: Batch) -> int:
        """Let a device that is free upload and compute a batch, unless it begins or ends inside a block of a fold."""
        if self._is_left(batch):
            return 0
        share, slot = self._free.get()
        size, computed = share.take(batch, slot)
        self._taken[batch.seq] = (share, slot, computed)
        return size

    def _is_left(self, batch: Batch) -> bool:
        """Tell whether a batch is left to be computed in its turn."""
        return self.state.is_sliced or self.cuts_blocks(batch)

    def uploads_at_once(self, batch: Batch) -> bool:
        """Tell whether nothing is done: else devices compute, each in the thread that has its batch."""
        return self._is_left(batch)

    def downloads_at_once(self, batch: Batch) -> bool:
        """Tell whether nothing is late: no device has taken the batch."""
        return batch.seq not in self._taken

    def take_up(self, batch: Batch) -> tuple[str, DeviceFullError] | None:
        """Give a batch its turn; see `BatchesAhead.take_up`."""
        share, _, computed = self._taken.get(batch.seq, (None, 0, None))
        self._turn = None if share is None or computed is None else (share, computed)
        if share is None or share.full is None:
            return None
        devices = self.state.plan.backend.capabilities.name
        return f"one of {devices} had no room for a batch: the first computes what finds none", share.full

    def compute(
        self,
        clock: Clock,  # noqa: ARG002 - all steps are done
        start: int,  # noqa: ARG002
        items: int,
        arrays: Arrays,  # noqa: ARG002
        outputs: Mapping[int, np.ndarray],
        offset: int,  # noqa: ARG002
    ) -> BatchSlice | None:
        """Take over what a device has computed; see `BatchesAhead.compute`."""
        if self._turn is None or items != self._turn[1].batch.items:
            return None
        share, computed = self._turn
        for value, array in outputs.items():
            share.leave_result(computed, value, array)
        return computed.taken

    def let_go(self) -> None:
        """End the turn of a batch."""
        self._turn = None

    def download(self, batch: Batch) -> int:
        """Fetch what is still on the device that has computed a batch."""
        if batch.seq not in self._taken:
            return 0
        share, slot, computed = self._taken.pop(batch.seq)
        size = 0 if computed is None else share.bring(computed)
        self._free.put((share, slot))
        return size

    def seconds(self) -> Iterator[Mapping[str, float]]:
        """Give the seconds of all devices."""
        for share in self._shares:
            yield share.steps.seconds

    def close(self) -> None:
        """Close all devices, also where one fails."""
        close_all(self._shares)
