"""Streams that shards write side by side: the bytes of one run, in one commit or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed import ShardedJob, ShardMessages, ShardStart, ShardState, answer, run_shard
from flowcompute.elements import Element
from tests.distributed.test_shard_progress import run_with_stops
from tests.distributed.test_shards import numbers, planned
from tests.properties.cases import cases
from tests.support.faulty_files import FaultyFiles


def saves(x: Element, folder: Path) -> tuple[Element, ...]:
    normal = (x - x.mean(axis=0)) * fc.random.normal(x.shape[0], seed=3, shape=(3,))
    return (
        normal >> fc.save(folder / "y.npy"),
        normal[:, 1] >> fc.save(folder / "y.raw"),
        x.astype("int8") >> fc.save(folder / "y.h5", key="a/b"),
        normal >> fc.save(folder / "y.zarr", chunk=500),
        x >> fc.save(folder / "all.zarr", chunk=100_000),
        x >> fc.save(folder / "y.safetensors", key="x"),
        fc.table({"a": normal[:, 0], "pair": x[:, 1:]}) >> fc.save(folder / "y.parquet", chunk=500),
        x >> fc.save(folder / "all.parquet"),
        x >> fc.discard(),
        x.sum(axis=0) >> fc.save(folder / "sum.npy"),
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@cases(6)
@given(
    length=st.sampled_from([0, 1, 500, 1023, 8192, 20_001]),
    shards=st.integers(1, 17),
    batch=st.sampled_from([1 << 10, 1 << 14, 1 << 20]),
    batches=st.integers(0, 40),
)
def test_regions_are_the_bytes_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, length: int, shards: int, batch: int, batches: int
) -> None:
    x = fc.source(numbers(length))
    one, many = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("many")
    fc.run(*saves(x, one), device="numpy", progress=False)
    job = planned(*saves(x, many), strategy=fc.Strategy(batch_bytes=batch))

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        # The last shard writes first, and each is stopped now and then.
        return [run_with_stops(job, index, start, batches)[0] for start in reversed(starts)]

    paths = ShardedJob(job, shards).run(run_shards)
    assert paths[0] == str(many / "y.npy")
    assert contents(many) == contents(one)


def test_messages_carry_regions(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(20_001))
    x = fc.open(tmp_path / "x.npy")
    for name in ("one", "many"):
        os.mkdir(tmp_path / name)
    fc.run(*saves(x, tmp_path / "one"), device="numpy", progress=False)
    job = planned(*saves(x, tmp_path / "many"))
    messages = ShardMessages(job)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        return messages.states([answer(messages.request(index, start)) for start in starts])

    ShardedJob(job, 3).run(run_shards)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_a_shard_that_fails_leaves_nothing(tmp_path: Path) -> None:
    x = fc.source(numbers(9000))
    job = planned(*saves(x, tmp_path))

    def fails_late(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        run_shard(job, index, starts[0])
        raise RuntimeError("a worker is gone")

    with pytest.raises(RuntimeError, match="gone"):
        ShardedJob(job, 3).run(fails_late)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_records_that_nobody_has_written_are_noticed(tmp_path: Path, lost: int) -> None:
    job = planned(fc.source(numbers(9000)) * 2 >> fc.save(tmp_path / "y.npy"))

    def forgets(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        found = [run_shard(job, index, start) for start in starts]
        found[lost] = ShardState(found[lost].start, found[lost].stop, found[lost].folds)
        return found

    with pytest.raises(fc.RunError, match="have not written all of it"):
        ShardedJob(job, 3).run(forgets)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["x.npy", ".y.npy.0123456789abcdef.partial", ".y.npy.0123.partial", "../y", 3])
def test_what_is_no_draft_of_the_result_is_left_alone(tmp_path: Path, name: Any) -> None:
    (tmp_path / "x.npy").write_bytes(b"mine")
    job = planned(fc.source(numbers(10)) * 2 >> fc.save(tmp_path / "y.npy"))
    draft: Any = str(tmp_path / name) if isinstance(name, str) else name
    with pytest.raises(fc.DestinationError, match=r"none of its own|cannot join"):
        run_shard(job, 0, ShardStart((0, 10), regions={0: draft}))
    assert contents(tmp_path) == {"x.npy": b"mine"}


def test_a_link_in_place_of_a_draft_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"mine")
    draft = tmp_path / ".y.npy.0123456789abcdef.partial"
    draft.symlink_to(tmp_path / "x.npy")
    job = planned(fc.source(numbers(10)) * 2 >> fc.save(tmp_path / "y.npy"))
    with pytest.raises(fc.DestinationError, match="cannot join"):
        run_shard(job, 0, ShardStart((0, 10), regions={0: str(draft)}))
    assert (tmp_path / "x.npy").read_bytes() == b"mine"


@cases(6)
@given(
    length=st.sampled_from([0, 1, 1023, 20_001]),
    shards=st.integers(1, 9),
    batches=st.integers(0, 40),
)
def test_streams_into_memory_are_those_of_one_run(length: int, shards: int, batches: int) -> None:
    x = fc.source(numbers(length))
    out = np.empty((length, 3), np.float32)

    def roots() -> tuple[Element, ...]:
        return x * 2, x[x[:, 0] > 0] >> fc.to_array(), fc.cumulative_sum(x[:, 1]), x.sum(axis=0)

    want = fc.run(*roots(), device="numpy", progress=False).values
    job = planned(*roots(), x * 3 >> fc.to_array(out=out), strategy=fc.Strategy(batch_bytes=1 << 14))
    messages = ShardMessages(job)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        states = [run_with_stops(job, index, start, batches)[0] for start in reversed(starts)]
        return messages.states([pack(state.as_data()) for state in states])

    made = ShardedJob(job, shards).run(run_shards)
    assert [one.tobytes() for one in made[:4]] == [one.tobytes() for one in want]
    assert made[4] is out
    assert np.array_equal(out, numbers(length) * np.float32(3))


@pytest.mark.parametrize("change", [{}, {"0": np.zeros((9, 3), "f8")}, {"0": np.zeros((8, 3), "f4")}])
def test_records_that_are_not_those_of_the_stream_are_noticed(change: dict[str, np.ndarray]) -> None:
    job = planned(fc.source(numbers(9)) * 2)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        return [replace(run_shard(job, index, start), streams=change) for start in starts]

    with pytest.raises(fc.RunError, match="gives other records than it says"):
        ShardedJob(job, 1).run(run_shards)


def test_a_start_is_plain_data() -> None:
    start = ShardStart((3, 8), {4: np.arange(3.0)}, {1: "/tmp/.y.npy.0123456789abcdef.partial"})
    again = ShardStart.of_data(unpack(pack(start.as_data())))
    assert (again.records, dict(again.regions)) == (start.records, dict(start.regions))
    assert again.resident[4].tobytes() == start.resident[4].tobytes()
    for change in ({"records": [3, 1]}, {"records": ["3", 8]}, {"resident": {"4": 3}}):
        with pytest.raises(ValueError, match=r"records|no array"):
            ShardStart.of_data({**start.as_data(), **change})


@pytest.mark.parametrize("name", ["y.npy", "y.h5", "y.zarr", "y.parquet"])
def test_each_operation_may_fail(tmp_path: Path, name: str) -> None:
    array = numbers(3000)

    def run(folder: Path, files: FaultyFiles) -> None:
        folder.mkdir(exist_ok=True)
        options: dict[str, Any] = {"chunk": 700} if name in ("y.zarr", "y.parquet") else {}
        y = fc.source(array) * 2 >> fc.save(folder / name, files=files, **options)
        ShardedJob(planned(y, strategy=fc.Strategy(batch_bytes=1 << 13)), 3).run()

    whole = FaultyFiles()
    run(tmp_path / "whole", whole)
    assert not whole.handles
    for k, operation in enumerate(whole.log):
        files, folder = FaultyFiles(fail_at=k), tmp_path / str(k)
        with pytest.raises(fc.DestinationError):
            run(folder, files)
        assert not files.handles, operation
        # Half a result is never under the name.
        left = contents(folder)
        visible = {path for path in left if not path.startswith(".")}
        assert not visible or {path: left[path] for path in visible} == contents(tmp_path / "whole"), operation
        if operation.name in ("write", "fsync", "open_update"):
            assert not left, operation
