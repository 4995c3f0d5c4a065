"""Scans in kernels: the bits of the host's, for both code shapes, wherever batches are cut, also from a snapshot."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.elements.nn.state_space import selective_scan_of
from flowcompute.errors import SpecError
from flowcompute.gpu import OpenCLBackend
from flowcompute.graph.graph import build_graph
from flowcompute.ir.capabilities import DeviceCapabilities
from flowcompute.ir.scan_order import scan_tile
from flowcompute.jobs import job_of
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.planner import make_plan
from flowcompute.strategy.config import Config
from flowcompute.strategy.strategy import Strategy
from tests.golden.test_golden import GPU, HOPPER, NVIDIA, on_paper
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu, run_on_gpu

pytestmark = pytest.mark.compiles

SPECIAL = np.array([np.inf, -0.0, 0.0, 1e-40, 1e30, -1e30, np.nan, -np.inf], np.float32)


def on_cpu(*elements: fc.Element, **options: Any) -> list[np.ndarray]:
    return list(fc.resolve(*elements, fc.constant(0), device="cpu", progress=False, **options))[:-1]


SHAPES = {"cpu": on_cpu, "gpu": resolve_on_gpu}
Resolve = Callable[..., list[np.ndarray]]

SNAPSHOTS = ("numpy", "cpu")


@pytest.fixture(params=SHAPES)
def resolve(request: pytest.FixtureRequest) -> Resolve:
    return SHAPES[request.param]


def drawn(dtype: str, shape: tuple[int, ...], *, special: bool = False) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + shape[0])
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 99, shape).astype(dtype)
    data = (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)).astype(dtype)
    if special:
        # Late, so that most numbers are not yet lost to NaN.
        flat = data.reshape(-1)
        flat[-len(SPECIAL) :] = SPECIAL
        flat[: len(flat) // 2 : 5] *= -0.0
    return data


def check(
    resolve: Resolve, *elements: fc.Element, batches: tuple[int | None, ...] = (None,), walked: bool = False
) -> None:
    """The bits of NumPy's backend, for batches of so many bytes."""
    for element in elements:
        wanted_work = "walk" if walked else "scan"
        works = [kernel.ir.work for kernel in fc.plan(element, device="cpu").kernels]
        assert wanted_work in works, "or no kernel is tested"
    wanted = [np.asarray(one) for one in fc.resolve(*elements, fc.constant(0), device="numpy", progress=False)]
    for batch in batches:
        got = resolve(*elements, strategy=None if batch is None else fc.Strategy(joined_batches=1, batch_bytes=batch))
        for element, mine, theirs in zip(elements, got, wanted, strict=False):
            assert mine.tobytes() == theirs.tobytes(), f"{element.name}, batches of {batch} bytes"


# -- along the stream, in tiles -------------------------------------------------------------------


def test_numbers_in_batches_of_any_size(resolve: Resolve) -> None:
    data = drawn("float32", (2 * 2**14 + 100,), special=True)
    x = fc.source(data)
    # Kernels for GPUs take PoCL seconds to compile, so they are few.
    others = [fc.cumulative_max(x), fc.cumulative_min(-x)] if resolve is on_cpu else []
    # Around runs, tiles, and a whole number of both.
    check(resolve, fc.cumulative_sum(x), *others, batches=(None, 4 * 1000, 4 * 2**14, 4 * (2**14 + 1)))


@pytest.mark.parametrize(
    ("item", "length"), [((3,), 2 * 5461 + 70), ((20,), 1700), ((100,), 2 * 163 + 70), ((300,), 120)]
)
def test_columns(item: tuple[int, ...], length: int) -> None:
    data = drawn("float32", (length, *item))
    row = data.nbytes // length
    for resolve in (on_cpu,) if item == (20,) else (on_cpu, resolve_on_gpu):
        check(resolve, fc.cumulative_sum(fc.source(data), axis=0), batches=(None, 97 * row, scan_tile(*item) * row))


