"""Plans of equal graphs are made once; nothing that a plan depends on may be taken for something else."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.graph import build_graph
from flowcompute.reference import NumpyBackend
from flowcompute.schedule import planner
from flowcompute.schedule.known_plans import plan_cache
from flowcompute.schedule.known_plans.plan_cache import _MOST_PLANS
from flowcompute.schedule.planner import PLANS
from tests.model_files.files import safetensors_bytes
from tests.models.files import write_model

ROWS = np.arange(4000, dtype=np.float32).reshape(500, 8) / 7


def told(plan: fc.Plan) -> str:
    texts = "\n".join(kernel.source for kernel in plan.kernels)
    return f"{plan}\n{plan.explain()}\n{texts}\n{plan.memory}\n{plan.passes[0].batch_items}"


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_an_equal_graph_is_not_planned_again(device: str) -> None:
    def job(data: np.ndarray) -> fc.Compute:
        x = fc.source(data)
        return (fc.nn.softmax(x * 2 + 1, axis=1) - x.mean(axis=0)).sum(axis=0)

    def wanted(data: np.ndarray) -> np.ndarray:
        exps = np.exp(data * 2 + 1 - (data * 2 + 1).max(axis=1, keepdims=True))
        return (exps / exps.sum(axis=1, keepdims=True) - data.mean(axis=0)).sum(axis=0)

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((500, 8), dtype=np.float32) for _ in range(3)]

    def planned(data: np.ndarray) -> fc.Plan:
        run = job(data).run(device=device, progress=False)
        np.testing.assert_allclose(run.value, wanted(data), rtol=1e-3, atol=1e-4)
        return run.plan

    first = planned(arrays[0])
    with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
        assert {told(planned(data)) for data in arrays} == {told(first)}
        # What a verb binds at its own line makes no difference.
        again = job(arrays[0]).plan(device=device)
    assert all(one.ir is other.ir for one, other in zip(first.kernels, again.kernels, strict=True))


@fc.kernel
def twice(x: float) -> float:
    return 2 * x


def other_twice() -> Callable[[fc.Element], fc.Element]:
    @fc.kernel
    def twice(x: float) -> float:
        return x + x + x

    return twice


OTHER = other_twice()


@fc.kernel
def faded(carry: np.float32, x: np.float32) -> np.float32:
    return carry * np.float32(0.5) + x


def other_faded() -> Callable[[np.float32, np.float32], np.float32]:
    @fc.kernel
    def faded(carry: np.float32, x: np.float32) -> np.float32:
        return carry * np.float32(0.25) + x

    return faded


OTHER_FADED = other_faded()


def several_times(unroll: int) -> Callable[[fc.Element], fc.Element]:
    @fc.kernel(unroll=unroll)
    def several(x: float) -> float:
        total = x
        for _ in range(12):
            total = total * x
        return total

    return several


SEVERAL = {unroll: several_times(unroll) for unroll in (1, 2, 4)}


def jobs(folder: Path) -> dict[str, Callable[[], fc.Plan]]:
    """Jobs that differ in one thing each, from one line each, so that their user's lines do not tell them apart."""
    made: dict[str, Callable[[], fc.Plan]] = {}

    def add(name: str, make: Callable[[fc.Element], fc.Element], data: np.ndarray = ROWS, **options: object) -> None:
        options = {"device": "cpu", "memory": "64MiB", **options}
        made[name] = lambda: make(fc.source(data)).plan(**options)  # type: ignore[arg-type]

    add("plain", lambda x: x * 3)
    for value in (0.0, -0.0, 1.0, 2.0, 5.0):
        add(f"times {value!r}", lambda x, value=value: x * fc.constant(np.float32(value)))
    add("added", lambda x: x + 3)
    add("named", lambda x: (x * 3).named("mine"))
    add("memory", lambda x: x * 3, memory="1MiB")
    add("numpy", lambda x: x * 3, device="numpy")
    add("fast", lambda x: x * 3, precision="fast")
    add("depth", lambda x: x * 3, strategy=fc.Strategy(depth=2))
    add("batches", lambda x: x * 3, strategy=fc.Strategy(batch_bytes=4096))
    add("pinned", lambda x: (x * 3).on("cpu"))
    add("length", lambda x: x * 3, ROWS[:300])
    add("item", lambda x: x * 3, ROWS.reshape(-1, 4))
    add("double", lambda x: x * 3, ROWS.astype("f8"))
    add("strided", lambda x: x * 3, ROWS.repeat(2, axis=1)[:, ::2])
    add("swapped", lambda x: x * 3, ROWS.astype(">f4"))
    add("not kept", lambda x: (x * 3) >> fc.discard())
    add("out", lambda x: (x * 3) >> fc.to_array(out=np.empty((500, 8), np.float32)))
    add("file", lambda x: (x * 3) >> fc.save(folder / "x.npy"))
    add("raw file", lambda x: (x * 3) >> fc.save(folder / "x.bin"))
    for axis in (0, 1):
        add(f"sum {axis}", lambda x, axis=axis: x.sum(axis=axis))
        add(f"sum {axis} kept", lambda x, axis=axis: x.sum(axis=axis, keepdims=True))
        add(f"var {axis}", lambda x, axis=axis: x.var(axis=axis))
        add(f"var {axis} less", lambda x, axis=axis: x.var(axis=axis, correction=1))
    for size in (3, 4):
        add(f"window {size}", lambda x, size=size: fc.window(x, size).mean(axis=1))
    for places in ([0, 3], [3, 0], [1, 1]):
        add(f"take {places}", lambda x, places=places: fc.take(x, np.array(places), axis=1))
    add("clip", lambda x: fc.clip(x, 0, 1))
    add("clip less", lambda x: fc.clip(x, 0, 2))
    add("mine", lambda x: twice(x))
    add("another's", lambda x: OTHER(x))
    for unroll, function in SEVERAL.items():
        add(f"unrolled {unroll}", lambda x, function=function: function(x))
    for text in ("x * 2", "x * 3"):
        add(text, lambda x, text=text: fc.opencl(f"float f(float x) {{ return {text}; }}", x, dtype="float32"))
    add("counted", lambda x: x[:, 0] * fc.arange(500))
    for q in (0.25, 0.75):
        add(f"quantile {q}", lambda x, q=q: fc.quantile(x[:, 0], q))
    for bins in (8, 9):
        add(f"histogram {bins}", lambda x, bins=bins: fc.histogram(x[:, 0], bins, range=(0, 1))[0])
    add("running", lambda x: fc.cumulative_sum(x, axis=0))
    add("running in items", lambda x: fc.cumulative_sum(x, axis=1))
    for begin in (0.0, -0.0, 1.0):
        add(f"faded from {begin}", lambda x, begin=begin: fc.scan(faded, x, init=np.float32(begin)))
    add("faded otherwise", lambda x: fc.scan(OTHER_FADED, x, init=np.float32(0)))
    add("faded in items", lambda x: fc.scan(faded, x, init=np.float32(0), axis=1))
    return made


