"""The interface of backends and of their executors. Implemented by `gpu/` and `reference/`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flowcompute.elements.policies import SkipCounter
from flowcompute.errors import DeviceFullError
from flowcompute.imports import dataclass
from flowcompute.ir import DeviceCapabilities
from flowcompute.metrics import StepTold
from flowcompute.schedule import BackendDescription
from flowcompute.strategy import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from flowcompute.batch import Batch
    from flowcompute.ir import Kernel
    from flowcompute.schedule import ExecutionPlan, LaunchLog, RegionStep
    from flowcompute.schedule.explain import Plan


DRAIN = -1
"""In place of a root clock: what waits is enough for another batch of some clock, nothing need be read."""


class NoRoomTogetherError(DeviceFullError):
    """A device with too little memory for several runs in one launch, of which none was done."""


class KernelTuner(Protocol):
    """Looks for better knobs while kernels work; asked in the executor's thread after each launch for a batch."""

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        """Learn from a kernel that has been launched, and whose arguments are still there.

        Args:
            step: whose kernel it was.
            launch: launches another kernel of the step over the same results, which stores the same
                bytes; gives its seconds, without compiling. Raises KernelError where it cannot.

        Returns:
            The kernel to go on with, None for the one in use.
        """


class Executor(ABC):
    """Runs the compute part of one pass: what lies between its sources and its destinations.

    Methods may block and are called from worker threads, one at a time. First is `open`. Then, as `wants` says, come
    `process` for each batch of a root clock in record order, `end` once for each root clock, and `drain`. Then comes
    `finish`, and at last always `close`.

    Where `in_flight` is more than one, there is one root clock and its batches may overlap. `upload` is called for each
    batch in record order before its `process`, `download` after it, each of the three in a thread of its own.
    `download` of a batch comes before `upload` of the one `in_flight` later. State changes in `process` only.
    """

    lanes: int = 1
    """Calls of `upload` that may be under way at a time, and as many of `download`."""

    in_flight: int = 1
    """Batches that may be between the beginning of `upload` and the end of `download`; without both where it is 1."""

    in_progress: int = 0
    """Runs, the last ones, that `repeat` has left in progress."""

    launches: int = 0
    """Kernels launched so far (calls of NumPy regions on the reference backend)."""

    tuner: KernelTuner | None = None
    """Who looks for better knobs, if anybody."""

    log: LaunchLog | None = None
    """Where launches are counted by step, if anybody wants to know."""

    skip_counters: Sequence[SkipCounter] = ()
    """Counters of dropped records, by element of the pass that may drop some; `reset` leaves them as they are."""

    taken: Sequence[int] = ()
    """By clock the records that count. A `process` that has failed and left them as they were has changed nothing."""

    notes: tuple[str, ...] = ()
    """Departures from the plan, and how trainings are going, in words."""

    @abstractmethod
    def open(self) -> None:
        """Compile, allocate, upload and compute resident values that do not depend on the streams of the pass.

        Raises:
            KernelError: if a kernel does not compile.
        """

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Return host memory for batches that is moved fastest, as bytes, until `close`; None where any is as good.

        Raises:
            RunError: if there is no more of it.
        """
        del size_bytes
        return None

    def upload(self, batch: Batch) -> int:
        """Bring what a batch reads to where it is computed; gives the bytes."""
        raise NotImplementedError

    def download(self, batch: Batch) -> int:
        """Bring what `process` has left to bring into its outputs; gives the bytes."""
        raise NotImplementedError

    def uploads_at_once(self, batch: Batch) -> bool:  # noqa: ARG002 - for those that can
        """Check whether `upload` of a batch only asks for it, which takes less than handing it to a thread."""
        return False

    def downloads_at_once(self, batch: Batch) -> bool:  # noqa: ARG002 - as above
        """Check whether `download` of a batch that was processed has nothing to wait for."""
        return False

    @abstractmethod
    def wants(self) -> int | None:
        """Return the root clock whose next batch (or end) is to be given, `DRAIN`, or None when all is computed."""

    @abstractmethod
    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Mapping[int, tuple[int, int]]:
        """Compute one batch of a root clock, and what it lets other clocks compute.

        Args:
            batch: the sources' arrays by value id.
            outputs: where to write the stream values that destinations take: value id -> C-contiguous array. It has
                `batch.items` records for the batch's own clock, the clock's `batch_items` for others.

        Returns:
            By value id the records that were computed, from and to; they fill the beginning of the output.

        Raises:
            RunError: naming element and records, if a host function or a kernel fails; a
                DeviceError where the device itself did, which loses what it held.
        """

    def together(self) -> AbstractContextManager[None]:
        """Process batches whose results nobody looks at before the end of the block: they may be waited for once."""
        return nullcontext()

    @abstractmethod
    def end(self, clock: int, outputs: Mapping[int, np.ndarray]) -> Mapping[int, tuple[int, int]]:
        """End a root clock, which has no more batches; as `process`."""

    @abstractmethod
    def drain(self, outputs: Mapping[int, np.ndarray]) -> Mapping[int, tuple[int, int]]:
        """Compute with what waits; as `process`."""

    @abstractmethod
    def finish(self) -> dict[int, np.ndarray]:
        """End the pass: the resident values that destinations take, by value id."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all records: as after `open`."""

    def told(self) -> Sequence[StepTold]:
        """Return the steps of trainings that were not asked for before."""
        return ()

    def begin_again(self) -> None:
        """Begin anew with other given values, as `open` does, with the kernels that there are.

        What depends on none of them is not computed again.
        """
        raise NotImplementedError(f"{type(self).__name__} runs one job once")

    def repeat(
        self, arrays: Callable[[], dict[int, np.ndarray]], *, leave: bool = False
    ) -> Mapping[int, np.ndarray] | None:
        """Do all from `begin_again` to `finish` as it was done before, over other given values and records.

        Args:
            arrays: reads the records of all sources, by value; called only where the run can be repeated.
            leave: whether the run may be left in progress, or begin later; see `in_progress`. What it makes is there
                once it has ended. Resident values that it gives to the next one are those after the last one then.

        Returns:
            What `finish` gives; None where nothing was done.
        """
        del arrays, leave
        return None

    can_follow: bool = False
    """True where runs that `repeat` has left begin later, in a launch that has room for another one."""

    def follow(self, arrays: dict[int, np.ndarray]) -> Mapping[int, np.ndarray]:
        """Repeat a run over what the last one makes, in the launch of that one, where `can_follow`.

        Args:
            arrays: records of all sources, by value. Given values that no run makes are those of this one.

        Returns:
            What `repeat` gives, but for what it has given for the run before, too.
        """
        raise NotImplementedError(f"{type(self).__name__} launches at once")

    def wait(self) -> None:  # noqa: B027 - most leave nothing in progress
        """Wait for the runs that `repeat` has left in progress.

        Raises:
            NoRoomTogetherError: where there was no room for several. Nothing has changed, and they are forgotten.
        """

    def keep(self, made: frozenset[int], given: Mapping[int, object]) -> None:  # noqa: B027 - only devices keep something
        """Leave values on the device, before `open` or `begin_again`.

        Args:
            made: resident values that only kernels of the pass read; nobody brings them to the host.
            given: what `hand_on` returned, by the value that it is now, and what `lend` returned.
        """

    def lend(self, made: int) -> object:
        """Return what `keep` of a later pass takes: a value that was made and kept, after `finish`."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def hand_on(self, made: int, given: int) -> object:
        """Return what `keep` takes as a given value: a value that was made and kept, after `finish`."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def fetch(self, kept: object, array: np.ndarray) -> None:
        """Bring what `hand_on` returned into an array on the host."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state of the folds as plain data and arrays, as of the last processed batch."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot; called after `open`."""

    def hand_over(self) -> Mapping[str, Any]:
        """Return the state as `snapshot` does, for `join` of another executor, until this one begins again."""
        return self.snapshot()

    def join(self, state: Mapping[str, Any]) -> None:
        """Take in what folds have made of the records that follow, on another device; before `finish`.

        Args:
            state: of an executor of the same pass, as `hand_over` gives it.

        Raises:
            ValueError: if its records do not follow those of this one.
        """
        raise NotImplementedError(f"{type(self).__name__} computes alone")

    @abstractmethod
    def step_seconds(self) -> dict[str, tuple[int, float]]:
        """Return batches done and seconds busy by step name, for metrics."""

    def step_traffic(self) -> Mapping[str, tuple[int, int, int]]:
        """Return records, bytes of streams read and bytes of streams made by step name, as far as known."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Release every buffer; harmless when called twice."""