@pytest.mark.parametrize("knobs", [{}, {"work_group": 128, "tile_columns": 32}])
def test_columns_of_wide_items(knobs: dict[str, int]) -> None:
    """One column in the last panel, and ends of batches around tiles and stretches of them, with what they leave."""
    x = fc.source(drawn("float32", (220, 4097), special=True))
    half = fc.source(drawn("float16", (100, 4097)))
    exclusive = fc.cumulative_sum(half * 2, axis=0, exclusive=True) + half
    scans = [fc.cumulative_sum(x, axis=0), exclusive]
    wanted = [np.asarray(one) for one in fc.resolve(*scans, device="numpy", progress=False)]
    for records in (8 * 3 + 1, 220):
        strategy = fc.Strategy(joined_batches=1, batch_bytes=4 * 4097 * records, **knobs)
        plan = plan_for_gpu(*scans, strategy=strategy)
        assert {kernel.ir.family for kernel in plan.kernels} == {"column scan"}
        assert [one.tobytes() for one in resolve_on_gpu(*scans, strategy=strategy)] == [one.tobytes() for one in wanted]


def test_wide_items_leave_what_other_backends_go_on_from() -> None:
    data = drawn("float32", (60, 4097))
    total = fc.cumulative_sum(fc.source(data), axis=0)
    strategy = fc.Strategy(joined_batches=1, batch_bytes=10 * data[0].nbytes)
    plans = fc.plan(total, device="numpy", strategy=strategy), plan_for_gpu(total, strategy=strategy)
    whole, _ = run(plans[0], data, 0, 60, None)
    for cut in (1, 28, 3 * 8):
        (one, state), (other, same) = (run(plan, data, 0, cut, None) for plan in plans)
        assert repr(state["scans"]) == repr(same["scans"])
        assert one + run(plans[1], data, cut, 60, state)[0] == other + run(plans[0], data, cut, 60, same)[0] == whole


def on_gpu_that_looks_back(scan: fc.Element, strategy: fc.Strategy, family: str = "number scan") -> np.ndarray:
    """A scan as on NVIDIA's GPUs; nothing else that goes by shuffles may be in it."""
    device = copy.copy(gpu_shaped().device)
    device.programs = {}
    device.capabilities = dataclasses.replace(device.capabilities, shuffles=True, local_bytes=NVIDIA.local_bytes)
    run = run_on_gpu(scan, backend=OpenCLBackend(device), strategy=strategy)
    assert [kernel.ir.family for kernel in run.plan.kernels] == [family]
    return np.asarray(run.value)


@pytest.mark.parametrize("name", ["inclusive", "exclusive", "by a function"])
def test_numbers_by_work_groups_that_look_back(name: str) -> None:
    """Batches that begin at a vector, beside one and at a tile, or leave several tiles to several work-groups."""
    x = fc.source(drawn("float32", (4 * 2**14 + 100,), special=name != "by a function"))
    scan, unroll = {
        "inclusive": (fc.cumulative_sum(x), 8),
        "exclusive": (fc.cumulative_sum(x, exclusive=True) - x, 4),
        "by a function": (fc.scan(further, x * 2, init=0.0, associative=True), 2),
    }[name]
    wanted = np.asarray(fc.resolve(scan, device="numpy", progress=False))
    for records in (1000, 2**14 + 1, 1 << 20):
        got = on_gpu_that_looks_back(scan, fc.Strategy(joined_batches=1, batch_bytes=4 * records, unroll=unroll))
        assert got.tobytes() == wanted.tobytes(), f"{records} records at a time"


@pytest.mark.parametrize("length", [1, 63, 64, 65, 2**14 - 1, 2**14 + 1])
def test_short_streams(length: int, resolve: Resolve) -> None:
    check(resolve, fc.cumulative_sum(fc.source(drawn("float32", (length,)))))


def test_exclusive_scans_in_tiles(resolve: Resolve) -> None:
    data = drawn("float32", (2**14 + 100,), special=True)
    x, rows = fc.source(data), fc.source(drawn("float32", (5461 + 70, 3)))
    others = [fc.cumulative_prod(x, exclusive=True)] if resolve is on_cpu else []
    # From runs, tiles and the very first record on; nothing comes before that one, without a sign.
    check(resolve, fc.cumulative_sum(x, exclusive=True), *others, batches=(None, 4 * 1000, 4 * (2**14 + 1)))
    check(resolve, fc.cumulative_sum(rows * 2, axis=0, exclusive=True) + rows, batches=(None, 12 * 97))


