"""The immutable result of planning: what will run, in which order, in how many bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowcompute.elements.destination import Destination
from flowcompute.elements.source import Source
from flowcompute.graph.graph import Graph
from flowcompute.planner.explain import describe_plan, plan_dot, plan_svg
from flowcompute.planner.fold import FoldSpec
from flowcompute.planner.kernel import Kernel
from flowcompute.planner.reason import Reason
from flowcompute.planner.steps import RegionStep, Step
from flowcompute.spec import Spec
from flowcompute.strategy import Config, Strategy

if TYPE_CHECKING:
    from flowcompute.planner.backend import Backend


@dataclass(frozen=True)
class SourceStage:
    """One stream source of a pass. `value` is the id of the value it gives."""

    value: int
    name: str
    element: Source
    spec: Spec


@dataclass(frozen=True)
class SinkStage:
    """One destination of a pass.

    Attributes:
        value: id of the value written: a stream (batch by batch) or resident (once, at the end).
        root: position of the root whose value this destination gives.
    """

    value: int
    name: str
    element: Destination
    spec: Spec
    root: int


@dataclass(frozen=True)
class Pass:
    """One reading of the sources.

    Attributes:
        sources: stream sources; they advance together, one record of each at a time.
        before: steps on resident values that run once, before the first batch.
        steps: what runs for each batch, in order.
        after: steps on resident values that run once the folds are done.
        sinks: destinations, stream and resident.
        length: records, when known before running.
    """

    sources: tuple[SourceStage, ...]
    before: tuple[Step, ...]
    steps: tuple[Step, ...]
    after: tuple[Step, ...]
    sinks: tuple[SinkStage, ...]
    length: int | None


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes known before running.

    Attributes:
        budget_bytes: the user's (or default) host budget.
        host_bytes: what will be allocated on the host, at most.
        device_bytes: what will be allocated on a discrete device (0 on host devices).
        items: (what, bytes) lines that add up to `host_bytes`.
    """

    budget_bytes: int
    host_bytes: int
    device_bytes: int
    items: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class KernelPlan:
    """A kernel of a plan: `ir` is its loop nest, `source` its OpenCL C."""

    name: str
    ir: Kernel
    source: str

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True)
class Plan:
    """What `element.plan()` gives and what a run follows.

    Attributes:
        folds: what each fold node computes, by its id.
        batch_items: records in a batch (the last one is shorter); always a multiple of the
            plan's granule, so folds see whole canonical blocks.
        depth: batches in flight between two stages.
    """

    graph: Graph
    passes: tuple[Pass, ...]
    folds: dict[int, FoldSpec]
    backend: Backend
    config: Config
    strategy: Strategy
    memory: MemoryPlan
    batch_items: int
    depth: int
    reasons: tuple[Reason, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps of all passes, in the order in which they run."""
        return tuple(step for one in self.passes for step in (*one.before, *one.steps, *one.after))

    @property
    def kernels(self) -> tuple[KernelPlan, ...]:
        """The kernels, with their text; none on the reference backend."""
        lowered = [step.kernel for step in self.steps if isinstance(step, RegionStep) and step.kernel is not None]
        return tuple(KernelPlan(kernel.name, kernel, self.backend.source_text(kernel)) for kernel in lowered)

    @property
    def text(self) -> str:
        """The plan as a page of text."""
        return describe_plan(self)

    def __str__(self) -> str:
        return self.text

    def dot(self) -> str:
        """The graph in Graphviz's language, each kernel framed."""
        return plan_dot(self)

    def svg(self) -> str:
        """The graph as SVG, each kernel in a colour."""
        return plan_svg(self)
