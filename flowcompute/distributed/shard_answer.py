"""Answers of a worker to a client: what it is, that it is ready, what a shard gave. All of it is asked in bytes.

A worker looks at no clock but its own monotonic one, and at no times of files: clocks of machines differ.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from flowcompute.checkpoint.job import check_sources, rebuild_job
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed.kept import ShardFolder, TakenOverError, check_owner
from flowcompute.distributed.refusals import check_shardable
from flowcompute.distributed.shard_message import KeptShard, array_of, differences, identity, versions
from flowcompute.distributed.shard_reading import MALFORMED
from flowcompute.distributed.shard_runner import run_shard
from flowcompute.distributed.shard_start import ShardProgress, ShardStart
from flowcompute.distributed.shard_work import ShardWork
from flowcompute.distributed.worker_settings import own_host, settings_of_data, settle
from flowcompute.elements import State
from flowcompute.engine import CHECK, PlannedJob
from flowcompute.errors import CheckpointError, FlowError, PlanError, RunError
from flowcompute.files import FILES, explain, shown
from flowcompute.flow import plan as make_plan
from flowcompute.jobs import choose_backend
from flowcompute.ring import Ring
from flowcompute.thread_pool import own_cores

TELL_EVERY_S = 1.0
"""Seconds between two messages of a shard about its work."""

Tell = Callable[[dict[str, Any]], object]
"""Takes plain data about a shard while it runs: its attempt, the records done, and the work of each stage."""

_ASKED = (int,), (bytes,), (bool,), (str,), (str,), (bytes,), (float, int), (str,)
"""Types of what a client asks for: pass, job, mixed, run, and the fields of `KeptShard`."""

_STOPPED: Ring[str] = Ring(256)
"""The runs whose shards are to end."""


def describe(request: bytes) -> bytes:
    """Return what this process is, before it has a driver: its host, its cores, its process, its version."""
    del request
    return pack({"host": own_host(), "cores": own_cores(), "process": os.getpid(), "versions": versions()})


def make_ready(request: bytes) -> bytes:
    """Plan the job that a request holds, and look at the files that its client has written.

    Returns:
        "error" where this process cannot run shards of it; else "device", the kind of what computes, "host", and
        "addresses" of its devices on the host's bus.
    """
    fields = unpack(request)
    try:
        _settle(fields)
        for path, content in fields["places"]:
            _check_place(str(path), content)
        job = _planned(fields["job"], mixed=fields["mixed"])
    except FlowError as error:
        return pack({"error": str(error)})
    backend = job.plan.backend
    return pack({"device": backend.capabilities.kind, "host": own_host(), "addresses": list(backend.addresses)})


def stop(request: bytes) -> bytes:
    """Let the shards of a run end at their next batch."""
    _STOPPED.add(str(unpack(request)["run"]))
    return b""


def answer(request: bytes, tell: Tell | None = None) -> bytes:
    """Run the shard that a request tells of, in a worker, and return its state; an error of ours as its text.

    Args:
        request: see `ShardMessages.request`.
        tell: is told of the work now and then.

    Raises:
        CheckpointError: if the bytes are no request.
    """
    fields = unpack(request)
    try:
        index, start, data = fields["pass"], ShardStart.of_data(fields["start"]), fields["job"]
        mixed, run, throttle_s = fields["mixed"], fields["run"], float(fields["throttle"])
        kept = KeptShard(*fields["kept"]) if "kept" in fields else None
        _check_types((index, data, mixed, run, *(kept or ())))
        _settle(fields)
    except MALFORMED as error:
        raise CheckpointError("cannot read what a client asks for", got=str(error)) from error
    try:
        job = _planned(data, mixed=mixed)
        if not 0 <= index < len(job.plan.passes):
            raise CheckpointError("cannot read what a client asks for", got=f"pass {index} of {len(job.plan.passes)}")
        running = _Answer(job, data, index, start, run, throttle_s, tell)
        return pack(running.alone() if kept is None else running.kept(kept))
    except TakenOverError as error:
        return pack({"error": str(error), "taken_over": True})
    except FlowError as error:
        return pack({"error": str(error)})


class _Answer:
    """A shard in a worker, for the run of a client."""

    def __init__(
        self,
        job: PlannedJob,
        data: bytes,
        index: int,
        start: ShardStart,
        run: str,
        throttle_s: float,
        tell: Tell | None,
    ) -> None:
        self._job, self._data, self._index, self._start = job, data, index, start
        self._run, self._throttle_s, self._tell = run, throttle_s, tell
        self._work = ShardWork()
        self._attempt = secrets.token_hex(8)
        self._told_s = time.monotonic()

    def alone(self) -> State:
        """Run it, and keep nothing."""
        return self._ran(None, self._check, lambda _: None)

    def kept(self, kept: KeptShard) -> State:
        """Run it, and keep what it does, from where an earlier attempt was."""
        if kept.job:
            check_owner(kept.path, kept.job)
        folder = ShardFolder(kept.path, kept.request)
        done = folder.result()
        if done is not None:
            return {**done, "resumed": True, "items": 0, "work": []}
        folder.claim()
        first, stop = self._start.records
        resume = folder.state()
        begun = first if resume is None else max(first, int(resume["position"]))
        last = time.monotonic()

        def check() -> None:
            self._check()
            folder.check()

        def keep(progress: ShardProgress) -> None:
            nonlocal last
            if time.monotonic() - last >= kept.every_s and progress.position > first:
                folder.save(progress.snapshot(), progress.position - first)
                last = time.monotonic()

        state = self._ran(resume, check, keep)
        folder.finish({key: state[key] for key in state.keys() - {"work"}}, stop - first)
        return {**state, "resumed": resume is not None, "items": stop - begun}

    def _ran(self, resume: State | None, check: Callable[[], None], keep: Callable[[ShardProgress], None]) -> State:
        def on_batch(progress: ShardProgress) -> None:
            if self._throttle_s:
                time.sleep(self._throttle_s)
            keep(progress)
            self._say(progress.position)

        # What is asked before each batch and each write: a shard that was stopped, or replaced, writes nothing more.
        token = CHECK.set(check)
        try:
            state = run_shard(
                self._job, self._index, self._start, resume=resume, on_batch=on_batch, work=self._work
            ).as_data()
        finally:
            CHECK.reset(token)
        # The plan may be an earlier shard's; what is found now was so while this one read.
        _check_sources(self._data)
        return {**state, "work": self._work.as_data()}

    def _check(self) -> None:
        if self._run and self._run in _STOPPED.items():
            raise RunError("cannot go on with a shard: its client has stopped the run", hint="run the program again")

    def _say(self, position: int) -> None:
        if self._tell is None or time.monotonic() - self._told_s < TELL_EVERY_S:
            return
        self._told_s = time.monotonic()
        items = max(0, position - self._start.records[0])
        self._tell({"attempt": self._attempt, "items": items, "work": self._work.as_data()})


def _check_types(asked: Sequence[Any]) -> None:
    """Check that what a client asks for has the types of `_ASKED`.

    Raises:
        TypeError: if one has another.
    """
    for one, kinds in zip(asked, _ASKED, strict=False):
        if type(one) not in kinds:
            raise TypeError(f"{type(one).__name__} in place of {kinds[0].__name__}")


def _settle(fields: Mapping[str, Any]) -> None:
    if "settings" in fields:
        settle(settings_of_data(fields["settings"]))


def _check_place(path: str, content: object) -> None:
    """Check that this process reads a file of its client, and may write beside it.

    Raises:
        RunError: naming the folder.
    """
    folder = os.path.dirname(path)
    try:
        found: object = FILES.read_bytes(path)
    except OSError:
        found = None
    if found != content:
        raise RunError(
            f"cannot use {shown(folder)}: it is another folder here than on the client",
            expected=f"the file that the client has just written: {path}",
            got="none" if found is None else "another one",
            hint="give a folder that all workers share, under one path",
        )
    own = f"{path}-{secrets.token_hex(4)}"
    try:
        FILES.close(FILES.create(own))
        FILES.remove(own)
    except OSError as error:
        text, hint = explain(error)
        raise RunError(f"cannot write to {shown(folder)} from this worker: {text}", hint=hint) from error


@lru_cache(maxsize=2)
def _planned(data: bytes, *, mixed: bool) -> PlannedJob:
    """Return the job in a message, planned here as it was planned there.

    Raises:
        CheckpointError: if the message is not sound, or a source is not what it was.
        PlanError: if this process plans it in another way.
    """
    fields = unpack(data)
    try:
        wanted, graph = dict(fields["plan"]), fields["graph"]
        device, precision, memory = fields["device"], fields["precision"], fields["memory"]
    except MALFORMED as error:
        raise CheckpointError("cannot read the job that a client asks for", got=str(error)) from error
    _check_same(versions(), {name: wanted.get(name) for name in versions()})
    elements = rebuild_job(graph, array_of, accept_touched=True)
    plan = make_plan(*elements, memory=memory, device=device, precision=precision)
    _check_same(identity(plan, mixed=mixed), wanted)
    check_shardable(plan)
    return PlannedJob.of(plan, choose_backend(plan.config.device, plan.asked, isolate=False))


def _check_same(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    expected, got = differences(own, wanted)
    if expected:
        raise PlanError(
            "cannot run a shard: this worker plans the job in another way than the client",
            expected=expected,
            got=got,
            hint="give all machines one version of flowcompute and devices of one kind; for several kinds, whose bits "
            "differ, mixed_devices=True",
        )


def _check_sources(data: bytes) -> None:
    changed = check_sources(unpack(data)["graph"], accept_touched=True)
    if changed:
        raise CheckpointError(
            "cannot go on: a source has changed since the job began", got="; ".join(changed), hint="begin the job anew"
        )