def test_integers_bools_and_half_formats() -> None:
    whole, bits = fc.source(drawn("int64", (3000,)) << 55), fc.source(np.arange(3000) > 2500)
    half = fc.source(drawn("float16", (3000, 2)))
    check(on_cpu, fc.cumulative_prod(whole), fc.cumulative_max(bits), fc.cumulative_sum(half, axis=0))


def test_what_is_around_a_scan_is_in_its_kernel(resolve: Resolve) -> None:
    data, weights = drawn("float32", (3000, 20)), drawn("float32", (20,))
    x, w = fc.source(data), fc.constant(weights)
    after = fc.cumulative_sum(x * w - 1, axis=0) / w - x[:, ::-1]
    check(resolve, after, batches=(None, 80 * 1001))
    assert len(fc.plan(after, device="cpu").kernels) == len(plan_for_gpu(after).kernels) == 1


def test_a_scan_of_what_is_selected(resolve: Resolve) -> None:
    x = fc.source(drawn("float32", (70_000,)))
    check(resolve, fc.cumulative_sum(x[x > 0]), batches=(None, 4 * 5000))


def test_a_scan_of_a_scan_is_another_kernel() -> None:
    x = fc.source(drawn("float32", (100,)))
    plan = fc.plan(fc.cumulative_max(fc.cumulative_sum(x)), device="cpu")
    assert len(plan.kernels) == 2
    assert any("one scan" in reason.text for reason in plan.reasons)


# -- state --------------------------------------------------------------------------------------


def run(plan: Plan, data: np.ndarray, start: int, stop: int, state: dict[str, Any] | None) -> tuple[bytes, Any]:
    """The results for these records in batches of the plan's size, and the state after them."""
    (one,) = plan.passes
    (clock,) = one.clocks
    executor = job_of(plan).executor(0, {})
    executor.open()
    if state is not None:
        executor.restore(state)
    results = []
    (value,) = (sink.value for sink in one.sinks)
    for seq, begin in enumerate(range(start, stop, clock.batch_items)):
        end = min(stop, begin + clock.batch_items)
        out = np.empty((end - begin, *data.shape[1:]), data.dtype)
        executor.process(Batch(seq, begin, end, {clock.sources[0].value: data[begin:end]}, clock.id), {value: out})
        results.append(out.tobytes())
    after = executor.snapshot()
    executor.close()
    return b"".join(results), after