@pytest.mark.slow
def test_no_job_gets_the_plan_of_another(tmp_path: Path) -> None:
    every = jobs(tmp_path)
    alone = {}
    for name, plan in every.items():
        PLANS.clear()
        alone[name] = told(plan())
    PLANS.clear()
    kept = {name: told(plan()) for name, plan in every.items()}
    with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
        again = {name: told(plan()) for name, plan in every.items()}
    assert kept == alone
    assert again == alone


def test_functions_of_one_name_have_their_own_plans() -> None:
    for _ in range(2):
        for function, factor in ((twice, 2), (OTHER, 3)):
            got = function(fc.source(ROWS)).resolve(device="cpu", progress=False)
            np.testing.assert_allclose(got, factor * ROWS, rtol=1e-6)


def test_steps_of_scans_of_one_name_have_their_own_plans() -> None:
    for _ in range(2):
        for step, factor in ((faded, 0.5), (OTHER_FADED, 0.25)):
            for begin in (0, 8):
                init = np.full(8, begin, np.float32)
                got = fc.scan(step, fc.source(ROWS), init=init).resolve(device="cpu", progress=False)
                np.testing.assert_array_equal(got[0], np.float32(factor * begin) + ROWS[0])
    assert len(PLANS) == 4


def test_losses_of_a_language_model_are_planned_once(tmp_path: Path) -> None:
    model = fc.models.load(write_model(tmp_path / "model.gguf"))
    tokens = np.arange(60).reshape(30, 2).astype(np.int32) % (40, 3)

    def planned() -> fc.Plan:
        return fc.segment_sum(model.losses(fc.source(tokens)), tokens[:, 1], 3).plan(device="numpy")

    first = planned()
    with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
        assert told(planned()) == told(first)


