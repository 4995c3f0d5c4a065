"""One job on the workers of a cluster: `fc.run(*elements, cluster=client)`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from itertools import count
from typing import Any

from flowcompute.checkpoint.job import check_sources
from flowcompute.checkpoint.store import pack
from flowcompute.distributed.cluster._dask import DaskWorkers
from flowcompute.distributed.cluster.cluster_options import ClusterOptions
from flowcompute.distributed.cluster.cluster_record import ClusterRecord
from flowcompute.distributed.cluster.cluster_results import KeptResults
from flowcompute.distributed.cluster.own_process import OwnProcess
from flowcompute.distributed.cluster.watching import watched
from flowcompute.distributed.cluster.worker_checks import check_memory, check_ready, settings_of, shared_places
from flowcompute.distributed.kept import ANY_DEVICE, ClusterFolder, ShardFolder, is_mixed
from flowcompute.distributed.shard_answer import stop
from flowcompute.distributed.shard_job import ShardedJob
from flowcompute.distributed.shard_message import (
    KeptShard,
    ShardMessages,
    digest_of,
    kept_graph,
    kept_options,
    state_of,
)
from flowcompute.distributed.shard_reading import MALFORMED
from flowcompute.distributed.shard_start import ShardStart, ShardState
from flowcompute.elements import Element
from flowcompute.engine import PlannedJob
from flowcompute.errors import CheckpointError, RunError
from flowcompute.files import temporary_path
from flowcompute.flow import plan
from flowcompute.graph import structural_hash
from flowcompute.imports import dataclass
from flowcompute.ir import ORDER_VERSION
from flowcompute.jobs import choose_backend
from flowcompute.metrics import Metrics, Progress
from flowcompute.runtime.checkpoints import refuse_foreign_writes
from flowcompute.schedule.explain import Plan
from flowcompute.sinks import StoredSink

MOST_ATTEMPTS = 3
"""Tries of a shard without progress, each of which dask gives to four workers."""


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
        plan: what each shard has run.
        shards: what was done.
        progress: records, bytes and seconds of all shards together.
        metrics: the work of each stage of the plan; seconds add up over workers.
        bottleneck: name of the busiest stage; None where nothing ran.
    """

    values: tuple[Any, ...]
    plan: Plan
    shards: ClusterShards
    progress: Progress
    metrics: Metrics = field(repr=False)
    bottleneck: str | None

    @property
    def value(self) -> Any:
        """The value of the one root.

        Raises:
            RunError: if there are several.
        """
        if len(self.values) != 1:
            raise RunError("cannot give one value", expected="one root", got=str(len(self.values)), hint="run.values")
        return self.values[0]


def run_on_cluster(elements: Sequence[Element], given: Mapping[str, Any]) -> ClusterRun:
    """Compute elements in shards on the workers of a cluster, to the bits of one machine.

    Args:
        elements: the roots. Streams go to files in folders that the workers see under the same paths.
        given: the options of `fc.run`; see `ClusterOptions`. Without `cluster` this process is the one worker, for a
            job whose checkpoint is there.

    Raises:
        PlanError: naming what cannot be cut or sent, or a worker that cannot take part, before anything starts.
        CheckpointError: for an element that cannot be described, or a folder that another client owns.
        RunError: if a shard fails, or a worker does not see the folder.
    """
    options = ClusterOptions.parse(given)
    mixed = options.mixed_devices
    if options.client is not None:
        cluster: DaskWorkers | OwnProcess = DaskWorkers(
            options.client, insecure=options.insecure, resources=options.resources
        )
    else:
        cluster = OwnProcess()
        mixed = mixed or (options.run.checkpoint is not None and is_mixed(options.run.checkpoint))
    made = plan(*elements, **options.planned)
    job = PlannedJob.of(made, choose_backend(made.config.device, made.asked, isolate=made.config.isolate))
    token = secrets.token_hex(8)
    messages = ShardMessages(job, mixed=mixed, run=token, throttle_s=options.run.throttle)
    # What cannot be cut is refused before anybody is asked, and anything written.
    total = ShardedJob(job, 1).total_items()
    workers = cluster.found()
    check_memory(workers, made.config.memory_bytes)
    messages.settings = settings_of(workers, cluster)
    most = options.most_shards(len(workers))
    with ExitStack() as ending:
        folder = None
        if options.run.checkpoint is not None:
            mark = _identity(job, mixed=mixed)
            folder = ClusterFolder(options.run.checkpoint, mark, messages.job, total, most)
            ending.callback(folder.close)
            most = folder.shards
            _check_unchanged(folder, made)
        _refuse_foreign_writes(made, folder)
        with shared_places(_folders(job, folder)) as places:
            check_ready(workers, cluster, messages, places, options.resources)
        record = ClusterRecord(made, total)
        sending = _Sending(cluster, messages, record, token, folder, options.every_s)
        ending.enter_context(watched(made, record, options.run))
        ending.enter_context(_stopping(cluster, token))
        ending.enter_context(cluster.listen(token, record.heard))
        values = ShardedJob(job, most).run(sending.run_shards, None if folder is None else KeptResults(folder))
        record.complete()
    return ClusterRun(values, made, sending.done, record.progress, record.metrics, record.bottleneck)


@contextmanager
def _stopping(cluster: DaskWorkers | OwnProcess, token: str) -> Iterator[None]:
    """Let shards that still run end soon where the block ends by an error, or an interrupt."""
    try:
        yield
    except BaseException:
        cluster.tell_all(stop, pack({"run": token}))
        raise


