"""The one import of dask's `distributed`, needed for clusters alone. Without it a call says what to install."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowcompute.distributed.shard_message import answer
from flowcompute.errors import PlanError, RunError
from flowcompute.files import FILES

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


def check_workers(client: Any, path: str, nonce: bytes, memory_bytes: int, wait_s: float) -> int:
    """Check that each worker reads what the client has written, and has the memory; return how many there are.

    Args:
        client: one that `check_client` has passed.
        path: of a file that the client has written.
        nonce: its bytes.
        memory_bytes: the budget of a shard.
        wait_s: seconds to wait for the first worker.

    Raises:
        RunError: if there is no worker, or one does not see the file.
        PlanError: if a worker may use less memory.
    """
    _wait(client, wait_s)
    for worker, said in client.scheduler_info(n_workers=-1)["workers"].items():
        limit = said.get("memory_limit") or 0
        if 0 < limit < memory_bytes:
            raise PlanError(
                f"cannot run shards: worker {worker} may use less memory than a shard",
                element="memory",
                expected=f"at most {limit} bytes",
                got=f"{memory_bytes}",
                hint="lower memory=, or raise the worker's memory_limit",
            )
    found = client.run(read_shared, path)
    for worker, seen in found.items():
        if seen != nonce:
            raise RunError(
                f"cannot run shards: worker {worker} does not see the checkpoint's folder",
                element="checkpoint",
                expected=f"the file that the client has just written: {path}",
                got="another one, or none",
                hint="give a folder that all workers share, under one path",
            )
    return len(found)


def read_shared(path: str) -> bytes:
    """Return the bytes of a small file, in a worker; none where there is no such file."""
    try:
        return FILES.read_bytes(path)
    except OSError:
        return b""


def _wait(client: Any, wait_s: float) -> None:
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
    _wait(client, wait_s)
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
