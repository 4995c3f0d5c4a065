"""Windows, selections, scans and other streams of clocks of their own in shards: the bits and bytes of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed import ShardedJob, ShardStart, ShardState, run_shard
from flowcompute.elements import Element
from tests.distributed.test_shard_progress import run_with_stops
from tests.distributed.test_shard_regions import contents
from tests.distributed.test_shards import bits, numbers, planned
from tests.properties.cases import cases
from tests.support.slow import compiled_but, slow_but

Make = Callable[[Any], Element]

STREAMS: dict[str, Make] = {
    "window": lambda x: fc.window(x[:, 1], size=33).max(axis=1),
    "window of steps": lambda x: fc.window(x, size=5, step=3).sum(axis=1),
    "window far apart": lambda x: fc.window(x[:, 0], size=3, step=40).sum(axis=1),
    "window padded": lambda x: fc.window(x[:, 0], size=9, pad=0.5).sum(axis=1),
    "window mirrored": lambda x: fc.window(x[:, 0], size=7, pad="reflect").sum(axis=1),
    "window of a window": lambda x: fc.window(fc.window(x[:, 0], size=5).sum(axis=1), size=4, step=2).max(axis=1),
    "window of a section": lambda x: fc.window(x[100:3000:3, 0], size=6).sum(axis=1),
    "section": lambda x: (x[:, :2] * x[:, 1:])[1000:-2:7],
    "short section": lambda x: (x + x[:, :1])[5:9],
    "flatten": lambda x: fc.flatten(x) + 1,
    "cut": lambda x: fc.cut(x[:, 0], every=100, tail="pad").sum(axis=1),
    "cut dropped": lambda x: fc.cut(x, every=7, tail="drop").max(axis=1),
    "cut short": lambda x: fc.cut(x, every=64, tail="emit").sum(axis=1),
    "selected": lambda x: x[x[:, 0] > 0.3],
    "few selected": lambda x: x[x[:, 0] > 3.2] * 2,
    "none selected": lambda x: x[x[:, 0] > 100],
    "window of selected": lambda x: fc.window(x[:, 1][x[:, 0] > 0.3], size=5).sum(axis=1),
    "selected with places": lambda x: x[x[:, 0] > 0] * 2 + x[:, 1:2][x[:, 0] > 0],
    "sum": lambda x: fc.cumulative_sum(x, axis=0),
    "sum before": lambda x: fc.cumulative_sum(x[:, 0] * 1.5, axis=0) + x[:, 1],
    "product": lambda x: fc.cumulative_prod(1 + x[:, 0] / 1000, axis=0),
    "sum of whole numbers": lambda x: fc.cumulative_sum((x * 9).astype("int16"), axis=0),
    "window of a sum": lambda x: fc.window(fc.cumulative_sum(x[:, 0], axis=0), size=10).mean(axis=1),
    "selected by a sum": lambda x: x[fc.cumulative_sum(x[:, 0], axis=0) > 0] * 3,
    "window of selected by a sum": lambda x: fc.window(x[:, 1][fc.cumulative_sum(x[:, 0], axis=0) > 1], size=4).sum(
        axis=1
    ),
    "selected of a sum": lambda x: fc.cumulative_sum(x, axis=0)[x[:, 1] > 0],
    "sum of selected": lambda x: fc.cumulative_sum(x[x[:, 0] > 0.3], axis=0),
    "sum of the first": lambda x: fc.cumulative_sum(x[fc.abs(x[:, 2]) + fc.arange(x.shape[0]) < 500], axis=0),
    "sum of windows": lambda x: fc.cumulative_sum(fc.window(x[:, 0], size=9, step=2).max(axis=1), axis=0),
    "sum of numbers": lambda x: fc.cumulative_sum(fc.flatten(x), axis=0),
    "window of a sum of selected": lambda x: fc.window(fc.cumulative_sum(x[x[:, 1] > 0, 0], axis=0), size=7).sum(
        axis=1
    ),
    "joined": lambda x: fc.concat([x[:, 0], x[:, 1] * 2]),
    "joined with nothing": lambda x: fc.concat([x[:0], x, x[7:7] + 1, x[3:] * 2, x[:0]]),
    "window of joined": lambda x: fc.window(fc.concat([x[:, 0], x[:99, 1], x[:, 2]]), size=33).max(axis=1),
    "window of joined padded": lambda x: fc.window(fc.concat([x, x[5:9], x[5:900]])[:, 0], size=9, pad=1.5).sum(axis=1),
    "joined windows": lambda x: fc.concat(
        [fc.window(x[:, 0], size=9, pad=0.5).sum(axis=1), fc.window(x[:, 1], size=4, step=3).max(axis=1)]
    ),
    "joined beside its numbers": lambda x: fc.concat([x, x * x[:, :1]])[:, :2] * 3,
    "section of joined": lambda x: fc.concat([x, x * 2])[900:-7:3],
    "joined twice": lambda x: fc.concat([fc.concat([x[:9], x]), fc.cut(x[:, 0], every=3, tail="drop"), x[-5:]]),
    "numbers of joined": lambda x: fc.flatten(fc.concat([x, x[:500] * 2])) + 1,
    "sum of items": lambda x: fc.cumulative_sum(x, axis=1),
}


def folds(y: Element) -> tuple[Element, ...]:
    scalar = y if y.ndim == 1 else y[:, 0]
    always = y.sum(axis=0), y.astype("float64").var(axis=0), scalar.sum()
    return always if y.shape[0] == 0 else (*always, scalar.argmax() + 0)


def check(
    tmp_path_factory: pytest.TempPathFactory, make: Make, array: np.ndarray, shards: int, batch: int, **options: Any
) -> None:
    x = fc.source(array)
    device = options.get("device", "numpy")

    def job(folder: Path) -> tuple[Element, ...]:
        return (make(x) >> fc.save(folder / "y.npy"), *folds(make(x)), make(x) >> fc.save(folder / "y.zarr", chunk=77))

    one, many = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("many")
    try:
        want = fc.run(*job(one), device=device, progress=False).values
    except fc.RunError as error:
        with pytest.raises(fc.RunError, match=error.message[:20]):
            ShardedJob(planned(*job(many), **options), shards).run()
        return
    ran = planned(*job(many), strategy=fc.Strategy(batch_bytes=batch), **options)
    made = ShardedJob(ran, shards).run()
    assert bits(made[1:-1]) == bits(want[1:-1])
    assert contents(many) == contents(one)


@pytest.mark.parametrize("name", STREAMS)
@cases(2)
@given(
    length=st.sampled_from([1023, 1025, 8192, 20_001]),
    shards=st.integers(2, 17),
    batch=st.sampled_from([1 << 12, 1 << 16, 1 << 22]),
)
def test_streams_of_shards_are_those_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, name: str, length: int, shards: int, batch: int
) -> None:
    check(tmp_path_factory, STREAMS[name], numbers(length), shards, batch)


KERNELS = (
    "sum of selected",
    "sum of windows",
    "selected by a sum",
    "selected of a sum",
    "window",
    "window of a window",
    "selected with places",
    "sum",
    "sum before",
    "window of a sum",
    "product",
)


@pytest.mark.parametrize("name", compiled_but(("sum", "window"), KERNELS))
def test_kernels_of_shards_give_the_bits_of_one_run(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    check(tmp_path_factory, STREAMS[name], numbers(40_001), 5, 1 << 16, device="cpu")


@pytest.mark.parametrize("length", slow_but((1,), (0, 1, 2)))
@pytest.mark.parametrize("name", STREAMS)
def test_few_records_in_shards(tmp_path_factory: pytest.TempPathFactory, name: str, length: int) -> None:
    check(tmp_path_factory, STREAMS[name], numbers(length), 3, 1 << 12)


def of_all_tasks(x: Element, folder: Path) -> tuple[Element, ...]:
    chosen = x[x[:, 0] > x[:, 0].mean()]
    return (
        fc.cumulative_sum(x, axis=0) >> fc.save(folder / "c.npy"),
        fc.window(fc.cumulative_sum(x[:, 0], axis=0), size=33).max(axis=1) >> fc.save(folder / "w.npy"),
        chosen >> fc.save(folder / "k.npy"),
        fc.window(chosen[:, 1], size=3).sum(axis=1) >> fc.save(folder / "kw.zarr", chunk=100),
        fc.cumulative_sum(chosen, axis=0) >> fc.save(folder / "ck.npy"),
        fc.quantile(chosen[:, 2], 0.4),
        chosen.var(axis=0),
    )


@cases(4)
@given(shards=st.integers(2, 9), batches=st.integers(0, 30), order=st.randoms(use_true_random=False))
def test_shards_of_all_tasks_can_be_stopped(
    tmp_path_factory: pytest.TempPathFactory, shards: int, batches: int, order: Any
) -> None:
    one, many = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("many")
    x = fc.source(numbers(20_001))
    want = fc.run(*of_all_tasks(x, one), device="numpy", progress=False).values
    job = planned(*of_all_tasks(x, many), strategy=fc.Strategy(batch_bytes=1 << 13))
    stopped: dict[str, int] = {}

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        mixed, found = list(starts), []
        order.shuffle(mixed)
        for start in mixed:
            sent = ShardStart.of_data(unpack(pack(start.as_data())))
            state, stops = run_with_stops(job, index, sent, batches)
            stopped[start.task] = stopped.get(start.task, 0) + stops
            found.append(ShardState.of_data(unpack(pack(state.as_data()))))
        return found

    made = ShardedJob(job, shards).run(run_shards)
    assert bits(made[5:]) == bits(want[5:])
    assert contents(many) == contents(one)
    assert stopped.keys() == {"count", "totals", "compute"}
    assert batches > 1 or all(stopped.values())


@cases(4)
@given(
    lengths=st.lists(st.sampled_from([0, 1, 1023, 1025, 5000]), min_size=2, max_size=4),
    shards=st.integers(1, 9),
    batches=st.integers(0, 30),
    order=st.randoms(use_true_random=False),
)
def test_shards_of_joined_streams_can_be_stopped(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], shards: int, batches: int, order: Any
) -> None:
    """The streams that are joined have folds, windows and files of their own, too."""
    one, many = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("many")
    sources = [fc.source(numbers(length, seed)) for seed, length in enumerate(lengths)]

    def job(folder: Path) -> tuple[Element, ...]:
        y = fc.concat([x * (i + 1) for i, x in enumerate(sources)])
        return (
            y >> fc.save(folder / "y.npy"),
            fc.table({"a": y[:, 0]}) >> fc.save(folder / "t.parquet", chunk=700),
            fc.window(y[:, 1], size=9, pad=0.25).sum(axis=1) >> fc.save(folder / "w.npy"),
            fc.window(sources[0][:, 0], size=5, pad=1.0).sum(axis=1) >> fc.save(folder / "v.npy"),
            y.var(axis=0),
            *(x.sum(axis=0) for x in sources),
        )

    want = fc.run(*job(one), device="numpy", progress=False).values
    ran = planned(*job(many), strategy=fc.Strategy(batch_bytes=1 << 12))

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        mixed = list(starts)
        order.shuffle(mixed)
        sent = [ShardStart.of_data(unpack(pack(start.as_data()))) for start in mixed]
        return [run_with_stops(ran, index, start, batches)[0] for start in sent]

    made = ShardedJob(ran, shards).run(run_shards)
    assert bits(made[4:]) == bits(want[4:])
    assert contents(many) == contents(one)


def test_the_carry_of_a_shard_is_that_of_one_run() -> None:
    # Sums of floats in another order have other bits, so that a shard that guessed would be noticed.
    array = (np.random.default_rng(3).standard_normal((60_000, 2)) * 10.0 ** np.arange(2)).astype(np.float32)
    got = [np.cumsum(array.astype(dtype), axis=0)[-1].tobytes() for dtype in ("float32", "float64")]
    assert got[0] != got[1][:8]
    carries: list[Any] = []

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        carries.extend(start.carries for start in starts if start.task == "compute")
        return [run_shard(job, index, start) for start in starts]

    y = fc.cumulative_sum(fc.source(array), axis=0)
    job = planned(y[:, 0].max(), y.sum(axis=0))
    made = ShardedJob(job, 4).run(run_shards)
    assert bits(made) == bits(fc.run(y[:, 0].max(), y.sum(axis=0), device="numpy", progress=False).values)
    assert [len(carry) for carry in carries] == [0, 1, 1, 1]


@pytest.mark.parametrize("task", ["count", "totals"])
@pytest.mark.parametrize("change", ["less", "other", "nothing"])
def test_states_of_surveys_that_do_not_fit_are_refused(tmp_path: Path, task: str, change: str) -> None:
    job = planned(*of_all_tasks(fc.source(numbers(9000)), tmp_path))

    def damaged(state: ShardState) -> ShardState:
        if change == "nothing":
            return ShardState(state.start, state.stop)
        if task == "count":
            other = {key: found[1:] if change == "less" else [*found, 3] for key, found in state.counts.items()}
            return ShardState(state.start, state.stop, counts=other)
        cut = slice(1, None) if change == "less" else slice(None)
        tiles = {
            key: {
                **found,
                "tiles": found["tiles"][cut].astype("float32" if change == "other" else found["tiles"].dtype),
            }
            for key, found in state.totals.items()
        }
        return ShardState(state.start, state.stop, totals=tiles)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        states = [run_shard(job, index, start) for start in starts]
        return [damaged(state) if starts[0].task == task else state for state in states]

    with pytest.raises(fc.RunError, match="their states do not fit"):
        ShardedJob(job, 3).run(run_shards)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("places", ["none", "elsewhere", "beyond"])
def test_starts_that_do_not_fit_are_refused(tmp_path: Path, places: str) -> None:
    job = planned(fc.window(fc.source(numbers(9000)), size=5).sum(axis=1).max())
    starts: list[ShardStart] = []

    def run_shards(index: int, given: Sequence[ShardStart]) -> list[ShardState]:
        starts.extend(given)
        return [run_shard(job, index, start) for start in given]

    ShardedJob(job, 3).run(run_shards)
    data = starts[1].as_data()
    first, second = data["places"]
    data["places"] = {
        "none": [first],
        "elsewhere": [first, {**second, "begin": 0}],
        "beyond": [first, {**second, "skips": {"99": 0}}],
    }[places]
    with pytest.raises(fc.RunError, match="cannot begin a shard"):
        run_shard(job, 0, ShardStart.of_data(data))
