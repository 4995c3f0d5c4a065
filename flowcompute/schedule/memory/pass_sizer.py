"""Batch sizes of a pass: the largest that fit the budget of the host and of each discrete device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from flowcompute.errors import PlanError
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import DeviceCapabilities, FoldSpec
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.memory.attention_memory import ATTENTION_STATE, attention_growth
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.memory.device_needs import (
    DeviceTooSmallError,
    OtherDevices,
    RecordTooLargeError,
    find_other_devices,
)
from flowcompute.schedule.memory.host_buffers import host_edges
from flowcompute.schedule.memory.in_flight import batches_of_each
from flowcompute.schedule.memory.input_bytes import most_records
from flowcompute.schedule.memory.transfer_plan import TransferPlan, device_edges
from flowcompute.schedule.memory.worker_needs import isolated_placements, shared_name
from flowcompute.schedule.placement import (
    HEADROOM,
    LAUNCH_COST_BYTES,
    Residency,
    Residents,
    alignment,
    device_budget,
    why_dependent,
)
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.run_knobs import (
    joined_batches,
    with_defaults,
)
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy import Config, Strategy

IN_PLACE_BATCHES = 4
"""Factor on the default batch size where sources are read in place."""

MOST_SHARING = 512
"""Records at most that a batch is enlarged to, so that they share the weights that its products read."""

REFERENCE_ITEMS = 1 << 20
"""Records of a root clock at which the rates of the other clocks are computed."""


class BudgetError(PlanError):
    """An error of planning: a job does not fit its memory budget.

    Args:
        what: what does not fit, as "one batch".
        budget_bytes: of the job.
        least_bytes: a budget that it fits.
        element: name of what takes most.
        note: what `expected` says of that budget, and what `got` says of the job's.
    """

    def __init__(
        self, what: str, budget_bytes: int, least_bytes: int, *, element: str, note: tuple[str, str] = ("", "")
    ) -> None:
        super().__init__("", element=element, hint="raise memory=")
        self._what, self._least_bytes, self._note = what, least_bytes, note
        self._tell(budget_bytes)

    def _tell(self, budget_bytes: int) -> None:
        said, had = self._note
        self.message = f"cannot fit {self._what} into the memory budget of {budget_bytes} bytes"
        self.args = (self.message,)
        self.expected = f"memory of at least {self._least_bytes} bytes{said}"
        self.got = f"memory={budget_bytes}{had}"

    def tell_whole(self, budget_bytes: int, share: float) -> None:
        """Name the budgets of the whole job, of which what was planned has a share."""
        part, least = self._least_bytes, int(self._least_bytes / share)
        while int(least * share) < part:
            least += 1
        self._least_bytes = least
        self._note = self._note[0], f"{self._note[1]}; a step of a training may take {share:.0%} of it"
        self._tell(budget_bytes)


class BatchTooLargeError(RecordTooLargeError, BudgetError):
    """An error of planning: not even the smallest batch fits the budget of the host.

    Args:
        one_pass: of which it is a batch.
        what, budget_bytes, least_bytes, element, note: as for `BudgetError`.
    """

    def __init__(
        self, one_pass: Pass, what: str, budget_bytes: int, least_bytes: int, *, element: str, note: tuple[str, str]
    ) -> None:
        super().__init__(what, budget_bytes, least_bytes, element=element, note=note)
        self.one_pass = one_pass
        self.missing_bytes = least_bytes - budget_bytes


@dataclass(frozen=True)
class SizedPass:
    """A pass with the batch sizes of its clocks, and the bytes that its batches take.

    Attributes:
        planned: the pass.
        lines: names and bytes on the host.
        device_lines: those on a discrete device.
        uploaded_bytes: by operand, what each batch uploads anew.
    """

    planned: Pass
    lines: tuple[tuple[str, int], ...]
    device_lines: tuple[tuple[str, int], ...] = ()
    uploaded_bytes: Mapping[int, int] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Return the bytes on the host."""
        return sum(size for _, size in self.lines)


