"""Expected seconds of each stage of a plan, from measured rates, and the stages that took much longer.

The seconds are those of the roofline model (see `strategy/roofline.py`) with files as further roofs: a stage takes its
bytes over the measured rate of what they go through. The stages of a pass work side by side, so that a pass takes as
long as its slowest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from flowcompute.errors import SourceError
from flowcompute.files import cached_share
from flowcompute.imports import dataclass
from flowcompute.metrics import NodeMetrics
from flowcompute.schedule.explain.roofline_table import limits_of
from flowcompute.schedule.run_knobs import with_defaults
from flowcompute.schedule.steps import RegionStep
from flowcompute.schedule.work_estimate import work_of
from flowcompute.sinks import FolderSink, StoredSink
from flowcompute.sources import StoredSource
from flowcompute.strategy import Limits, Roofline, load_file_rates, scaled

if TYPE_CHECKING:
    from flowcompute.schedule.plan import Clock, ExecutionPlan, Pass, SinkStage, SourceStage

LEAST_BYTES = 64 << 20
"""Bytes of a pass below which nothing is expected: starting and ending take a larger part of its time."""

_FAILED = {"read": 2.0, "compute": 4.0, "write": 2.0}
"""Multiple of the expected time above which a stage is named. Kernels rarely reach the rates of arithmetic."""

_FAILED_S = 0.05
"""Seconds that it takes longer, at least."""


@dataclass(frozen=True)
class Expectation:
    """Expected time of one stage, over all passes that it works in.

    Attributes:
        stage: its name.
        kind: "read", "compute" or "write".
        records: records that it is expected to work on.
        bytes: bytes of streams that it moves.
        seconds: the least seconds that the measured rates allow.
        limit: what limits it, in words: "the disk", "the system's cache", "memory" or "arithmetic".
    """

    stage: str
    kind: Literal["read", "compute", "write"]
    records: int
    bytes: int
    seconds: float
    limit: str

    def __str__(self) -> str:
        rate = scaled(self.bytes / self.seconds, "B/s")
        return f"{self.kind:<7} {self.stage}: {self.seconds:.2f} s, {scaled(self.bytes, 'B')} at {rate} ({self.limit})"

    def missed(self, row: NodeMetrics) -> str | None:
        """Say by how much a stage missed the expectation; None where it did not.

        Args:
            row: its metrics. Of a resumed job these cover fewer records than the plan.
        """
        took_s = row.device_s or row.busy_s
        expected_s = self.seconds * min(row.items / self.records, 1.0)
        if took_s <= _FAILED[self.kind] * expected_s or took_s - expected_s < _FAILED_S:
            return None
        return f"{self.stage} took {took_s:.2f} s, and {expected_s:.2f} s were expected by {self.limit}"


def expectations(plan: ExecutionPlan) -> tuple[Expectation, ...]:
    """Return what a plan expects of its stages, as far as the rates were measured and the lengths are known.

    Rates are those that `flowcompute devices --measure` has stored on this machine. Passes of few bytes expect nothing.
    """
    passes = [one for one in plan.passes if _bytes(one) >= LEAST_BYTES]
    # What is kept is only read where it counts: this is asked at the start of each run.
    limits = limits_of(plan) if passes else ()
    found: dict[str, Expectation] = {}
    for one in passes:
        for each in _of_pass(plan, one, limits):
            known = found.get(each.stage)
            found[each.stage] = each if known is None else _both(known, each)
    return tuple(found.values())


def missed(expected: Sequence[Expectation], rows: Mapping[str, NodeMetrics]) -> tuple[str, ...]:
    """Say which stages missed their expectations, and by how much."""
    texts = (one.missed(rows[one.stage]) for one in expected if one.stage in rows)
    return tuple(text for text in texts if text is not None)


def _bytes(one: Pass) -> int:
    return sum(source.spec.item_bytes * (source.spec.length or 0) for source in one.sources)


def _both(one: Expectation, other: Expectation) -> Expectation:
    longer = max(one, other, key=lambda each: each.seconds)
    return replace(
        longer,
        records=one.records + other.records,
        bytes=one.bytes + other.bytes,
        seconds=one.seconds + other.seconds,
    )


def _of_pass(plan: ExecutionPlan, one: Pass, limits: Sequence[Limits | None]) -> Iterator[Expectation]:
    mapped = with_defaults(plan.strategy, plan.backend.capabilities).input == "mapped"
    in_place: dict[int, Expectation] = {}
    for source in one.sources:
        try:
            read, copied = _of_source(source), source.element.must_read(mapped=mapped) is not None
        except (OSError, SourceError):
            # Whoever opens it for reading says what is wrong with it.
            continue
        if read is not None and copied:
            yield read
        elif read is not None:
            # A mapped file is read by whichever kernel touches it first.
            in_place[source.value] = read
    for clock in one.clocks:
        for step in clock.steps:
            if isinstance(step, RegionStep) and clock.length:
                touched = [in_place.pop(value) for value in step.region.inputs if value in in_place]
                yield from _of_region(plan, step, clock, limits[step.placement], touched)
    yield from filter(None, map(_of_sink, one.sinks))


def _of_source(source: SourceStage) -> Expectation | None:
    element, records = source.element, source.spec.length
    if not isinstance(element, StoredSource) or not element.files.local or not records:
        return None
    rates = load_file_rates(element.path)
    if rates is None:
        return None
    cached = cached_share(element.files, element.path)
    size = source.spec.item_bytes * records
    seconds = size * (cached / rates.cached_bytes_per_s + (1 - cached) / rates.read_bytes_per_s)
    limit = "the system's cache" if cached > 1 / 2 else "the disk"
    return Expectation(source.name, "read", records, size, seconds, limit)


def _of_sink(sink: SinkStage) -> Expectation | None:
    element, records = sink.element, sink.spec.length
    if not isinstance(element, StoredSink) or isinstance(element, FolderSink) or not element.files.local:
        return None
    if not sink.spec.is_stream or not records:
        return None
    rates = load_file_rates(element.target)
    if rates is None:
        return None
    size = sink.spec.item_bytes * records
    return Expectation(sink.name, "write", records, size, size / rates.write_bytes_per_s, "the disk")


def _of_region(
    plan: ExecutionPlan, step: RegionStep, clock: Clock, limits: Limits | None, touched: Sequence[Expectation]
) -> Iterator[Expectation]:
    assert clock.length
    work = work_of(plan.graph, step)
    records, devices = clock.length, plan.backend.placements[step.placement].capabilities.devices
    size = work.bytes * records
    roof = Roofline(step.name, float(size), work.operations * records, work.unit, 0.0).under(limits)
    least = [(sum(one.seconds for one in touched), touched[0].limit)] if touched else []
    if roof.least_s:
        least.append((roof.least_s / devices, str(roof.bound)))
    if least and size:
        yield Expectation(step.name, "compute", records, size, *max(least))
