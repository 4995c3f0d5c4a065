"""Steps of trainings whose records several discrete devices divide: each folds a part, and the first one joins them.

What crosses between devices are the sums of each part, and the values that a step changes; no record does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import starmap

from flowcompute.elements import HostFunction, Kind
from flowcompute.elements.training import Given, GivenStream
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec, HostFold, ProductShape, largest_nodes
from flowcompute.schedule.placement.shared_passes import alignment, why_in_order
from flowcompute.schedule.plan import Clock, Pass
from flowcompute.schedule.steps import NodeStep, RegionStep, Step, device_folds
from flowcompute.schedule.work_estimate import work_of

NODE_BYTES = 8
"""Bytes of a number of a sum: nodes of the tree are in float64."""

OPERATIONS_PER_BYTE = 2500
"""Operations in float32 in the time that a byte crosses a bus in: 50e12 and 20e9 a second, of fast devices."""

TENSOR_SPEED = 10
"""Operations that tensor cores do in the time of one in float32."""

HANDED_OVER = 3e11
"""Operations in float32 in the time that dividing a step takes beside what crosses: launches are not recorded."""

WORTH = 2
"""Factor by which what is saved must exceed what it costs, since rates differ from machine to machine."""

ROOM_SHARE = 4
"""Part of the host's memory that is taken at most by what crosses."""

EVEN = 16
"""Parts are equally long but for this fraction: few nodes of the tree cross where parts begin at many whole blocks."""


@dataclass(frozen=True)
class Division:
    """Parts of the records of a pass, one for each device.

    Attributes:
        starts: the first record of each part; empty where the first device computes all.
        why: what is gained or would be lost, in words.
        held_bytes: by fold or given value the memory of the host through which it crosses.
    """

    starts: tuple[int, ...]
    why: str
    held_bytes: Mapping[int, int]


def divide_records(
    graph: Graph,
    passes: Collection[Pass],
    folds: Mapping[int, FoldSpec],
    host_folds: Mapping[int, HostFold],
    count: int,
    room_bytes: int,
) -> Division:
    """Divide the records of a step among devices, where that is faster than to leave them to the first.

    Args:
        graph: of the step.
        passes: of its plan.
        folds, host_folds: what each fold computes.
        count: of the devices.
        room_bytes: memory of the host for the step.
    """
    why = _why_whole(passes, folds, host_folds)
    if why is not None:
        return Division((), why, {})
    (one,) = passes
    (clock,) = one.clocks
    products = {step.node.id: ProductShape.of(host_folds[step.node.id]) for step in device_folds(one.steps)}
    starts = _starts(one, clock, folds, products, count)
    if not starts:
        return Division((), f"{clock.length} records are too few blocks of its folds", {})
    ends = [*starts[1:], clock.length or 0]
    held = {
        i: NODE_BYTES
        * shape.numbers
        * sum(starmap(partial(_nodes, shape.block), zip(starts[1:], ends[1:], strict=True)))
        for i, shape in products.items()
    }
    given = {i: graph.nodes[i].spec.item_bytes for i in given_to_parts(graph, part_of(one))}
    # Down once and up to each device; sums of each device down and up.
    crossing = 2 * sum(held.values()) + count * sum(given.values())
    saved = (clock.length or 0) * _operations(graph, clock, products) * (count - 1) / count
    text = f"{crossing} bytes a step between devices"
    if saved < WORTH * (crossing * OPERATIONS_PER_BYTE + HANDED_OVER):
        return Division((), f"bringing {text} takes longer than parts of the records save", {})
    if sum((*held.values(), *given.values())) > room_bytes // ROOM_SHARE:
        return Division((), f"the memory of the host has no room for {text}", {})
    return Division(starts, f"sums of parts and values that change are {text}", {**held, **given})


def part_of(one: Pass) -> Pass:
    """Return what a device computes that has a part of the records: what streams need, and no result."""
    wanted = {i for step in one.steps for i in _read(step)}
    before: list[Step] = []
    for step in reversed(one.before):
        if not wanted.isdisjoint(step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)):
            before.append(step)
            wanted.update(_read(step))
    return replace(one, before=tuple(reversed(before)), after=(), sinks=())


def given_to_parts(graph: Graph, part: Pass) -> frozenset[int]:
    """Return the values of a step that such a device is given."""
    read = {i for step in (*part.before, *part.steps) for i in _read(step)}
    return frozenset(i for i in read if isinstance(graph.nodes[i].element, Given))


def _read(step: Step) -> Collection[int]:
    return step.region.inputs if isinstance(step, RegionStep) else step.node.inputs


def _why_whole(
    passes: Collection[Pass], folds: Mapping[int, FoldSpec], host_folds: Mapping[int, HostFold]
) -> str | None:
    """Return why the records of a step cannot be divided; None if they can."""
    if len(passes) > 1:
        return f"its records are read {len(passes)} times"
    (one,) = passes
    if len(one.clocks) > 1 or not one.clocks[0].is_root:
        return "its streams advance at several paces"
    if one.streamed:
        return "not all operands fit the device"
    if not all(isinstance(source.element, GivenStream) for source in one.sources):
        return "no step of a training gives its records"
    if any(isinstance(step, NodeStep) and isinstance(step.node.element, HostFunction) for step in one.before):
        return "functions of yours are called before the records"
    products = {i for i, fold in host_folds.items() if fold.op == "matmul"}
    return next(filter(None, (_why_in_one_piece(step, folds, products) for step in one.steps)), None)


def _why_in_one_piece(step: Step, folds: Collection[int], products: Collection[int]) -> str | None:
    """Return why one device has to compute a step for all records."""
    if (why := why_in_order(step)) is not None:
        return why
    if isinstance(step, RegionStep):
        return None if step.kernel is not None else f"{step.name} has no kernel"
    if step.node.id in folds or step.node.kind in (Kind.VIEW, Kind.ALONG):
        return None
    return None if step.on_device and step.node.id in products else f"{step.name} takes the records in their order"


def _starts(
    one: Pass, clock: Clock, folds: Mapping[int, FoldSpec], products: Mapping[int, ProductShape], count: int
) -> tuple[int, ...]:
    """Return where parts begin: at whole blocks of all folds, about equally long; empty where these are too few."""
    own = [folds[i].block for i in folds if i in clock.values]
    block = math.lcm(alignment(one), *own, *(shape.block for shape in products.values()))
    length = clock.length or 0
    while 2 * block * count * EVEN <= length:
        block *= 2
    starts = tuple((length * number // count + block // 2) // block * block for number in range(count))
    return starts if [*starts] == sorted({*starts}) and starts[-1] < length else ()


def _nodes(block: int, first: int, stop: int) -> int:
    """Count the nodes of a tree that the whole blocks of some records make."""
    return sum(1 for _ in largest_nodes(first // block, stop // block - first // block))


def _operations(graph: Graph, clock: Clock, products: Mapping[int, ProductShape]) -> float:
    """Count the operations for a record, in those of float32."""
    found = sum(2.0 * shape.rows * shape.numbers for shape in products.values())
    return found + sum(_weighed(graph, clock.steps))


def _weighed(graph: Graph, steps: Collection[Step]) -> Iterator[float]:
    for work in (work_of(graph, step) for step in steps if isinstance(step, RegionStep)):
        yield work.operations / (TENSOR_SPEED if work.unit == "tensor" else 1)
