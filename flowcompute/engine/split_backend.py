"""One graph on several devices: each region is computed where the plan has placed it (see `placement.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from flowcompute.engine.backend import Backend, Executor
from flowcompute.engine.batches_ahead import PipelinedBatches
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import RegionRunner, Runners
from flowcompute.schedule import BackendDescription, ExecutionPlan


class PlacedBackend(Backend):
    """A backend that can be one of the placements of a run."""

    @abstractmethod
    def runner(self, state: PassState, placement: int = 0) -> RegionRunner:
        """Make what runs the regions of a placement."""

    def executor(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """Make an executor for one pass; see `Backend.executor`."""
        state = PassState(plan, pass_index, resident, self)
        return PassExecutor(state, Runners([self.runner(state)]))


class SplitBackend(Backend):
    """Several devices that each compute a part of the graph.

    Args:
        placements: best first.
        pins: by name, as `on()` was given it, the number of the placement that is meant.
    """

    def __init__(self, placements: Sequence[PlacedBackend], pins: Mapping[str, int]) -> None:
        self._placements = tuple(placements)
        self.description = _joined([placement.description for placement in placements], pins)

    @property
    def placements(self) -> Sequence[PlacedBackend]:
        """Devices that compute regions."""
        return self._placements

    def prepare(self, plan: ExecutionPlan, placement: int = 0) -> None:
        """Compile the kernels of each placement there."""
        for number, each in enumerate(self._placements, placement):
            each.prepare(plan, number)

    def executor(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """Make an executor for one pass, with a runner for each placement."""
        state = PassState(plan, pass_index, resident, self)
        runners = Runners([placement.runner(state, number) for number, placement in enumerate(self._placements)])
        in_flight = max(one.in_flight for one in runners)
        ahead = PipelinedBatches(state, runners, in_flight) if state.one_pass.ahead and in_flight > 1 else None
        return PassExecutor(state, runners, ahead)


def _joined(parts: Sequence[BackendDescription], pins: Mapping[str, int]) -> BackendDescription:
    """Describe all placements together: sizes are chosen for the one across a bus, if there is one."""
    each = [part.capabilities for part in parts]
    main = next((i for i, capabilities in enumerate(each) if not capabilities.host_memory), 0)
    capabilities = replace(
        each[main],
        name=" and ".join(one.name for one in each),
        kind=" and ".join(one.kind for one in each),
        float64=each[0].float64,
        # Any of them may get an operation.
        tensor_cores=all(one.tensor_cores for one in each),
        local_bytes=min(one.local_bytes for one in each),
        reason="; ".join(f"{one.name}: {one.reason}" for one in each),
    )
    # A kernel says itself what it was lowered for.
    text = next(part.source_text for part in parts if part.capabilities.code_shape != "numpy")
    numbered = tuple(replace(part, number=number) for number, part in enumerate(parts))
    addresses = tuple(address for part in parts for address in part.addresses)
    return BackendDescription(capabilities, text, main, dict(pins), numbered, addresses=addresses)