class Closable(Protocol):
    """Something that holds memory."""

    def close(self) -> None:
        """Release it; harmless when called twice."""


def close_all(several: Iterable[Closable]) -> None:
    """Close several, also where one of them fails; then raise the first failure."""
    failures: list[Exception] = []
    for one in several:
        try:
            one.close()
        except Exception as failure:  # noqa: BLE001 - all are closed, then the first failure is told
            failures.append(failure)
    if failures:
        raise failures[0]


class Backend(ABC):
    """A way to compute: the NumPy reference, an OpenCL device, or several of these.

    Attributes:
        description: what plans know of it.
    """

    description: BackendDescription

    @property
    def capabilities(self) -> DeviceCapabilities:
        """The capabilities of all devices together."""
        return self.description.capabilities

    @property
    def placements(self) -> Sequence[Backend]:
        """Devices that compute the regions of a plan, each the one that its step names."""
        return (self,)

    def prepare(self, plan: ExecutionPlan, placement: int = 0) -> None:  # noqa: B027 - most have nothing to compile
        """Compile what the passes of a plan need of a placement, so that their executors open at once.

        Raises:
            KernelError: if a kernel does not compile.
        """

    def measure(self, room_bytes: int) -> Limits | None:  # noqa: ARG002 - most have no limits to measure
        """Measure what the device can do at most; None where there is no device, or no room on the host.

        Raises:
            KernelError: if the device does not do what it is asked for.
        """
        return None

    def alone(self, number: int) -> Backend:
        """Return the backend of one of the devices that share the batches of this one."""
        raise NotImplementedError(f"{type(self).__name__} has no device {number} to share batches with")

    @abstractmethod
    def executor(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """Make an executor for one pass of the plan; nothing is touched before its `open`.

        Args:
            resident: whole values by id, of earlier passes and for later ones.
        """


@dataclass(frozen=True)
class PlannedJob:
    """A plan, and the backend that computes it."""

    plan: Plan
    backend: Backend

    @classmethod
    def of(cls, plan: Plan, backend: Backend) -> PlannedJob:
        """Pair a plan with the backend, or with the only placement that the plan needs of it."""
        number = plan.backend.number
        return cls(plan, backend if number is None else backend.placements[number])

    def executor(self, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """Make an executor for one pass; see `Backend.executor`."""
        return self.backend.executor(self.plan, pass_index, resident)

    def prepare(self) -> None:
        """Compile all kernels; see `Backend.prepare`."""
        self.backend.prepare(self.plan)