@pytest.mark.parametrize(("item", "exclusive"), [((), True), ((3,), False)])
def test_a_scan_continues_from_any_snapshot_of_any_backend(item: tuple[int, ...], exclusive: bool) -> None:
    data = drawn("float32", (2**14 + 700, *item))
    strategy = fc.Strategy(joined_batches=1, batch_bytes=4000)
    total = fc.cumulative_sum(fc.source(data), axis=0, exclusive=exclusive)
    plans = [fc.plan(total, device=device, strategy=strategy) for device in SNAPSHOTS]
    plans.append(plan_for_gpu(total, strategy=strategy))
    whole, _ = run(plans[0], data, 0, len(data), None)
    size = data.nbytes // len(data)
    step = plans[0].batch_items
    for cut in (step, 16 * step, scan_tile(data[0].size) // step * step + step):
        parts = [run(plan, data, 0, cut, None) for plan in plans]
        states = [after["scans"] for _, after in parts]
        for state in states[1:]:
            assert repr(state) == repr(states[0])
        for (first, state), plan in zip(parts, reversed(plans), strict=True):
            assert first + run(plan, data, cut, len(data), state)[0] == whole
        assert len(parts[0][0]) == cut * size


# -- along items ----------------------------------------------------------------------------------


def test_along_the_axes_of_items(resolve: Resolve) -> None:
    data = drawn("float32", (20, 70, 3), special=True)
    x, rows = fc.source(data), fc.source(drawn("float32", (3, 2**14 + 70)))
    middle = fc.cumulative_sum(x * 2, axis=1) - x
    last = fc.cumulative_prod(x, axis=2, exclusive=True)
    check(resolve, middle, last, fc.cumulative_sum(rows, axis=1), batches=(None, 70 * 3 * 4 * 7), walked=True)
    assert len(fc.plan(middle, device="cpu").kernels) == 1


@pytest.mark.parametrize("knobs", [{}, {"work_group": 64, "tile_columns": 16}])
def test_tiles_of_sequences(knobs: dict[str, int]) -> None:
    """Around work-groups and tiles, of sequences side by side, and dtypes that take other places in local memory."""
    numbers = [fc.source(drawn("float32", shape, special=True)) for shape in [(1, 64), (97, 33), (31, 5, 7)]]
    scans = [fc.cumulative_sum(x, axis=1) - x for x in numbers]
    scans.append(fc.cumulative_sum(fc.source(drawn("float16", (65, 130))), axis=1, exclusive=True))
    wide = fc.source(drawn("float64", (33, 40)))
    scans.append(fc.linear_recurrence(wide, fc.source(drawn("float64", (33, 40))) * 2, axis=1))
    kernels = plan_for_gpu(*scans, strategy=fc.Strategy(**knobs)).kernels
    groups = {(kernel.ir.family, kernel.ir.knobs.work_group) for kernel in kernels}
    # By default as many as are loaded of a row: few where rows are short, or numbers wide.
    assert groups == {("tiled walk", group) for group in ([knobs["work_group"]] if knobs else (32, 64))}
    wanted = fc.resolve(*scans, device="numpy", progress=False)
    got = resolve_on_gpu(*scans, strategy=fc.Strategy(joined_batches=1, batch_bytes=33 * 4 * 97, **knobs))
    assert [one.tobytes() for one in got] == [np.asarray(one).tobytes() for one in wanted]


def test_what_takes_no_tiles_through_local_memory() -> None:
    def family(scan: fc.Element, capabilities: DeviceCapabilities) -> str:
        plan = make_plan(build_graph([scan >> fc.discard()]), Config(1 << 30), fc.Strategy(), on_paper(capabilities))
        return plan.kernels[0].ir.family

    side_by_side, wide = fc.source(drawn("float32", (9, 40, 8))), fc.source(drawn("float64", (9, 70)))
    assert family(fc.cumulative_sum(wide, axis=1), GPU) == "tiled walk"
    assert family(fc.cumulative_sum(wide, axis=1), dataclasses.replace(GPU, local_bytes=8 << 10)) == "walk"
    assert family(fc.cumulative_sum(side_by_side, axis=1), GPU) == "walk"


def test_a_resident_value_is_scanned_once() -> None:
    table = drawn("float32", (5, 70))
    check(on_cpu, fc.cumulative_max(fc.constant(table), axis=1), walked=True)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_exclusive_scans_are_one_step_behind(name: str, axis: int) -> None:
    data = drawn("int64", (130, 5))
    scan = getattr(fc, f"cumulative_{name}")
    for device in ("cpu", "numpy"):
        strategy = fc.Strategy(joined_batches=1, batch_bytes=1000)
        whole, behind = fc.resolve(
            *(scan(fc.source(data), axis, exclusive=flag) for flag in (False, True)),
            device=device, strategy=strategy, progress=False,
        )  # fmt: skip
        wanted = np.roll(whole, 1, axis)
        wanted[(slice(None),) * axis + (0,)] = 0 if name == "sum" else 1
        np.testing.assert_array_equal(behind, wanted)


# -- recurrences ------------------------------------------------------------------------------------


def test_recurrences(resolve: Resolve) -> None:
    data = drawn("float32", (300, 3))
    x, factors = fc.source(data), fc.constant(np.array([0.5, -1, 0.99], np.float32))
    along, inside = fc.linear_recurrence(factors, x, axis=0), fc.linear_recurrence(x, x + 1, axis=1)
    check(resolve, along, inside, fc.ema(x, 0.3), batches=(None, 12 * 37), walked=True)


@fc.kernel
def further(a: Any, b: Any) -> Any:
    return a if a * a > b * b else b


@fc.kernel
def leaking(level: Any, rain: Any) -> Any:
    while rain > 4:
        rain /= 2
    return max(level * 0.75 + rain, 0.0)


def test_steps_of_users_in_tiles(resolve: Resolve) -> None:
    data = drawn("float32", (2**14 + 100,))
    x, half = fc.source(data), fc.source(drawn("float16", (1700, 20)))
    tiled = fc.scan(further, x * 2, init=0.0, associative=True) - x
    check(resolve, tiled, fc.scan(further, half, init=0.0, associative=True), batches=(None, 4000, 4 * 2**14))
    assert len(fc.plan(tiled, device="cpu").kernels) == 1


def test_steps_of_users_that_walk(resolve: Resolve) -> None:
    x, rows = fc.source(drawn("float32", (300, 3))), fc.source(drawn("float16", (4, 100, 3)))
    along = fc.scan(leaking, x + 1, init=np.array([0, 1, 1e9], "f4"))
    inside = fc.scan(leaking, rows, init=1, axis=1), fc.scan(further, rows, init=0, axis=1, associative=True)
    check(resolve, along, *inside, batches=(None, 12 * 37), walked=True)


@fc.kernel
def welford(count: Any, mean: Any, squares: Any, x: Any) -> Any:
    count += 1
    new = mean + (x - mean) / count
    return count, new, squares + (x - mean) * (x - new)


@fc.kernel
def rising(run: Any, last: Any, x: Any) -> Any:
    return (run + 1 if x > last else 0), x


def test_steps_that_carry_several_numbers(resolve: Resolve) -> None:
    x, rows = fc.source(drawn("float32", (300, 3))), fc.source(drawn("float16", (4, 100, 3)))
    count, mean, squares = fc.scan(welford, x * 2, init=(0.0, np.array([0, 1, 2], "f4"), 0.0))
    deviation = fc.sqrt(squares / count) - x
    inside = fc.scan(rising, rows, init=(np.int32(0), 0.0), axis=1)
    check(resolve, mean, deviation, *inside, batches=(None, 12 * 37), walked=True)
    assert len(fc.plan(mean, deviation, device="cpu").kernels) == 1
    assert [one.dtype.name for one in inside] == ["int32", "float16"]


def test_a_recurrence_against_float64() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-0.9, 0.9, (2, 400, 4))
    result = fc.linear_recurrence(fc.source(a.astype("f4")), fc.source(b.astype("f4")), axis=0)
    exact, last = np.empty((400, 4)), np.zeros(4)
    for t in range(400):
        last = exact[t] = a[t].astype("f4") * last + b[t].astype("f4")
    bound = np.finfo(np.float32).eps / 2 / (1 - 0.9) * np.abs(exact).max()
    assert np.abs(result.resolve(device="cpu", progress=False) - exact).max() <= bound


