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
from flowcompute.schedule import RegionStep, Step

ALIKE = 2
"""Slices of one kind after which stretches are looked for: the first makes what the second repeats."""


@dataclass(frozen=True)
class Stretch:
    """Neighbouring steps.

    Attributes:
        steps: how many.
        last: name of the last one.
        known: what launches those that are regions, as `RegionRunner.joined` has it; the others are views.
        needed: arrays that they read of steps before, by value.
        values: arrays that they make, by value.
    """

    steps: int
    last: str
    known: Sequence[KnownLaunch]
    needed: Arrays
    values: Arrays


class RepeatedSteps:
    """The stretches of a clock's steps.

    Args:
        runners: of all placements. Only a runner that is alone knows its launches.
        views: values that are strided views of arrays that stay.
    """

    def __init__(self, runners: Runners, views: Collection[int]) -> None:
        self._runners = runners
        self._views = views
        self._stretches: dict[int, Stretch] = {}
        self._steps: Sequence[Step] = ()
        self._kind = (0, 0)
        self._alike = 0
        self._foreseen = False

    def begin(self, steps: Sequence[Step], taken: BatchSlice) -> None:
        """Begin the steps of a slice; one of another kind has nothing to repeat."""
        kind = taken.items, taken.offset
        if kind != self._kind or steps is not self._steps:
            self._stretches.clear()
            self._steps, self._kind, self._alike = steps, kind, 0

    def repeat(self, place: int, taken: BatchSlice) -> Stretch | None:
        """Repeat the stretch that begins at a place among the steps; None where there is none, or nothing was done."""
        stretch = self._stretches.get(place)
        if stretch is None:
            return None
        same = all(taken.values.get(value) is array for value, array in stretch.needed.items())
        if not same or not self._runners[0].repeat(stretch.known, taken):
            self._stretches.clear()
            self._alike = 0
            return None
        taken.values.update(stretch.values)
        return stretch

    def end(self, taken: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Look for stretches once some slices were alike."""
        self._alike += 1
        if len(self._runners) > 1:
            return
        if self._alike == ALIKE:
            self._look(taken, outputs)
        elif taken.items == 1 and not self._foreseen:
            # Single records follow in a flow. What their stretches need is compiled now, and nothing later.
            self._foreseen = True
            self._look(taken, outputs)
            self._stretches.clear()

    def _look(self, taken: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
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
                self._add(first, self._steps[first:place], known, needed, values)
                first, known, needed, values = place + 1, [], {}, {}
                continue
            known += [] if launch is None else [launch]
            needed |= {i: array for i, array in read if i in taken.values and i not in values and i not in made}
            values |= {i: taken.values[i] for i in made}
        self._add(first, self._steps[first:], known, needed, values)

    def _add(
        self, first: int, steps: Sequence[Step], known: Sequence[KnownLaunch], needed: Arrays, values: Arrays
    ) -> None:
        if len(steps) > 1 and known:
            joined = self._runners[0].joined(known)
            self._stretches[first] = Stretch(len(steps), steps[-1].name, joined, needed, values)
