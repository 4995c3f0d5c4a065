"""Training as a scan: each record is a step, which carries all values on."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowcompute.elements.training import Evaluation, Given, StepSchedule, Training
from flowcompute.engine.backend import NoRoomTogetherError, PlannedJob, close_all
from flowcompute.engine.scans import Scan
from flowcompute.engine.training.carried_values import CarriedValues, handed_on_by_steps
from flowcompute.engine.training.drawn_records import DrawnRecords
from flowcompute.engine.training.inner_job import InnerJob
from flowcompute.errors import FlowError
from flowcompute.graph import Node
from flowcompute.metrics import StepTold


class LeftStep(NamedTuple):
    """A step that was left in progress.

    Attributes:
        job: that runs it.
        number: of the step, from 1 on.
        records_before, values_before: that it began with: records done so far, and all values.
        loss: has its loss once it has ended.
        out: takes the loss.
    """

    job: InnerJob
    number: int
    records_before: int
    values_before: Sequence[np.ndarray | None]
    loss: np.ndarray
    out: np.ndarray


class TrainingScan(Scan):
    """The steps of a training. A step is a run of a plan of its own, over its records alone.

    Blocks of folds begin anew with each step, so that neither the budget nor the outer run changes a bit.

    Args:
        node: of the training.
        jobs: for each size of a step its plan, then that of the evaluation where there is one.

    Attributes:
        step: steps that are done.
        values: that the next step begins with; None before the first.
        stopped: whether a criterion has ended the training.
        overlaps: whether a step may be in progress while the next one begins. What `advance` writes of the last ones is
            there after `settle`.
        told: the steps that nobody has asked for yet.
    """

    def __init__(self, node: Node, jobs: Sequence[PlannedJob]) -> None:
        assert isinstance(node.element, Training)
        self.step = 0
        self.values: CarriedValues | None = None
        self.stopped = self.overlaps = False
        self._last_kind = (0, 0)
        self._left = deque[LeftStep]()
        self._last_told: tuple[float, int, float] | None = None
        self._measured = ""
        self._not_finite_since: int | None = None
        self.told: list[StepTold] = []
        self._name = node.name
        self._began_s, self._records_done = time.perf_counter(), 0
        self._training = training = node.element
        steps = len(training.schedule.sizes)
        handed_on = handed_on_by_steps(training.updated)
        self._jobs = [InnerJob(job, handed_on if place < steps else None) for place, job in enumerate(jobs)]
        self._records = DrawnRecords(training.sources, training.schedule, max(one.parts for one in self._jobs[:steps]))
        held = () if training.evaluation is None else training.evaluation.sources
        most = max((one.spec.length or 0 for one in held), default=1)
        self._held_out = DrawnRecords(held, StepSchedule(most, most, 1, None))

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Take the next steps; see `Scan.advance`."""
        if self.values is None:
            self.values = CarriedValues(arrays)
        if start != self.step:
            raise ValueError(f"step {start}, where {self.step} is next")
        place = 0
        while place < len(out):
            if self.stopped:
                out[place] = 0
            elif self.overlaps and self._training.evaluation is None:
                place += self._advance_and_leave(out[place:])
                continue
            else:
                out[place] = self._advance()
            place += 1

    def _advance_and_leave(self, out: np.ndarray) -> int:
        """Take steps of one epoch and one size, and leave them in progress; gives how many.

        Args:
            out: takes their losses once they have ended.
        """
        schedule = self._training.schedule
        epoch, start, stop = schedule.of_step(self.step)
        size = stop - start
        if (epoch, size) != self._last_kind:
            # Readers of the records before are closed, or their job.
            self.settle()
        self._last_kind = epoch, size
        steps = min(len(out), (schedule.records - start) // size)
        carried = self._carried()
        for place in range(steps):
            before, values = self._records_done, carried.kept()
            try:
                job, loss = self._step(leave=True)
            except NoRoomTogetherError:
                self._take_again()
                out[place] = self._advance()
                return place + 1
            except BaseException:
                # Its job may be closed before the next step.
                self.settle()
                raise
            self._left.append(LeftStep(job, self.step, before, values, loss, out[place : place + 1]))
            self._note_ended(job.in_progress)
        return steps

    def settle(self) -> None:
        """Wait for the steps that were left in progress."""
        if not self._left:
            return
        first = self._left[0]
        try:
            # Where that fails the steps stay, so that nothing of their group is passed on.
            first.job.wait()
        except NoRoomTogetherError:
            self._take_again()
        except FlowError as error:
            if "(in step" not in error.message:
                steps = f"steps {first.number} to {self.step} of {self._training.schedule.steps}"
                error.message = f"{error.message} (in {steps})"
            raise
        else:
            self._note_ended(0)

    def _take_again(self) -> None:
        """Take steps anew, each alone, that there was no room for in one launch. Nothing of them was done."""
        left, self._left = self._left, deque()
        first = left[0]
        # Its memory is given up.
        first.job.has_failed = True
        self.step, self._records_done = first.number - 1, first.records_before
        self._carried().go_back(first.values_before)
        for one in left:
            one.out[0] = self._advance()

    def _note_ended(self, in_progress: int) -> None:
        """Note the steps that were left, but for the last ones, which are in progress."""
        for _ in range(len(self._left) - in_progress):
            ended = self._left.popleft()
            ended.out[0] = ended.loss
            self._tell(ended.number, ended.loss)

    def _tell(self, step: int, loss: np.ndarray) -> dict[str, float]:
        """Tell a step that has ended; more numbers may be added to what is told."""
        pace = self._records_done / max(time.perf_counter() - self._began_s, 1e-9)
        number = float(loss)
        self._last_told = number, step, pace
        if math.isfinite(number):
            self._not_finite_since = None
        elif self._not_finite_since is None:
            self._not_finite_since = step
        numbers = {"loss": number}
        self.told.append(StepTold(self._name, step, numbers))
        return numbers

    @property
    def said(self) -> str:
        """The loss of the last step, the pace and the last measures, in words; empty before the first."""
        if self._last_told is None:
            return ""
        loss, step, pace = self._last_told
        steps = self._training.schedule.steps
        since = self._not_finite_since
        lost = "" if since is None else f", not finite since step {since:,}"
        return f"loss {loss:.4g} at step {step:,} of {steps:,}, {pace:,.0f} records/s{lost}{self._measured}"

    def _advance(self) -> Any:
        """Take a step, and evaluate after it where it is time; gives the record of it."""
        evaluation = self._training.evaluation
        _, loss = self._step()
        numbers = self._tell(self.step, loss)
        if evaluation is None:
            return loss
        measures = [0.0] * len(evaluation.names)
        evaluated = self.step % evaluation.every == 0
        if evaluated:
            measures = self._evaluate(evaluation)
            # A measure may have the name of the loss, which is another one.
            names = (name if name != "loss" else "measured loss" for name in evaluation.names)
            measured = dict(zip(names, measures, strict=False))
            numbers.update(measured)
            self._measured = "".join(f", {name} {value:.4g}" for name, value in measured.items())
        return (float(loss), True, evaluated, *measures)

    def _step(self, *, leave: bool = False) -> tuple[InnerJob, np.ndarray]:
        """Take a step, or leave it in progress; gives its job and its loss."""
        schedule, carried, read, number = self._training.schedule, self._carried(), self._records.read, self.step + 1
        _, start, stop = schedule.of_step(self.step)
        job = self._alone(schedule.sizes.index(stop - start))
        self._records.turn_to(self.step)
        try:
            loss = carried.following(job, number, read) if leave else None
            if loss is None:
                loss = carried.step(job, number, read, leave=leave)
        except FlowError as error:
            if error.records is not None:
                error.records = start + error.records[0], start + error.records[1]
            error.message = f"{error.message} (in step {number} of {schedule.steps})"
            raise
        self.step = number
        self._records_done += stop - start
        return job, loss

    def _evaluate(self, evaluation: Evaluation) -> list[float]:
        """Take all measures, and ask the criterion."""
        job = self._alone(-1)
        try:
            made = [one for one in job.run(self._given, self._held_out.read) if one is not None]
        except FlowError as error:
            after = f"after step {self.step} of {self._training.schedule.steps}"
            error.message = f"{error.message} (in the evaluation {after})"
            raise
        finally:
            # What lies in memory of its records is none of the next step's.
            self._held_out.close()
        count = len(evaluation.names)
        if evaluation.stops:
            stop, *state = made[count:]
            self._carried().put(self._training.updated, state)
            self.stopped = bool(stop)
        return [float(one) for one in made[:count]]

    def _alone(self, place: int) -> InnerJob:
        """Return one of the jobs, and let the others go: the budget is that of one at a time."""
        job = self._jobs[place]
        for other in self._jobs:
            if other is not job:
                self._carried().leave(other)
                other.close()
        return job

    def _carried(self) -> CarriedValues:
        assert self.values is not None, "values are there before the first step"
        return self.values

    def _given(self, given: Given) -> np.ndarray:
        return self._carried().given(given, self.step + 1)

    def value(self, place: int) -> np.ndarray:
        """Return one of the values after the last step."""
        if self.values is None:
            raise ValueError("cannot take what is trained before the first step")
        return self.values.array(place)

    def mark(self) -> Callable[[], None]:
        """See `Carry.mark`; nothing is copied, and nothing brought to the host."""
        if self.values is None:
            return super().mark()
        values, step, stopped = self.values, self.step, self.stopped
        put_back = values.mark()

        def back() -> None:
            put_back()
            self.values, self.step, self.stopped = values, step, stopped
            self.told = [one for one in self.told if one.step <= step]

        return back

    def snapshot(self) -> dict[str, Any]:
        """Return all values, brought to the host; none of these arrays is written to again."""
        state: dict[str, Any] = {"step": self.step, "values": None if self.values is None else self.values.arrays()}
        # Trainings that nothing ends early have none: theirs were kept before there was an evaluation.
        return state if self._training.evaluation is None else {**state, "stopped": self.stopped}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot.

        Raises:
            ValueError: if it is none of this training.
        """
        step, values = state["step"], state["values"]
        stopped = state["stopped"] if self._training.evaluation is not None else False
        specs = [one.spec for one in self._training.initial]
        if type(step) is not int or not 0 <= step <= self._training.schedule.steps or (values is None and step):
            raise ValueError(f"step {step!r} of {self._training.schedule.steps}")
        if values is not None:
            found = [(one.dtype, one.shape) if isinstance(one, np.ndarray) else None for one in values]
            if found != [(spec.dtype, spec.shape) for spec in specs]:
                raise ValueError("values of other dtypes or shapes than those that are trained")
        if type(stopped) is not bool or (stopped and not step):
            raise ValueError(f"stopped {stopped!r} after {step} steps")
        self.step, self.values, self.stopped = step, None if values is None else CarriedValues(values), stopped
        for job in self._jobs:
            job.let_go()

    def close(self) -> None:
        """Release the plans of steps, and close sources."""
        close_all([*self._jobs, self._records, self._held_out])
