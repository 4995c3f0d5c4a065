"""A seat: a device that computes a part of the graph for an executor that has the streams and their state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine.backend import Backend
from flowcompute.engine.step_executor import StepExecutor
from flowcompute.schedule import ExecutionPlan


class PlacedBackend(Backend):
    """A backend that can be one of the seats of a run."""

    @abstractmethod
    def part(
        self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray], placement: int
    ) -> PlacedExecutor:
        """An executor that runs the regions of a seat for another one."""


class PlacedExecutor(StepExecutor):
    """An executor that may run its regions for another one.

    It works on one batch at a time, between `take_up` and `let_go`; `upload`, `receive`, `hand_over` and `download`
    may go on meanwhile, each of a batch of its own.
    """

    @property
    def late(self) -> frozenset[int]:
        """Results that are left on the device, to be downloaded later, where a batch was taken up."""
        return frozenset()

    def take_up(self, batch: Batch) -> bool:
        """Work on a batch that may have been uploaded; False where it was to be, and there was no room."""
        del batch
        return True

    def let_go(self) -> None:
        """The batch in hand is over, or goes on elsewhere."""

    def forget_streams(self) -> None:
        """What follows has other arrays."""

    def keep_blocks(self) -> None:
        """What kernels make for folds is still needed when they work on the next batch."""

    def hand_over(self, batch: Batch) -> None:
        """Bring what others need of a batch to the host."""

    def receive(self, batch: Batch, made: Mapping[int, np.ndarray]) -> None:
        """Begin to bring what others have made of a batch to where it is needed."""

    def leave(self, batch: Batch, value: int, array: np.ndarray) -> None:
        """Download one of the late results of a batch into an array, later."""

    def abandon(self, batch: Batch) -> None:
        """A batch is computed anew: nothing that is here of it is of any use."""
