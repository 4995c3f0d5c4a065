"""What all executors share: the steps of a pass in order, host functions, folds. Backends run the regions."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements import Constant, HostFunction
from flowcompute.elements.op import Kind
from flowcompute.errors import FlowError, RunError
from flowcompute.graph.graph import Node
from flowcompute.planner.backend import Executor
from flowcompute.planner.canonical import ORDER_VERSION
from flowcompute.planner.fold import Fold
from flowcompute.planner.plan import Plan
from flowcompute.planner.steps import NodeStep, RegionStep, Step


class StepExecutor(Executor):
    """Walks a pass's steps. Subclasses run regions on arrays in host memory (`run_region`).

    `values` maps value ids to the arrays of the batch in hand; `resident` to whole values.
    """

    def __init__(self, plan: Plan, pass_index: int) -> None:
        self.plan = plan
        self.one_pass = plan.passes[pass_index]
        self.nodes = plan.graph.nodes
        self.resident: dict[int, np.ndarray] = {}
        self.values: dict[int, np.ndarray] = {}
        self.folds: dict[int, Fold] = {}
        self.start = 0
        self._scratch: dict[int, np.ndarray] = {}
        self._seconds: dict[str, list[float]] = {step.name: [0, 0.0] for step in plan.steps}

    # -- for subclasses -----------------------------------------------------------------------

    @abstractmethod
    def run_region(self, step: RegionStep, outputs: Mapping[int, np.ndarray], items: int) -> None:
        """Compute a region over `items` records (1 when resident) into `outputs`, and push its folds' blocks."""

    def array(self, value: int) -> np.ndarray:
        """The array of a value: of the batch, or whole when resident."""
        return self.values[value] if value in self.values else self.resident[value]

    # -- life -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Compute what does not depend on the stream."""
        self.resident = {node.id: node.element.value for node in self.nodes if isinstance(node.element, Constant)}
        self.folds = {i: Fold(spec) for i, spec in self.plan.folds.items()}
        self._run_resident(self.one_pass.before)

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> None:
        """Run the steps of a batch."""
        self.values = dict(batch.arrays)
        self.start = batch.start
        for value, array in outputs.items():
            if value in self.values:
                np.copyto(array, self.values[value])
        for step in self.one_pass.steps:
            began = time.perf_counter()
            try:
                self._run_step(step, outputs, batch)
            except FlowError as error:
                error.records = error.records or (batch.start, batch.stop)
                raise
            spent = self._seconds[step.name]
            spent[0] += 1
            spent[1] += time.perf_counter() - began
        self.values = {}

    def finish(self, length: int) -> dict[int, np.ndarray]:
        """End the folds, run what comes after them, and give what destinations take."""
        for step in self.one_pass.steps:
            if isinstance(step, NodeStep) and step.node.kind is Kind.ALONG:
                self._check_along(step.node, length, ended=True)
        for i, fold in self.folds.items():
            try:
                self.resident[i] = fold.result()
            except ValueError as error:
                node = self.nodes[i]
                raise RunError(
                    str(error), element=node.name, site=node.element.site, got="a stream of 0 records"
                ) from error
        self._run_resident(self.one_pass.after)
        return {sink.value: self.resident[sink.value] for sink in self.one_pass.sinks if not sink.spec.is_stream}

    def snapshot(self) -> dict[str, Any]:
        """State of the folds."""
        return {"order": ORDER_VERSION, "folds": {str(i): fold.snapshot() for i, fold in self.folds.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for i, fold in self.folds.items():
            fold.restore(state["folds"][str(i)])

    def step_seconds(self) -> dict[str, tuple[int, float]]:
        """Batches and seconds by step."""
        return {name: (int(batches), seconds) for name, (batches, seconds) in self._seconds.items()}

    def close(self) -> None:
        """Drop every array."""
        self.values, self.resident, self._scratch = {}, {}, {}

    # -- steps ------------------------------------------------------------------------------------

    def _run_resident(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, RegionStep):
                specs = {i: self.nodes[i].spec for i in step.region.outputs}
                made = {i: np.empty(spec.shape, spec.dtype) for i, spec in specs.items()}
                self.run_region(step, made, 1)
                self.resident.update(made)
            else:
                self.resident[step.node.id] = self._call(step, None)

    def _run_step(self, step: Step, outputs: Mapping[int, np.ndarray], batch: Batch) -> None:
        if isinstance(step, RegionStep):
            made = {i: outputs[i] if i in outputs else self._between(i, batch.items) for i in step.region.outputs}
            self.values.update(made)
            self.run_region(step, made, batch.items)
            return
        node = step.node
        if node.kind is Kind.FOLD:
            shape = (batch.items, *self.plan.folds[node.id].item)
            self.folds[node.id].push_records([np.broadcast_to(self.array(i), shape) for i in node.inputs])
            return
        if node.kind is Kind.ALONG:
            self._check_along(node, batch.stop, ended=False)
            self.values[node.id] = self.resident[node.inputs[0]][batch.start : batch.stop]
        else:
            self.values[node.id] = self._call(step, batch)
        if node.id in outputs:
            np.copyto(outputs[node.id], self.values[node.id])

    def _check_along(self, node: Node, records: int, ended: bool) -> None:
        """Refuse a stream whose length was unknown and is not that of a resident value cut along it."""
        rows = len(self.resident[node.inputs[0]])
        if records > rows or (ended and records != rows):
            raise RunError(
                "a resident value is cut along a stream of another length",
                element=node.name,
                site=node.element.site,
                expected=f"{rows} records, as the resident value has rows",
                got=f"{records} records{'' if ended else ' and more'}",
            )

    def _between(self, value: int, items: int) -> np.ndarray:
        """Memory for a value that only other steps take, made once."""
        if value not in self._scratch:
            spec = self.nodes[value].spec
            self._scratch[value] = np.empty((self.plan.batch_items, *spec.shape), spec.dtype)
        return self._scratch[value][:items]

    def _call(self, step: NodeStep, batch: Batch | None) -> np.ndarray:
        """The result of a host function, checked against what was declared."""
        node, element = step.node, step.node.element
        assert isinstance(element, HostFunction)
        arguments = [_read_only(self.array(i)) for i in node.inputs]
        records = None if batch is None else (batch.start, batch.stop)
        where: dict[str, Any] = {"element": node.name, "site": element.site, "records": records}
        try:
            result = np.asarray(element.function(*arguments))
        except Exception as error:
            raise RunError(f"the function failed: {type(error).__name__}: {error}", **where) from error
        expected = node.spec.shape if batch is None else (batch.items, *node.spec.shape)
        if result.shape != expected:
            raise RunError(
                "the function returned another shape than was declared",
                **where,
                expected=str(expected),
                got=str(result.shape),
                hint="declare it: fc.host(fn, x, shape=item_shape)",
            )
        if result.dtype != node.spec.dtype:
            raise RunError(
                "the function returned another dtype than was declared",
                **where,
                expected=node.spec.dtype.name,
                got=result.dtype.name,
                hint="declare it: fc.host(fn, x, dtype=...)",
            )
        return np.ascontiguousarray(result)


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.setflags(write=False)
    return view
