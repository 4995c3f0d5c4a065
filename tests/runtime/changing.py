"""Runs whose batches change their size all the time, as a tuner may have them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.elements.source import Reader
from flowcompute.engine.backend import PlannedJob
from flowcompute.jobs import job_of
from flowcompute.observe import BatchComputed, EventStream
from flowcompute.runtime.run.run import Run
from flowcompute.runtime.stages.batch_boundaries import BatchBoundaries
from tests.support.starting import start


class Changing:
    """Draws another size for each batch of each root clock; stands for a tuner and for its live trials."""

    def __init__(self, job: PlannedJob, seed: int) -> None:
        self.job = job
        self.live = self
        self.stream = EventStream()
        self.sizes: set[int] = set()
        self._random = random.Random(seed)
        self._boundaries: list[tuple[BatchBoundaries, int]] = []

    def begin(self, index: int, boundaries: Sequence[BatchBoundaries], readers: Sequence[Reader]) -> None:
        roots = [clock for clock in self.job.plan.passes[index].clocks if clock.is_root]
        self._boundaries = [(one, clock.granule) for one, clock in zip(boundaries, roots, strict=True)]
        self._change()

    def computed(self, event: BatchComputed) -> None:
        self._change()

    def _change(self) -> None:
        for boundaries, granule in self._boundaries:
            items = granule * self._random.randint(1, max(1, boundaries.most_items // granule))
            self.sizes.add(items)
            boundaries.change(min(items, boundaries.most_items))

    def finish(self, *_: object) -> tuple[fc.Strategy, Any]:
        return fc.Strategy(), self.job.plan.tuning


def run_changing(*elements: Any, seed: int = 0, checks: Any = None, **options: Any) -> Run:
    """The finished run."""
    job = job_of(fc.plan(*elements, **options))
    return start(job, tuner=Changing(job, seed), on_batch=checks, progress=False).wait()


def resolve_changing(*elements: Any, **options: Any) -> list[np.ndarray]:
    """The values."""
    return [np.asarray(value) for value in run_changing(*elements, **options).values]