def test_a_recurrence_goes_on_from_another_backend() -> None:
    data = drawn("float32", (100, 3))
    x = fc.source(data)
    steps = fc.scan(leaking, x, init=np.ones(3, "f4")), fc.scan(further, x, init=0.0, associative=True)
    steps += fc.scan(welford, x, init=(0.0, 0.0, 0.0))[1:2]
    for element in (fc.linear_recurrence(x, 1.0, axis=0), fc.ema(x, 0.2), *steps):
        strategy = fc.Strategy(joined_batches=1, batch_bytes=12 * 20)
        plans = [fc.plan(element, device=device, strategy=strategy) for device in SNAPSHOTS]
        plans.append(plan_for_gpu(element, strategy=strategy))
        whole, _ = run(plans[0], data, 0, 100, None)
        for first, second in zip(plans, [*plans[1:], plans[0]], strict=True):
            before, state = run(first, data, 0, 40, None)
            assert before + run(second, data, 40, 100, state)[0] == whole


@pytest.mark.parametrize(("channels", "states"), [(5, 3), (16, 4)])
def test_a_state_space_model_against_float64(channels: int, states: int) -> None:
    rng = np.random.default_rng(channels)
    u, b, c = (rng.standard_normal((3, 40, size)).astype("f4") for size in (channels, states, states))
    delta = rng.uniform(0.01, 0.3, u.shape).astype("f4")
    a = -rng.uniform(0.5, 4, (channels, states)).astype("f4")
    exact = selective_scan_of(*(one.astype("f8") for one in (u, delta, a, b, c))) + u.astype("f8")
    values = fc.source(u), fc.source(delta - 1), a, fc.source(b), fc.source(c)
    model = fc.nn.selective_scan(values[0], values[1] + 1, *values[2:], np.ones(channels, "f4"))
    bound = (states + 40) * np.finfo(np.float32).eps / 2 * np.abs(exact).max()
    results = [model.resolve(device="numpy", progress=False), *on_cpu(model)]
    if states == 3:
        results += resolve_on_gpu(model)
    for result in results:
        assert np.abs(result - exact).max() <= bound
    assert len(fc.plan(model, device="cpu").kernels) == 1


