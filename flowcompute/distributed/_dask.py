"""The one import of dask's `distributed`, needed for clusters alone. Without it a call says what to install."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowcompute.distributed.shard_message import answer
from flowcompute.errors import PlanError, RunError

try:
    from distributed import Client, KilledWorker
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None

_LOOPBACK = ("tcp://127.", "tcp://localhost:", "tcp://[::1]:", "inproc://", "tls://")


def check_client(client: object, *, insecure: bool) -> None:
    """Check that jobs may be sent through a client.

    Dask pickles what it sends: whoever reaches a scheduler's port has a shell on its workers.

    Raises:
        PlanError: where `distributed` is not installed, this is no client, or its port is open to other machines.
    """
    if _problem is not None:
        raise PlanError(
            "cannot use a cluster: distributed is not installed",
            element="cluster",
            got=str(_problem),
            hint="run pip install 'flowcompute[cluster]'",
        ) from _problem
    if not isinstance(client, Client):
        raise PlanError(
            "cannot use this as a cluster",
            element="cluster",
            expected="a distributed.Client",
            got=type(client).__name__,
        )
    address = str(client.scheduler.address) if client.scheduler is not None else ""
    if not insecure and not address.startswith(_LOOPBACK):
        raise PlanError(
            "cannot use a scheduler that other machines reach without TLS: whoever reaches its port has a shell",
            element="cluster",
            expected="an address that begins with tls://, or this machine's own",
            got=address or "a client that is closed",
            hint="start the cluster with certificates; or, in a network that you trust, give insecure=True",
        )


def answers_of(client: Any, requests: Sequence[bytes], wait_s: float) -> list[bytes]:
    """Let workers answer requests, and return what they say, in the order of the requests.

    Dask runs a request again on another worker where one dies, at most three times.

    Args:
        client: one that `check_client` has passed.
        requests: see `ShardMessages`.
        wait_s: seconds to wait for the first worker.

    Raises:
        RunError: if there is no worker, or several died of one request.
    """
    try:
        client.wait_for_workers(1, timeout=wait_s)
    except TimeoutError as error:
        raise RunError(
            "cannot run shards: the cluster has no worker",
            element="cluster",
            expected=f"one within {wait_s:g} s",
            got="none",
            hint="start workers, and run it again",
        ) from error
    futures = client.map(answer, list(requests), pure=False)
    try:
        return [bytes(one) for one in client.gather(futures)]
    except KilledWorker as error:
        raise RunError(
            "cannot run shards: one shard's workers died again and again",
            element="cluster",
            got=str(error),
            hint="see what the workers wrote last; often it is too little memory for memory=",
        ) from error
    finally:
        client.cancel(futures)
