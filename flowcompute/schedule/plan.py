"""The immutable result of planning: what will run, in which order, in how many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import ClassVar

from flowcompute.elements import Destination, Source, places_of
from flowcompute.elements.training import Training
from flowcompute.fuse import Reason, WeightTiles
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec, HostFold, Kernel
from flowcompute.rewrite import Entry
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.shaping import Shaping
from flowcompute.schedule.steps import NodeStep, RegionStep, Step
from flowcompute.spec import Spec
from flowcompute.strategy import Config, Strategy, Tuning


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
        root: position of the root whose value this destination gives; `NO_ROOT` where it gives none.
    """

    NO_ROOT: ClassVar[int] = -1

    value: int
    name: str
    element: Destination
    spec: Spec
    root: int


@dataclass(frozen=True)
class Clock:
    """Streams of a pass that advance together, record by record.

    Attributes:
        id: position among the clocks of the pass; values go from lower to higher ids.
        sources: read by this clock; a clock with sources has no entries.
        entries: values that come from other clocks.
        steps: what runs for each batch, in order.
        length: records, when known before running.
        granule: records that every batch but the last is a multiple of.
        batch_items: the most records in a batch.
        cut_items: records that sources wait for, where such batches are computed as one if they are there, up to
            `batch_items`. None where sources wait for as many.
        values: ids of the streams made in it, and of its sources.
        most_items: records that a batch may have beyond its granule, whatever fits; None for any.
    """

    id: int
    sources: tuple[SourceStage, ...]
    entries: tuple[Entry, ...]
    steps: tuple[Step, ...]
    length: int | None
    granule: int = 1
    batch_items: int = 1
    cut_items: int | None = None

    values: frozenset[int] = frozenset()
    most_items: int | None = None

    @property
    def is_root(self) -> bool:
        """Flag that its batches come from sources (or from nothing but its length)."""
        return not self.entries


@dataclass(frozen=True)
class Pass:
    """One reading of the sources.

    Attributes:
        clocks: in an order in which values go from earlier to later ones.
        before: steps on resident values that run once, before the first batch.
        after: steps on resident values that run once the folds are done.
        sinks: destinations: the streams of this pass, and resident values known at its end.
        streamed: resident operands that are uploaded anew for each kernel, since not all fit the device.
        weight_tiles: of those of them that come part by part, by value.
        ring: buffers on the device that these go through.
        ahead: steps of the root clock, from the first on, that are computed ahead; see `pipeline_stages.py`.
        parts: the first record of the part of each device, where several divide the records; see `divided_records.py`.
        folds_at_once: whether folds take records as soon as they are there. Else they do when all steps of a batch have
            succeeded, so that one that fails changes nothing; till then they need what they read.
    """

    clocks: tuple[Clock, ...]
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    sinks: tuple[SinkStage, ...]
    streamed: frozenset[int] = frozenset()
    weight_tiles: Mapping[int, WeightTiles] = field(default_factory=dict)
    ring: int = 0
    ahead: int = 0
    parts: tuple[int, ...] = ()
    folds_at_once: bool = False

    @property
    def sources(self) -> tuple[SourceStage, ...]:
        """All sources that are read."""
        return tuple(source for clock in self.clocks for source in clock.sources)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps on batches."""
        return tuple(step for clock in self.clocks for step in clock.steps)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels, in the order of their names."""
        steps = (*self.before, *self.steps, *self.after)
        kernels = [step.kernel for step in steps if isinstance(step, RegionStep) and step.kernel is not None]
        return tuple(sorted(kernels, key=lambda kernel: int(kernel.name[1:])))

    @property
    def length(self) -> int | None:
        """Records that are read, when known before running."""
        lengths = [clock.length for clock in self.clocks if clock.is_root]
        return None if None in lengths else sum(length for length in lengths if length is not None)

    @property
    def streams(self) -> int:
        """Number of streams that nothing joins."""
        return sum(clock.is_root for clock in self.clocks)

    @property
    def weight(self) -> float:
        """Records that one record stands for, on average: that of a training is a step, which takes several."""
        if not self.length:
            return 1.0
        roots = [clock for clock in self.clocks if clock.is_root]
        taken = [max([_taken(step) for step in clock.steps], default=1.0) for clock in roots]
        return sum((clock.length or 0) * one for clock, one in zip(roots, taken, strict=True)) / self.length

    @property
    def batch_items(self) -> int:
        """The most records in a batch that is read."""
        return max([clock.batch_items for clock in self.clocks if clock.is_root], default=1)

    def on_placement(self, placement: int) -> Pass:
        """Return the pass with only the regions of a placement; single nodes are the host's."""

        def here(steps: tuple[Step, ...]) -> tuple[Step, ...]:
            return tuple(step for step in steps if not isinstance(step, RegionStep) or step.placement == placement)

        clocks = tuple(replace(clock, steps=here(clock.steps)) for clock in self.clocks)
        return replace(self, clocks=clocks, before=here(self.before), after=here(self.after))

    def clock_of(self, value: int) -> Clock:
        """Return the clock in which a value is made or read."""
        return next(clock for clock in self.clocks if value in clock.values)


