"""Shards for other processes: what to do as bytes, and what came of it as bytes. Nothing is pickled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowcompute.checkpoint.job import describe_job
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed.shard_reading import MALFORMED
from flowcompute.distributed.shard_start import ShardStart, ShardState
from flowcompute.distributed.worker_settings import WorkerSettings, settings_data
from flowcompute.engine import PlannedJob
from flowcompute.errors import CheckpointError, RunError
from flowcompute.graph import structural_hash
from flowcompute.ir import ORDER_VERSION
from flowcompute.schedule import ExecutionPlan
from flowcompute.sinks import StoredSink
from flowcompute.version import __version__


class KeptShard(NamedTuple):
    """How a shard is kept while it runs.

    Attributes:
        path: of its folder.
        request: digest of what it is asked for; see `digest_of`.
        every_s: seconds between two states that are kept.
        job: token of the job whose folder it must be, see `check_owner`; "" for any.
    """

    path: str
    request: bytes
    every_s: float
    job: str = ""


class ShardMessages:
    """Messages of a job to workers, and their answers.

    Args:
        job: a plan that `check_shardable` has passed, and what computes it here.
        mixed: whether workers may have devices of another kind than the client's.
        run: tells the client's run from others; see `stop`.
        settings: of the workers' processes, which keep theirs where it is None.
        throttle_s: seconds of rest after each batch.

    Raises:
        CheckpointError: for an element that cannot be described, such as a function of Python.
    """

    def __init__(
        self,
        job: PlannedJob,
        *,
        mixed: bool = False,
        run: str = "",
        settings: WorkerSettings | None = None,
        throttle_s: float = 0.0,
    ) -> None:
        plan = job.plan
        self._job = pack(
            {
                "graph": describe_job(plan.asked, lambda array: array, contents=True),
                "memory": plan.config.memory_bytes,
                "device": list(plan.config.device),
                "precision": plan.config.precision,
                "plan": identity(plan, mixed=mixed),
            }
        )
        self._mixed, self._run, self._throttle_s = mixed, run, throttle_s
        self.settings = settings

    @property
    def job(self) -> bytes:
        """The description of the job."""
        return self._job

    def ready(self, places: Sequence[tuple[str, bytes]] = ()) -> bytes:
        """Return what `make_ready` takes.

        Args:
            places: paths of files that the client has written, and what is in them.
        """
        return pack({**self._common(), "places": [list(place) for place in places]})

    def request(self, index: int, start: ShardStart, kept: KeptShard | None = None) -> bytes:
        """Return what `answer` takes: run a shard of a pass, and keep what it does where `kept` says."""
        asked = {**self._common(), "pass": index, "start": start.as_data(), "throttle": self._throttle_s}
        return pack(asked if kept is None else {**asked, "kept": list(kept)})

    def _common(self) -> dict[str, Any]:
        settings = {} if self.settings is None else {"settings": settings_data(self.settings)}
        return {"job": self._job, "mixed": self._mixed, "run": self._run, **settings}

    @staticmethod
    def states(answers: Sequence[bytes]) -> list[ShardState]:
        """Return the states in answers.

        Raises:
            RunError: if a shard failed; it carries what the worker's error said.
            CheckpointError: if the bytes are no answers.
        """
        return [state_of(unpack(answer)) for answer in answers]


def state_of(fields: Mapping[str, Any]) -> ShardState:
    """Return the state in an answer.

    Raises:
        RunError: if the shard failed; it carries what the worker's error said.
        CheckpointError: if it is no answer.
    """
    if "error" in fields:
        raise RunError(f"cannot go on: a shard failed on its worker: {fields['error']}")
    try:
        return ShardState.of_data(fields)
    except MALFORMED as error:
        raise CheckpointError("cannot read the answer of a worker", got=str(error)) from error


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


def identity(plan: ExecutionPlan, *, mixed: bool) -> dict[str, Any]:
    """Return what must agree for states of two processes to be parts of one.

    Args:
        plan: of one of them.
        mixed: whether their devices may be of several kinds.
    """
    sinks = (sink.element for one in plan.passes for sink in one.sinks)
    encoders = {sink.encoder for sink in sinks if isinstance(sink, StoredSink) and sink.encoder}
    return {
        **versions(),
        "encoders": ", ".join(sorted(encoders)) or "none",
        "device": "any" if mixed else plan.backend.capabilities.kind,
        "formulas": structural_hash(plan.graph),
        "passes": len(plan.passes),
    }


def versions() -> dict[str, Any]:
    """Return what must agree before a job is read."""
    return {"flowcompute": __version__, "order of sums": ORDER_VERSION}


def differences(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[str, str]:
    """Return in words what is wanted and what there is, where they differ; nothing where they agree."""
    names = [name for name in wanted if own.get(name) != wanted[name]]
    return tuple(", ".join(f"{name} {one.get(name)}" for name in names) for one in (wanted, own))  # type: ignore[return-value]


def kept_graph(job: bytes) -> tuple[Any, Callable[[object], np.ndarray]]:
    """Return the graph in a job's description, and what gives its arrays: for `rebuild_job`.

    Raises:
        CheckpointError: if the description is not sound.
    """
    return unpack(job)["graph"], array_of


def kept_options(job: bytes) -> tuple[list[str], str]:
    """Return the devices and the precision in a job's description.

    Raises:
        CheckpointError: if the description is not sound.
    """
    fields = unpack(job)
    device, precision = fields.get("device"), fields.get("precision")
    if not isinstance(device, list) or not all(type(one) is str for one in device) or type(precision) is not str:
        raise CheckpointError("cannot read a job: its device and its precision are no texts")
    return device, precision


def array_of(value: object) -> np.ndarray:
    """Return an array in a job's description.

    Raises:
        CheckpointError: if it is none.
    """
    if not isinstance(value, np.ndarray):
        raise CheckpointError("cannot read a job: a value in it is no array")
    return value
