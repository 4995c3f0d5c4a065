"""Shards on a cluster of dask: the bits of one machine, also when a worker dies; open schedulers are refused."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import Client, Future, LocalCluster
from distributed.comm.core import CommClosedError

import flowcompute as fc
from flowcompute.checkpoint.store import pack
from flowcompute.distributed import shard_answer
from flowcompute.distributed.cluster._dask import DaskWorkers
from flowcompute.distributed.cluster.cluster_record import ClusterRecord
from flowcompute.distributed.kept import ShardFolder
from flowcompute.thread_pool import own_cores
from tests.distributed.test_shard_clocks import of_all_tasks
from tests.distributed.test_shard_regions import contents
from tests.distributed.test_shards import bits, numbers, statistics


@contextlib.contextmanager
def cluster_of(workers: int, **options: Any) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            memory_limit=0, silence_logs=50, **options,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def shared_workers() -> Iterator[Client]:
    """Two workers that several tests use, one after the other."""
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def two(shared_workers: Client) -> Client:
    """Two workers, both there: one may have been killed before."""
    shared_workers.wait_for_workers(2)
    return shared_workers


class OpenClient(Client):
    """A client of a scheduler that other machines reach."""

    def __init__(self) -> None:
        self.scheduler = SimpleNamespace(address="tcp://192.0.2.1:8786")

    def __del__(self) -> None:
        pass


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(fc.PlanError, match=r"a distributed\.Client"):
        fc.run(fc.source(numbers(10)).sum(), cluster="tcp://127.0.0.1", shards=2)


def test_open_schedulers_are_refused() -> None:
    client: Any = OpenClient()
    with pytest.raises(fc.PlanError, match="without TLS"):
        fc.run(fc.source(numbers(10)).sum(), cluster=client, shards=2)


def test_options_that_workers_are_not_told_are_refused() -> None:
    client: Any = OpenClient()
    with pytest.raises(fc.PlanError, match="cannot use isolate= on a cluster"):
        fc.run(fc.source(numbers(10)).sum(), cluster=client, shards=2, insecure=True, isolate=True)


def kill_one_at_work(client: Client, processes: dict[str, int]) -> None:
    """Kill a worker as soon as it runs a shard."""
    busy: list[str] = []
    while not busy:
        busy = [worker for worker, tasks in client.processing().items() if any("answer" in str(one) for one in tasks)]
    os.kill(processes[busy[0]], signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_byte(two: Client, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(60_001))
    elements = statistics(fc.open(tmp_path / "x.npy"))
    want = fc.run(*elements, device="numpy", progress=False).values
    killer = threading.Thread(target=kill_one_at_work, args=(two, two.run(os.getpid)))
    killer.start()
    made = fc.run(*elements, cluster=two, shards=8, device="numpy", memory="24MiB", progress=False).values
    killer.join()
    assert bits(made) == bits(want)


@pytest.mark.slow
def test_workers_write_side_by_side_also_when_one_is_killed(two: Client, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(60_001))
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    x = fc.open(tmp_path / "x.npy")
    fc.run(*of_all_tasks(x, tmp_path / "one"), device="numpy", progress=False)
    killer = threading.Thread(target=kill_one_at_work, args=(two, two.run(os.getpid)))
    killer.start()
    fc.run(*of_all_tasks(x, tmp_path / "many"), cluster=two, shards=8, device="numpy", memory="64MiB")
    killer.join()
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


@pytest.mark.slow
def test_workers_share_the_cores_of_their_host(tmp_path: Path) -> None:
    """PoCL takes all cores of a host in each process, unless it is told before it starts."""
    np.save(tmp_path / "x.npy", numbers(5000))
    with cluster_of(2) as client:
        client.run(os.environ.pop, "POCL_MAX_PTHREAD_COUNT", None)
        fc.run(fc.open(tmp_path / "x.npy").sum(), cluster=client, device="cpu", memory="24MiB", progress=False)
        share = str(max(1, len(own_cores()) // 2))
        assert set(client.run(os.getenv, "POCL_MAX_PTHREAD_COUNT").values()) == {share}
        assert set(client.run(units).values()) == {int(share)}


def units() -> int:
    return fc.plan(fc.source(np.zeros(3)).sum(), device="cpu").backend.capabilities.units


@pytest.mark.slow
def test_shards_tell_of_their_work_while_they_run(
    two: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = ClusterRecord.heard
    progress: list[int] = []

    def hear(self: ClusterRecord, told: object) -> None:
        heard(self, told)
        progress.append(self.progress.items)

    monkeypatch.setattr(ClusterRecord, "heard", hear)
    np.save(tmp_path / "x.npy", numbers(60_000))
    log = tmp_path / "log"
    two.run(tell_at_once)
    run = fc.run(
        fc.open(tmp_path / "x.npy", name="x") * 2 >> fc.save(tmp_path / "y.npy"),
        cluster=two, shards=2, device="numpy", memory="256KiB", throttle=0.2, metrics_log=log, progress=True,
        page=0,
    )  # fmt: skip
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(0 < items < 60_000 for items in progress)
    assert lines[-1]["items"] == lines[-1]["total_items"] == run.progress.items == 60_000
    assert run.metrics["x"].items == 60_000
    assert "http://127.0.0.1:" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_is_cancelled_leaves_its_workers_idle(
    two: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch takes a fifth of a second, a shard minutes: workers that are idle were stopped."""
    heard = ClusterRecord.heard
    begun = threading.Event()

    def hear(self: ClusterRecord, told: object) -> None:
        heard(self, told)
        if self.progress.items:
            begun.set()

    def interrupt(*_: object) -> None:
        begun.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(ClusterRecord, "heard", hear)
    monkeypatch.setattr(DaskWorkers, "_next", interrupt)
    np.save(tmp_path / "x.npy", np.zeros(1 << 22, np.float32))
    two.run(tell_at_once)
    job = fc.open(tmp_path / "x.npy") * 2 >> fc.save(tmp_path / "y.npy")
    with pytest.raises(KeyboardInterrupt):
        fc.run(job, cluster=two, shards=2, device="numpy", memory="32KiB", throttle=0.2, progress=False)
    # Each has one thread, which takes this when it has nothing else to do.
    for worker in two.scheduler_info()["workers"]:
        assert two.submit(os.getpid, workers=[worker], pure=False).result() > 0
    assert os.listdir(tmp_path) == ["x.npy"]