def test_a_plan_keeps_no_array_alive() -> None:
    class Array(np.ndarray):
        """An array that may be referred to weakly."""

    data = np.ones((100, 4), np.float32).view(Array)
    there = weakref.ref(data)
    fc.source(data).sum(axis=0).plan(device="numpy")
    assert len(PLANS) == 1
    del data
    gc.collect()
    assert there() is None


def test_results_in_memory_are_checked_each_time() -> None:
    data, own = np.ones((100, 4), np.float32), np.empty((100, 4), np.float32)
    (fc.source(data) * 2 >> fc.to_array(out=own)).plan(device="numpy")
    with pytest.raises(fc.PlanError, match="overlaps"):
        [(fc.source(data) * 2 >> fc.to_array(out=out)).plan(device="numpy") for out in (own, data)]


def test_targets_are_checked_each_time(tmp_path: Path) -> None:
    x = fc.source(ROWS)
    for second in ("b.npy", "a.npy"):
        both = x * 2 >> fc.save(tmp_path / "a.npy"), x * 3 >> fc.save(tmp_path / second)
        if second == "b.npy":
            fc.plan(*both, device="numpy")
    with pytest.raises(fc.PlanError, match="same file"):
        fc.plan(*both, device="numpy")


def test_a_file_that_others_may_write_to_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, ROWS)
    os.utime(path, (1, 1))
    path.chmod(0o600)
    plans = []
    for mode in (0o600, 0o666, 0o600):
        path.chmod(mode)
        plans.append(str((fc.open(path) * 2).plan(device="numpy")))
    assert plans[0] == plans[2] != plans[1]
    assert "others may write" in plans[1]


def test_a_file_that_grew_is_planned_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for rows in (500, 300, 500):
        np.save(path, ROWS[:rows])
        run = fc.open(path).sum(axis=0).run(device="numpy", progress=False)
        assert run.progress.items == rows
        np.testing.assert_allclose(run.value, ROWS[:rows].sum(axis=0), rtol=1e-5)


def write_weights(path: Path, arrays: dict[str, np.ndarray]) -> None:
    header, data = {}, b""
    for name, array in arrays.items():
        places = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": places}
        data += array.tobytes()
    path.unlink(missing_ok=True)
    path.write_bytes(safetensors_bytes(header, data))


def test_weights_of_a_file_are_known_by_its_state(tmp_path: Path) -> None:
    """Another state of a file and another tensor of it have plans of their own; equal ones share one."""
    path = tmp_path / "w.safetensors"

    def product(name: str) -> fc.Compute:
        return fc.source(ROWS) @ fc.weights(path)[name]

    def values() -> list[np.ndarray]:
        return [product(name).resolve(device="cpu", progress=False) for name in "ab"]

    for seed in range(2):
        arrays = dict(zip("ab", np.random.default_rng(seed).standard_normal((2, 8, 8), dtype=np.float32), strict=True))
        write_weights(path, arrays)
        found = values()
        for got, array in zip(found, arrays.values(), strict=True):
            np.testing.assert_allclose(got, ROWS @ array, rtol=1e-4, atol=1e-3)
        with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
            for again, before in zip(values(), found, strict=True):
                np.testing.assert_array_equal(again, before)
    # Two tensors in two states: each reading the file anew.
    assert len(PLANS) == 4


