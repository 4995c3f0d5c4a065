"""One job on the workers of a cluster: `fc.run(*elements, cluster=client)`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from flowcompute.backends import choose_backend
from flowcompute.checkpoint.job import check_sources
from flowcompute.checkpoint.store import unpack
from flowcompute.distributed._dask import answers_of, check_client, check_workers
from flowcompute.distributed.kept import ClusterFolder, ShardFolder
from flowcompute.distributed.shard_job import ShardedJob
from flowcompute.distributed.shard_message import KeptShard, ShardMessages, digest_of, kept_graph
from flowcompute.distributed.shard_start import ShardStart, ShardState
from flowcompute.elements import Element, StagingArea, State, Writer
from flowcompute.engine import PlannedJob
from flowcompute.errors import CheckpointError, PlanError, RunError
from flowcompute.files import temporary_path
from flowcompute.flow import plan
from flowcompute.graph import structural_hash
from flowcompute.ir import ORDER_VERSION
from flowcompute.schedule import SinkStage
from flowcompute.sinks import StoredSink

WAIT_S = 30.0
"""Seconds to wait for the first worker."""

_PLANNED = frozenset({"memory", "device", "precision"})
_KNOWN = _PLANNED | {"checkpoint", "checkpoint_every", "throttle", "progress", "name"}
_PER_WORKER = 4
_EVERY_S = 10.0


@dataclass
class ClusterShards:
    """Work of the shards of a run.

    Attributes:
        count: shards of all stages.
        resumed: those of them that went on from what an earlier attempt had kept.
        items: records that they have read in this run, those of attempts whose worker died left out.
    """

    count: int = 0
    resumed: int = 0
    items: int = 0


@dataclass(frozen=True)
class ClusterRun:
    """A finished run on a cluster.

    Attributes:
        values: of the roots, in their order.
        shards: what was done.
    """

    values: tuple[Any, ...]
    shards: ClusterShards = field(default_factory=ClusterShards)

    @property
    def value(self) -> Any:
        """The value of the one root.

        Raises:
            RunError: if there are several.
        """
        if len(self.values) != 1:
            raise RunError("cannot give one value", expected="one root", got=str(len(self.values)), hint="run.values")
        return self.values[0]


def run_on_cluster(
    elements: Sequence[Element], *, cluster: object, shards: object, insecure: bool, options: Mapping[str, Any]
) -> ClusterRun:
    """Compute elements in shards on the workers of a cluster, to the bits of one machine.

    Args:
        elements: the roots. Streams go to files in folders that the workers see under the same paths.
        cluster: a `distributed.Client`.
        shards: the most shards of a stage, or "auto" for four a worker.
        insecure: allows schedulers that other machines reach without TLS.
        options: those of `fc.run` that are known here.

    Raises:
        PlanError: naming what cannot be cut or sent, before anything starts.
        CheckpointError: for an element that cannot be described, or a folder that another client owns.
        RunError: if a shard fails, or a worker does not see the folder.
    """
    check_client(cluster, insecure=insecure)
    for name in sorted(options.keys() - _KNOWN):
        raise PlanError(
            f"cannot use {name}= on a cluster",
            element=name,
            expected=" or ".join(f"{one}=" for one in sorted(_KNOWN)),
            hint=f"leave out {name}=",
        )
    made = plan(*elements, **{name: options[name] for name in options.keys() & _PLANNED})
    job = PlannedJob.of(made, choose_backend(made.config.device, made.asked, isolate=made.config.isolate))
    # What cannot be cut is refused before anything is written.
    ShardedJob(job, 1)
    every_s, throttle_s = _seconds(options, "checkpoint_every", _EVERY_S), _seconds(options, "throttle", 0.0)
    messages = ShardMessages(job)
    path = options.get("checkpoint")
    most = _most_shards(shards, cluster)
    sharded = ShardedJob(job, most)
    if path is None:
        return ClusterRun(sharded.run(_Sending(cluster, messages).run_shards))
    folder = ClusterFolder(path, _identity(job), messages.job, sharded.total_items(), most)
    try:
        if changed := check_sources(kept_graph(folder.job)[0], accept_touched=True):
            raise CheckpointError(
                f"cannot go on with {folder.path}: its sources have changed since the job began",
                got="; ".join(changed),
                hint="put them back, or give this job another checkpoint=",
            )
        nonce_path, nonce = folder.new_nonce()
        check_workers(cluster, nonce_path, nonce, made.config.memory_bytes, WAIT_S)
        sending = _Sending(cluster, messages, folder, every_s, throttle_s)
        values = ShardedJob(job, folder.shards).run(sending.run_shards, _KeptResults(folder))
    finally:
        folder.close()
    return ClusterRun(values, sending.done)


class _Sending:
    """Shards on their way to workers, stage after stage."""

    def __init__(
        self,
        client: object,
        messages: ShardMessages,
        folder: ClusterFolder | None = None,
        every_s: float = 0.0,
        throttle_s: float = 0.0,
    ) -> None:
        self._client, self._messages, self._folder = client, messages, folder
        self._every_s, self._throttle_s = every_s, throttle_s
        self._stages = count()
        self.done = ClusterShards()

    def run_shards(self, index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        """Run the shards of a stage; those that an earlier run has ended are not sent again."""
        stage = next(self._stages)
        self.done.count += len(starts)
        if self._folder is None:
            requests = [self._messages.request(index, start) for start in starts]
            return self._messages.states(answers_of(self._client, requests, WAIT_S))
        found: list[State | None] = []
        requests, waiting = [], []
        for number, start in enumerate(starts):
            path = self._folder.shard(stage, number)
            digest = digest_of(index, start)
            found.append(ShardFolder(path, digest).result())
            if found[-1] is None:
                waiting.append(number)
                kept = KeptShard(path, digest, self._every_s, self._throttle_s)
                requests.append(self._messages.request(index, start, kept))
        self.done.resumed += len(starts) - len(requests)
        answers = answers_of(self._client, requests, WAIT_S) if requests else []
        for fields in map(unpack, answers):
            self.done.resumed += bool(fields.get("resumed"))
            self.done.items += int(fields.get("items", 0))
        ended = dict(zip(waiting, self._messages.states(answers), strict=True))
        return [ended[i] if one is None else ShardState.of_data(one) for i, one in enumerate(found)]


class _KeptResults:
    """Destinations whose drafts outlive a client: see `Writing`."""

    def __init__(self, folder: ClusterFolder) -> None:
        self._folder = folder
        self._committed = folder.committed()

    def open(self, position: int, sink: SinkStage) -> Writer:
        """Begin a draft under a name that follows from the job, or go on with it."""
        element, spec = sink.element, sink.spec
        if not isinstance(element, StoredSink):
            return element.open(spec)
        place = _place(f"{self._folder.token}-{position}")
        state = None if self._committed is None else self._committed.get(str(position))
        if state is not None:
            return _Recovered(element, spec, place, state)
        draft = temporary_path(element.target, place.token)
        if spec.is_stream and os.path.lexists(draft):
            return element.join(spec, draft)
        return element.open_at(spec, place)

    def seal(self, writers: Sequence[tuple[SinkStage, Writer]]) -> None:
        """Complete all files, and keep that they are."""
        if self._committed is not None:
            return
        states = {}
        for position, (sink, writer) in enumerate(writers):
            if isinstance(sink.element, StoredSink):
                states[str(position)] = writer.seal(_place(f"{self._folder.token}-{position}"))
        self._folder.commit(states)


class _Recovered(Writer):
    """A file that an earlier client has completed."""

    def __init__(self, element: StoredSink, spec: Any, place: StagingArea, state: State) -> None:
        self._element, self._spec, self._place, self._state = element, spec, place, state

    def write(self, array: Any, start: int) -> None:
        """Write nothing: it is written."""

    def lend(self) -> str:
        """Return the path that its draft had."""
        return str(self._state["draft"])

    def filled(self, records: int) -> None:
        """Count nothing."""

    def suspend(self) -> None:
        """Leave it."""

    def commit(self) -> Any:
        """Give it its name, unless it has it."""
        return self._element.recover(self._spec, self._place, self._state)

    def abort(self) -> None:
        """Leave it."""


def _place(token: str) -> StagingArea:
    def side() -> Any:
        raise AssertionError("files of shards are drafts beside their targets")

    return StagingArea(token, side, lambda: 0)


def _most_shards(shards: object, client: Any) -> Any:
    if shards == "auto":
        return max(1, _PER_WORKER * len(client.scheduler_info(n_workers=-1)["workers"]))
    return shards


def _seconds(options: Mapping[str, Any], name: str, default: float) -> float:
    value = options.get(name, default)
    if value == "auto":
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise PlanError(
            f"cannot use this {name}= on a cluster", element=name, expected="seconds", got=repr(value)[:100]
        )
    return float(value)


def _identity(job: PlannedJob) -> list[Any]:
    """Return what must be the same for a job to go on: the order of sums, the device, the formulas and the sources."""
    made = job.plan
    targets = [sink.element.target for one in made.passes for sink in one.sinks if isinstance(sink.element, StoredSink)]
    return [ORDER_VERSION, made.backend.capabilities.kind, structural_hash(made.graph), len(made.passes), targets]
