"""Several devices of one kind that share the batches of a pass."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine import (
    Arrays,
    BatchesAhead,
    BatchSlice,
    InFlightBatch,
    KernelTuner,
    PassState,
    Runners,
    close_all,
)
from flowcompute.errors import DeviceFullError
from flowcompute.gpu.device import Device
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.schedule import Clock, LaunchLog, Step
from flowcompute.schedule.placement import PipelineStage


class _Share:
    """One of the devices, with the batches that are on their way through it.

    Args:
        state: of the pass.
        device: what computes.
        devices: how many there are.
        beside: runs on the first device what is computed in record order.

    Attributes:
        runner: runs its regions.
        batches: by slot.
    """

    def __init__(self, state: PassState, device: Device, devices: int, beside: OpenCLRunner) -> None:
        self.runner = OpenCLRunner(state, device, beside=beside)
        runners = self._runners = Runners([self.runner], several_ask=True)
        root = next(clock for clock in state.one_pass.clocks if clock.is_root)
        stages = [PipelineStage(self.runner.placement, root.steps)]
        in_flight = self.runner.in_flight
        self.batches = [InFlightBatch(state, runners, stages, in_flight * devices) for _ in range(in_flight)]
        self._before = state.one_pass.before
        self._uploading, self._downloading = threading.Lock(), threading.Lock()

    def open(self) -> None:
        """Get the device ready, and compute whole values there, too."""
        self._runners.attach(None, None)
        self.batches[0].steps.run_resident(self._before)

    def begin_again(self, changing: Sequence[Step]) -> None:
        """Forget the values that are given anew, and compute again there what is made of them."""
        self._runners.forget_resident()
        self.batches[0].steps.run_resident(changing)

    def take(self, batch: Batch, slot: int) -> int:
        """Upload and compute a batch in a slot; gives the bytes uploaded. Several threads may ask."""
        with self._uploading:
            size = self.runner.upload(_in_slot(batch, slot))
        self.batches[slot].compute_ahead(_in_slot(batch, slot))
        return size

    def bring(self, batch: Batch, slot: int) -> int:
        """Download what was left of a batch; gives the bytes. Several threads may ask."""
        with self._downloading:
            size = self.runner.download(_in_slot(batch, slot), drop=False)
        self.batches[slot].forget()
        return size

    def close(self) -> None:
        """Release the device's buffers."""
        for one in self.batches:
            one.close()
        self.runner.close()


def _in_slot(batch: Batch, slot: int) -> Batch:
    """Give a batch the number of its slot: batches come to a device and go in any order."""
    return replace(batch, seq=slot)


class SharedBatches(BatchesAhead):
    """Batches that know nothing of each other, computed by several devices of one kind.

    Whichever device is free takes the next batch. What kernels make of folds' blocks is added up in record order.
    Derived clocks, host folds and resident values are computed on the first device. So results have the bits of one.

    Args:
        state: of the pass.
        runner: runs on the first device what is computed in record order.
        devices: of one kind.
        each: batches in flight on each of them.
    """

    def __init__(self, state: PassState, runner: OpenCLRunner, devices: Sequence[Device]) -> None:
        super().__init__(state)
        self.lanes = self.in_flight = state.plan.depth
        self._shares = [_Share(state, device, len(devices), runner) for device in devices]
        # At least as many as are in flight: whoever asks finds one.
        self._free: queue.SimpleQueue[tuple[_Share, int]] = queue.SimpleQueue()
        for slot in range(self._shares[0].runner.in_flight):
            for share in self._shares:
                self._free.put((share, slot))
        self._taken: dict[int, tuple[_Share, int]] = {}
        self._turn: InFlightBatch | None = None

    def open(self, log: LaunchLog | None, tuner: KernelTuner | None) -> None:
        """Get all devices ready; the first one's kernels are tuned."""
        for share in self._shares:
            share.open()
            share.runner.log = log
        self._shares[0].runner.tuner = tuner

    def begin_again(self, changing: Sequence[Step]) -> None:
        """Let all devices read the values of the next run; see `BatchesAhead.begin_again`."""
        for share in self._shares:
            share.begin_again(changing)

    def upload(self, batch: Batch) -> int:
        """Let a device that is free upload and compute a batch, unless it begins or ends inside a block of a fold."""
        if self._is_left(batch):
            return 0
        share, slot = self._free.get()
        size = share.take(batch, slot)
        self._taken[batch.seq] = (share, slot)
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
        self._turn = None
        if batch.seq not in self._taken:
            return None
        share, slot = self._taken[batch.seq]
        turn = self._turn = share.batches[slot]
        full, turn.full = turn.full, None
        if full is None:
            return None
        devices = self.state.plan.backend.capabilities.name
        return f"one of {devices} had no room for a batch: the first computes what finds none", full

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
        return None if self._turn is None else self._turn.go_on(items, outputs)

    def let_go(self) -> None:
        """End the turn of a batch."""
        self._turn = None

    def download(self, batch: Batch) -> int:
        """Fetch what is still on the device that has computed a batch."""
        if batch.seq not in self._taken:
            return 0
        share, slot = self._taken.pop(batch.seq)
        size = share.bring(batch, slot)
        self._free.put((share, slot))
        return size

    def seconds(self) -> Iterator[Mapping[str, float]]:
        """Give the seconds of all devices."""
        for share in self._shares:
            for one in share.batches:
                yield one.steps.seconds

    def close(self) -> None:
        """Close all devices, also where one fails."""
        close_all(self._shares)