def tell_at_once() -> None:
    shard_answer.TELL_EVERY_S = 0.0


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_told(two: Client, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(60_000))
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--dashboard-address", "127.0.0.1:0"]  # fmt: skip
    file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", str(file)], stderr=subprocess.DEVNULL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = Client(scheduler_file=str(file), timeout=600)
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, "--nthreads", "1",
             "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        job = fc.open(tmp_path / "x.npy").sum(axis=0)
        kept = tmp_path / "kept"
        killer = threading.Thread(target=kill_when_some_is_kept, args=(kept, scheduler))
        killer.start()
        with pytest.raises(fc.RunError, match="the scheduler of the cluster is gone"):
            fc.run(
                job, cluster=client, shards=4, device="numpy", memory="1MiB", checkpoint=kept,
                checkpoint_every=0.01, throttle=0.2, progress=False,
            )  # fmt: skip
        killer.join()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        client.close(timeout=1)
    made = fc.run(job, cluster=two, shards=4, device="numpy", memory="1MiB", checkpoint=kept, progress=False)
    assert made.shards.resumed >= 1
    assert bits(made.values) == bits(fc.run(job, device="numpy", progress=False).values)


def test_a_shard_that_was_taken_over_is_asked_for_again(two: Client, tmp_path: Path) -> None:
    """A worker that was cut off comes back: it claims the shard, for which the client listens to another one."""
    np.save(tmp_path / "x.npy", numbers(240_001))
    x, kept = fc.open(tmp_path / "x.npy"), tmp_path / "kept"
    job = ((x - x.mean(axis=0)) / x.std(axis=0) >> fc.save(tmp_path / "z.npy"), x.var(axis=0))
    claimed: list[ShardFolder] = []
    over = threading.Event()

    def claim() -> None:
        while not claimed and not over.is_set():
            begun = [path.parent for path in kept.glob("stage-*/shard-*/state")]
            for shard in [path for path in begun if not (path / "result").exists()][:1]:
                claimed.append(ShardFolder(str(shard), b""))
                claimed[0].claim()

    thief = threading.Thread(target=claim)
    thief.start()
    try:
        made = fc.run(
            *job, cluster=two, shards=2, device="numpy", memory="1MiB", checkpoint=kept, checkpoint_every=0,
            throttle=0.02, progress=False,
        )  # fmt: skip
    finally:
        over.set()
        thief.join()
    with pytest.raises(fc.RunError, match="taken it over"):
        claimed[0].check()
    found = (tmp_path / "z.npy").read_bytes()
    (tmp_path / "z.npy").unlink()
    assert bits(made.values[1:]) == bits(fc.run(*job, device="numpy", progress=False).values[1:])
    assert (tmp_path / "z.npy").read_bytes() == found


def test_shards_that_are_taken_over_are_given_up_in_the_end(two: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def again(number: int) -> None:
        tries.append(number)
        if len(tries) == 3:
            raise fc.RunError("cannot run the shard")

    taken = pack({"error": "another worker has taken it over", "taken_over": True})
    monkeypatch.setattr(Future, "result", lambda *_, **__: taken)
    with pytest.raises(fc.RunError, match="cannot run the shard"):
        list(DaskWorkers(two, insecure=False, resources={}).answers([b""], ("topic", 0), again))
    assert tries == [0, 0, 0]


def test_a_scheduler_that_goes_while_an_answer_is_fetched_is_told(two: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(future: Future, timeout: float | None = None) -> bytes:
        raise CommClosedError("connection reset by peer")

    monkeypatch.setattr(Future, "result", closed)
    answers = DaskWorkers(two, insecure=False, resources={}).answers([b""], ("topic", 0), lambda number: None)
    with pytest.raises(fc.RunError, match="the scheduler of the cluster is gone"):
        list(answers)


def kill_when_some_is_kept(kept: Path, process: subprocess.Popen[bytes]) -> None:
    while not some_is_kept(kept):
        pass
    process.kill()


def some_is_kept(kept: Path) -> bool:
    try:
        return kept.is_dir() and fc.thaw(kept).progress.items > 0
    except fc.CheckpointError:
        # The folder is there before what it holds.
        return False
