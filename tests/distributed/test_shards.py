"""Jobs in shards: the bits of one run over all records, or an error that names what is in the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.distributed import ShardedJob, ShardStart, ShardState, run_shard, shard_ranges
from flowcompute.distributed.shard_ranges import shard_unit
from flowcompute.elements import Element
from flowcompute.engine import PlannedJob, fold_block
from flowcompute.jobs import choose_backend
from tests.properties.cases import cases

Job = Callable[[Element], tuple[Element, ...]]


def planned(*elements: Element, **options: Any) -> PlannedJob:
    plan = fc.plan(*elements, **{"device": "numpy", "memory": "24MiB", **options})
    return PlannedJob.of(plan, choose_backend(plan.config.device, plan.asked, isolate=False))


def bits(values: Sequence[Any]) -> list[bytes]:
    return [
        np.asarray(part).tobytes() for value in values for part in (value if isinstance(value, tuple) else (value,))
    ]


def statistics(x: Element) -> tuple[Element, ...]:
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    values, places = fc.top_k(x[:, 1], min(5, x.shape[0]))
    return (
        x.sum(axis=0),
        x.var(axis=0),
        x[:, 0].sum(),
        x[:, 0].argmax(),
        x.min(axis=0),
        fc.quantile(x[:, 1], 0.37),
        values,
        places,
        fc.histogram(x[:, 2], bins=50, range=(-4, 4))[0],
        ((x - mean) / deviation).max(axis=0),
        (fc.random.normal(x.shape[0], seed=3) * x[:, 0]).sum(),
        x.T @ x,
    )


def numbers(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((length, 3)).astype(np.float32)


@cases(10)
@given(
    length=st.sampled_from([1, 2, 1023, 1024, 1025, 8192, 20_000]),
    shards=st.integers(1, 9),
    memory=st.sampled_from(["16MiB", "24MiB"]),
    order=st.randoms(use_true_random=False),
)
def test_shards_in_any_order_have_the_bits_of_the_whole(length: int, shards: int, memory: str, order: Any) -> None:
    array = numbers(length)
    want = fc.run(*statistics(fc.source(array)), device="numpy", progress=False).values

    elsewhere = planned(*statistics(fc.source(array)), memory=memory)

    def run_elsewhere(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        # Shards have a plan of their own, as another process has.
        mixed = list(starts)
        order.shuffle(mixed)
        return [run_shard(elsewhere, index, one) for one in mixed]

    job = ShardedJob(planned(*statistics(fc.source(array))), shards)
    assert bits(job.run(run_elsewhere)) == bits(want)


def test_shards_of_kernels_have_the_bits_of_the_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(50_001))
    elements = statistics(fc.open(tmp_path / "x.npy"))
    want = fc.run(*elements, device="cpu", memory="24MiB", progress=False).values
    assert bits(ShardedJob(planned(*elements, device="cpu"), 5).run()) == bits(want)


def test_values_are_written_at_the_end(tmp_path: Path) -> None:
    x = fc.source(numbers(9000))
    elements = (
        x.sum(axis=0) >> fc.save(tmp_path / "sum.npy"),
        (x - x.mean(axis=0)).max() >> fc.save(tmp_path / "m.npy"),
    )

    def fails_late(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        assert not [one for one in tmp_path.iterdir() if not one.name.startswith(".")]
        if index:
            raise RuntimeError("a worker is gone")
        return [run_shard(planned(*elements), index, one) for one in starts]

    with pytest.raises(RuntimeError, match="gone"):
        ShardedJob(planned(*elements), 3).run(fails_late)
    assert not list(tmp_path.iterdir())
    ShardedJob(planned(*elements), 3).run()
    want = fc.resolve(x.sum(axis=0), device="numpy", progress=False)
    assert np.load(tmp_path / "sum.npy").tobytes() == want.tobytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_an_empty_stream_is_one_shard() -> None:
    x = fc.source(np.empty((0, 3), np.float32))
    job = ShardedJob(planned(x.sum(axis=0)), 4)
    assert job.ranges(0) == ((0, 0),)
    assert bits(job.run()) == [bytes(12)]


def test_a_job_without_streams_has_no_shards() -> None:
    job = ShardedJob(planned(fc.constant(np.arange(3.0)) * 2), 4)
    assert bits(job.run()) == [np.array([0.0, 2.0, 4.0]).tobytes()]


@given(length=st.integers(0, 10_000), unit=st.sampled_from([1, 16, 1024]), shards=st.integers(1, 20))
def test_ranges_are_nodes_of_the_tree(length: int, unit: int, shards: int) -> None:
    ranges = shard_ranges(length, unit, shards)
    assert len(ranges) <= shards
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == length
    sizes = {stop - start for start, stop in ranges[:-1]}
    for size in sizes:
        blocks, rest = divmod(size, unit)
        assert not rest
        assert blocks.bit_count() == 1
    assert len(sizes) <= 1
    # Ranges of half the size would be too many.
    largest = max(stop - start for start, stop in ranges)
    assert largest <= unit or -(-length // (largest // 2)) > shards or len(ranges) == 1


def test_blocks_of_folds_are_powers_of_two() -> None:
    plan = fc.plan(*statistics(fc.source(numbers(30_000))), device="numpy")
    blocks = [fold_block(spec) for spec in (*plan.folds.values(), *plan.host_folds.values())]
    assert max(blocks) > 1
    assert all(block.bit_count() == 1 for block in blocks)
    for one in plan.passes:
        for clock in one.clocks:
            assert shard_unit(plan, clock).bit_count() == 1


def twice_selected(x: Element) -> Element:
    """Records of a selection of a selection."""
    first: Any = x[x[:, 0] > 0]
    return fc.window(first[first[:, 1] > 0], size=3).sum()


REFUSED: dict[str, tuple[str, Job]] = {
    "scan": ("ema", lambda x: (fc.ema(x[:, 0], 0.1).sum(),)),
    "host": ("mine", lambda x: (fc.host(lambda batch: batch * 2, x, name="mine").sum(axis=0),)),
    "recurrence": ("linear", lambda x: (fc.linear_recurrence(x[:, 0], x[:, 1]).sum(),)),
    "function": ("mine", lambda x: (fc.scan(lambda a, b: a * 0.5 + b, x[:, 0], init=0.0, name="mine").sum(),)),
    "sum of a sum": ("cumulative_sum", lambda x: (fc.cumulative_sum(fc.cumulative_sum(x, axis=0), axis=0).sum(),)),
    "sum of selected by a sum": (
        "cumulative_sum",
        lambda x: (fc.cumulative_sum(x[fc.cumulative_sum(x[:, 0], axis=0) > 0], axis=0).sum(),),
    ),
    "selected twice": ("select", lambda x: (twice_selected(x),)),
    "joined and selected": ("concat", lambda x: (fc.concat([x[x[:, 0] > 0], x]).sum(),)),
    "joined and added up": ("concat", lambda x: (fc.cumulative_sum(fc.concat([x, x]), axis=0).sum(),)),
    "joined side by side": (
        "concat",
        lambda x: ((fc.concat([x, x[:9] + 1]) * fc.concat([x * 3, x[9:18]])).sum(),),
    ),
    "joined and another": ("concat", lambda x: ((fc.concat([x, x]) * fc.source(numbers(10_000))).sum(),)),
    "two paces": ("x[4", lambda x: (x[4:, 0] @ fc.window(x[:, 1], size=5).sum(axis=1),)),
    "sums of keys": ("segment_sum", lambda x: (fc.segment_sum(x, fc.astype(x[:, 0] > 0, "int64"), 2),)),
}


@pytest.mark.parametrize(("name", "make"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_cut_is_named(name: str, make: Job) -> None:
    elements = make(fc.source(numbers(5000), name="x"))
    with pytest.raises(fc.PlanError, match="cannot cut the job into shards") as caught:
        ShardedJob(planned(*elements), 2)
    assert name in str(caught.value)
    assert Path(__file__).name in str(caught.value)


def test_what_is_read_once_is_named() -> None:
    x = fc.iterate([np.ones((4, 2))], shape=(2,), dtype="float64", name="mine too")
    with pytest.raises(fc.PlanError, match="mine too"):
        ShardedJob(planned(x.sum(axis=0)), 2)


@pytest.mark.parametrize("lengths", [(5000, 30_000), (0, 9000), (9000, 9001), (2000, 2000)])
def test_streams_that_nothing_joins_are_cut_each_for_itself(tmp_path: Path, lengths: tuple[int, int]) -> None:
    x, y = (fc.source(numbers(length, length)) for length in lengths)

    def job(folder: Path) -> tuple[Element, ...]:
        folder.mkdir()
        chosen = y[y[:, 0] > 0]
        return (
            x.sum(axis=0),
            chosen.var(axis=0),
            fc.cumulative_sum(y, axis=0) >> fc.save(folder / "c.npy"),
            chosen >> fc.save(folder / "k.npy"),
            x * y.sum(axis=0) >> fc.save(folder / "x.npy"),
            x * 2 >> fc.save(folder / "x.raw"),
        )

    want = fc.run(*job(tmp_path / "one"), device="numpy", progress=False).values
    started: list[ShardStart] = []
    ran = planned(*job(tmp_path / "many"))

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        started.extend(starts if index == 0 else ())
        return [run_shard(ran, index, start) for start in starts]

    made = ShardedJob(ran, 4).run(run_shards)
    assert bits(made[:2]) == bits(want[:2])
    for name in ("c.npy", "k.npy", "x.npy", "x.raw"):
        assert (tmp_path / "many" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert len({start.name for start in started}) == len(started)


@pytest.mark.parametrize("shards", [0, -1, 2.0, True, "auto"])
def test_shards_are_a_positive_number(shards: Any) -> None:
    with pytest.raises(fc.PlanError, match="a positive whole number"):
        ShardedJob(planned(fc.source(numbers(10)).sum()), shards)


def test_states_of_other_shards_are_refused() -> None:
    job = planned(fc.source(numbers(9000)).sum(axis=0))
    for drop in (slice(1), slice(1, None), slice(0)):

        def some(index: int, starts: Sequence[ShardStart], drop: slice = drop) -> list[ShardState]:
            return [run_shard(job, index, one) for one in starts][drop]

        with pytest.raises(fc.RunError, match="cannot merge the shards"):
            ShardedJob(job, 2).run(some)


@pytest.mark.parametrize("folds", [{}, {"7": None}, None], ids=["none", "others", "nothing"])
def test_states_that_are_none_are_refused(folds: Any) -> None:
    job = planned(fc.source(numbers(9000)).sum(axis=0))
    with pytest.raises(fc.RunError, match="their states do not fit"):
        ShardedJob(job, 2).run(lambda index, starts: [ShardState(*one.records, folds) for one in starts])


def test_a_file_that_becomes_shorter_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers(20_000))
    job = ShardedJob(planned(fc.open(tmp_path / "x.npy", name="x").sum(axis=0)), 3)
    np.save(tmp_path / "x.npy", numbers(10_000))
    with pytest.raises(fc.SourceError, match="x"):
        job.run()
