"""Construction of the steps of a pass: regions with their kernels and single nodes, in execution order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from flowcompute.elements import HostFunction, Kind, Source
from flowcompute.elements.axes import INDICES
from flowcompute.elements.creation import PACK, PACK_ROWS
from flowcompute.elements.math import MATMUL_FOLD
from flowcompute.elements.nn import SELF_ATTENTION
from flowcompute.elements.search import ORDERING
from flowcompute.elements.streams import SEGMENT_SUM
from flowcompute.elements.training import GivenStream
from flowcompute.fuse import (
    FusedProducers,
    Reason,
    Region,
    Sharing,
    Stencil,
    WeightTiles,
    build_regions,
    find_producers,
    find_stencils,
    opened_views,
    told_with_rows,
)
from flowcompute.graph import Graph, Node
from flowcompute.ir import DeviceCapabilities, FoldSpec, Kernel, is_copied, is_dense, is_seen_through, is_view, storage
from flowcompute.lower import Form, KernelCache, KernelStyle, form_for
from flowcompute.lower.flat import is_together, why_copied, why_sorted_by_host
from flowcompute.lower.matmul import cut_factor
from flowcompute.lower.scan import why_on_host
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.passes.step_order import in_order
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import FUSED, RESIDENT, NodeStep, RegionStep, Step, repeated_numbers
from flowcompute.spec import FLOAT32, FLOAT64
from flowcompute.strategy import Config, Strategy

STANDALONE = (Kind.HOST, Kind.ALONG, Kind.VIEW)
"""Kinds of nodes that are steps of their own."""

KERNELS = KernelCache()
"""The kernels of this process."""

_FOLDED = (
    "its state lies on the device, where whole blocks of records are multiplied",
    "its state lies on the device, where rows are added in their order; the host sorts the keys",
)


class StepMaker:
    """Builds the steps of nodes, separately for each device. Kernels are numbered through all passes.

    Args:
        graph: the graph.
        folds: what each fold computes, by its node's id.
        backend: the devices.
        config, strategy: the fixed settings and the knobs.
        reasons: where reasons are recorded.
        placements: the device of each node.
        stay: whether discrete devices have room for all given operands, so that none comes launch by launch in tiles.
        folds_at_once: whether folds take records as soon as they are there.
    """

    def __init__(
        self,
        graph: Graph,
        folds: dict[int, FoldSpec],
        backend: BackendDescription,
        config: Config,
        strategy: Strategy,
        reasons: list[Reason],
        placements: Sequence[int],
        *,
        stay: bool,
        block_terms: bool,
        folds_at_once: bool = False,
    ) -> None:
        self.graph = graph
        self._block_terms = block_terms and config.precision == "tf32x3"
        self._stay = stay
        self._folds_at_once = folds_at_once
        self.folds = folds
        self.backend = backend
        self.placements = placements
        self.config = config
        self.strategy = strategy
        self._reasons = reasons
        self._recorded: set[Reason] = set()
        self._kernels = 0
        self._users = graph.users()
        self._gathered: set[int] = set()
        self._capabilities = backend.capabilities
        self.is_step = any(isinstance(node.element, GivenStream) for node in graph.nodes)

    def steps(
        self, places: dict[int, int], wanted: set[int], entered: Mapping[int, frozenset[int]] | None = None
    ) -> dict[int, list[Step]]:
        """Build the steps by clock (or `RESIDENT`), each after the steps that compute its inputs.

        Args:
            places: the clock of each node to compute.
            wanted: values that destinations or other clocks read.
            entered: by clock, the values that other clocks pass on unchanged.
        """
        made: dict[int, list[Step]] = {}
        for placement in sorted({self.placements[i] for i in places}):
            mine = {i: place for i, place in places.items() if self.placements[i] == placement}
            # Values that other devices read are stored.
            taken = {i for user in places.keys() - mine.keys() for i in self.graph.nodes[user].inputs}
            for place, steps in self._steps_on(placement, mine, wanted | taken, entered or {}).items():
                made.setdefault(place, []).extend(steps)
        ordered = {
            place: in_order(self.graph, steps, folds_at_once=self._folds_at_once) for place, steps in made.items()
        }
        return self._without_unread_views(ordered, wanted)

    def _without_unread_views(self, steps: dict[int, list[Step]], wanted: set[int]) -> dict[int, list[Step]]:
        """Leave out views of streams that nobody reads: kernels read what they are views of.

        A view that is left brings its operand to the host, which costs a transfer on a discrete device. Where there are
        several devices, what a view is of crosses from one to the other.
        """
        if len(self.backend.placements) > 1:
            return steps
        needed = wanted.union(*(self._read_by(step) for place in steps.values() for step in place))
        kept: dict[int, list[Step]] = {}
        for place, ordered in steps.items():
            left: list[Step] = []
            for step in reversed(ordered):
                if isinstance(step, NodeStep) and self.is_only_seen(step.node):
                    if step.node.id not in needed:
                        continue
                    needed.update(step.node.inputs)
                left.append(step)
            kept[place] = left[::-1]
        return kept

    def is_only_seen(self, node: Node) -> bool:
        """Check whether a node is a view that kernels read through by strides, and does nothing else."""
        return node.op is not INDICES and is_seen_through(self.graph, node.id) and is_view(self.graph, node.id)

    def _read_by(self, step: Step) -> set[int]:
        """Return the values that a step reads, without those that views of streams read."""
        if isinstance(step, NodeStep):
            return set() if self.is_only_seen(step.node) else {*step.there, *step.on_host}
        if step.kernel is None:
            return set(step.region.inputs)
        read = {argument.value for argument in step.kernel.arguments}
        anchor = None if step.region.anchor is None else self.graph.nodes[step.region.anchor]
        if anchor is None or anchor.op is not SELF_ATTENTION:
            return read
        # The carry of an attention asks the host for the positions, which stand behind queries, keys and values.
        return read.union(anchor.inputs[3:])

    def _steps_on(
        self, placement: int, places: dict[int, int], wanted: set[int], entered: Mapping[int, frozenset[int]]
    ) -> dict[int, list[Step]]:
        """Build the steps of the nodes of one device."""
        self._capabilities = self.backend.placements[placement].capabilities
        scans = [i for i in places if self.graph.nodes[i].kind is Kind.SCAN and not self._is_fused(self.graph.nodes[i])]
        numbers, idle = repeated_numbers(self.graph, places.keys() - wanted, scans)
        places = {i: place for i, place in places.items() if i not in idle}
        stencils = find_stencils(self.graph, self._users, places, wanted)
        fused_producers, stored = self._fused_producers(places, stencils)
        computed = {i for producers in fused_producers for i in producers.nodes}
        if any(computed.intersection(stencil.users) for stencil in stencils):
            # A product that computes its operands while loading them reads from memory.
            stencils = [stencil for stencil in stencils if not computed.intersection(stencil.users)]
            fused_producers, stored = self._fused_producers(places, stencils)
        loaded = {i for producers in fused_producers for i in producers.nodes}.union(
            *(stencil.inside for stencil in stencils)
        )
        nodes = [self.graph.nodes[i] for i in sorted(places) if i not in loaded]
        alone = {
            node.id for node in nodes if node.kind in (*STANDALONE, Kind.SCAN) and not self._is_fused(node)
        } | numbers
        standalone = [node for node in nodes if node.id in alone]
        opened = opened_views(self.graph) if self._reads_through_views else {}
        wanted = wanted.union(*(node.inputs for node in standalone if node.id not in opened)) - loaded
        levels = [places.get(node.id, RESIDENT) for node in self.graph.nodes]
        fused = [node.id for node in nodes if node.id not in numbers and self._is_fused(node)]
        regions, host_folds, reasons = build_regions(
            self.graph,
            levels,
            fused,
            wanted,
            fused_producers,
            stencils,
            numbers_on_host=self.config.by_hand,
            sharing=self._sharing,
            opened=opened,
            folds_apart=self._capabilities.code_shape == "gpu",
        )
        made_here = {i for region in regions for i in region.outputs}
        found = {i: self._read_on_device(self.graph.nodes[i], made_here, places) for i in host_folds}
        folded = {i: there for i, there in found.items() if there}
        texts = {self.graph.nodes[i].name: _FOLDED[self.graph.nodes[i].op is SEGMENT_SUM] for i in folded}
        reasons = [replace(one, text=texts.get(one.element, one.text)) for one in reasons]
        self._record(*told_with_rows(self.graph, regions, stored), *reasons)
        made: dict[int, list[Step]] = {}
        for region in regions:
            here = region.within(entered.get(region.level, frozenset()))
            made.setdefault(region.level, []).append(self._region_step(here, placement))
        self._record(*(Reason("cut", node.name, why) for node in standalone if (why := self._why_alone(node))))
        for node in [*(self.graph.nodes[i] for i in host_folds), *standalone]:
            made.setdefault(places[node.id], []).append(self._node_step(node, folded.get(node.id, ())))
        return made

    def _node_step(self, node: Node, there: tuple[int, ...]) -> NodeStep:
        return NodeStep(node.name, node, there)

    def _read_on_device(self, node: Node, stored: Collection[int], places: Mapping[int, int]) -> tuple[int, ...]:
        """Return the values that a fold reads where its state lies on the device: what kernels make, or sources.

        Args:
            node: any node.
            stored: the values that kernels store.
            places: the clock of each node.

        Returns:
            By place the operands, or what they lie in as they are; nothing where the host folds.
        """
        own, float64 = self._capabilities, self._capabilities.float64
        is_alone = len(self.backend.placements) == 1 and not self.config.isolate
        if own.host_memory or not (float64 and is_alone and node.spec.item_numbers):
            return ()
        operands = [self.graph.nodes[i] for i in node.inputs]
        if node.op is SEGMENT_SUM and own.devices == 1 and operands[0].spec.is_stream:
            # The host sorts the keys.
            operands = operands[:1]
        elif node.op is not MATMUL_FOLD:
            return ()
        if operands[0].spec.dtype not in (FLOAT32, FLOAT64) or not all(one.spec.item_numbers for one in operands):
            return ()
        bases = [self._lies_in(one.id, places) for one in operands]
        nodes = [self.graph.nodes[i] for i in bases]
        return tuple(bases) if all(one.id in stored or isinstance(one.element, Source) for one in nodes) else ()

    def _lies_in(self, value: int, places: Mapping[int, int]) -> int:
        """Return the value of the same clock whose numbers are those of a view, in the same order; or the value."""
        base = storage(self.graph, value).base
        return base if places.get(base) == places.get(value) and is_dense(self.graph, value) else value

    def _record(self, *reasons: Reason) -> None:
        """Record reasons, each once for all passes."""
        self._reasons += [one for one in dict.fromkeys(reasons) if one not in self._recorded]
        self._recorded.update(reasons)

    def _fused_producers(
        self, places: Mapping[int, int], stencils: Sequence[Stencil]
    ) -> tuple[list[FusedProducers], list[Reason]]:
        """Find the nodes that are computed where they are loaded, in the pass or at the borders of stencils."""
        borders = {i for stencil in stencils for i in stencil.inside}
        nodes = (self.graph.nodes[i] for i in places if i not in borders)
        self._gathered = {node.id for node in nodes if self._is_gathered_by_kernel(node, places)}
        attending = {
            i for i in places if self.graph.nodes[i].op is SELF_ATTENTION and self._is_fused(self.graph.nodes[i])
        }
        return find_producers(
            self.graph, places, self.placements, self._gathered, attending, siblings=self._unites_siblings
        )

    def _is_fused(self, node: Node) -> bool:
        """Check whether a node is computed in a region. A scan is if a kernel can hold its carry."""
        if node.id in self._gathered:
            return True
        if node.kind is not Kind.SCAN:
            return node.kind in FUSED
        reason = why_on_host(node, self._capabilities, by_hand=self.config.by_hand)
        if reason is not None:
            self._record(Reason("cut", node.name, reason))
        return reason is None

    def _is_gathered_by_kernel(self, node: Node, places: Mapping[int, int]) -> bool:
        if node.kind is not Kind.VIEW:
            return False
        if node.op in ORDERING:
            reason = why_sorted_by_host(node, self._capabilities)
        elif is_together(node):
            reason = why_copied(self.graph, self._users, node, places)
        else:
            return False
        if reason is not None:
            self._record(Reason("cut", node.name, reason))
        return reason is None

    def _why_alone(self, node: Node) -> str | None:
        """Return why the host fills memory for a node; None if it fills none, or the reason is recorded already."""
        if node.kind is Kind.HOST:
            if node.op in (PACK, PACK_ROWS):
                return "bytes are put together on the host"
            called = "a Python function" if isinstance(node.element, HostFunction) else "LAPACK"
            return f"{called} computes it on the host"
        if node.kind is not Kind.VIEW or not node.spec.is_stream or is_together(node) or node.op in ORDERING:
            return None
        if node.op is INDICES:
            return "the host checks indices before a kernel reads the table"
        return "no strides describe this view: the host copies" if is_copied(self.graph, node.id) else None

    @property
    def _sharing(self) -> Sharing | None:
        """Limits of what kernels do in one launch; None where operands have to pass through a device's memory."""
        own = self._capabilities
        if own.code_shape == "numpy" or not (own.host_memory or self._stay):
            return None
        leads = self._leads if own.code_shape == "gpu" else None
        return Sharing(self._joins, self._takes_rows, leads, fences=own.device_fences)

    @property
    def _unites_siblings(self) -> bool:
        """Flag that a product computes what unites results of siblings. On discrete GPUs each line would do it anew."""
        return self._capabilities.code_shape != "numpy" and self._capabilities.host_memory

    @property
    def _reads_through_views(self) -> bool:
        """Flag that kernels read through views what they compute, so that rows are read once.

        On GPUs a kernel of its own adds up columns faster than one that reduces rows, too. Where there are several
        devices, views are steps that others read.
        """
        return self._capabilities.code_shape == "cpu" and len(self.backend.placements) == 1

    def _joins(self, region: Region) -> str | None:
        """Return the form of the kernel of a region if it can share its launch with others of that form."""
        form = None if _launches_nothing(self.graph, region) else self._form(region)
        return form.name if form is not None and form.joins else None

    def _takes_rows(self, region: Region) -> bool:
        """Check whether the kernel of a product can make the rows of its left factor."""
        return not _launches_nothing(self.graph, region) and self._form(region).takes_rows

    def _leads(self, region: Region) -> bool:
        """Check whether rows may follow the kernel of a product in its launch."""
        return not _launches_nothing(self.graph, region) and self._form(region).leads

    def _form(self, region: Region) -> Form:
        return form_for(self.graph, region, self._style(self._capabilities, ""))

    def _style(self, capabilities: DeviceCapabilities, kernel: str) -> KernelStyle:
        """Return the style of a kernel with this name."""
        return KernelStyle(
            capabilities, self.strategy.of_kernel(kernel), self.config.precision, block_terms=self._block_terms
        )

    def _region_step(self, region: Region, placement: int) -> RegionStep:
        kernel = None
        if self._capabilities.code_shape != "numpy" and not _launches_nothing(self.graph, region):
            kernel = self._kernel(region, f"k{self._kernels}", placement)
            self._kernels += 1
        merged = frozenset(i for i in region.folds if kernel is not None and self._is_merged_there(i))
        return RegionStep(region.name, region, kernel, placement, merged)

    def _is_merged_there(self, fold: int) -> bool:
        """Check whether a discrete device merges the blocks of a fold. Only steps of trainings keep no state of it."""
        spec = self.folds[fold]
        dtypes = {spec.dtype, spec.result_dtype}
        is_sum = spec.op in ("sum", "mean") and spec.numbers > 0 and dtypes <= {FLOAT32, FLOAT64}
        return is_sum and self.is_step and self._folds_there()

    def _folds_there(self) -> bool:
        """Check whether states of folds may lie on the device: it is the only one, with memory of its own."""
        own = self._capabilities
        is_alone = len(self.backend.placements) == 1 and own.devices == 1 and not self.config.isolate
        return is_alone and own.float64 and not own.host_memory

    def _kernel(self, region: Region, name: str, placement: int) -> Kernel:
        style = self._style(self.backend.placements[placement].capabilities, name)
        kernel = KERNELS.lower(self.graph, region, style, self.folds, name)
        return replace(kernel, contract=self.config.precision == "fast")

    def with_weight_tiles(self, one_pass: Pass) -> Pass:
        """Return a pass whose kernels read tiles of the operands that are streamed in tiles."""
        if not one_pass.weight_tiles:
            return one_pass
        clocks = (
            replace(clock, steps=tuple(self._with_weight_tiles(step, one_pass.weight_tiles) for step in clock.steps))
            for clock in one_pass.clocks
        )
        return replace(one_pass, clocks=tuple(clocks))

    def _with_weight_tiles(self, step: Step, weight_tiles: Mapping[int, WeightTiles]) -> Step:
        if isinstance(step, NodeStep) or step.kernel is None or step.placement != self.backend.main:
            return step
        cut = cut_factor(self.graph, step.region)
        if cut is None or cut[0] not in weight_tiles:
            return step
        region = replace(step.region, weight_tiles=weight_tiles[cut[0]])
        return replace(step, region=region, kernel=self._kernel(region, step.kernel.name, step.placement))


def _launches_nothing(graph: Graph, region: Region) -> bool:
    """Check whether all results of a region are empty for every batch size."""
    made = [graph.nodes[i].spec.item_numbers for i in (*region.outputs, *region.folds)]
    return not any(made)