def test_a_plan_keeps_no_file_of_weights_alive(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_weights(path, {"a": np.ones((8, 8), np.float32)})
    weight = fc.weights(path)["a"]
    there = weakref.ref(weight)
    (fc.source(ROWS) @ weight).plan(device="numpy")
    assert len(PLANS) == 1
    del weight
    gc.collect()
    assert there() is None


def test_places_of_many_words_are_compared() -> None:
    """An operand of a megabyte is told from one that differs in its last number."""
    places = np.arange(1 << 18, dtype=np.int32)
    other = np.concatenate([places[:-1], [-1]], dtype=np.int32)

    def last(numbers: np.ndarray) -> bool:
        found = (fc.constant(numbers) == fc.source(numbers[-2:])[:, None])[:, -1]
        return bool(found.resolve(device="numpy", progress=False)[-1])

    assert last(places)
    assert len(PLANS) == 1
    with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
        assert last(places)
    assert last(other)
    assert len(PLANS) == 2


def test_a_fact_that_nodes_share_stands_once_in_a_key() -> None:
    def facts(layers: int) -> int:
        x: Any = fc.source(np.ones(3, np.float32))
        for _ in range(layers):
            x = fc.tanh(x) + 1
        graph = build_graph([fc.to_array().bind(x)])
        key: Any = plan_cache.plan_key(graph, NumpyBackend().description)
        assert len(graph.nodes) > 2 * layers
        return len(key[1])

    assert 5 < facts(3) == facts(30)


def test_what_cannot_be_compared_is_planned_each_time() -> None:
    large = np.ones((600, 600), np.float32)
    for make in (
        lambda: fc.host(np.sort, fc.source(ROWS)),
        lambda: fc.iterate([ROWS], dtype="float32", shape=(8,)),
        lambda: fc.source(large) @ fc.constant(large),
        lambda: fc.random.uniform(500, shape=(8,), seed=1),
    ):
        make().plan(device="numpy")
    assert len(PLANS) == 0


def test_a_refusal_is_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(fc.PlanError):
            (fc.source(ROWS) * 2).plan(device="numpy", memory=64)
    assert len(PLANS) == 0


def test_the_cache_is_bounded() -> None:
    for rows in range(1, _MOST_PLANS + 10):
        fc.source(ROWS[:rows]).sum(axis=0).plan(device="numpy")
    assert len(PLANS) == _MOST_PLANS


def test_the_nodes_of_all_plans_are_bounded() -> None:
    def chain(nodes: int) -> fc.Element:
        x = fc.source(ROWS)
        for _ in range(nodes):
            x = fc.tanh(x)
        return x

    with mock.patch.object(plan_cache, "_MOST_NODES", 100):
        for nodes in (30, 40, 50, 60, 98, 200):
            chain(nodes).plan(device="numpy")
            assert sum(nodes for _, nodes in PLANS._plans.values()) <= 100
        # The last one is too large, and drives nothing out.
        assert len(PLANS) == 1


def test_threads_share_plans_and_not_data() -> None:
    """Runs at one time have one plan, and each its own arrays and kernels."""
    wrong: list[object] = []

    def work(number: int) -> None:
        for step in range(5):
            data = np.full((300, 8), 10 * number + step, np.float32)
            got = (fc.source(data) * 2 + 1).sum(axis=0).resolve(device="cpu", progress=False)
            if not np.array_equal(got, 300 * (2 * data[0] + 1)):
                wrong.append((number, step, got))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(PLANS) == 1
