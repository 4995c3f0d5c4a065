"""Settings of a worker process that have to be made before a driver starts: its threads, and where kernels are kept."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from flowcompute.thread_pool import own_cores

THREADS = "POCL_MAX_PTHREAD_COUNT"
"""Variable that PoCL reads when its devices are listed: the most threads of kernels. Without it all cores are taken."""

CACHE = "FLOWCOMPUTE_CACHE"


class WorkerSettings(NamedTuple):
    """Settings that a client asks of the processes that run its shards.

    Attributes:
        threads: by the name of a host, the threads of each worker's kernels there.
        host, process: of the client.
    """

    threads: Mapping[str, int]
    host: str
    process: int


def own_host() -> str:
    """Return the name of this host."""
    return socket.gethostname()


def settings_for(told: Mapping[str, tuple[str, list[int]]]) -> WorkerSettings:
    """Share the cores of each host among its workers.

    Workers whose cores are not the same, as those of two jobs of SLURM, do not share any.

    Args:
        told: by worker its host, and the cores that it may use.
    """
    threads: dict[str, int] = {}
    for host, cores in told.values():
        sharing = sum(host == other and not set(cores).isdisjoint(others) for other, others in told.values())
        share = max(1, len(cores) // max(1, sharing))
        threads[host] = min(threads.get(host, share), share)
    return WorkerSettings(threads, own_host(), os.getpid())


def settle(settings: WorkerSettings) -> None:
    """Make the settings of this worker, but for those that its user has made.

    Kernels are kept in the user's cache folder on the client's host, and on others in a folder of that host: a home
    folder that a thousand hosts share would be asked for each kernel by all of them at once.
    """
    host = own_host()
    if (host, os.getpid()) == (settings.host, settings.process):
        return
    os.environ.setdefault(THREADS, str(settings.threads.get(host, len(own_cores()))))
    if host != settings.host:
        user = os.geteuid() if hasattr(os, "geteuid") else 0
        os.environ.setdefault(CACHE, os.path.join(tempfile.gettempdir(), f"flowcompute-{user}"))


def settings_data(settings: WorkerSettings) -> dict[str, Any]:
    """Return settings as plain data."""
    return {"threads": dict(settings.threads), "host": settings.host, "process": settings.process}


def settings_of_data(data: Mapping[str, Any]) -> WorkerSettings:
    """Return the settings in plain data of another process.

    Raises:
        ValueError: if the data are of another form; so do TypeError and LookupError.
    """
    threads = data["threads"]
    if not all(type(host) is str and type(count) is int and count > 0 for host, count in threads.items()):
        raise ValueError("threads of workers")
    return WorkerSettings(dict(threads), str(data["host"]), int(data["process"]))
