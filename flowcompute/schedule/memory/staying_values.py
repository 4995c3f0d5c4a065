"""Resident values of a plan that runs again and again which stay on a discrete device, from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from flowcompute.imports import dataclass
from flowcompute.ir import is_strided
from flowcompute.schedule.plan import ExecutionPlan, Pass
from flowcompute.schedule.steps import NodeStep, RegionStep, Step, device_folds, merged_folds


@dataclass(frozen=True)
class StayingValues:
    """Values that only kernels read: nobody brings them to the host.

    Attributes:
        handed_on: by result the given value that it is in the next run.
        made: by pass, what its kernels make of resident values, results that are handed on among it.
        lent: by pass, what later passes read of that.
    """

    handed_on: Mapping[int, int] = field(default_factory=dict)
    made: tuple[frozenset[int], ...] = ()
    lent: tuple[frozenset[int], ...] = ()

    @classmethod
    def of(cls, plan: ExecutionPlan, pairs: Mapping[int, int]) -> StayingValues:
        """Find the values that stay; none where nothing crosses a bus, or where several devices share batches.

        Args:
            plan: that runs again and again.
            pairs: by result the given value that it becomes.
        """
        capabilities = plan.backend.capabilities
        is_alone = capabilities.devices == 1 or all(one.parts for one in plan.passes)
        is_alone = is_alone and len(plan.backend.placements) == 1 and not plan.config.isolate
        if capabilities.host_memory or not is_alone:
            nothing = (frozenset[int](),) * len(plan.passes)
            return cls(made=nothing, lent=nothing)
        search, given = _Search(plan), [*pairs.values()]
        handed_on = {
            made: i for made, i in pairs.items() if made != i and given.count(i) == 1 and search.is_handed_on(made, i)
        }
        left = {i for i in search.made_in if i in handed_on or search.stays(i)}
        # A view is made by the device of what is there. Of any other value the host makes it.
        there = left.union(handed_on.values())
        mine = {i: number for i, number in search.made_in.items() if i in left and search.base(i) in there}
        by_pass = tuple(frozenset(i for i in mine if mine[i] == number) for number in range(len(plan.passes)))
        return cls(handed_on, by_pass, tuple(frozenset(filter(search.is_read_later, one)) for one in by_pass))


class _Search:
    """Who makes the values of a plan, and who reads them."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self._read_on_host = {i for one in plan.passes for i in _read_on_host(one)}
        self._sinks = {sink.value for one in plan.passes for sink in one.sinks}
        self._read_in: dict[int, set[int]] = {}
        self._views: dict[int, list[int]] = {}
        self.made_in: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        for number, one in enumerate(plan.passes):
            for step in (*one.before, *one.after):
                if isinstance(step, RegionStep):
                    self.made_in |= dict.fromkeys(step.region.outputs if step.kernel is not None else (), number)
                elif isinstance(step, NodeStep) and _is_strided(step):
                    (operand,), view = step.node.inputs, step.node.id
                    self.made_in[view], self.seen[view] = number, operand
                    self._views.setdefault(operand, []).append(view)
                    self._read_in.setdefault(operand, set()).add(number)
            folds = [step.node.id for step in device_folds(one.steps)]
            self.made_in |= dict.fromkeys([*folds, *merged_folds(one.steps)], number)
            for argument in (argument for kernel in one.kernels for argument in kernel.arguments):
                self._read_in.setdefault(argument.value, set()).add(number)

    def is_handed_on(self, made: int, given: int) -> bool:
        """Check whether a result that a kernel makes can be a given value that kernels read."""
        is_made = made in self.made_in and made not in self.seen
        return is_made and self._is_left_to_kernels(made) and self._is_left_to_kernels(given)

    def stays(self, value: int) -> bool:
        """Check whether a value is no result, and read by kernels alone."""
        return value not in self._sinks and self._is_left_to_kernels(value)

    def is_read_later(self, value: int) -> bool:
        """Check whether a pass behind the one that makes a value reads it."""
        return max(self._read_in.get(value, ()), default=0) > self.made_in[value]

    def base(self, value: int) -> int:
        """Return the value that a value is a view of, or the value itself."""
        while value in self.seen:
            value = self.seen[value]
        return value

    def _is_left_to_kernels(self, value: int) -> bool:
        """Check whether nobody but kernels reads a value, and views of it that stay."""
        return value not in self._read_on_host and all(map(self.stays, self._views.get(value, ())))


def _is_strided(step: Step) -> bool:
    """Check whether a step makes a view of a resident value that has strides."""
    return isinstance(step, NodeStep) and not step.node.spec.is_stream and is_strided(step.node)


def _read_on_host(one: Pass) -> Iterator[int]:
    """Return the values of a pass that host functions, folds, clocks and launches read on the host."""
    yield from one.streamed
    yield from (i for clock in one.clocks for entry in clock.entries for _, i in entry.inputs)
    for step in (*one.before, *one.steps, *one.after):
        if isinstance(step, NodeStep):
            # Of a view it depends on who reads that.
            yield from () if _is_strided(step) else step.on_host
        elif step.kernel is None:
            yield from step.region.inputs
        else:
            # Scalars are arguments, and what is read cyclically is uploaded with a vector behind it.
            # Blocks of a fold are no values: the fold's result is made of them.
            made = ("output", "partial", "carry")
            read = (each for each in step.kernel.arguments if each.kind not in made)
            yield from (each.value for each in read if each.kind != "input" or each.period)
