"""Checks of workers before anything starts: versions, memory, devices, and the folders that they share."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed.cluster._dask import ClusterWorker
from flowcompute.distributed.shard_answer import describe, make_ready
from flowcompute.distributed.shard_message import ShardMessages, differences, versions
from flowcompute.distributed.worker_settings import WorkerSettings, settings_for
from flowcompute.errors import CheckpointError, PlanError, RunError
from flowcompute.files import FILES, atomic_write_bytes


class Asking(Protocol):
    """Workers that can be asked; see `DaskWorkers`."""

    def ask(
        self, function: Callable[[bytes], bytes], request: bytes, workers: Sequence[ClusterWorker]
    ) -> Mapping[str, bytes | BaseException]:
        """Call a function of a module in each worker."""


def check_memory(workers: Sequence[ClusterWorker], memory_bytes: int) -> None:
    """Check that each worker may use the memory of a shard, and runs one at a time.

    Raises:
        PlanError: naming the worker, and its numbers.
    """
    for one in workers:
        if one.at_once > 1:
            raise PlanError(
                f"cannot run shards: worker {one.address} runs several at once, which share its device and its memory",
                element="cluster",
                expected="one thread a worker",
                got=f"{one.at_once}",
                hint="start workers with one thread (threads_per_worker=1, --nthreads 1), and one for each device",
            )
        if one.memory_bytes is not None and one.memory_bytes < memory_bytes:
            raise PlanError(
                f"cannot run shards: worker {one.address} may use less memory than a shard",
                element="memory",
                expected=f"at most {one.memory_bytes} bytes",
                got=f"{memory_bytes}",
                hint="lower memory=, or raise the worker's memory_limit",
            )


def settings_of(workers: Sequence[ClusterWorker], asking: Asking) -> WorkerSettings:
    """Return the settings of the workers' processes, which are asked what they are.

    Raises:
        PlanError: if one has another version of flowcompute, or another order of sums.
        RunError: if one cannot answer.
    """
    told: dict[str, tuple[str, list[int]]] = {}
    for address, fields in _asked(asking, describe, pack({}), workers):
        expected, got = differences(fields.get("versions", {}), versions())
        if expected:
            raise PlanError(
                f"cannot run shards: worker {address} has another version than the client",
                element="cluster",
                expected=expected,
                got=got,
                hint="install one version of flowcompute everywhere",
            )
        told[address] = str(fields["host"]), list(fields["cores"])
    return settings_for(told)


def check_ready(
    workers: Sequence[ClusterWorker],
    asking: Asking,
    messages: ShardMessages,
    places: Sequence[tuple[str, bytes]],
    resources: Mapping[str, float],
) -> None:
    """Let each worker plan the job, and look at the files that the client has written.

    Args:
        workers, asking, messages: of the run.
        places: paths of files that the client has written, and what is in them.
        resources: what a shard takes; of a device, where it is less than 1.

    Raises:
        RunError: naming a worker that cannot run shards, and why.
        PlanError: naming workers that share a device.
    """
    most = int(1 / min([1.0, *resources.values()]))
    on_device: dict[tuple[str, str], list[str]] = {}
    for address, fields in _asked(asking, make_ready, messages.ready(places), workers):
        if "error" in fields:
            raise RunError(f"cannot run shards: worker {address} is not ready: {fields['error']}", element="cluster")
        for device in fields["addresses"]:
            on_device.setdefault((str(fields["host"]), str(device)), []).append(address)
    for (host, device), sharing in on_device.items():
        if len(sharing) > most:
            raise PlanError(
                f"cannot run shards: workers {' and '.join(sharing)} have the same device",
                element="cluster",
                expected=f"at most {most} for a device" if most > 1 else "one for each device",
                got=f"{len(sharing)} for the device at {device} of {host}",
                hint="start each worker with a CUDA_VISIBLE_DEVICES of its own; where they are to share the device and "
                f'its memory, give resources={{"GPU": {100 // len(sharing) / 100}}}',
            )


@contextmanager
def shared_places(folders: Sequence[str]) -> Iterator[list[tuple[str, bytes]]]:
    """Write a random number into each of these folders, which workers must read, until the end of the block.

    A folder that is missing, or cannot be written here, is left to whoever writes its results, whose error is better.
    """
    places: list[tuple[str, bytes]] = []
    try:
        for folder in dict.fromkeys(folders):
            path, nonce = os.path.join(folder, f".flowcompute-{secrets.token_hex(8)}"), secrets.token_bytes(16)
            with suppress(OSError):
                atomic_write_bytes(FILES, path, nonce)
                places.append((path, nonce))
        yield places
    finally:
        for path, _ in places:
            with suppress(OSError):
                FILES.remove(path)


def _asked(
    asking: Asking, function: Callable[[bytes], bytes], request: bytes, workers: Sequence[ClusterWorker]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for address, said in asking.ask(function, request, workers).items():
        if isinstance(said, BaseException):
            raise RunError(
                f"cannot run shards: worker {address} does not answer as flowcompute does",
                element="cluster",
                got=f"{type(said).__name__}: {said}",
                hint="install one version of flowcompute everywhere",
            ) from said
        try:
            yield address, unpack(said)
        except CheckpointError as error:
            raise RunError(
                f"cannot read what worker {address} says", element="cluster", hint="see the worker's log"
            ) from error
