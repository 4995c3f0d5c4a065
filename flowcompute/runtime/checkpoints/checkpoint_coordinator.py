"""Takes the checkpoints of a run: says when, collects what counts, and writes it down beside the running batches."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowcompute.elements import Constant, GrowingFile, Reader, StagingArea, State, Writer
from flowcompute.elements.policies import DeadLetters
from flowcompute.errors import Site
from flowcompute.files import FILES
from flowcompute.imports import LateModule, dataclass
from flowcompute.observe import CheckpointBegun, CheckpointCommitted
from flowcompute.runtime.channels import CheckpointBarrier, RunRecord, Workers, attributed
from flowcompute.runtime.checkpoints.checkpoint_policy import CheckpointPolicy
from flowcompute.runtime.checkpoints.foreign_writes import refuse_foreign_writes
from flowcompute.runtime.checkpoints.stored_job import (
    check_job,
    create_folder,
    freezing_path,
    refuse_overwriting,
    refuse_unreadable,
    sound_state,
)
from flowcompute.schedule import SinkStage
from flowcompute.schedule.explain import Plan

if TYPE_CHECKING:
    import trio

    from flowcompute.checkpoint import job as jobs
    from flowcompute.checkpoint import store
else:
    trio = LateModule("trio")
    jobs = LateModule("flowcompute.checkpoint.job")
    store = LateModule("flowcompute.checkpoint.store")


class FrozenError(Exception):
    """The run has ended because it was asked to freeze."""


@dataclass
class Request:
    """The checkpoint that was asked of a run, from any thread.

    Attributes:
        path: of the checkpoint, absolute; None for none so far.
        freeze: whether the run is to end after the next one.
        site: the user's line that asked; the run has threads of its own.
        accept_touched: whether a source that was touched since is the same if its contents are.
    """

    path: str | None = None
    freeze: bool = False
    policy: CheckpointPolicy = field(default_factory=CheckpointPolicy)
    site: Site | None = None
    accept_touched: bool = False

    def aim(self, path: str | os.PathLike[str] | None, plan: Plan) -> str:
        """Return where a run that is to be frozen now puts its checkpoint.

        Raises:
            CheckpointError: if there is no such place, or the job cannot be frozen.
        """
        target = freezing_path(self.path, path, "run")
        refuse_unreadable(plan)
        refuse_overwriting(plan, target)
        if self.path is None:
            # Who asks is told at once where there can be none, and the run goes on.
            store.CheckpointFolder.create(target, FILES).close()
        self.path = target
        return target


class Resume(NamedTuple):
    """The place where a pass goes on.

    Attributes:
        starts: by root clock the first record.
        executor: state of the compute stage.
        sinks: states of the destinations of the run, in the order in which they are opened.
        places: where sources go on that count something else than records, by the id that checkpoints keep.
    """

    starts: Mapping[int, int]
    executor: State
    sinks: list[State]
    places: Mapping[int, State]


class CheckpointCoordinator:
    """Keeps the checkpoint of one run, if it has one.

    Args:
        plan: what runs.
        record: where the run says how far it is.
        workers: threads.
        request: what the user asks for, now and later.
        writers: the destinations opened so far.
        dead_letters: dead-letter files.

    Attributes:
        epoch: checkpoints that the job has passed.
    """

    def __init__(
        self,
        plan: Plan,
        record: RunRecord,
        workers: Workers,
        request: Request,
        writers: list[tuple[SinkStage, Writer]],
        dead_letters: Collection[DeadLetters],
    ) -> None:
        self.epoch = 0
        self._plan = plan
        self._record = record
        self._workers = workers
        self._request = request
        self._writers = writers
        self._dead_letters = dead_letters
        self._folder: store.CheckpointFolder | None = None
        self._published = False
        self._token = ""
        self._sides: dict[int, GrowingFile] = {}
        self._pass = 0
        self._readers: Mapping[int, tuple[int, Reader]] = {}
        self._places: dict[str, State] = {}
        self._resident: dict[int, np.ndarray] = {}
        self._resident_blobs: dict[str, Any] | None = None
        self._at_once = False
        self._restored = False
        self._in_flight: CheckpointBarrier | None = None
        self._leaving, self._arriving = trio.open_memory_channel[CheckpointBarrier](1)
        self._began_s = 0.0
        self._at_cut: dict[str, Any] = {}
        self._idle = trio.Event()
        self._idle.set()
        self._sides_lock = threading.Lock()

    # -- beginning and end ------------------------------------------------------------------

    @property
    def keeps(self) -> bool:
        """True where there is a checkpoint, so that what was written must not be dropped."""
        return self._published

    def open(self) -> dict[str, Any] | None:
        """Take the checkpoint that was asked for; gives the body of the state to go on with, None at the beginning.

        Raises:
            CheckpointError: if it belongs to another job, is in use, or cannot be used.
        """
        path = self._request.path
        if path is None or not store.CheckpointFolder.exists(path, FILES):
            refuse_foreign_writes(self._plan)
            if path is not None:
                self._create(path)
            return None
        self._folder = store.CheckpointFolder.open(path, FILES)
        self._folder.site = self._request.site
        generation = self._folder.newest()
        job, body = jobs.KeptJob.read(self._folder.job()), generation.body
        check_job(job, self._plan, path, self._request.site, accept_touched=self._request.accept_touched)
        refuse_foreign_writes(self._plan, job.token, body)
        self._token, self._published, self.epoch = job.token, True, generation.number
        self._record.resume(jobs.read_progress(body))
        return body

    def _create(self, path: str) -> None:
        self._folder, self._token = create_folder(path, FILES, self._plan)
        self._folder.site = self._request.site

    def sound_state(self) -> AbstractContextManager[None]:
        """Make a state that this job cannot have an error of the checkpoint, within a block."""
        return sound_state(self._request.path)

    def sound_pass(self) -> AbstractContextManager[None]:
        """Make what a pass fails with that nobody foresaw an error of the checkpoint, where it began with its state."""
        return self.sound_state() if self._restored else nullcontext()

    def resume(self, body: Mapping[str, Any]) -> tuple[int, Resume]:
        """Return the pass that a frozen job was in, and where it goes on.

        Raises:
            CheckpointError: if this job has no such place.
        """
        with self.sound_state():
            index = int(body["pass"])
            if not 0 <= index < len(self._plan.passes):
                raise ValueError(f"pass {index} of {len(self._plan.passes)}")
            roots = {clock.id: clock for clock in self._plan.passes[index].clocks if clock.is_root}
            starts = {int(clock): int(start) for clock, start in body["starts"].items()}
            for clock, start in starts.items():
                length = roots[clock].length
                if start < 0 or (length is not None and start > length):
                    raise ValueError(f"record {start} of {length}")
            wanted = sum(len(each.sinks) for each in self._plan.passes[: index + 1])
            if set(starts) != set(roots) or len(body["sinks"]) < wanted:
                raise ValueError("not all sources and results are in it")
            places = {int(source): place for source, place in body.get("places", {}).items()}
            return index, Resume(starts, body["executor"], list(body["sinks"]), places)

    @property
    def is_open(self) -> bool:
        """True while it has the folder of a checkpoint, which is to be given back."""
        return self._folder is not None

    def close(self) -> None:
        """Give the checkpoint back."""
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.close()

    def place(self, position: int) -> StagingArea:
        """Return where a destination keeps what it writes."""
        return StagingArea(f"{self._token}-{position}", partial(self._side, position), lambda: self.epoch)

    @property
    def token(self) -> str | None:
        """Names the drafts of this job; None where there is no checkpoint yet."""
        return self._token or None

    def letters_token(self, position: int) -> str:
        """Return the token of the draft of a dead-letter file."""
        return f"{self._token}-letters-{position}"

    def _side(self, position: int) -> GrowingFile:
        with self._sides_lock:
            if position not in self._sides:
                assert self._folder is not None, "side files belong to a checkpoint"
                self._sides[position] = self._folder.side(f"sink-{position}")
            return self._sides[position]

    # -- while the run goes on ----------------------------------------------------------------

    def enter_pass(self, index: int, resident: Mapping[int, np.ndarray], *, resumed: bool) -> None:
        """Begin a pass, with whole values of earlier ones."""
        self._pass = index
        nodes = self._plan.graph.nodes
        self._resident = {i: array for i, array in resident.items() if not isinstance(nodes[i].element, Constant)}
        self._resident_blobs = None
        # What a pass has opened is mentioned before its first batch, so that whoever resumes it finds it.
        self._at_once = not resumed
        self._restored = resumed
        self._request.policy.begin(self._record.bytes_read)

    def read_by(self, readers: Mapping[int, tuple[int, Reader]]) -> None:
        """Take the readers of the pass that has begun: by source its root clock, and who reads it."""
        self._readers = readers

    def is_due(self) -> bool:
        """Check whether a barrier is to be sent now; called between two batches."""
        if self._request.freeze:
            return True
        if self._folder is None or self._in_flight is not None:
            return False
        return self._at_once or self._request.policy.is_over(self._record.bytes_read)

    async def begin(
        self, starts: Mapping[int, int], executor: State, flowing: Collection[int], known: Mapping[int, State]
    ) -> CheckpointBarrier:
        """Make a barrier with the state of the compute stage.

        Args:
            starts: by root clock the first record that does not count.
            executor: its state.
            flowing: positions of the destinations that the barrier is sent to.
            known: states of those among them that it need not be sent to.
        """
        began_s = time.monotonic()
        await self._idle.wait()
        self._began_s = began_s
        # Batches go on while it is written: what they compute is not part of it.
        self._at_cut = self._progress()
        found = {str(value): reader.place_of(starts[clock]) for value, (clock, reader) in self._readers.items()}
        self._places = {value: place for value, place in found.items() if place is not None}
        others = {
            position: writer.snapshot() for position, (_, writer) in enumerate(self._writers) if position not in flowing
        }
        self._in_flight = CheckpointBarrier(starts, executor, flowing, {**others, **known})
        self._idle = trio.Event()
        self._leaving.send_nowait(self._in_flight)
        return self._in_flight

    async def sent(self) -> None:
        """Note that the barrier is on its way, and wait for its commit where nothing may go on before.

        Raises:
            FrozenError: if the run is to end here.
        """
        pause_s = time.monotonic() - self._began_s
        if self._request.freeze or not self._published:
            await self._idle.wait()
        self._record.stream.emit(CheckpointBegun(pause_s))
        self._at_once = False
        if self._request.freeze:
            raise FrozenError

    async def serve(self) -> None:
        """Commit one barrier after the other, until cancelled."""
        async for barrier in self._arriving:
            await barrier.passed()
            with attributed("checkpoint"):
                await self._workers.call(self._write, barrier)
            self._in_flight = None
            self._idle.set()

    async def settle(self) -> None:
        """Wait until no barrier is on its way."""
        await self._idle.wait()

    # -- in a thread --------------------------------------------------------------------------

    def _write(self, barrier: CheckpointBarrier) -> None:
        began_s = time.monotonic()
        if self._folder is None:
            assert self._request.path is not None, "freeze says where"
            self._create(self._request.path)
        states = [
            writer.persist(barrier.sinks[position], self.place(position))
            for position, (_, writer) in enumerate(self._writers)
        ]
        self._commit(
            {
                "pass": self._pass,
                "starts": {str(clock): start for clock, start in barrier.starts.items()},
                "executor": barrier.executor,
                "sinks": states,
                "letters": [one.snapshot(self.letters_token(i)) for i, one in enumerate(self._dead_letters)],
                "progress": self._at_cut,
                **({"places": self._places} if self._places else {}),
            }
        )
        write_s = time.monotonic() - began_s
        self._record.stream.emit(CheckpointCommitted(self.epoch, write_s))
        self._request.policy.begin(self._record.bytes_read, write_s)

    def finish(self) -> None:
        """Seal every result and commit a last generation, which decides that the job is done.

        Raises:
            FlowError: if something cannot be made durable.
        """
        if self._folder is None:
            return
        began_s = time.monotonic()
        states = []
        for position, (sink, writer) in enumerate(self._writers):
            with attributed(sink.name, sink.element.site):
                states.append(writer.seal(self.place(position)))
        # The job is over: what its passes handed on is not needed any more.
        self._resident_blobs = {}
        letters = [one.seal(self.letters_token(i)) for i, one in enumerate(self._dead_letters)]
        self._commit({"done": True, "sinks": states, "letters": letters})
        self._record.stream.emit(CheckpointCommitted(self.epoch, time.monotonic() - began_s))

    def _commit(self, body: dict[str, Any]) -> None:
        folder = self._folder
        assert folder is not None
        if self._resident_blobs is None:
            key = self._plan.graph.kept_id
            self._resident_blobs = {str(key(i)): folder.put_blob(array) for i, array in self._resident.items()}
        self.epoch = folder.commit(
            {"done": False, "progress": self._progress(), "resident": self._resident_blobs, **body}
        )
        if not self._published:
            try:
                folder.publish()
            finally:
                # What the folder mentions must stay once it can be seen, also where it could not be made durable.
                self._published = store.CheckpointFolder.exists(folder.path, FILES)

    def _progress(self) -> dict[str, Any]:
        progress = self._record.progress
        return {
            "items": progress.items,
            "total_items": progress.total_items,
            "bytes_read": progress.bytes_read,
            "bytes_written": progress.bytes_written,
            "seconds": progress.seconds,
            "pass": None if progress.current is None else list(progress.current[:4]),
        }

    def resident(self, body: Mapping[str, Any]) -> dict[int, np.ndarray]:
        """Whole values of earlier passes."""
        assert self._folder is not None
        found: dict[int, np.ndarray] = {}
        graph = self._plan.graph
        nodes = {graph.kept_id(node.id): node for node in graph.nodes if not node.spec.is_stream}
        with self.sound_state():
            for i, blob in body["resident"].items():
                node, array = nodes[int(i)], self._folder.get_blob(blob)
                if array.dtype != node.spec.dtype or array.shape != node.spec.shape:
                    raise ValueError(f"{array.dtype}{array.shape} in place of {node.spec.dtype}{node.spec.shape}")
                found[node.id] = array
        return found
