"""Workers before anything starts: their versions, memory, devices, threads, resources, and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import flowcompute as fc
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed import shard_answer, worker_settings
from flowcompute.distributed.cluster._dask import ClusterWorker, DaskWorkers
from flowcompute.distributed.cluster.worker_checks import (
    check_memory,
    check_ready,
    settings_of,
    shared_places,
)
from flowcompute.distributed.shard_message import ShardMessages, versions
from flowcompute.distributed.worker_settings import WorkerSettings, own_host, settings_for, settle
from flowcompute.errors import PlanError, RunError
from flowcompute.gpu.device.device import Device
from flowcompute.sinks.parquet import _pyarrow_writer
from flowcompute.thread_pool import own_cores
from tests.distributed.here import QUIET, Here, live, run
from tests.distributed.test_shards import numbers, planned

ONE = ClusterWorker("tcp://one", None, 1)


class Saying:
    """Workers that say what they are told to."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._said = said

    def ask(
        self, function: Callable[[bytes], bytes], request: bytes, workers: Sequence[ClusterWorker]
    ) -> Mapping[str, bytes | BaseException]:
        return {one.address: self._said[one.address] for one in workers}


class Waiting:
    """A client of dask whose scheduler tells what it is told to."""

    status = "running"

    def __init__(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        self._workers = workers

    def wait_for_workers(self, count: int, timeout: float) -> None:
        if len(self._workers) < count:
            raise TimeoutError

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": self._workers}


def found(workers: Mapping[str, Mapping[str, Any]], resources: Mapping[str, float]) -> list[ClusterWorker]:
    made = DaskWorkers.__new__(DaskWorkers)
    made._client, made._resources, made._wait_s = Waiting(workers), dict(resources), 7.0
    return made.found()


def description(**others: Any) -> bytes:
    return pack({"host": "a", "cores": [0, 1], "process": 1, "versions": versions(), **others})


# -- workers ----------------------------------------------------------------------------------------


def test_no_worker_is_an_error_after_a_stated_wait() -> None:
    with pytest.raises(RunError, match=r"no worker(.|\n)*one within 7 s"):
        found({}, {})


def test_resources_choose_the_workers() -> None:
    workers = {
        "plain": {"nthreads": 4},
        "one": {"nthreads": 4, "resources": {"GPU": 1}},
        "two": {"nthreads": 4, "resources": {"GPU": 2.0}, "memory_limit": 9},
    }
    assert found(workers, {}) == [
        ClusterWorker("plain", None, 4),
        ClusterWorker("one", None, 4),
        ClusterWorker("two", 9, 4),
    ]
    assert found(workers, {"GPU": 1}) == [ClusterWorker("one", None, 1), ClusterWorker("two", 9, 2)]
    assert found(workers, {"GPU": 2}) == [ClusterWorker("two", 9, 1)]
    with pytest.raises(PlanError, match=r"no worker has these resources(.|\n)*GPU=3, TPU=0.5(.|\n)*GPU=1; GPU=2; none"):
        found(workers, {"GPU": 3, "TPU": 0.5})


@pytest.mark.parametrize("bad", ["GPU", ["GPU"], {"GPU": 0}, {"GPU": -1}, {1: 1}, {"GPU": "1"}, {"GPU": True}])
def test_resources_are_positive_numbers_by_name(asked: list[bytes], bad: Any) -> None:
    with pytest.raises(PlanError, match="positive numbers by the names of resources"):
        fc.run(fc.source(numbers(9)).sum(), cluster=live, resources=bad, **QUIET)


def test_a_worker_with_too_little_memory_is_named_with_its_number() -> None:
    check_memory([ONE, ClusterWorker("tcp://two", 100, 1)], 100)
    with pytest.raises(PlanError, match=r"tcp://two may use less memory(.|\n)*at most 99 bytes(.|\n)*100"):
        check_memory([ONE, ClusterWorker("tcp://two", 99, 1)], 100)


def test_a_worker_that_runs_several_at_once_is_refused() -> None:
    with pytest.raises(PlanError, match=r"tcp://two runs several at once(.|\n)*one thread a worker(.|\n)*got +4"):
        check_memory([ONE, ClusterWorker("tcp://two", None, 4)], 100)


def test_limits_hold_without_a_checkpoint_too(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Here, "workers", [ClusterWorker("small", 1 << 20, 1)])
    with pytest.raises(PlanError, match=r"small may use less memory(.|\n)*1048576 bytes"):
        run(folder, checkpoint=None, checkpoint_every="auto")
    assert not asked


@pytest.mark.parametrize("other", [{"flowcompute": "9.9"}, {"order of sums": 99}])
def test_another_version_is_refused(other: dict[str, Any]) -> None:
    said = {"tcp://one": description(versions={**versions(), **other})}
    with pytest.raises(PlanError, match="tcp://one has another version") as caught:
        settings_of([ONE], Saying(said))
    assert all(f"{name} {value}" in str(caught.value) for name, value in other.items())


@pytest.mark.parametrize("said", [ModuleNotFoundError("no flowcompute"), b"what", ValueError("pickle")])
def test_a_worker_that_cannot_answer_is_named(said: Any) -> None:
    with pytest.raises(RunError, match="tcp://one"):
        settings_of([ONE], Saying({"tcp://one": said}))


def test_a_worker_of_another_version_is_refused_also_when_it_comes_later(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {**versions(), "flowcompute": "9.9"}

    def client(_: int) -> None:
        monkeypatch.setattr(shard_answer, "versions", lambda: later)
        shard_answer._planned.cache_clear()

    with pytest.raises(RunError, match="plans the job in another way"):
        run(folder, client)


def test_another_encoder_of_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that one version of pyarrow has written are not those of another."""
    job = planned(fc.source(numbers(5001)) >> fc.save(tmp_path / "y.parquet"))
    messages = ShardMessages(job)
    shard_answer._planned.cache_clear()
    monkeypatch.setattr(_pyarrow_writer, "version", lambda: "pyarrow 1.2.3")
    said = unpack(shard_answer.make_ready(messages.ready()))
    assert re.search(r"expected +encoders pyarrow \d+\.\d+.*\n +got +encoders pyarrow 1\.2\.3\n", said["error"])


# -- devices ------------------------------------------------------------------------------------------


def test_devices_of_another_kind_are_refused_unless_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    job = planned(fc.source(numbers(5001)).sum(axis=0))
    strict, mixed = ShardMessages(job), ShardMessages(job, mixed=True)
    own = shard_answer.identity

    def changed(plan: Any, *, mixed: bool) -> dict[str, Any]:
        return {**own(plan, mixed=mixed), "device": "any" if mixed else "another"}

    monkeypatch.setattr(shard_answer, "identity", changed)
    said = unpack(shard_answer.make_ready(strict.ready()))
    kind = job.plan.backend.capabilities.kind
    assert re.search(rf"expected +device {re.escape(kind)}\n +got +device another\n", said["error"])
    assert "mixed_devices=True" in said["error"]
    assert unpack(shard_answer.make_ready(mixed.ready()))["device"] == kind


def test_mixed_devices_is_true_or_false(asked: list[bytes]) -> None:
    with pytest.raises(PlanError, match="mixed_devices"):
        fc.run(fc.source(numbers(9)).sum(), cluster=live, mixed_devices="yes", **QUIET)  # type: ignore[arg-type]


def test_a_mixed_job_goes_on_as_one(folder: Path, asked: list[bytes]) -> None:
    run(folder, mixed_devices=True)
    before = len(asked)
    run(folder, mixed_devices=True)
    assert len(asked) == before
    with pytest.raises(fc.CheckpointError, match="another job"):
        run(folder)


def sharing(workers: Mapping[str, tuple[str, list[str]]], resources: Mapping[str, float]) -> None:
    said = {
        name: pack({"device": "any", "host": host, "addresses": addresses})
        for name, (host, addresses) in workers.items()
    }
    messages = ShardMessages(planned(fc.source(numbers(9)).sum(axis=0)))
    check_ready([ClusterWorker(name, None, 1) for name in said], Saying(said), messages, [], resources)


def test_workers_that_have_one_device_are_refused_unless_a_shard_takes_a_part_of_it() -> None:
    """Without CUDA_VISIBLE_DEVICES each process of a host takes its first GPU."""
    first, second = "0000:65:00", "0000:66:00"
    sharing({"a": ("one", [first]), "b": ("one", [second]), "c": ("two", [first]), "d": ("one", [])}, {})
    sharing({"a": ("one", []), "b": ("one", [])}, {})
    three = {"a": ("one", [first]), "b": ("one", [second, first]), "c": ("one", [first])}
    expected = r"workers a and b and c have the same device(.|\n)*{}(.|\n)*3 for the device at 0000:65:00 of one"
    for resources, told in (({}, "one for"), ({"GPU": 1}, "one for"), ({"GPU": 0.5, "TPU": 2}, "at most 2 for")):
        with pytest.raises(PlanError, match=expected.format(told)) as caught:
            sharing(three, resources)
        assert 'resources={"GPU": 0.33}' in str(caught.value)
    for part in (0.33, 0.1):
        sharing(three, {"GPU": part})


def test_a_device_says_where_it_is() -> None:
    device = Device.__new__(Device)
    device.platform = "NVIDIA CUDA"
    device.handle = SimpleNamespace(pci_domain_id_nv=0, pci_bus_id_nv=0x65, pci_slot_id_nv=0)
    assert device.bus_address == "0000:65:00"
    device.platform = "Portable Computing Language"
    assert device.bus_address is None
    said = unpack(shard_answer.make_ready(ShardMessages(planned(fc.source(numbers(9)).sum())).ready()))
    assert (said["host"], said["addresses"]) == (own_host(), [])


# -- threads and caches -------------------------------------------------------------------------------


def test_cores_of_a_host_are_shared_by_its_workers() -> None:
    eight = list(range(8))
    told = {"a": ("one", eight), "b": ("one", eight), "c": ("one", eight), "d": ("two", eight), "e": ("three", [3])}
    told |= {"f": ("four", eight[:4]), "g": ("four", eight[4:])}
    made = settings_for(told)
    assert made.threads == {"one": 2, "two": 8, "three": 1, "four": 4}
    assert settings_for({str(i): ("one", [0, 1]) for i in range(9)}).threads == {"one": 1}
    assert settings_of([ONE], Saying({"tcp://one": description()})).threads == {"a": 2}


def test_settings_are_made_before_a_driver_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (worker_settings.THREADS, worker_settings.CACHE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    # The client's own process is left as it is.
    settle(WorkerSettings({own_host(): 3}, own_host(), os.getpid()))
    assert worker_settings.THREADS not in os.environ
    settle(WorkerSettings({own_host(): 3}, own_host(), os.getpid() + 1))
    assert os.environ[worker_settings.THREADS] == "3"
    assert worker_settings.CACHE not in os.environ
    # What the user has said counts.
    settle(WorkerSettings({own_host(): 5}, "another", 1))
    assert os.environ[worker_settings.THREADS] == "3"
    assert os.environ[worker_settings.CACHE].endswith(f"flowcompute-{os.geteuid()}")
    del os.environ[worker_settings.THREADS]
    settle(WorkerSettings({}, "another", 1))
    assert os.environ[worker_settings.THREADS] == str(len(own_cores()))


# -- folders ------------------------------------------------------------------------------------------


def ready(places: Sequence[tuple[str, bytes]]) -> None:
    messages = ShardMessages(planned(fc.source(numbers(5001)).sum(axis=0)))
    check_ready([ONE], Asked(), messages, places, {})


class Asked:
    """One worker, which is this process."""

    def ask(
        self, function: Callable[[bytes], bytes], request: bytes, workers: Sequence[ClusterWorker]
    ) -> Mapping[str, bytes | BaseException]:
        return {one.address: function(request) for one in workers}


def test_a_folder_that_is_not_shared_is_named(tmp_path: Path) -> None:
    with shared_places([str(tmp_path), str(tmp_path), str(tmp_path / "none")]) as places:
        assert len(places) == 1
        ready(places)
        ((path, nonce),) = places
        assert os.listdir(tmp_path) == [os.path.basename(path)]
        for found in (nonce[:-1], b""):
            Path(path).write_bytes(found)
            with pytest.raises(RunError, match=r"tcp://one is not ready(.|\n)*another folder here(.|\n)*another one"):
                ready(places)
        Path(path).unlink()
        with pytest.raises(RunError, match=r"another folder here than on the client(.|\n)*none"):
            ready(places)
    assert not os.listdir(tmp_path)


def test_a_folder_that_a_worker_cannot_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> int:
        raise OSError(30, "Read-only file system")

    with shared_places([str(tmp_path)]) as places:
        monkeypatch.setattr(type(shard_answer.FILES), "create", lambda _, path: refuse(path))
        with pytest.raises(RunError, match=r"cannot write to .* from this worker: Read-only file system"):
            ready(places)


def test_folders_of_results_are_looked_at_too(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(shard_answer, "_check_place", lambda path, _: seen.append(os.path.dirname(path)))
    run(folder)
    assert seen == [str(folder / "kept"), str(folder / "b")]
