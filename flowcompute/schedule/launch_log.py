"""Cost of the kernels of a pass: written by an executor, read by metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

FIRST = 3
"""Launches of a kernel that are all timed on the device. Of later launches only a sample is timed."""

EVERY = 16
"""Interval of later timed launches. The host waits for each one, which costs some 10 microseconds."""

FIRST_DEFERRED = 2
"""The same where nobody waits otherwise. An estimate takes two: the first one counts as those that follow."""

EVERY_DEFERRED = 256
"""Interval where nobody waits otherwise. Where timing takes waiting, that costs more than the kernel."""


class Launch(NamedTuple):
    """A launch that was timed on the device: its step, its end on the host's clock, and its duration."""

    step: str
    ended_s: float
    device_s: float


class RepeatedCount:
    """Count of how often steps were launched together, in place of one for each step.

    Args:
        steps: the steps, each of which is launched once a time.

    Attributes:
        steps: as above.
        times: how often they were launched.
        left: how often they may be before one of them is to be timed; 0 where that is to be found out.
        sharing: other counts with one of these steps.
    """

    def __init__(self, steps: Sequence[StepLaunches]) -> None:
        self.steps = steps
        self.times = self.left = 0
        found = {id(other): other for one in steps for other in one.repeated}
        self.sharing: Sequence[RepeatedCount] = [*found.values()]
        for other in self.sharing:
            other.sharing = [*other.sharing, self]
        for one in steps:
            one.repeated.append(self)


class StepLaunches:
    """Counts and times of one step.

    Attributes:
        alone: launches that were recorded one by one.
        repeated: counts of those together with others.
        timed: launches that were timed on the device.
        device_s: seconds of the timed launches on the device.
        first_s: seconds of the first timed launch, which `device_s` includes.
        compile_s: seconds of building the program or loading it from the cache.
    """

    def __init__(self) -> None:
        self.alone = 0
        self.repeated: list[RepeatedCount] = []
        self.timed = 0
        self.device_s = 0.0
        self.first_s = 0.0
        self.compile_s = 0.0

    @property
    def launches(self) -> int:
        """Kernels launched."""
        return self.alone + sum(one.times for one in self.repeated)

    @property
    def until_timed(self) -> int:
        """Launches that nobody waits for otherwise, before the next one that is to be timed."""
        return 0 if self.timed < FIRST_DEFERRED else -self.launches % EVERY_DEFERRED

    @property
    def estimate_s(self) -> float:
        """Estimated seconds of all launches on the device, from the timed ones.

        The first launch counts as an average one, since on some drivers it also generates machine code.
        """
        if self.timed < 2:
            return self.device_s * self.launches
        return (self.device_s - self.first_s) * self.launches / (self.timed - 1)


class LaunchLog:
    """Log that counts launches by step and decides which are timed on the device.

    Args:
        tell: told of each timed launch, one at a time; where it is given, all are timed.
    """

    def __init__(self, tell: Callable[[Launch], object] | None = None) -> None:
        self.steps: dict[str, StepLaunches] = {}
        # Several devices may launch at a time.
        self._lock = threading.Lock()
        self._tell = tell
        self._repeated: dict[tuple[str, ...], RepeatedCount] = {}

    @property
    def asks_ends(self) -> bool:
        """True where somebody is told when each launch ended, so that all are waited for."""
        return self._tell is not None

    def compiled(self, step: str, seconds: float) -> None:
        """Record that a step's program has been built."""
        with self._lock:
            self._of(step).compile_s += seconds

    def is_timed(self, step: str, *, deferred: bool = False) -> bool:
        """Check whether the next launch of a step is to be timed on the device.

        Args:
            step: the name of the step.
            deferred: whether nobody waits for it otherwise.
        """
        numbers = self._of(step)
        # Nobody is told the seconds of launches of a slice that fails, which is done again.
        if self._tell is not None or numbers.timed < (FIRST_DEFERRED if deferred else FIRST):
            return True
        return numbers.launches % (EVERY_DEFERRED if deferred else EVERY) == 0

    def launched(self, step: str, ended_s: float, device_s: float | None) -> None:
        """Record that a kernel has been launched and has ended.

        Args:
            step: the name of the step.
            ended_s: the end, on the clock of `time.perf_counter`.
            device_s: seconds on the device; None if it was not timed, or `timed` is told later.
        """
        with self._lock:
            numbers = self._of(step)
            numbers.alone += 1
            for one in numbers.repeated:
                one.left = 0
            if device_s is None:
                return
            self._add(step, device_s)
            if self._tell is not None:
                self._tell(Launch(step, ended_s, device_s))

    def timed(self, step: str, device_s: float) -> None:
        """Record the seconds of a launch that was recorded before it ended."""
        with self._lock:
            self._add(step, device_s)

    def _add(self, step: str, device_s: float) -> None:
        numbers = self._of(step)
        if not numbers.timed:
            numbers.first_s = device_s
        numbers.timed += 1
        numbers.device_s += device_s

    def repeated(self, steps: Sequence[str]) -> RepeatedCount:
        """Return what counts launches of steps that are repeated together, each of them once a time."""
        with self._lock:
            names = (*steps,)
            if names not in self._repeated:
                self._repeated[names] = RepeatedCount([self._of(name) for name in names])
            return self._repeated[names]

    def launched_again(self, repeated: RepeatedCount) -> bool:
        """Record launches that nobody waits for; False, and none of them, where one is to be timed first."""
        with self._lock:
            if not repeated.left:
                repeated.left = 0 if self._tell is not None else min(one.until_timed for one in repeated.steps)
            if not repeated.left:
                return False
            repeated.left -= 1
            repeated.times += 1
            for one in repeated.sharing:
                one.left = 0
        return True

    def _of(self, step: str) -> StepLaunches:
        if step not in self.steps:
            self.steps[step] = StepLaunches()
        return self.steps[step]