def _check_unchanged(folder: ClusterFolder, made: Plan) -> None:
    _, precision = kept_options(folder.job)
    if precision != made.config.precision:
        raise CheckpointError(
            f"cannot go on with {folder.path} in another precision",
            expected=precision,
            got=made.config.precision,
            hint="give the precision= that it began with, or another checkpoint=",
        )
    if changed := check_sources(kept_graph(folder.job)[0], accept_touched=True):
        raise CheckpointError(
            f"cannot go on with {folder.path}: its sources have changed since the job began",
            got="; ".join(changed),
            hint="put them back, or give this job another checkpoint=",
        )


def _refuse_foreign_writes(made: Plan, folder: ClusterFolder | None) -> None:
    """Refuse destinations that a checkpoint has named, and of which the job has begun no draft here."""
    if folder is None:
        refuse_foreign_writes(made)
        return
    done = folder.committed()
    sinks = [sink.element for one in made.passes for sink in one.sinks]
    states: list[Mapping[str, Any]] = [
        {"draft": temporary_path(sink.target, f"{folder.token}-{i}")} if isinstance(sink, StoredSink) else {}
        for i, sink in enumerate(sinks)
    ]
    if done is not None:
        states = [done.get(str(i), {}) for i in range(len(sinks))]
    refuse_foreign_writes(made, folder.token, {"sinks": states, "done": done is not None})


def _folders(job: PlannedJob, folder: ClusterFolder | None) -> list[str]:
    """Return the folders that workers must see: the checkpoint's, and those of results that shards write."""
    sinks = [sink for one in job.plan.passes for sink in one.sinks if sink.spec.is_stream]
    found = [os.path.dirname(sink.element.target) for sink in sinks if isinstance(sink.element, StoredSink)]
    return found if folder is None else [folder.path, *found]


class _Sending:
    """Shards on their way to workers, stage after stage.

    Attributes:
        done: what shards have done.
    """

    def __init__(
        self,
        cluster: DaskWorkers | OwnProcess,
        messages: ShardMessages,
        record: ClusterRecord,
        topic: str,
        folder: ClusterFolder | None,
        every_s: float,
    ) -> None:
        self._cluster, self._messages, self._record, self._topic = cluster, messages, record, topic
        self._folder, self._every_s = folder, every_s
        self._stages = count()
        self.done = ClusterShards()

    def run_shards(self, index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        """Run the shards of a stage; those that an earlier run has ended are not sent again."""
        stage = next(self._stages)
        self.done.count += len(starts)
        self._record.begin_stage()
        if self._folder is not None:
            self._folder.begin_stage(stage)
        found: dict[int, ShardState] = {}
        waiting: list[int] = []
        requests: list[bytes] = []
        folders: list[ShardFolder | None] = []
        for number, start in enumerate(starts):
            kept = folder = None
            if self._folder is not None:
                path, digest = self._folder.shard(stage, number), digest_of(index, start)
                folder = ShardFolder(path, digest)
                if (state := folder.result()) is not None:
                    found[number] = ShardState.of_data(state)
                    self.done.resumed += 1
                    self._record.ended(number, _items(start), [])
                    continue
                kept = KeptShard(path, digest, self._every_s, self._folder.token)
            waiting.append(number)
            folders.append(folder)
            requests.append(self._messages.request(index, start, kept))
        again = _Attempts(folders, [starts[number] for number in waiting])
        for place, fields in self._cluster.answers(requests, (self._topic, stage), again.begin):
            number = waiting[place]
            found[number] = state_of(fields)
            self._take(place, starts[number], fields)
        return [found[number] for number in range(len(starts))]

    def _take(self, place: int, start: ShardStart, fields: Mapping[str, Any]) -> None:
        self.done.resumed += bool(fields.get("resumed"))
        try:
            self.done.items += int(fields.get("items", _items(start)))
            self._record.ended(place, _items(start), fields.get("work", []))
        except MALFORMED as error:
            raise CheckpointError("cannot read the answer of a worker", got=str(error)) from error


class _Attempts:
    """Shards whose workers die, or are replaced: each is tried again while it gets on, else a few times."""

    def __init__(self, folders: Sequence[ShardFolder | None], starts: Sequence[ShardStart]) -> None:
        self._folders, self._starts = folders, starts
        self._seen: dict[int, tuple[int, int]] = {}

    def begin(self, place: int) -> None:
        """Count another try of a shard.

        Raises:
            RunError: naming it, if it has not got on.
        """
        folder = self._folders[place]
        items = 0 if folder is None else folder.items()
        before, tries = self._seen.get(place, (0, 0))
        tries = 1 if items > before else tries + 1
        self._seen[place] = items, tries
        if tries < MOST_ATTEMPTS:
            return
        first, last = self._starts[place].records
        raise RunError(
            f"cannot run the shard of records {first} to {last}: its workers died, or were replaced, again and again",
            element="cluster",
            expected=f"progress in {MOST_ATTEMPTS} attempts",
            got=f"{items} of {last - first} records kept",
            hint="see what the workers wrote last; often it is too little memory for memory=",
        )


def _items(start: ShardStart) -> int:
    return start.records[1] - start.records[0]


def _identity(job: PlannedJob, *, mixed: bool) -> list[Any]:
    """Return what must be the same for a job to go on: the order of sums, the device, the formulas and the sources."""
    made = job.plan
    targets = [sink.element.target for one in made.passes for sink in one.sinks if isinstance(sink.element, StoredSink)]
    device = ANY_DEVICE if mixed else made.backend.capabilities.kind
    return [ORDER_VERSION, device, structural_hash(made.graph), len(made.passes), targets]
