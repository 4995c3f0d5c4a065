"""Shards on a cluster of dask: the bits of one machine, also when a worker dies; open schedulers are refused."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

import flowcompute as fc
from flowcompute.distributed import resolve_on
from tests.distributed.test_shard_clocks import of_all_tasks
from tests.distributed.test_shard_regions import contents
from tests.distributed.test_shards import bits, numbers, statistics


class OpenClient(Client):
    """A client of a scheduler that other machines reach."""

    def __init__(self) -> None:
        self.scheduler = SimpleNamespace(address="tcp://192.0.2.1:8786")

    def __del__(self) -> None:
        pass


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(fc.PlanError, match=r"a distributed\.Client"):
        resolve_on("tcp://127.0.0.1", fc.source(numbers(10)).sum(), shards=2)


def test_open_schedulers_are_refused() -> None:
    client: Any = OpenClient()
    with pytest.raises(fc.PlanError, match="without TLS"):
        resolve_on(client, fc.source(numbers(10)).sum(), shards=2)


def test_options_that_workers_are_not_told_are_refused() -> None:
    client: Any = OpenClient()
    with pytest.raises(fc.PlanError, match="cannot send isolate= to workers"):
        resolve_on(client, fc.source(numbers(10)).sum(), shards=2, insecure=True, isolate=True)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_byte(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(60_001))
    elements = statistics(fc.open(tmp_path / "x.npy"))
    want = fc.run(*elements, device="numpy", progress=False).values
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
        killer.start()
        made = resolve_on(client, *elements, shards=8, device="numpy", memory="24MiB")
        killer.join()
    assert bits(made) == bits(want)


@pytest.mark.slow
def test_workers_write_side_by_side_also_when_one_is_killed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(60_001))
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    x = fc.open(tmp_path / "x.npy")
    fc.run(*of_all_tasks(x, tmp_path / "one"), device="numpy", progress=False)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
        killer.start()
        resolve_on(client, *of_all_tasks(x, tmp_path / "many"), shards=8, device="numpy", memory="64MiB")
        killer.join()
    assert contents(tmp_path / "many") == contents(tmp_path / "one")