def _taken(step: Step) -> float:
    """Return the records that a step of a plan takes for each record of its clock."""
    element = step.node.element if isinstance(step, NodeStep) else None
    schedule = element.schedule if isinstance(element, Training) else None
    return 1.0 if schedule is None else schedule.records * schedule.epochs / schedule.steps


NEXT_STEP = "results of the next step"
"""Line of the memory of a step that begins before the step before it has ended, with records where nothing else has
room for them."""

STEPS_IN_ONE_LAUNCH = "steps in one launch"
"""Line of the memory of several steps that are launched together, in place of `NEXT_STEP`."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes known before running.

    Attributes:
        budget_bytes: the user's (or default) host budget.
        host_bytes: what will be allocated on the host, at most.
        items: (what, bytes) lines that add up to `host_bytes`.
        device_items: the same of a discrete device, none on host devices.
        staging_bytes: pinned blocks that large transfers of each discrete device go through.
        has_next_step: whether there is room for a step that begins before the last one has ended.
        steps_together: steps in one launch that there is room for.
    """

    budget_bytes: int
    host_bytes: int
    items: tuple[tuple[str, int], ...]
    device_items: tuple[tuple[str, int], ...] = ()
    staging_bytes: int = 0
    has_next_step: bool = False
    steps_together: int = 1

    @property
    def device_bytes(self) -> int:
        """Bytes that will be allocated on a discrete device, as far as it is asked for."""
        return sum(size for _, size in self.device_items)


@dataclass(frozen=True)
class ExecutionPlan:
    """Plan that a run follows.

    Attributes:
        folds: what each fold computes whose blocks a kernel may reduce, by its node's id.
        host_folds: the same of folds that take records on the host.
        depth: batches in flight between two stages.
        asked: the graph as it was composed, before any rewriting.
        shaping: the decisions that a frozen state depends on.
        pinned: the knobs that the user has set, of those of `strategy`.
        tuning: how the others were found.
        inner: of nodes that run plans of their own the plans, by node.
    """

    graph: Graph
    passes: tuple[Pass, ...]
    folds: dict[int, FoldSpec]
    host_folds: dict[int, HostFold]
    backend: BackendDescription
    config: Config
    strategy: Strategy
    memory: MemoryPlan
    depth: int
    reasons: tuple[Reason, ...]
    asked: Graph
    shaping: Shaping
    pinned: Strategy = field(default_factory=Strategy)
    tuning: Tuning = field(default_factory=Tuning)
    inner: Mapping[int, tuple[ExecutionPlan, ...]] = field(default_factory=dict)

    @property
    def batch_items(self) -> int:
        """Records in a batch of the first pass (the last one is shorter)."""
        return self.passes[0].batch_items

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps of all passes, in the order in which they run."""
        return tuple(step for one in self.passes for step in (*one.before, *one.steps, *one.after))

    @cached_property
    def record_numbers(self) -> dict[str, int]:
        """Numbers of a record in the domain of each kernel, by the kernel's name; a launch asks for it."""
        regions = (step for step in self.steps if isinstance(step, RegionStep))
        return {one.kernel.name: one.region.numbers for one in regions if one.kernel is not None}

    def device_of(self, element: str | None) -> str:
        """Return the name of the device that computes an element; that of all of them where no kernel does."""
        regions = [step for step in self.steps if isinstance(step, RegionStep)]
        mine = (one for one in regions if element in (one.name, *(self.graph.nodes[i].name for i in one.region.nodes)))
        step = next(mine, None)
        return (self.backend if step is None else self.backend.placements[step.placement]).capabilities.name

    @cached_property
    def places(self) -> dict[str, str]:
        """The user's lines, by stage: "script.py:7", or "script.py:7, 9" of a region."""
        nodes = self.graph.nodes
        places: dict[str, str] = {}
        for one in self.passes:
            places.update((source.name, places_of((source.element,))) for source in one.sources)
            places.update((sink.name, places_of((sink.element,))) for sink in one.sinks)
        for step in self.steps:
            if isinstance(step, RegionStep):
                places[step.name] = places_of([nodes[i].element for i in step.region.nodes])
            elif isinstance(step, NodeStep):
                places[step.name] = places_of([step.node.element])
        return places

    @property
    def aliases(self) -> dict[str, str]:
        """The name of the region for each element inside of one."""
        regions = [(step.name, step.region) for step in self.steps if isinstance(step, RegionStep)]
        return {self.graph.nodes[i].name: name for name, region in regions for i in region.nodes}
