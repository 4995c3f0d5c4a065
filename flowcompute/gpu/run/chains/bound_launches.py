"""Launches that follow each other and stay as they are, each with a kernel whose arguments are set once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowcompute.gpu.device import BoundKernel
from flowcompute.gpu.kernel_arguments import INTEGER_ARGUMENTS, argument_types
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.gpu.run.chains.carries_together import CarriesTogether
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch
from flowcompute.gpu.worker import Launcher
from flowcompute.ir import Argument
from flowcompute.schedule import RegionStep

_CHUNK, _FIRST = (INTEGER_ARGUMENTS.index(name) for name in ("chunk", "first"))


class _Bound(NamedTuple):
    """A launch: what launches each of its stages, whether arguments change, and the places of two that do."""

    launch: RepeatedLaunch
    stages: Sequence[BoundKernel]
    changes: bool
    chunk: int | None
    first: int | None


class BoundLaunches:
    """Launches that follow each other. They do the same as one by one, on the same numbers.

    Args:
        launches: in their order.
        launcher: of the device, which can bind.

    Attributes:
        launches: as above.
        step: the step of what is in hand, which errors name.
        phases: one for each launch of a kernel.

    Raises:
        cl.Error: if the driver has no room.
    """

    def __init__(self, launches: Sequence[RepeatedLaunch], launcher: Launcher) -> None:
        self.launches = launches
        self.step: RegionStep = launches[0].step
        texts = dict.fromkeys(program_of(one.kernel)[0] for one in launches)
        named = {text for text in texts if _names_first(text)}
        self._bound = [_bind(one, launcher, named) for one in launches]
        self.phases = range(sum(len(one.stages) for one in self._bound))
        carries = [(one, slice(at, at + 1)) for at, one in enumerate(launches) if one.carry is not None]
        self._carries = CarriesTogether.of(carries)
        self._made = {value: buffer for one in launches for value, buffer in one.made.items()}

    def again(
        self,
        launcher: Launcher,
        start: int,
        on_host: Callable[[int, int], np.ndarray],
        buffer: Callable[[Argument], Any],
    ) -> None:
        """Launch all over the records from `start` on; see `RepeatedLaunch.again`."""
        if launcher.memory.recording is not None:
            for known in self.launches:
                self.step = known.step
                known.again(launcher, start, on_host, buffer)
            return
        launcher.memory.defer(())
        chunks: dict[int, int] | None = None
        for at, (known, stages, changes, chunk, first) in enumerate(self._bound):
            self.step = known.step
            if changes:
                # Those before are in progress meanwhile. What is uploaded may lie where they read.
                changed = [(place, buffer(known.kernel.arguments[place])) for place in known.passing]
                if chunk is not None:
                    chunks = chunks or self._begun(launcher, start, on_host)
                    changed.append((chunk, chunks[at]))
                if first is not None:
                    changed.append((first, start))
                for stage in stages:
                    for place, value in changed:
                        stage.put(place, value)
            for stage in stages:
                stage.launch()
        launcher.memory.made_again(self._made)
        for one in self._carries:
            one.advanced(start)

    def _begun(self, launcher: Launcher, start: int, on_host: Callable[[int, int], np.ndarray]) -> dict[int, int]:
        """Begin what is carried on; gives the `chunk` of each launch that does, by its place."""
        if not all(one.is_known for one in self._carries):
            self._carries = CarriesTogether.of([pair for one in self._carries for pair in one.each])
        return {
            place.start: chunk
            for one in self._carries
            for chunk, places in one.begin(self, launcher, start, on_host)
            for place in places
        }


def _bind(one: RepeatedLaunch, launcher: Launcher, named: Collection[str]) -> _Bound:
    """Bind a launch; `named` are the texts that name the first record."""
    kernel, own = one.kernel, len(one.buffers)
    types, values = argument_types(kernel), [*one.buffers, one.total, one.chunk, one.blocks, 0]
    stages = [
        launcher.bind(one.compiled, types, [*values, stage], one.groups, kernel.work_group) for stage in one.phases
    ]
    chunk = None if one.carry is None else own + _CHUNK
    first = own + _FIRST if program_of(kernel)[0] in named else None
    changes = bool(one.passing) or chunk is not None or first is not None
    return _Bound(one, stages, changes, chunk, first)


def _names_first(text: str) -> bool:
    """Check whether a kernel names the index of the first record elsewhere than among its parameters."""
    return len(re.findall(rf"\b{INTEGER_ARGUMENTS[_FIRST]}\b", text)) > 1
