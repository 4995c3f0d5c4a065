"""A runner whose runs can be recorded: the next ones are the same commands over other values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flowcompute.engine import BatchSlice, PassState
from flowcompute.errors import DeviceFullError
from flowcompute.gpu.memory import Push, Recording, StreamedWeights
from flowcompute.gpu.run.folds import DeviceSegments
from flowcompute.gpu.run.staying_runner import StayingRunner
from flowcompute.ir import Argument
from flowcompute.schedule import device_folds

MOST_RUNS = 12
"""Runs that are recorded at most. Where these are not alike, later ones are not expected to be."""


Places = tuple[Mapping[int, object], tuple[object, ...]]
"""Buffers of values that are given, and of those that stay, before a run."""


class RecordedRuns:
    """The last run over each set of buffers. Values that are handed on lie in one of two, alternately.

    A run is done again once it was recorded twice, with the same commands.
    """

    def __init__(self) -> None:
        self._last: list[tuple[Places, Recording, bool]] = []
        self._runs = 0

    @property
    def may_record(self) -> bool:
        """False where runs were not alike so far."""
        return self._runs < MOST_RUNS

    def keep(self, places: Places, recording: Recording) -> None:
        """Keep a run.

        Args:
            places: where it has found what was handed on to it, and has made what it hands on.
            recording: its commands.
        """
        self._runs += 1
        last = next((one for one in self._last if one[0] == places), None)
        is_again = last is not None and recording.is_whole and last[1].commands == recording.commands
        self._last = [*(one for one in self._last if one is not last), (places, recording, is_again)][-2:]
        if is_again:
            self._runs = 0

    def find(self, places: Places) -> Recording | None:
        """Return what a run does over these buffers; None where that is not known."""
        return next((recording for where, recording, is_again in self._last if is_again and where == places), None)

    def clear(self) -> None:
        """Forget all runs: buffers have changed."""
        self._last = []


class RecordingRunner(StayingRunner):
    """A runner that records runs of its pass, where it is alone on a discrete device.

    Attributes:
        _streamed_weights: parts of weights that are uploaded as they are needed, if any.
    """

    _streamed_weights: StreamedWeights | None

    def __init__(self, state: PassState) -> None:
        super().__init__(state)
        self._runs = RecordedRuns()
        self._found: Places = {}, ()
        folds = device_folds(state.one_pass.steps)
        self._segments = [step for step in folds if state.plan.host_folds[step.node.id].op != "matmul"]

    def begin_recording(self, given: Mapping[int, object]) -> None:
        """See `RegionRunner.begin_recording`."""
        quiet = self.log is None and self.tuner is None and self._streamed_weights is None
        able = quiet and self._is_alone and self._can_defer and self.memory.records and self._runs.may_record
        self.memory.recording = Recording() if able else None
        self._found = self._places(given)

    def end_recording(self) -> None:
        """See `RegionRunner.end_recording`."""
        recording, self.memory.recording = self.memory.recording, None
        if recording is not None:
            self._runs.keep(self._found, recording.fetching_late())

    def _tell_recording(self, arguments: Sequence[Argument]) -> None:
        """Name the numbers of the launches that come next which are others in each run."""
        if self.memory.recording is not None:
            changing = self.state.changing
            self.memory.recording.scalars = tuple(
                (place, one.value)
                for place, one in enumerate(arguments)
                if one.kind == "scalar" and one.value in changing
            )

    def known_recording(self, given: Mapping[int, object]) -> Recording | None:
        """See `RegionRunner.known_recording`."""
        return self._runs.find(self._places(given))

    def repeat_run(self, recording: Recording, batch_slice: BatchSlice) -> Mapping[int, np.ndarray] | None:
        """See `RegionRunner.repeat_run`."""
        assert self._launcher is not None
        self._residents.forget(self.state.changing)
        try:
            with self._launcher.told():
                pushes = self._pushes(batch_slice)
                return self.memory.repeat(recording, batch_slice.array, self._residents.scalar, pushes)
        except DeviceFullError:
            # It is done anew, in parts that there is room for.
            self._forget_launches()
            return None

    def _places(self, given: Mapping[int, object]) -> Places:
        """Return where a run finds given values, and where it makes those that stay.

        After a run of another graph nothing is given, but which of two buffers comes next still alternates.
        """
        return {**given}, tuple(map(self.memory.place, self.staying))

    def _pushes(self, batch_slice: BatchSlice) -> dict[int, Push]:
        """Return what adds the records of folds whose launches depend on them, which are checked."""
        found: dict[int, Push] = {}
        for step in self._segments:
            fold = self.make_fold(step.node)
            assert isinstance(fold, DeviceSegments), "what is no product adds up by key"
            found[step.node.id] = fold.prepare(batch_slice.items, *map(batch_slice.array, step.on_host))
        return found

    def _forget_launches(self) -> None:
        """Forget all launches that hold buffers."""
        self._repeated.clear()
        self._runs.clear()
        if self._memory is not None:
            self._memory.recording = None
