"""Values that steps of a training hand on: arrays of the host, or left where the last step has made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flowcompute.elements.generated import step_key
from flowcompute.elements.training import STEP, Given
from flowcompute.engine.training.feeding import Records
from flowcompute.engine.training.inner_job import InnerJob
from flowcompute.errors import RunError
from flowcompute.spec import INT64


class CarriedValues:
    """Values that the next step begins with. Arrays are replaced by a step and never written to.

    Args:
        arrays: all values, parameters first.
    """

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays: list[np.ndarray | None] = list(arrays)
        self._job: InnerJob | None = None
        self._is_torn = False
        self._marked: tuple[list[np.ndarray | None], Mapping[int, object]] = (self._arrays, {})

    def __len__(self) -> int:
        return len(self._arrays)

    def step(self, job: InnerJob, number: int, records: Records, *, leave: bool = False) -> np.ndarray:
        """Take a step, and return its loss. Nothing has changed where it fails.

        What the job of the step before has left on the device is read there where this one can.

        Args:
            job: of the step, made with `handed_on_by_steps`.
            number: of the step, from 1 on.
            records: gives records of the sources.
            leave: whether the step may be left in progress. Its loss and all values are there after `InnerJob.wait`.

        Raises:
            RunError: if a step before was interrupted while the device handed on its values.
            FlowError: as a run.
        """
        self._check_whole()
        # A step is made over what the last but one has left.
        self._bring_marked()
        if job.has_failed:
            # Its memory is given up, so what it has handed on is brought to the host before.
            self.leave(job)
            job.close()
        before = None if self._job is job else self._job
        if before is not None:
            if self._marked[0] is self._arrays:
                # What is put back later is read from the host: by then the other job knows nothing of it.
                self.arrays()
            job.borrow(before)
        elif self._job is None:
            # It may have borrowed for a step that failed.
            job.let_go()
        loss, *after = job.run(lambda given: self.given(given, number), records, leave=leave)
        assert loss is not None, "a loss is brought to the host"
        after += self._arrays[len(after) :]
        # An interrupt from here on leaves values of two steps on the device.
        self._job, self._is_torn = job, job.hands_on or before is not None
        job.hand_on()
        self._arrays, self._is_torn = after, False
        if before is not None:
            before.let_go()
        return loss

    def following(self, job: InnerJob, number: int, records: Records) -> np.ndarray | None:
        """Take a step in the launch of the step before; None where it is none of one, and `step` takes it.

        Values are those after the last step of the launch already.
        """
        if job is not self._job:
            return None
        return job.follow(lambda given: self.given(given, number), records)

    def given(self, given: Given, number: int) -> np.ndarray:
        """Return a value that a step is given.

        Args:
            given: which one.
            number: of the step, from 1 on.
        """
        if given.seed is not None:
            return np.asarray(step_key(given.seed, number))
        if given.key == STEP:
            return np.asarray(number, INT64)
        return self.array(int(given.key.removeprefix("value.")))

    def array(self, place: int) -> np.ndarray:
        """Return one of the values, brought to the host where it is not there; raises as `step`."""
        self._check_whole()
        array = self._arrays[place]
        if array is None:
            assert self._job is not None
            array = self._arrays[place] = self._job.fetch(place + 1, self._job.kept)
        return array

    def arrays(self) -> list[np.ndarray]:
        """Return all values. Those on a device stay there, too."""
        return [self.array(place) for place in range(len(self))]

    def put(self, place: int, arrays: Sequence[np.ndarray]) -> None:
        """Replace the values from a place on."""
        self.leave()
        # Of values of two steps none may be left.
        self._is_torn = self._is_torn and len(arrays) < len(self)
        self._arrays = [*self._arrays[:place], *arrays, *self._arrays[place + len(arrays) :]]

    def kept(self) -> Sequence[np.ndarray | None]:
        """Return what `go_back` takes: all values, None for those on a device."""
        return self._arrays

    def go_back(self, kept: Sequence[np.ndarray | None]) -> None:
        """Let the next step begin with the values of `kept`, all of which are on the host."""
        assert all(array is not None for array in kept), "values on a device are others after each step"
        self._arrays = [*kept]

    def leave(self, job: InnerJob | None = None) -> None:
        """Bring all values to the host and hold no job, before one is closed.

        Args:
            job: the one that is closed; any by default.
        """
        if self._job is not None and job in (None, self._job):
            if not self._is_torn:
                self._bring_marked()
                self.arrays()
            self._job.let_go()
            self._job = None

    def mark(self) -> Callable[[], None]:
        """Note the values, of which nothing is copied; the result puts them back, once."""
        arrays, job = self._arrays, self._job
        self._marked = arrays, {} if job is None else job.kept

        def put_back() -> None:
            if self._arrays is arrays:
                return
            if any(array is None for array in arrays):
                assert job is not None, "values on a device are those of a job"
                job.take_back()
            elif self._job is not None:
                self._job.let_go()
            self._arrays, self._job = arrays, job

        return put_back

    def _check_whole(self) -> None:
        if self._is_torn:
            raise RunError(
                "cannot go on: a step was interrupted while the device handed on its values",
                hint="load what was saved before, or begin anew",
            )

    def _bring_marked(self) -> None:
        """Bring what was marked to the host, where a step was taken since."""
        arrays, kept = self._marked
        for place, array in enumerate(arrays if arrays is not self._arrays else ()):
            if array is None:
                assert self._job is not None
                arrays[place] = self._job.fetch(place + 1, kept)


def handed_on_by_steps(values: int) -> dict[int, str]:
    """Return by the place of a root of a step, the loss first, the key of the value that it becomes."""
    return {place + 1: f"value.{place}" for place in range(values)}
