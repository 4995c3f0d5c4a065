"""Training as a scan: each record is a step, which carries all values on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements.generated import step_key
from flowcompute.elements.training import STEP, Given, Training
from flowcompute.engine.backend import PlannedJob, close_all
from flowcompute.engine.scans import Scan
from flowcompute.engine.training.drawn_records import DrawnRecords
from flowcompute.engine.training.inner_job import InnerJob
from flowcompute.errors import FlowError
from flowcompute.graph import Node
from flowcompute.spec import INT64


class TrainingScan(Scan):
    """The steps of a training. A step is a run of a plan of its own, over its records alone.

    Blocks of folds begin anew with each step, so that neither the budget nor the outer run changes a bit.

    Args:
        node: of the training.
        jobs: for each size of a step its plan.

    Attributes:
        step: steps that are done.
        values: that the next step begins with; None before the first.
        said: the loss of the last step, in words; empty before the first.
    """

    def __init__(self, node: Node, jobs: Sequence[PlannedJob]) -> None:
        assert isinstance(node.element, Training)
        self.step = 0
        self.values: list[np.ndarray] | None = None
        self.said = ""
        self._training = node.element
        self._jobs = [InnerJob(job) for job in jobs]
        self._records = DrawnRecords(node.element.sources, node.element.schedule)

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Take the next steps; see `Scan.advance`."""
        if self.values is None:
            self.values = list(arrays)
        if start != self.step:
            raise ValueError(f"step {start}, where {self.step} is next")
        for place in range(len(out)):
            out[place] = self._advance()

    def _advance(self) -> np.ndarray:
        schedule = self._training.schedule
        _, start, stop = schedule.of_step(self.step)
        job = self._jobs[schedule.sizes.index(stop - start)]
        for other in self._jobs:
            if other is not job:
                # The budget is that of one size at a time.
                other.close()
        self._records.turn_to(self.step)
        try:
            loss, *self.values = job.run(self._given, self._records.read)
        except FlowError as error:
            error.message = f"{error.message} (in step {self.step + 1} of {schedule.steps})"
            if error.records is not None:
                error.records = start + error.records[0], start + error.records[1]
            raise
        self.step += 1
        self.said = f"loss {float(loss):.4g} at step {self.step:,} of {schedule.steps:,}"
        return loss

    def _given(self, given: Given) -> np.ndarray:
        return given_value(given, self.step + 1, self.values or [])

    def value(self, place: int) -> np.ndarray:
        """Return one of the values after the last step."""
        if self.values is None:
            raise ValueError("cannot take what is trained before the first step")
        return self.values[place]

    def snapshot(self) -> dict[str, Any]:
        """Return all values; none of these arrays is written to again."""
        return {"step": self.step, "values": None if self.values is None else list(self.values)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot.

        Raises:
            ValueError: if it is none of this training.
        """
        step, values = state["step"], state["values"]
        specs = [one.spec for one in self._training.initial]
        if type(step) is not int or not 0 <= step <= self._training.schedule.steps or (values is None and step):
            raise ValueError(f"step {step!r} of {self._training.schedule.steps}")
        if values is not None:
            found = [(one.dtype, one.shape) if isinstance(one, np.ndarray) else None for one in values]
            if found != [(spec.dtype, spec.shape) for spec in specs]:
                raise ValueError("values of other dtypes or shapes than those that are trained")
        self.step, self.values = step, None if values is None else list(values)

    def close(self) -> None:
        """Release the plans of steps, and close sources."""
        close_all([*self._jobs, self._records])


def given_value(given: Given, number: int, values: Sequence[np.ndarray]) -> np.ndarray:
    """Return a value that a step is given.

    Args:
        given: which one.
        number: of the step, from 1 on.
        values: that are carried on, "value.0" first.
    """
    if given.seed is not None:
        return np.asarray(step_key(given.seed, number))
    if given.key == STEP:
        return np.asarray(number, INT64)
    return values[int(given.key.removeprefix("value."))]
