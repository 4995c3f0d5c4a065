"""Batches that several devices compute before it is their turn, and that a pass takes over in record order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine.backend import KernelTuner
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.in_flight_batch import InFlightBatch
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import Runners
from flowcompute.errors import DeviceFullError
from flowcompute.schedule import Clock, LaunchLog, Step
from flowcompute.schedule.placement import alignment, pipeline_stages_of


class BatchesAhead(ABC):
    """Batches of the root clock on their way through several devices.

    `upload` computes ahead, in any order and in several threads; it touches no state. Between `take_up` and `let_go`
    a batch has its turn, and `compute` goes on with it. `download` fetches what is left.

    Args:
        state: of the pass.
        steps: how many steps of the root clock are computed ahead, from the first on; None for all.

    Attributes:
        in_flight, lanes: as of `Executor`.
    """

    in_flight: int
    lanes: int

    def __init__(self, state: PassState, steps: int | None = None) -> None:
        self.state = state
        self._alignment = alignment(state.one_pass, steps)

    def cuts_blocks(self, batch: Batch) -> bool:
        """Tell whether a batch begins or ends inside a block of a fold that would be computed ahead."""
        return any(at % self._alignment and at != self.state.one_pass.length for at in (batch.start, batch.stop))

    def open(self, log: LaunchLog | None, tuner: KernelTuner | None) -> None:  # noqa: B027 - some have no devices
        """Get devices ready that the pass does not have; called when the pass itself is open."""

    def begin_again(self, changing: Sequence[Step]) -> None:  # noqa: B027 - as above
        """Begin anew with other values; see `Executor.begin_again`.

        Args:
            changing: steps before the streams that read these values.
        """

    @abstractmethod
    def upload(self, batch: Batch) -> int:
        """Bring a batch to its devices and compute ahead; gives the bytes."""

    def uploads_at_once(self, batch: Batch) -> bool:  # noqa: ARG002 - mostly it computes
        """Tell whether `upload` of a batch does nothing that takes long."""
        return False

    @abstractmethod
    def take_up(self, batch: Batch) -> tuple[str, DeviceFullError] | None:
        """Give a batch its turn; gives a note, and its cause, where there was no room to compute ahead."""

    @abstractmethod
    def compute(
        self,
        clock: Clock,
        start: int,
        items: int,
        arrays: Arrays,
        outputs: Mapping[int, np.ndarray],
        offset: int,
    ) -> BatchSlice | None:
        """Compute what is left of a slice of the batch whose turn it is; see `StepRunner.begin`.

        Returns:
            The slice, all of whose steps are done; None where nobody has begun with it.

        Raises:
            DeviceFullError: if there was no room; the batch counts as not computed ahead from then on.
        """

    def let_go(self) -> None:  # noqa: B027 - some look at the next batch only
        """End the turn of a batch."""

    @abstractmethod
    def download(self, batch: Batch) -> int:
        """Fetch what is still on devices of a batch; gives the bytes."""

    def downloads_at_once(self, batch: Batch) -> bool:  # noqa: ARG002 - mostly something is late
        """Tell whether `download` of a batch has nothing to wait for."""
        return False

    @abstractmethod
    def seconds(self) -> Iterator[Mapping[str, float]]:
        """Give the seconds by step name that were spent ahead."""

    @abstractmethod
    def close(self) -> None:
        """Release all memory; harmless when called twice."""


class PipelinedBatches(BatchesAhead):
    """Batches that go through the stages of a pipeline, as many at a time as may be in flight.

    `upload` computes the stages before the last one, each as soon as its device is free.

    Args:
        state: of the pass.
        runners: of all placements.
        in_flight: batches that may be on their way.
    """

    def __init__(self, state: PassState, runners: Runners, in_flight: int) -> None:
        super().__init__(state, state.one_pass.ahead)
        self.in_flight = self.lanes = in_flight
        self._runners = runners
        # Of what is made in record order one batch at a time has memory.
        self._common = state.intermediates()
        root = next(clock for clock in state.one_pass.clocks if clock.is_root)
        stages = pipeline_stages_of(root.steps[: state.one_pass.ahead])
        self._batches = [InFlightBatch(state, runners, stages, in_flight, self._common) for _ in range(in_flight)]
        self._turn = self._batches[0]

    def upload(self, batch: Batch) -> int:
        """Bring to each device what its kernels read of the sources, and compute ahead.

        Not where a batch begins or ends inside a block of a fold that would be computed ahead.
        """
        if self.state.is_sliced:
            return 0
        size = sum(one.upload(batch) for one in self._runners.moving)
        if not self.state.is_sliced and not self.cuts_blocks(batch):
            self._in_flight_of(batch).compute_ahead(batch)
        return size

    def _in_flight_of(self, batch: Batch) -> InFlightBatch:
        return self._batches[batch.seq % self.in_flight]

    def take_up(self, batch: Batch) -> tuple[str, DeviceFullError] | None:
        """Give a batch its turn; see `BatchesAhead.take_up`."""
        turn = self._turn = self._in_flight_of(batch)
        if self.cuts_blocks(batch) and not self.state.is_sliced:
            turn.compute_ahead(batch)
        full, turn.full = turn.full, None
        if full is None:
            return None
        where = self.state.plan.device_of(full.element)
        return f"no room on {where} for batches ahead: one that finds none is computed alone", full

    def compute(
        self,
        clock: Clock,
        start: int,
        items: int,
        arrays: Arrays,
        outputs: Mapping[int, np.ndarray],
        offset: int,
    ) -> BatchSlice:
        """Compute the last stage of a batch, or all of a slice; see `BatchesAhead.compute`."""
        turn = self._turn
        done = turn.go_on(items, outputs)
        if done is None:
            done = turn.compute_alone(clock, start, items, arrays, outputs, offset)
        launches, turn.lost_launches = turn.lost_launches, 0
        done.launches += launches
        return done

    def download(self, batch: Batch) -> int:
        """Fetch from each device what destinations take."""
        return sum(one.download(batch, drop=self.state.is_sliced) for one in self._runners.moving)

    def seconds(self) -> Iterator[Mapping[str, float]]:
        """Give the seconds of all batches in flight."""
        for one in self._batches:
            yield one.steps.seconds

    def close(self) -> None:
        """Drop the memory of all batches."""
        self._common.forget()
        for one in self._batches:
            one.close()
