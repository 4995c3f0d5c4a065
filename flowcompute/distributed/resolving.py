"""Values of a job whose shards a cluster computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from flowcompute.backends import choose_backend
from flowcompute.distributed._dask import answers_of, check_client
from flowcompute.distributed.shard_job import ShardedJob
from flowcompute.distributed.shard_message import ShardMessages
from flowcompute.distributed.shard_start import ShardStart, ShardState
from flowcompute.elements import Element
from flowcompute.engine import PlannedJob
from flowcompute.errors import PlanError
from flowcompute.flow import plan
from flowcompute.strategy import PlanOptions

_SENT = frozenset({"memory", "device", "precision"})
"""Options that a worker is told."""


def resolve_on(
    client: object,
    *elements: Element,
    shards: int,
    insecure: bool = False,
    wait_s: float = 30.0,
    **options: Unpack[PlanOptions],
) -> tuple[Any, ...]:
    """Return the values of elements, computed in shards by the workers of a cluster, to the bits of one machine.

    Args:
        client: a `distributed.Client`. Its workers see the same files under the same paths.
        elements: the roots. Streams go to files in folders that the workers see under the same paths.
        shards: the most shards of a pass.
        insecure: allows schedulers that other machines reach without TLS.
        wait_s: seconds to wait for the first worker.
        options: `memory`, `device` and `precision`, as for `fc.plan`, of the client and of each worker.

    Raises:
        PlanError: naming what cannot be cut or sent.
        CheckpointError: for an element that cannot be described, such as a function of Python.
        RunError: if a shard fails.
    """
    check_client(client, insecure=insecure)
    for name in options.keys() - _SENT:
        raise PlanError(
            f"cannot send {name}= to workers",
            element=name,
            expected=" or ".join(sorted(_SENT)),
            hint=f"leave out {name}=",
        )
    made = plan(*elements, **options)
    job = PlannedJob.of(made, choose_backend(made.config.device, made.asked, isolate=made.config.isolate))
    sharded = ShardedJob(job, shards)
    messages = ShardMessages(job)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        requests = [messages.request(index, start) for start in starts]
        return messages.states(answers_of(client, requests, wait_s))

    return sharded.run(run_shards)