def test_what_a_state_space_model_takes() -> None:
    x, s = fc.source(np.ones((2, 4, 3), "f4")), fc.source(np.ones((2, 4, 2), "f4"))
    for a, b in ((np.ones((3, 2)), s[:, 1:]), (np.ones((2, 2)), s), (np.ones((3, 65)), s)):
        with pytest.raises(SpecError, match="cannot scan operands of these shapes"):
            fc.nn.selective_scan(x, x, a, b, s)


def test_what_a_recurrence_takes() -> None:
    x = fc.source(np.ones((3, 2), np.int64))
    with pytest.raises(SpecError, match="floating"):
        fc.linear_recurrence(x, x, axis=0)
    with pytest.raises(SpecError, match="cannot choose an axis to run along"):
        fc.linear_recurrence(x.astype("f4"), 1.0)


def test_scans_from_the_end() -> None:
    array = np.random.default_rng(5).integers(-4, 5, (6, 2, 5)).astype("f8")
    for x in (fc.source(array), fc.constant(array)):
        for axis in (1, 2):
            turned = np.flip(array, axis)
            for exclusive in (False, True):
                for function, running in ((fc.cumulative_sum, np.cumsum), (fc.cumulative_prod, np.cumprod)):
                    wanted = running(turned, axis)
                    if exclusive:
                        first = np.full_like(turned.take([0], axis), running is np.cumprod)
                        wanted = np.concatenate([first, wanted.take(range(array.shape[axis] - 1), axis)], axis)
                    made = function(x, axis, exclusive=exclusive, reverse=True)
                    got = made.resolve(device="numpy", progress=False)
                    np.testing.assert_array_equal(got, np.flip(wanted, axis), strict=True)
    with pytest.raises(fc.SpecError, match="cannot scan a stream from its end"):
        fc.cumulative_sum(fc.source(array), 0, reverse=True)


def test_hopper_fetches_tiles_ahead() -> None:
    x, y, half = (fc.source(np.zeros(99, dtype), name=name) for name, dtype in (("x", "f4"), ("y", "f4"), ("z", "f2")))

    def wide(columns: int) -> fc.Element:
        return fc.source(np.zeros((99, columns), "f4"))

    for element, capabilities, fetched in (
        (fc.cumulative_sum(x * y) + x, HOPPER, ["in0", "in1"]),
        (fc.cumulative_sum(half), HOPPER, ["in0"]),
        (fc.cumulative_sum(x), NVIDIA, []),
        (fc.cumulative_sum(wide(128), axis=0), HOPPER, ["in0"]),
        (fc.cumulative_sum(wide(128), axis=0), NVIDIA, []),
        (fc.cumulative_sum(wide(2048), axis=0), HOPPER, []),
        (fc.cumulative_sum(wide(3), axis=0), HOPPER, ["in0"]),
    ):
        plan = make_plan(build_graph([element >> fc.discard()]), Config(1 << 32), Strategy(), on_paper(capabilities))
        (kernel,) = plan.kernels
        assert re.findall(r'prefetch.L2.global \[%0\], %1;" :: "l"\(\(ulong\)\((in\d)', kernel.source) == fetched
    # A tile of 16383 numbers begins anywhere, and the run of memory at a multiple of four.
    assert '"l"((ulong)(in0 + ((base + 524256) / 4 * 4))), "r"(65536u)' in kernel.source
