"""Region runners: each runs regions on one device. It knows buffers and transfers, and has no state of the pass."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from flowcompute.batch import Batch
from flowcompute.engine.backend import KernelTuner
from flowcompute.engine.batch_slice import BatchSlice
from flowcompute.engine.folds import Accumulator
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.scans import Carry
from flowcompute.graph import Node
from flowcompute.ir import Kernel
from flowcompute.schedule import LaunchLog, NodeStep, RegionStep


class KnownLaunch(Protocol):
    """A launch of a step that a runner can repeat."""

    @property
    def arrays(self) -> Sequence[tuple[int, np.ndarray]]:
        """The arrays that it reads and writes, by value."""


class KnownRuns(Protocol):
    """Runs of a launch that a runner does as one."""

    def note(self, run: int, batch_slice: BatchSlice, *, again: bool) -> None:
        """Note what a run is given, at its place among them.

        Args:
            run: the place.
            batch_slice: has what it is given.
            again: whether values that stay have the arrays that they had when this place was noted last.
        """

    def launch(self, runs: int) -> None:
        """Launch the first runs, and leave the waiting to `RegionRunner.wait`."""


class RegionRunner(ABC):
    """Runs the regions of one placement for whoever has the state of the pass.

    It works on one batch at a time, between `take_up` and `let_go`. `upload`, `receive`, `hand_over` and `download` may
    go on meanwhile, each of a batch of its own.

    Attributes:
        state: of the pass.
        in_flight: batches that may be on their way through the device; 1 where nothing crosses a bus.
        lanes: calls of `upload` that may be under way at a time, and as many of `download`.
        log: where launches are counted by step, if anybody wants to know.
        tuner: who looks for better knobs, if anybody.
        waits_once: whether the results of the slice in hand are looked at together with those of others.
        staying: resident values that are made where kernels work, and that nobody else reads.
    """

    in_flight: int = 1
    lanes: int = 1
    log: LaunchLog | None = None
    tuner: KernelTuner | None = None
    waits_once: bool = False
    staying: frozenset[int] = frozenset()

    def __init__(self, state: PassState) -> None:
        self.state = state

    def attach(self) -> None:  # noqa: B027 - NumPy is always ready
        """Get ready to run regions; computes nothing.

        Raises:
            KernelError: if a kernel does not compile.
        """

    @abstractmethod
    def run(self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Compute a region over the records of a slice into `outputs`.

        Its folds' blocks are pushed by `BatchSlice.push_later`, so that a slice that fails has changed nothing.
        """

    def known(self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]) -> KnownLaunch | None:
        """Return the last launch of a step, if one over this slice would only repeat it."""
        del step, batch_slice, outputs
        return None

    def joined(self, known: Sequence[KnownLaunch], *, build: bool) -> tuple[object, bool]:
        """Return what `repeat` takes for known launches in a row, which are fewer launches where that is faster.

        Args:
            known: from `known`.
            build: whether programs may be built for that.

        Returns:
            That, and whether there would be fewer launches if programs were built.
        """
        del build
        return known, False

    def known_run(self, steps: Sequence[RegionStep], items: int) -> Mapping[str, KnownLaunch] | None:
        """Return by name the launches of a run that may be launched again, one by one; None where one is not known.

        Args:
            steps: all that are launched in a run of the pass over one batch.
            items: records in the batch.
        """
        del steps, items
        return None

    def still_knows(self, known: Collection[KnownLaunch]) -> bool:
        """Tell whether these launches, of `known_run`, may be launched again, as `prepare` has prepared them."""
        del known
        return False

    def prepare(
        self, known: Mapping[str, KnownLaunch], staying: Mapping[int, np.ndarray], own: Collection[int]
    ) -> Mapping[str, Callable[[BatchSlice], None]]:
        """Return by name what launches the steps of `known_run` again, and leaves the waiting to `wait`.

        Args:
            known: as `known_run` has given them.
            staying: by value arrays that stay from run to run. Others are looked up in the slice once a run.
            own: values along the stream that are looked up, too, though their arrays have stayed so far.
        """
        raise NotImplementedError(f"{type(self).__name__} knows no launches")

    def join_prepared(self, launches: Sequence[Callable[[BatchSlice], None]]) -> Sequence[Callable[[BatchSlice], None]]:
        """Return what does the same as launches of `prepare` that follow each other, in fewer launches where that pays.

        It pays where the run is done very often: programs may be compiled.
        """
        return launches

    def together(self, launch: Callable[[BatchSlice], None], most: int, staying: Collection[int]) -> KnownRuns | None:
        """Return what does runs of a launch of `join_prepared` as one; None where that launch is none of several.

        Args:
            launch: which one.
            most: runs that are launched at a time, at most.
            staying: values whose arrays may be those of the last time; see `KnownRuns.note`.

        Raises:
            DeviceFullError: where the device has no room for it now.
        """
        del launch, most, staying
        return None

    def begin_prepared(self) -> None:  # noqa: B027 - NumPy prepares nothing
        """Begin a run of launches that were prepared: what passes is looked up anew."""

    def only_block(self, known: KnownLaunch, fold: int) -> Sequence[np.ndarray] | None:
        """Return where such a launch puts the only block of a fold; None where there are more."""
        raise NotImplementedError(f"{type(self).__name__} knows no launches")

    def ends_block(self, known: KnownLaunch, fold: int) -> bool:
        """Tell whether the device can make the value of a fold of the only block of such a launch; see `end_block`."""
        raise NotImplementedError(f"{type(self).__name__} knows no launches")

    def end_block(self, known: KnownLaunch, fold: int, made: np.ndarray | None) -> Callable[[BatchSlice], None]:
        """Return what launches that, as `prepare`.

        Args:
            known: the launch that makes the block, which was prepared.
            fold: which one.
            made: takes the value, and stays; None for an array that is looked up in the slice.
        """
        raise NotImplementedError(f"{type(self).__name__} knows no launches")

    def push_blocks(self, known: KnownLaunch, fold: int, batch_slice: BatchSlice) -> None:
        """Give a fold the blocks that such a launch has made of a slice: by `BatchSlice.push_later`, as `run`."""
        raise NotImplementedError(f"{type(self).__name__} knows no launches")

    def repeat(self, joined: Any, batch_slice: BatchSlice) -> bool:
        """Repeat launches over a slice with the same arrays; False where one may not be, and nothing was done.

        Args:
            joined: from `joined`.
            batch_slice: the slice.
        """
        del joined, batch_slice
        return False

    def wait(self) -> None:  # noqa: B027 - NumPy is never behind
        """Wait for what `run` has left in progress: the host reads or writes arrays of the slice in hand."""

    def leave_run(self) -> None:  # noqa: B027 - as above
        """Leave what was launched in progress, and wait for what was left the last time; `wait` waits for both."""

    def forget_streams(self) -> None:  # noqa: B027 - NumPy keeps nothing, here and below
        """Forget the arrays of the slice in hand: what follows has others."""

    def forget_results(self) -> None:  # noqa: B027
        """Forget what was made of folds: it is made anew."""

    def forget_resident(self) -> None:  # noqa: B027
        """Forget the resident values that are given anew, and what was made of them."""

    def take(self, kept: Mapping[int, object]) -> None:
        """Take given values from where `hand_on` has left them, and those of passes before from where `lend` has."""
        if kept:
            raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def lend(self, made: int) -> object:
        """Return a value that stays, which later passes read."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def hand_on(self, made: int, given: int) -> object:
        """Return a value that stays, which is a given one from the next run on."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def fetch(self, kept: object, array: np.ndarray) -> None:
        """Bring what `hand_on` returned into an array on the host."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def begin_recording(self, given: Mapping[int, object]) -> None:  # noqa: B027 - as above
        """Record the run of the pass that begins, where that can be done again.

        Args:
            given: what `take` was given.
        """

    def end_recording(self) -> None:  # noqa: B027 - as above
        """End the run that is recorded: all of it has succeeded."""

    def known_recording(self, given: Mapping[int, object]) -> object | None:
        """Return what was recorded of a run that takes these values; None where that is not known."""
        del given
        return None

    def repeat_run(self, recording: Any, batch_slice: BatchSlice) -> Mapping[int, np.ndarray] | None:
        """Repeat a run that is known, over other records and numbers.

        Args:
            recording: from `known_recording`.
            batch_slice: all records, with what the host makes of them.

        Returns:
            What has come to the host, by value; None where the device had no room, and nothing was done.
        """
        raise NotImplementedError(f"{type(self).__name__} records nothing")

    def view(self, node: Node, whole: BatchSlice) -> None:
        """Make a view of a resident value where that stays."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing")

    def keep_blocks(self) -> None:  # noqa: B027
        """Keep what kernels have made for folds when they work on the next batch."""

    def resume_folds(self) -> None:  # noqa: B027
        """Go on with folds that have been put back to where they were."""

    def make_room(self, *, in_hand: bool) -> None:  # noqa: B027
        """Give back what the device holds for streams: the slices that follow are smaller.

        Args:
            in_hand: whether a batch of a root clock is computed, none of whose results counts.
        """

    def close(self) -> None:  # noqa: B027
        """Release every buffer; harmless when called twice."""

    # -- scans ------------------------------------------------------------------------------------

    def make_carry(self, step: RegionStep) -> Carry | None:
        """Make what the scan in a region carries, at its beginning; None where there is no scan."""
        del step
        return None

    def begin_scan(self, step: RegionStep, scan: Carry) -> Callable[[], None]:
        """Note where a scan is that is about to take the records of a slice; the result takes them back."""
        del step
        return scan.mark()

    def carried(self, value: int, scan: Carry) -> dict[str, Any]:
        """Return what a scan carries at its last record, as plain data."""
        del value
        return scan.snapshot()

    # -- folds on the device ----------------------------------------------------------------------

    def make_fold(self, node: Node) -> Accumulator:
        """Make the state of a fold that lies on the device, at its beginning."""
        raise NotImplementedError(f"{type(self).__name__} keeps no folds")

    def fold(self, step: NodeStep, fold: Accumulator, batch_slice: BatchSlice) -> Callable[[], None]:
        """Return what adds the records of a slice to such a fold, once all steps have succeeded.

        Raises:
            DeviceFullError: if the device has no room for what that makes.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no folds")

    def multiply(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return `left.T @ right` of C-contiguous matrices of records, in the order of products by kernels."""
        raise NotImplementedError(f"{type(self).__name__} has no such kernels")

    # -- transfers --------------------------------------------------------------------------------

    @property
    def late(self) -> frozenset[int]:
        """Results that are left on the device, to be downloaded later, where a batch was taken up."""
        return frozenset()

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Return host memory that is moved fastest; see `Executor.room`."""
        del size_bytes
        return None

    def upload(self, batch: Batch) -> int:
        """Bring the sources that kernels read to the device; gives the bytes."""
        raise NotImplementedError

    def uploads_at_once(self, batch: Batch) -> bool:  # noqa: ARG002 - for those that can
        """Tell whether `upload` of a batch only asks for it; see `Executor.uploads_at_once`."""
        return False

    def downloads_at_once(self, batch: Batch) -> bool:  # noqa: ARG002 - as above
        """Tell whether `download` of a batch has nothing to wait for; see `Executor.downloads_at_once`."""
        return False

    def take_up(self, batch: Batch, *, drop: bool) -> bool:
        """Work on a batch that may have been uploaded; False where it was to be, and there was no room.

        Args:
            batch: which one.
            drop: whether what was uploaded of it is of no use, since it is computed in slices.
        """
        del batch, drop
        return True

    def let_go(self) -> None:  # noqa: B027
        """Leave the batch in hand: it is over, or goes on elsewhere."""

    def hand_over(self, batch: Batch) -> None:  # noqa: B027
        """Bring what others need of a batch to the host."""

    def receive(self, batch: Batch, made: Mapping[int, np.ndarray]) -> None:  # noqa: B027
        """Begin to bring what others have made of a batch to where it is needed."""

    def leave(self, batch: Batch, value: int, array: np.ndarray) -> None:  # noqa: B027
        """Download one of the late results of a batch into an array, later."""

    def abandon(self, batch: Batch) -> None:  # noqa: B027
        """Drop what is here of a batch, which is computed anew."""

    def download(self, batch: Batch, *, drop: bool) -> int:
        """Fetch what destinations take; gives the bytes.

        Args:
            batch: which one.
            drop: whether to give its buffers back to the device.
        """
        raise NotImplementedError


class Runners:
    """The runners of all placements. Each works on one batch at a time: whoever has it run something holds it.

    Args:
        runners: by placement.
        several_ask: whether several threads have them run something, where there is only one runner.

    Attributes:
        moving: those that batches are moved to and from: those across a bus, where there are several.
    """

    def __init__(self, runners: Sequence[RegionRunner], *, several_ask: bool = False) -> None:
        self._runners = tuple(runners)
        self._several_ask = several_ask or len(self._runners) > 1
        self._locks = tuple(threading.Lock() for _ in runners)
        self.moving = [one for one in self._runners if one.in_flight > 1 or len(self._runners) == 1]

    def __getitem__(self, placement: int) -> RegionRunner:
        return self._runners[placement]

    def __iter__(self) -> Iterator[RegionRunner]:
        return iter(self._runners)

    def __len__(self) -> int:
        return len(self._runners)

    def attach(self, log: LaunchLog | None, tuner: KernelTuner | None) -> None:
        """Get all devices ready; several ask the tuner one at a time."""
        shared = tuner if tuner is None or len(self) == 1 else OneAtATime(tuner)
        for one in self._runners:
            one.log, one.tuner = log, shared
            one.attach()

    def held(self, placements: Collection[int]) -> AbstractContextManager[None]:
        """Hold some runners, which costs nothing where nobody else asks for them."""
        return self._held(placements) if self._several_ask else nullcontext()

    @contextmanager
    def _held(self, placements: Collection[int]) -> Iterator[None]:
        """Hold some runners, the lowest first. Only `process` holds several, so nobody waits in a circle."""
        with ExitStack() as stack:
            for placement in sorted(placements):
                stack.enter_context(self._locks[placement])
            yield

    def run(self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Run a region where it is placed."""
        self._runners[step.placement].run(step, batch_slice, outputs)

    def wait(self) -> None:
        """Wait for what is left in progress. Only a runner that is alone leaves something."""
        if len(self._runners) == 1:
            self._runners[0].wait()

    def forget_streams(self, placements: Collection[int]) -> None:
        """Forget the arrays of the slice in hand on these placements."""
        for placement in placements:
            self._runners[placement].forget_streams()

    def take(self, kept: Mapping[int, object]) -> None:
        """Take given values from where they were left; see `RegionRunner.take`."""
        for one in self._runners:
            one.take(kept)

    def stays(self, value: int) -> bool:
        """Tell whether a resident value stays where kernels work. Only a runner that is alone has such values."""
        return value in self._runners[0].staying

    def forget_resident(self) -> None:
        """Forget what is given anew; see `RegionRunner.forget_resident`."""
        with self.held(range(len(self))):
            for one in self._runners:
                one.forget_resident()

    def make_room(self, *, in_hand: bool) -> None:
        """Give back what all devices hold for streams; see `RegionRunner.make_room`."""
        with self.held(range(len(self))):
            for one in self._runners:
                one.make_room(in_hand=in_hand)


class OneAtATime:
    """A tuner that several devices ask."""

    def __init__(self, tuner: KernelTuner) -> None:
        self._tuner = tuner
        self._lock = threading.Lock()

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        """Ask the tuner, one caller at a time; see `KernelTuner.launched`."""
        with self._lock:
            return self._tuner.launched(step, launch)
