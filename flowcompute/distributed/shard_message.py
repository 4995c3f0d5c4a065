"""Shards for other processes: what to do as bytes, and what came of it as bytes. Nothing is pickled."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from flowcompute.backends import choose_backend
from flowcompute.checkpoint.job import check_sources, describe_job, rebuild_job
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed.kept import ShardFolder
from flowcompute.distributed.refusals import check_shardable
from flowcompute.distributed.shard_reading import MALFORMED
from flowcompute.distributed.shard_runner import run_shard
from flowcompute.distributed.shard_start import ShardProgress, ShardStart, ShardState
from flowcompute.elements import State
from flowcompute.engine import PlannedJob
from flowcompute.errors import CheckpointError, FlowError, PlanError, RunError
from flowcompute.flow import plan as make_plan
from flowcompute.graph import structural_hash
from flowcompute.ir import ORDER_VERSION
from flowcompute.schedule import ExecutionPlan


class KeptShard(NamedTuple):
    """How a shard is kept while it runs.

    Attributes:
        path: of its folder.
        request: digest of what it is asked for; see `digest_of`.
        every_s: seconds between two states that are kept.
        throttle_s: seconds of rest after each batch.
    """

    path: str
    request: bytes
    every_s: float
    throttle_s: float


class ShardMessages:
    """Messages of a job to workers, and their answers.

    Args:
        job: a plan that `check_shardable` has passed, and what computes it here.

    Raises:
        CheckpointError: for an element that cannot be described, such as a function of Python.
    """

    def __init__(self, job: PlannedJob) -> None:
        plan = job.plan
        self._job = pack(
            {
                "graph": describe_job(plan.asked, lambda array: array, contents=True),
                "memory": plan.config.memory_bytes,
                "device": list(plan.config.device),
                "precision": plan.config.precision,
                "plan": _identity(plan),
            }
        )

    @property
    def job(self) -> bytes:
        """The description of the job."""
        return self._job

    def request(self, index: int, start: ShardStart, kept: KeptShard | None = None) -> bytes:
        """Return what `answer` takes: run a shard of a pass, and keep what it does where `kept` says."""
        asked = {"job": self._job, "pass": index, "start": start.as_data()}
        return pack(asked if kept is None else {**asked, "kept": list(kept)})

    @staticmethod
    def states(answers: Sequence[bytes]) -> list[ShardState]:
        """Return the states in answers.

        Raises:
            RunError: if a shard failed; it carries what the worker's error said.
            CheckpointError: if the bytes are no answers.
        """
        found = []
        for answer in answers:
            fields = unpack(answer)
            if "error" in fields:
                raise RunError(f"cannot go on: a shard failed on its worker: {fields['error']}")
            try:
                found.append(ShardState.of_data(fields))
            except MALFORMED as error:
                raise CheckpointError("cannot read the answer of a worker", got=str(error)) from error
        return found


def answer(request: bytes) -> bytes:
    """Run the shard that a request tells of, in a worker, and return its state; an error of ours as its text.

    Raises:
        CheckpointError: if the bytes are no request.
    """
    fields = unpack(request)
    try:
        index, start, data = fields["pass"], ShardStart.of_data(fields["start"]), fields["job"]
    except MALFORMED as error:
        raise CheckpointError("cannot read what a client asks for", got=str(error)) from error
    try:
        job = _planned(data)
        if "kept" not in fields:
            state = run_shard(job, index, start)
            # The plan may be an earlier shard's; what is found now was so while this one read.
            _check_sources(data)
            return pack(state.as_data())
        return pack(_answer_kept(job, index, start, KeptShard(*fields["kept"]), fields))
    except FlowError as error:
        return pack({"error": str(error)})


def _answer_kept(job: PlannedJob, index: int, start: ShardStart, kept: KeptShard, fields: Mapping[str, Any]) -> State:
    """Run a shard that is kept while it runs, from where an earlier attempt was."""
    folder = ShardFolder(kept.path, kept.request)
    done = folder.result()
    if done is not None:
        return {**done, "resumed": True, "items": 0}
    folder.claim()
    first, stop = start.records
    resume = folder.state()
    begun = first if resume is None else max(first, int(resume["position"]))
    last = time.monotonic()

    def on_batch(progress: ShardProgress) -> None:
        nonlocal last
        folder.check()
        if kept.throttle_s:
            time.sleep(kept.throttle_s)
        if time.monotonic() - last >= kept.every_s and progress.position > first:
            folder.save(progress.snapshot(), progress.position - first)
            last = time.monotonic()

    state = run_shard(job, index, start, resume=resume, on_batch=on_batch).as_data()
    _check_sources(fields["job"])
    folder.finish(state, stop - first)
    return {**state, "resumed": resume is not None, "items": stop - begun}


def digest_of(index: int, start: ShardStart) -> bytes:
    """Return the digest of what a shard is asked for: the pass, and what it begins with."""
    found = hashlib.sha256(b"%d" % index)
    _feed(found, start.as_data())
    return found.digest()


def _feed(found: Any, value: Any) -> None:
    """Feed plain data and arrays to a hash. A message of them would hold the time, too."""
    if isinstance(value, Mapping):
        found.update(b"{%d" % len(value))
        for key in sorted(value, key=str):
            _feed(found, str(key))
            _feed(found, value[key])
    elif isinstance(value, list | tuple):
        found.update(b"[%d" % len(value))
        for one in value:
            _feed(found, one)
    elif isinstance(value, np.ndarray):
        _feed(found, [value.dtype.str, list(value.shape)])
        found.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    else:
        text = repr(value).encode(errors="surrogateescape")
        found.update(b"%s:%d:" % (type(value).__name__.encode(), len(text)) + text)


@lru_cache(maxsize=2)
def _planned(data: bytes) -> PlannedJob:
    """Return the job in a message, planned here as it was planned there.

    Raises:
        CheckpointError: if the message is not sound, or a source is not what it was.
        PlanError: if this process plans it in another way.
    """
    fields = unpack(data)
    elements = rebuild_job(fields["graph"], _array, accept_touched=True)
    device, precision, memory = fields["device"], fields["precision"], fields["memory"]
    plan = make_plan(*elements, memory=memory, device=device, precision=precision)
    if _identity(plan) != fields["plan"]:
        raise PlanError(
            "cannot run a shard: this worker plans the job in another way than the client",
            expected=", ".join(map(str, fields["plan"])),
            got=", ".join(map(str, _identity(plan))),
            hint="give all machines devices of one kind and one version of flowcompute",
        )
    check_shardable(plan)
    return PlannedJob.of(plan, choose_backend(plan.config.device, plan.asked, isolate=False))


def _check_sources(data: bytes) -> None:
    changed = check_sources(unpack(data)["graph"], accept_touched=True)
    if changed:
        raise CheckpointError(
            "cannot go on: a source has changed since the job began", got="; ".join(changed), hint="begin the job anew"
        )


def _identity(plan: ExecutionPlan) -> list[Any]:
    """Return what must agree for states of two processes to be parts of one."""
    return [ORDER_VERSION, plan.backend.capabilities.kind, structural_hash(plan.graph), len(plan.passes)]


def kept_graph(job: bytes) -> tuple[Any, Callable[[object], np.ndarray]]:
    """Return the graph in a job's description, and what gives its arrays: for `rebuild_job`.

    Raises:
        CheckpointError: if the description is not sound.
    """
    return unpack(job)["graph"], _array


def _array(value: object) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise CheckpointError("cannot read a job: a value in it is no array")
    return value