class PassSizer:
    """Search for the largest batches of a pass that fit."""

    def __init__(
        self,
        graph: Graph,
        one_pass: Pass,
        folds: dict[int, FoldSpec],
        config: Config,
        strategy: Strategy,
        backend: BackendDescription,
        default_bytes: int,
    ) -> None:
        self.graph = graph
        self.one = one_pass
        self.default_bytes = default_bytes
        self.backend = backend
        self.mine = one_pass.on_placement(backend.main)
        self.folds = folds
        self.config = config
        self.capabilities = backend.capabilities
        self.mapped = with_defaults(strategy, backend.capabilities).input == "mapped"
        self.batch_bytes = strategy.batch_bytes or default_bytes
        # Across a bus batches are several times as large by default.
        self.shares = strategy.batch_bytes is None and backend.capabilities.host_memory
        self.joined = joined_batches(strategy, backend.capabilities, by_hand=config.by_hand)

    def edges(self, depth: int) -> list[BatchBuffers]:
        """Return all host buffers that grow with the batch."""
        planned = (self.graph, self.one, self.folds, self.config, self.backend)
        found = host_edges(*planned, mapped=self.mapped, depth=depth)
        if self.config.resumable:
            # A checkpoint copies the waiting records, and what attention looks back on.
            waiting = [one for one in found if one.what.endswith(("(waiting)", ATTENTION_STATE))]
            found += [replace(one, what=f"{one.what}, copied", count=1) for one in waiting]
        for placement, _ in isolated_placements(self.config, self.backend):
            transfer_plan = TransferPlan.of(self.one, by_hand=self.config.by_hand, placement=placement)
            seen = device_edges(self.graph, self.one.on_placement(placement), self.folds, transfer_plan, depth=1)
            found += [replace(one, what=shared_name(one.what)) for one in seen]
        return found

    def batch_sizes(self, items: int) -> list[int]:
        """Return the batch sizes of all clocks when root clocks advance by `items` records."""
        batch_sizes: list[int] = []
        for clock in self.one.clocks:
            if clock.is_root:
                most = items if clock.length is None else min(items, max(1, clock.length))
                most = most if clock.most_items is None else min(most, clock.most_items)
                batch_sizes.append(max(clock.granule, -(-most // clock.granule) * clock.granule))
                continue
            most = max(
                most_records(entry, [batch_sizes[origin] for origin, _ in entry.inputs]) for entry in clock.entries
            )
            batch_sizes.append(-(-max(most, 1) // clock.granule) * clock.granule)
        return batch_sizes

    def lines(self, edges: list[BatchBuffers], items: int) -> tuple[tuple[str, int], ...]:
        """Return the name and bytes of each buffer for root batches of `items` records."""
        batch_sizes = self.batch_sizes(items)
        return tuple(edge.line(batch_sizes) for edge in edges)

    def least(self, depth: int) -> int:
        """Return the bytes of the smallest batches."""
        return sum(size for _, size in self.lines(self.edges(depth), 1))

    def asked_bytes(self, depth: int) -> int:
        """Return the bytes of batches of the size that was asked for."""
        edges = self.edges(depth)
        return sum(size for _, size in self.lines(edges, max(1, self._wanted(edges, self.batch_bytes))))

    def choose(self, depth: int, room: int, fixed_bytes: int, *, grows: bool) -> SizedPass:
        """Choose the largest batches that the knobs and the memory allow.

        Args:
            depth, room, fixed_bytes: batches in flight; bytes for buffers; bytes that are taken already.
            grows: whether a result of unknown length, of this pass or another one, stays in memory.

        Raises:
            PlanError: if the smallest do not fit.
        """
        edges = self.edges(depth)
        least = self.lines(edges, 1)
        least_bytes = sum(size for _, size in least)
        if least_bytes > room:
            worst = max(least, key=lambda line: line[1])
            records = ", ".join(f"{clock.granule}" for clock in self.one.clocks if clock.is_root)
            raise BatchTooLargeError(
                self.one,
                "one batch",
                self.config.memory_bytes,
                fixed_bytes + least_bytes,
                element=worst[0].rsplit(" x ", 1)[0],
                note=(f" ({records} records a batch)", ""),
            )
        if grows and 2 * least_bytes <= room:
            # Results of unknown length get the other half.
            room //= 2
        on_device = self._device_edges(depth)
        self._check_device(on_device)
        others = find_other_devices(self.graph, self.one, self.folds, self.config, self.backend, depth)
        for device in others:
            device.check(self.one, self.batch_sizes(1))
        low, high = 1, max(1, self._wanted(edges, self.joined * self.batch_bytes))
        while low < high:
            middle = (low + high + 1) // 2
            fits = sum(size for _, size in self.lines(edges, middle)) <= room
            fits = fits and all(device.fits(self.batch_sizes(middle)) for device in others)
            if fits and self._fits_device(on_device, middle):
                low = middle
            else:
                high = middle - 1
        return self._sized(edges, on_device, self._fewest_uploads(on_device, low), others)

    def _sized(
        self, edges: list[BatchBuffers], on_device: list[BatchBuffers], items: int, others: Sequence[OtherDevices]
    ) -> SizedPass:
        granule = max([clock.granule for clock in self.one.clocks if clock.is_root], default=1)
        shared = self.capabilities.devices > 1 and why_dependent(self.one, by_hand=self.config.by_hand) is None
        if shared or self.one.ahead:
            # If only a granule fits, one device computes all batches, or one batch is computed at a time.
            aligned = alignment(self.one, None if shared else self.one.ahead)
            granule = aligned if aligned <= items else granule
        items = max(granule, items // granule * granule)
        cut = max(granule, min(items, self._wanted(edges, self.batch_bytes)) // granule * granule)
        batch_sizes, boundaries = self.batch_sizes(items), self.batch_sizes(cut)
        clocks = tuple(
            replace(one, batch_items=room, cut_items=few if one.is_root and few < room else None)
            for one, room, few in zip(self.one.clocks, batch_sizes, boundaries, strict=True)
        )
        streams = tuple(edge.line(batch_sizes) for edge in on_device)
        sized = replace(self.one, clocks=clocks)
        if self.capabilities.host_memory:
            return SizedPass(sized, self.lines(edges, items))
        kept = self._residency(on_device, items)
        sized = replace(sized, streamed=kept.streamed, weight_tiles=kept.weight_tiles, ring=kept.ring)
        other_lines = ((f"{what} on {one.name}", size) for one in others for what, size in one.lines(batch_sizes))
        return SizedPass(sized, self.lines(edges, items), (*kept.lines, *streams, *other_lines), kept.uploaded_bytes)

    @cached_property
    def _sharing(self) -> int:
        """Records of which kernels store as many bytes as their products read of weights, decoded ones as floats.

        A smaller batch spends more on reading weights and on launches than on its own records.
        """
        weights, stored, nodes = 0, 1, self.graph.nodes
        for region in (step.region for step in self.one.steps if isinstance(step, RegionStep)):
            stored += sum(nodes[i].spec.item_bytes for i in region.outputs)
            for anchor in (part.anchor for part in region.parts or (region,) if part.anchor is not None):
                factors = (nodes[i].spec for i in nodes[anchor].inputs)
                weights += sum(spec.item_bytes for spec in factors if not spec.is_stream)
        return min(MOST_SHARING, weights // stored)

    # -- on a discrete device -------------------------------------------------------------------

    def _device_edges(self, depth: int) -> list[BatchBuffers]:
        """Return the device buffers that grow with the batch."""
        if self.capabilities.host_memory:
            return []
        transfer_plan = TransferPlan.of(self.one, by_hand=self.config.by_hand, placement=self.backend.main)
        each = batches_of_each(depth, self.capabilities)
        found = device_edges(self.graph, self.mine, self.folds, transfer_plan, each)
        return found + attention_growth(self.graph, self.mine.clocks)

    def _fits_device(self, on_device: list[BatchBuffers], items: int) -> bool:
        """Check whether batches of `items` records fit with as many operands streamed as possible."""
        if self.capabilities.host_memory:
            return True
        streams = sum(size for _, size in self.lines(on_device, items))
        return streams + self._residents.least.size_bytes <= device_room(self.config, self.capabilities)

    def _fewest_uploads(self, on_device: list[BatchBuffers], most: int) -> int:
        """Return the batch size, at most `most` records, that minimizes the bytes uploaded per record.

        Smaller batches leave room for more resident operands, but each streamed operand is uploaded more often.
        """
        best, least = most, math.inf
        while most >= 1 and not self.capabilities.host_memory:
            kept = self._residency(on_device, most)
            if (cost := (kept.cost_bytes + LAUNCH_COST_BYTES) / most) < least:
                best, least = most, cost
            if not kept.streamed:
                break
            most = most * 3 // 4
        return best

    def _residency(self, on_device: list[BatchBuffers], items: int) -> Residency:
        """Return the operands that stay on the device if batches have `items` records."""
        streams = sum(size for _, size in self.lines(on_device, items))
        return self._residents.within(device_room(self.config, self.capabilities) - streams)

    @cached_property
    def _residents(self) -> Residents:
        return Residents(self.graph, self.mine)

    def _check_device(self, on_device: list[BatchBuffers]) -> None:
        """Check that the smallest batch fits the device with as many operands streamed as possible.

        Raises:
            DeviceTooSmallError: if it does not; the error names the largest buffer.
        """
        if self._fits_device(on_device, 1):
            return
        lines = (*self._residents.least.lines, *self.lines(on_device, 1))
        whole = self._residents.largest_whole
        cannot = f"; {whole} is read as a whole: only factors of products are streamed in tiles"
        raise DeviceTooSmallError(
            self.one,
            "cannot fit the smallest batch and the operands of one kernel into the device's memory",
            lines,
            device_budget(self.capabilities.memory_bytes, self.config.device_memory_bytes),
            hint=f"raise device_memory=, or choose another device with device={cannot if whole else ''}",
        )

    def _wanted(self, edges: list[BatchBuffers], bytes_: int) -> int:
        """Return the records of a batch of `bytes_` bytes."""
        # Root clocks that are shorter end before.
        roots = [REFERENCE_ITEMS if one.length is None else one.length for one in self.one.clocks if one.is_root]
        reference = min(REFERENCE_ITEMS, max([1, *roots]))
        rates = [most / reference for most in self.batch_sizes(reference)]
        widest = max([edge.item_bytes * rates[edge.clock] for edge in edges if edge.item_bytes] + [1.0])
        wanted = int(bytes_ // widest)
        if self.shares and (share := self._sharing) > wanted:
            # Short streams are cut into batches of equal length.
            cuts = max(1, (reference + share // 2) // share)
            wanted = share if reference == REFERENCE_ITEMS else -(-reference // cuts)
        # Sources that are read in place use no buffers, so batches may be larger. They are not where the user asks
        # for small batches or where batches cross a bus, since transfers overlap with later steps.
        seen = max(sum(source.spec.item_bytes for source in self.one.sources), 1)
        many = bytes_ >= self.default_bytes and self.capabilities.host_memory
        in_place = min(IN_PLACE_BATCHES * bytes_, self.config.memory_bytes // 2) if many else bytes_
        return min(wanted, in_place // seen)


def device_room(config: Config, capabilities: DeviceCapabilities) -> int:
    """Return the bytes of a discrete device that a plan may allocate."""
    return int(device_budget(capabilities.memory_bytes, config.device_memory_bytes) * HEADROOM)
