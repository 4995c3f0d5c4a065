"""Scans: the canonical order against plain Python, the same bits wherever batches are cut, and the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.engine.scans.carry import Scan
from flowcompute.engine.scans.host_scan import make_scan
from flowcompute.errors import RunError, SpecError
from flowcompute.graph.graph import build_graph
from flowcompute.ir.scan_order import RUN, scan_tile

CUMULATIVE = ("sum", "prod", "max", "min")
DTYPES = ("float32", "float64", "float16", "int64", "uint64", "int8", "bool")


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0 if dtype[0] == "u" else -9, 9, shape).astype(dtype)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape)).astype(dtype)


def scan_of(element: fc.Element) -> tuple[Scan, Any]:
    """The scan that an element is, perhaps behind a cast, at its beginning."""
    graph = build_graph([element])
    node = next(node for node in graph.nodes if node.kind is not None and node.kind.name == "SCAN")
    return make_scan(node), node.spec


def scanned(element: fc.Element, data: np.ndarray, ends: list[int], *, thaw: bool = False) -> np.ndarray:
    """The results in pieces that end there; with `thaw` each piece by a new scan from a snapshot."""
    scan, spec = scan_of(element)
    out = np.empty((len(data), *spec.shape), spec.dtype)
    for first, last in zip([0, *ends], [*ends, len(data)], strict=True):
        if thaw:
            state = scan.snapshot()
            scan, _ = scan_of(element)
            scan.restore(state)
        if last > first:
            scan.advance([data[first:last].astype(spec.dtype)], first, out[first:last])
    return out


def in_plain_python(data: np.ndarray, tile: int, step: Callable[[Any, Any], Any], wide: type) -> np.ndarray:
    """The order as documented: runs in the dtype, runs of a tile and tiles in order, wide."""
    out = np.empty(data.shape, data.dtype)
    carry = None
    for begin in range(0, len(data), tile):
        runs = None
        for first in range(begin, min(begin + tile, len(data)), RUN):
            run = None
            for place in range(first, min(first + RUN, begin + tile, len(data))):
                run = data[place] if run is None else step(run, data[place])
                inside = wide(run) if runs is None else step(runs, wide(run))
                out[place] = inside if carry is None else step(carry, inside)
            runs = wide(run) if runs is None else step(runs, wide(run))
        carry = runs if carry is None else step(carry, runs)
    return out


# -- the order ----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 63, 64, 65, 128, 1000, 2**14 - 1, 2**14, 2**14 + 65])
def test_running_sums_have_the_documented_order(length: int) -> None:
    data = numbers("float32", (length,))
    wanted = in_plain_python(data, scan_tile(1), lambda a, b: a + b, np.float64)
    assert scanned(fc.cumulative_sum(fc.source(data)), data, []).tobytes() == wanted.tobytes()


def test_a_tile_of_wide_items_holds_fewer_records() -> None:
    assert [scan_tile(size) for size in (0, 1, 3, 2**14, 2**20)] == [2**14, 2**14, 5461, 1, 1]
    data = numbers("float32", (200, 100))
    columns = [in_plain_python(column, scan_tile(100), lambda a, b: a + b, np.float64) for column in data.T]
    result = scanned(fc.cumulative_sum(fc.source(data), axis=0), data, [])
    np.testing.assert_array_equal(result, np.stack(columns, axis=1))


def test_a_scan_along_an_item_has_the_order_of_a_stream() -> None:
    data = numbers("float32", (2**14 + 70,))
    row = fc.cumulative_sum(fc.source(np.stack([data, -data])), axis=1).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(row[0], scanned(fc.cumulative_sum(fc.source(data)), data, []))
    np.testing.assert_array_equal(row[1], -row[0])


@given(st.data())
def test_no_bit_depends_on_where_batches_are_cut(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*CUMULATIVE, "ema"]))
    item = data.draw(st.sampled_from([(), (3,), (2, 2), (300,)]))
    length = data.draw(st.sampled_from([1, 2, 63, 64, 65, 130, 400]))
    array = numbers(data.draw(st.sampled_from(DTYPES)), (length, *item), seed=length)
    source = fc.source(array)
    element = fc.ema(source, 0.3) if name == "ema" else getattr(fc, f"cumulative_{name}")(source, axis=0)
    ends = sorted(data.draw(st.lists(st.integers(0, length), max_size=6)))
    with np.errstate(over="ignore", invalid="ignore"):
        whole = scanned(element, array, [])
        assert scanned(element, array, ends).tobytes() == whole.tobytes()
        assert scanned(element, array, ends, thaw=True).tobytes() == whole.tobytes()


# -- against NumPy ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CUMULATIVE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_against_numpy(name: str, dtype: str) -> None:
    data = numbers(dtype, (40, 3))
    ufunc = {"sum": np.cumsum, "prod": np.cumprod, "max": np.maximum.accumulate, "min": np.minimum.accumulate}[name]
    for axis in (0, 1):
        result = getattr(fc, f"cumulative_{name}")(fc.source(data), axis=axis).resolve(device="numpy", progress=False)
        wanted = ufunc(data, axis=axis)
        assert result.dtype == wanted.dtype
        tolerance = 0 if data.dtype.kind != "f" else 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(result, wanted, rtol=tolerance * 8, atol=tolerance * 8)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("item", [(0,), (3, 0), (0, 2)])
@pytest.mark.parametrize("length", [0, 5, 200])
def test_items_without_numbers(item: tuple[int, ...], length: int, device: str) -> None:
    data = np.zeros((length, *item), np.float32)
    for axis in range(data.ndim):
        result = fc.cumulative_sum(fc.source(data), axis=axis).resolve(device=device, progress=False)
        assert result.shape == data.shape
    assert fc.ema(fc.source(data), 0.5).resolve(device=device, progress=False).shape == data.shape


@pytest.mark.parametrize(("length", "device"), [(1, "numpy"), (2, "numpy"), (7, "cpu"), (64, "numpy")])
def test_the_tree_of_blelloch(length: int, device: str) -> None:
    data = numbers("float32", (5, length, 2))
    exact = np.cumsum(data, axis=1, dtype=np.float64)
    bound = np.log2(2 * length) * np.finfo(np.float32).eps / 2 * np.cumsum(np.abs(data), axis=1).max()
    x = fc.source(data)
    whole, before = (
        fc.cumulative_sum(x, 1, method="blelloch", exclusive=flag).resolve(device=device, progress=False)
        for flag in (False, True)
    )
    assert np.abs(whole - exact).max() <= bound
    assert np.abs(before[:, 1:] - exact[:, :-1]).max(initial=0) <= bound
    assert (before[:, 0] == 0).all()
    with pytest.raises(SpecError, match="along an axis of items"):
        fc.cumulative_sum(x, 0, method="blelloch")


def test_nan_and_infinity_stay() -> None:
    data = np.array([1, np.nan, 2, np.inf, -np.inf], np.float32)
    source = fc.source(data)
    total, most, least, average = fc.resolve(
        fc.cumulative_sum(source),
        fc.cumulative_max(source),
        fc.cumulative_min(source),
        fc.ema(source, 0.5),
        device="numpy",
        progress=False,
    )
    for result in (total, most, least, average):
        np.testing.assert_array_equal(np.isnan(result), [False, True, True, True, True])
    ends = np.array([np.inf, 1, -np.inf], np.float32)
    np.testing.assert_array_equal(fc.cumulative_sum(fc.source(ends)).resolve(progress=False), [np.inf, np.inf, np.nan])


def test_an_exclusive_sum_beyond_the_largest_number_is_infinite_in_later_batches() -> None:
    data = np.full(20_000, 3e36, np.float32)
    scan = fc.cumulative_sum(fc.source(data), exclusive=True)
    strategy = fc.Strategy(joined_batches=1, batch_bytes=400)
    parts = scan.resolve(device="numpy", progress=False, strategy=strategy)
    assert np.isfinite(parts[:100]).all()
    assert np.isposinf(parts[200:]).all()
    np.testing.assert_array_equal(parts, scan.resolve(device="numpy", progress=False))


def test_a_running_sum_of_a_million_stays_right() -> None:
    data = np.full(1_000_000, 0.1, np.float32)
    result = fc.cumulative_sum(fc.source(data)).resolve(device="numpy", progress=False)
    np.testing.assert_allclose(result, np.arange(1, 1_000_001) * np.float64(np.float32(0.1)), rtol=1e-6)


def test_the_average_is_begun_by_the_first_record() -> None:
    result = fc.ema(fc.source(np.array([4, 0, 0], np.int64)), 0.25).resolve(device="numpy", progress=False)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [4, 3, 2.25])


# -- a step of one's own --------------------------------------------------------------------------


def test_a_step_sees_records_in_order_and_gives_every_carry() -> None:
    seen = []

    def step(carry: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        seen.append((int(x), int(y)))
        return carry + np.stack([x, y])

    x, y = np.arange(50), np.arange(50) ** 2
    element = fc.scan(step, fc.source(x), fc.source(y), init=np.zeros(2, np.int64))
    for batch_bytes in (8, 100, 1 << 20):
        seen.clear()
        result = element.resolve(device="cpu", progress=False, strategy=fc.Strategy(batch_bytes=batch_bytes))
        assert seen == [(i, i**2) for i in range(50)]
        np.testing.assert_array_equal(result, np.cumsum(np.stack([x, y], axis=1), axis=0))


def test_a_step_that_fails_names_its_record() -> None:
    def step(carry: np.ndarray, x: np.ndarray) -> Any:
        return carry + 1 / (3 - int(x))

    element = fc.scan(step, fc.source(np.arange(9)), init=0.0, name="sum of inverses")
    with pytest.raises(RunError, match="ZeroDivisionError") as caught:
        element.resolve(progress=False, strategy=fc.Strategy(batch_bytes=16))
    assert (caught.value.element, caught.value.records) == ("sum of inverses", (3, 4))


@pytest.mark.parametrize(("made", "got"), [(lambda c, x: c + 0.5, "float64"), (lambda c, x: [c, c], r"\(2,\)")])
def test_a_step_gives_what_it_was_given(made: Callable[[Any, Any], Any], got: str) -> None:
    element = fc.scan(made, fc.source(np.arange(3)), init=0)
    with pytest.raises(RunError, match="not like the carry") as caught:
        element.resolve(device="numpy", progress=False)
    assert caught.value.records == (0, 1)
    assert caught.match(got)


@fc.kernel
def divisor(a: Any, b: Any) -> Any:
    while b != 0:
        a, b = b, a % b
    return a


@fc.kernel
def tank(level: Any, rain: Any, spilt: Any) -> Any:
    level = level + rain - spilt
    return max(0.0, min(level, 10.0))


@fc.kernel
def added(carry: Any, x: Any) -> Any:
    return carry + x


@fc.kernel
def averaged(carry: Any, x: Any) -> Any:
    return carry * 0.5 + x


def each_carry(step: Callable[..., Any], init: Any, *columns: np.ndarray) -> list[Any]:
    results = [init]
    for numbers in zip(*columns, strict=True):
        results.append(step(results[-1], *numbers))
    return results[1:]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_step_that_is_a_kernel_is_the_function_itself(device: str) -> None:
    whole = np.random.default_rng(5).integers(1, 99, (130, 2)) * 12
    rain = numbers("float32", (130, 2)) * 4
    along = fc.scan(divisor, fc.source(whole[:, 0]) * 2, init=0, associative=True) + 1
    inside = fc.scan(divisor, fc.source(whole), init=0, associative=True, axis=1)
    walked = fc.scan(tank, fc.source(rain), np.float32(0.25), init=np.array([5, 9], np.float32))
    results = fc.resolve(along, inside, walked, device=device, progress=False, strategy=fc.Strategy(batch_bytes=700))
    assert results[0].tolist() == [2 * one + 1 for one in each_carry(divisor.python, 0, whole[:, 0].tolist())]
    assert results[1].tolist() == [each_carry(divisor.python, 0, row) for row in whole.tolist()]
    for column, init in enumerate([5, 9]):
        spilt = np.full(130, 0.25, np.float32)
        wanted = each_carry(tank.python, np.float32(init), rain[:, column], spilt)
        assert results[2][:, column].tolist() == wanted
    if device == "cpu":
        assert [kernel.ir.work for kernel in fc.plan(along, inside, walked).kernels] == ["scan", "walk", "walk"]


@fc.kernel
def oscillator(place: Any, speed: Any, push: Any) -> Any:
    speed = (speed - place / 4) * 0.5 + push
    return place + speed, speed


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_step_may_carry_several_numbers(device: str) -> None:
    push = numbers("float64", (70,))
    place, speed = fc.scan(oscillator, fc.source(push), init=(1.0, np.float64(-1)), name="swing")
    wanted = [(1.0, -1.0)]
    for one in push.tolist():
        wanted.append(oscillator.python(*wanted[-1], one))
    options: dict[str, Any] = {"device": device, "progress": False, "strategy": fc.Strategy(batch_bytes=100)}
    got = fc.resolve(place, speed, **options)
    assert list(zip(*(one.tolist() for one in got), strict=True)) == wanted[1:]
    np.testing.assert_array_equal(speed.resolve(**options), got[1])
    assert [place.name, speed.name] == ["swing", "swing_2"]
    if device == "cpu":
        assert [kernel.ir.work for kernel in fc.plan(place * 2, speed, device="cpu").kernels] == ["walk"]


@fc.kernel
def shifted(last: Any, before: Any, x: Any) -> Any:
    return x, last


def test_a_step_that_gives_back_its_operand_keeps_no_memory_of_the_batch() -> None:
    """What a batch was in is used again: here by the batches of a flow, for what the first scan gives."""
    data = np.arange(24, dtype="f4").reshape(12, 2) + 1

    def before(x: Any) -> Any:
        return fc.scan(shifted, x, init=(0.0, 0.0))[1]

    with before(before(fc.feed(dtype="f4", shape=(2,)))).flow(device="numpy") as flow:
        parts = []
        for piece in np.split(data, [1, 2, 5]):
            flow.send(piece)
            parts.append(flow.receive())
    np.testing.assert_array_equal(np.concatenate(parts), np.concatenate([np.zeros((2, 2), "f4"), data[:-2]]))


def test_several_numbers_side_by_side_are_of_one_carry_only_where_they_begin_alike() -> None:
    x = fc.source(numbers("float64", (9,)))
    one, other = fc.scan(oscillator, x, init=(1.0, 0.0)), fc.scan(oscillator, x, init=(2.0, 0.0))
    got = fc.resolve(*one, *other, device="cpu", progress=False)
    alone = [element.resolve(device="numpy", progress=False) for element in (*one, *other)]
    assert [a.tobytes() for a in got] == [a.tobytes() for a in alone]
    assert len(fc.plan(*one, *other, device="cpu").kernels) == 2


def test_a_number_to_begin_with_takes_the_dtype_of_what_the_step_makes() -> None:
    half, whole = fc.source(np.ones(3, np.float16)), fc.source(np.ones(3, np.int32))
    made = [fc.scan(added, half, init=0), fc.scan(added, whole, init=0), fc.scan(averaged, whole, init=0)]
    made += [fc.scan(added, whole, init=np.float64(0)), fc.scan(added, whole > 0, init=0, associative=True)]
    assert [one.dtype.name for one in made] == ["float16", "int32", "float64", "float64", "int64"]


def test_what_a_step_that_is_a_kernel_takes() -> None:
    x = fc.source(np.zeros((4, 3), np.float32))
    wrong: dict[str, Callable[[], Any]] = {
        "cannot begin with a carry of this shape": lambda: fc.scan(added, x, init=np.zeros(4, np.float32)),
        r"expected +one number": lambda: fc.scan(added, x, init=np.zeros(3, np.float32), associative=True),
        "cannot carry what the step gives": lambda: fc.scan(added, x, init=np.int32(0)),
        "cannot use numbers of another kind as the carry": lambda: fc.scan(
            added, x, init=np.int32(0), associative=True
        ),
        r"expected +one value": lambda: fc.scan(tank, x, x, init=0, associative=True),
        r"expected +carry, x\n +got +a carry and 0": lambda: fc.scan(added, init=0),
        r"expected +place, speed, push\n +got +a carry and 1": lambda: fc.scan(oscillator, x, init=0.0),
        r"got +3 carries and 1": lambda: fc.scan(oscillator, x, init=(0.0, 0.0, 0.0)),
        "cannot carry several numbers in any grouping": lambda: fc.scan(
            oscillator, x, init=(0.0, 0.0), associative=True
        ),
        "make a kernel of it": lambda: fc.scan(np.add, x, init=0.0, axis=1),
    }
    for text, make in wrong.items():
        with pytest.raises(SpecError, match=text):
            make()


def test_a_step_has_a_stream_and_cannot_skip() -> None:
    with pytest.raises(SpecError, match="cannot run along streams of resident values"):
        fc.scan(lambda c, x: c, fc.constant(np.arange(3)), init=0)
    with pytest.raises(SpecError, match="cannot skip"):
        fc.scan(lambda c, x: c, fc.source(np.arange(3)), init=0, on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="cannot take alpha="):
        fc.ema(fc.source(np.arange(3)), 0)
    with pytest.raises(SpecError, match="cannot choose an axis to run along"):
        fc.cumulative_sum(fc.source(np.zeros((3, 2))))
