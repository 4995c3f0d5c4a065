"""Stretches of steps that a slice repeats: all that they read and make are the very arrays of the slice before.

A token of a language model is one record through hundreds of kernels. Looking for the arrays of each step takes longer
than to launch it. So what was looked up for a slice is kept for those that follow, as long as they are alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.region_runner import KnownLaunch, Runners
from flowcompute.imports import dataclass
from flowcompute.ring import Recent
from flowcompute.schedule import RegionStep, Step
from flowcompute.schedule.memory import MOST_KINDS

ALIKE = 2
"""Slices of one kind after which launches are joined, where that takes a compiler. Single records follow in a flow, so
theirs are joined after the first."""


@dataclass(frozen=True)
class Stretch:
    """Neighbouring steps.

    Attributes:
        steps: how many.
        last: name of the last one.
        joined: what launches those that are regions, as `RegionRunner.joined` has it; the others are views.
        needed: arrays that they read of steps before, by value.
        values: arrays that they make, by value.
    """

    steps: int
    last: str
    joined: object
    needed: Arrays
    values: Arrays


class SliceKind:
    """A kind of slices, which have as many records at the same offset, and what is known of them.

    Attributes:
        stretches: by the place of the first step.
        alike: how many slices made what these repeat, or repeated it.
        waits: whether launches are to be joined later.
    """

    def __init__(self) -> None:
        self.stretches: dict[int, Stretch] = {}
        self.alike = 0
        self.waits = False

    def forget(self) -> None:
        """Forget the stretches."""
        self.stretches.clear()
        self.alike = 0


class RepeatedSteps:
    """The stretches of a clock's steps.

    Args:
        runners: of all placements. Only a runner that is alone knows its launches.
        views: values that are strided views of arrays that stay.
    """

    def __init__(self, runners: Runners, views: Collection[int]) -> None:
        self._runners = runners
        self._views = views
        self._steps: Sequence[Step] = ()
        self._kinds = Recent[tuple[int, int], SliceKind](MOST_KINDS, SliceKind)
        self._kind = SliceKind()

    def begin(self, steps: Sequence[Step], taken: BatchSlice) -> None:
        """Begin the steps of a slice, which repeats others of its kind."""
        if steps is not self._steps:
            self._kinds.clear()
            self._steps = steps
        self._kind = self._kinds.take((taken.items, taken.offset))

    def repeat(self, place: int, taken: BatchSlice) -> Stretch | None:
        """Repeat the stretch that begins at a place among the steps; None where there is none, or nothing was done."""
        stretch = self._kind.stretches.get(place)
        if stretch is None:
            return None
        same = all(taken.values.get(value) is array for value, array in stretch.needed.items())
        if same:
            # Carries may read views among them on the host. Steps that are run after all make their own.
            taken.values.update(stretch.values)
            if self._runners[0].repeat(stretch.joined, taken):
                return stretch
        self._kind.forget()
        return None

    def end(self, taken: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Look for stretches once a slice has made what others repeat; build programs for these once they come."""
        kind = self._kind
        kind.alike += 1
        if len(self._runners) > 1:
            return
        if kind.alike == 1 or (kind.alike == ALIKE and kind.waits):
            kind.waits = False
            self._look(taken, outputs, build=kind.alike == ALIKE or taken.items == 1)

    def _look(self, taken: BatchSlice, outputs: Mapping[int, np.ndarray], *, build: bool) -> None:
        first, known, needed, values = 0, list[KnownLaunch](), Arrays(), Arrays()
        for place, step in enumerate(self._steps):
            launch = None
            if isinstance(step, RegionStep):
                launch = self._runners[0].known(step, taken, outputs)
                read = None if launch is None else launch.arrays
                made = set(step.region.outputs)
            else:
                read = [(i, taken.array(i)) for i in step.node.inputs] if step.node.id in self._views else None
                made = {step.node.id}
            if read is None or not made.isdisjoint(outputs):
                self._add(first, self._steps[first:place], known, needed, values, build=build)
                first, known, needed, values = place + 1, [], {}, {}
                continue
            known += [] if launch is None else [launch]
            needed |= {i: array for i, array in read if i in taken.values and i not in values and i not in made}
            values |= {i: taken.values[i] for i in made}
        self._add(first, self._steps[first:], known, needed, values, build=build)

    def _add(
        self,
        first: int,
        steps: Sequence[Step],
        known: Sequence[KnownLaunch],
        needed: Arrays,
        values: Arrays,
        *,
        build: bool,
    ) -> None:
        if len(steps) > 1 and known:
            joined, waits = self._runners[0].joined(known, build=build)
            self._kind.waits |= waits
            self._kind.stretches[first] = Stretch(len(steps), steps[-1].name, joined, needed, values)
