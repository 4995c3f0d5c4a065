"""Rows of a resident table at a stream of indices: NumPy's values on every backend, and never a place outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import CheckpointWarning, RunError, SpecError
from flowcompute.spec import SUPPORTED_DTYPES
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.support.slow import slow_but

RNG = np.random.default_rng(4)
TABLE = RNG.standard_normal((40, 7)).astype(np.float32)
INDICES = RNG.integers(-40, 40, 301)
BATCHES = (100, 1 << 20)
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def taken(table: np.ndarray, indices: np.ndarray, axis: int = 0) -> np.ndarray:
    """What NumPy takes for each record."""
    axis %= table.ndim
    return np.ascontiguousarray(np.moveaxis(np.take(table, indices.astype(np.int64), axis=axis), axis, 0))


def same(element: fc.Element, wanted: np.ndarray, devices: tuple[str, ...] = ("numpy", "cpu")) -> None:
    assert (element.shape, element.dtype) == (wanted.shape, wanted.dtype)
    for device in devices:
        for batch_bytes in BATCHES:
            got = element.resolve(device=device, strategy=fc.Strategy(batch_bytes=batch_bytes))
            assert got.tobytes() == np.ascontiguousarray(wanted).tobytes(), (device, batch_bytes)


SHAPES: list[tuple[tuple[int, ...], int]] = [((5,), 0), ((5, 19), 0), ((3, 5), 1), ((4, 5, 3), 1), ((2, 3, 5), -1)]
ITEMS: list[tuple[int, ...]] = [(), (1,), (18,), (2, 3)]


@pytest.mark.parametrize("item", slow_but([(), (2, 3)], ITEMS), ids=str)
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_axes_of_tables_and_shapes_of_items(shape: tuple[int, ...], axis: int, item: tuple[int, ...]) -> None:
    table = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) - 7
    indices = RNG.integers(-5, 5, (67, *item))
    rows, wanted = fc.take(fc.constant(table), fc.source(indices), axis=axis), taken(table, indices, axis)
    same(rows, wanted)
    same(rows * 2 + 1, wanted * 2 + 1)
    (got,) = resolve_on_gpu(rows * 2 + 1, strategy=fc.Strategy(batch_bytes=2000))
    assert got.tobytes() == (wanted * 2 + 1).tobytes()


@pytest.mark.parametrize(
    "dtype",
    slow_but(
        map(np.dtype, ("float32", "float16", "int8")),
        SUPPORTED_DTYPES,
        # Kernels move bits: of one size one dtype stands for all, but for halves, which pass through float32.
        map(np.dtype, ("uint16", "int32", "uint32", "int64", "uint64")),
    ),
    ids=lambda dtype: dtype.name,
)
def test_bits_of_every_dtype(dtype: np.dtype) -> None:
    bits = RNG.integers(0, 2 if dtype == bool else 256, (40, 6, dtype.itemsize)).astype(np.uint8)
    table = bits.view(dtype)[..., 0]
    same(fc.take(fc.constant(table), fc.source(INDICES), axis=0), taken(table, INDICES))
    # Beside something computed a kernel gathers. Half formats pass through float32, which makes their NaNs canonical.
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):
            table = np.where(np.isnan(table), dtype.type(1), table)
    rows = fc.take(fc.constant(table), fc.source(INDICES), axis=0)
    same(fc.where(fc.source(INDICES)[:, None] < 50, rows, rows), taken(table, INDICES))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_dtype_of_indices(dtype: str) -> None:
    indices = (abs(INDICES) % 40 if dtype.startswith("u") else INDICES).astype(dtype)
    same(fc.take(fc.constant(TABLE), fc.source(indices), axis=0) + 1, taken(TABLE, indices) + 1)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_extremes_of_every_dtype_are_out_of_range(dtype: str, device: str) -> None:
    """No index wraps around to one that is in range."""
    for bad in {np.iinfo(dtype).max, np.iinfo(dtype).min or np.iinfo(dtype).max}:
        indices = np.ones((50, 2), dtype)
        indices[33, 1] = bad
        rows = fc.take(fc.constant(TABLE), fc.source(indices, name="words"), axis=0) * 2
        with pytest.raises(RunError, match="cannot look up an index that is out of range") as caught:
            rows.resolve(device=device, strategy=fc.Strategy(batch_bytes=64))
        error = caught.value
        assert (error.records, error.expected, error.got) == ((33, 34), "-40 to 39", f"{bad} at record 33")
        assert error.site is not None
        assert error.site.file == __file__
        assert "take" in (error.element or "")


def test_tables_that_indices_cannot_reach_the_end_of() -> None:
    """Tables longer than the dtype of the indices counts, where an index from the end becomes one from the start."""
    table = np.arange(70_000, dtype=np.int32)[:, None] * np.ones(3, np.int32)
    for dtype in ("int8", "int16", "uint16"):
        indices = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 99).astype(dtype)
        same(fc.take(fc.constant(table), fc.source(indices), axis=0) + 1, taken(table, indices) + 1)


def test_first_bad_record_is_named_whatever_the_batches() -> None:
    indices = np.zeros(200, np.int32)
    indices[[120, 150]] = -41, 99
    for batch_bytes in (16, 400, 1 << 20):
        with pytest.raises(RunError) as caught:
            fc.take(fc.constant(TABLE), fc.source(indices), 0).resolve(strategy=fc.Strategy(batch_bytes=batch_bytes))
        assert caught.value.got == "-41 at record 120"


def test_an_empty_table_has_no_rows() -> None:
    empty = fc.constant(np.empty((0, 3), np.float32))
    assert fc.take(empty, fc.source(np.empty(0, np.int64)), axis=0).resolve().shape == (0, 3)
    with pytest.raises(RunError, match="the axis is empty"):
        (fc.take(empty, fc.source(np.zeros(2, np.int64)), axis=0) + 1).resolve()
    assert fc.take(fc.constant(np.ones((4, 0))), fc.source(np.zeros(3, np.int8)), axis=0).resolve().shape == (3, 0)


def test_brackets_take_too() -> None:
    table, indices = fc.constant(TABLE), fc.source(INDICES)
    same(table[indices], TABLE[INDICES])
    same(table[:, fc.source(INDICES % 7)], taken(TABLE, INDICES % 7, 1))
    same(table[2:, 1][fc.source(INDICES % 38)], TABLE[2:, 1][INDICES % 38])


def test_indices_that_are_computed_and_selected() -> None:
    x = fc.source(TABLE)
    best = fc.argmax(x, axis=1)
    same(fc.take(fc.constant(TABLE), best, axis=0) - x, TABLE[TABLE.argmax(1)] - TABLE)
    indices = fc.source(INDICES)
    same_rows = fc.take(fc.constant(TABLE), indices[indices > 3], axis=0).resolve()
    np.testing.assert_array_equal(same_rows, TABLE[INDICES[INDICES > 3]])
    same(fc.take(fc.constant(TABLE), indices, 0)[30:200:3] * 2, TABLE[INDICES][30:200:3] * 2)
    runs = fc.take(fc.constant(TABLE), fc.window(fc.source(INDICES), 3), 0)
    same(runs.max(axis=1), np.lib.stride_tricks.sliding_window_view(TABLE[INDICES], 3, axis=0).max(axis=-1))


def test_a_table_that_a_fold_makes() -> None:
    x = fc.source(TABLE)
    gram = x.T @ x
    for device in ("numpy", "cpu"):
        gram_now, rows = fc.resolve(gram, fc.take(gram, fc.source(INDICES % 7), axis=0) * 2, device=device)
        np.testing.assert_array_equal(rows, np.asarray(gram_now)[INDICES % 7] * 2)


# -- tables that are computed ----------------------------------------------------------------------

LARGE = RNG.standard_normal((5000, 8)).astype(np.float32)
WORDS = RNG.integers(-5000, 5000, (301, 2))
COLUMN, LINE = LARGE[:, :1], LARGE[7]

TABLES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a multiple": (lambda t: t * 2, 0),
    "another dtype": (lambda t: t.astype("float64"), 0),
    "a column and a line": (lambda t: (t - LINE) / (abs(t[:, :1]) + 1), 0),
    "an outer product": (lambda t: t[:, :1] * LINE, 0),
    "beside one row": (lambda t: t * LINE[None, :] + 1, 0),
    "along the last axis": (lambda t: t * 2 + LINE, 1),
    "a line along the last axis": (lambda t: t[0] + t[:1], 1),
    "integers": (lambda t: (t * 10).astype("int8").astype("float32") * t, 0),
}


@pytest.mark.parametrize("item", slow_but([(3,)], [(), (3,), (2, 1)], compiled=[(2, 1)]), ids=str)
@pytest.mark.parametrize("case", TABLES)
def test_tables_are_computed_for_the_rows_asked_for(case: str, item: tuple[int, ...]) -> None:
    build, axis = TABLES[case]
    table = build(LARGE)
    indices = RNG.integers(-table.shape[axis], table.shape[axis], (77, *item))
    rows = fc.take(build(fc.constant(LARGE)), fc.source(indices), axis=axis)
    same(rows, taken(table, indices, axis))
    same(rows + 1, taken(table, indices, axis) + 1)


def test_tables_are_computed_in_the_kernel_that_gathers() -> None:
    rows = fc.take((fc.constant(LARGE) * 2 + LINE).astype("float64"), fc.source(WORDS), axis=0)
    plan = fc.plan(rows, device="cpu")
    assert len(plan.kernels) == 1
    assert len(plan_for_gpu(rows).kernels) == 1
    # Nothing of the table's size but the table itself.
    assert [what for what, size in plan.memory.items if size >= LARGE.nbytes] == ["constant"]
    (got,) = resolve_on_gpu(rows, strategy=fc.Strategy(batch_bytes=2000))
    assert got.tobytes() == (LARGE * 2 + LINE).astype("f8")[WORDS].tobytes()


def test_small_tables_of_costly_numbers_are_computed_once() -> None:
    small = fc.take(fc.sin(fc.constant(np.linspace(0, 1, 256, dtype=np.float32))), fc.source(WORDS % 256))
    assert [step.name for step in fc.plan(small * 2).passes[0].before] != []
    large = fc.take(fc.sin(fc.constant(LARGE)), fc.source(WORDS), axis=0)
    assert [step.name for step in fc.plan(large * 2).passes[0].before] == []


@pytest.mark.parametrize("of", [lambda t: t * 2, fc.square, lambda t: fc.sin(t) * 2], ids=["cheap", "square", "costly"])
def test_tables_that_are_needed_whole_too(of: Callable[[Any], Any]) -> None:
    made = of(fc.constant(LARGE))
    words = fc.source(WORDS[:, 0])
    for device in ("numpy", "cpu"):
        rows, again, whole = fc.resolve(
            fc.take(made, words, axis=0), fc.take(made + 1, words, axis=0), made, device=device
        )
        assert np.asarray(rows).tobytes() == np.asarray(whole)[WORDS[:, 0]].tobytes()
        assert np.asarray(again).tobytes() == (np.asarray(whole) + 1)[WORDS[:, 0]].tobytes()


def test_a_table_that_a_fold_and_a_product_read() -> None:
    doubled = fc.constant(LARGE) * 2
    words = fc.source(WORDS[:, 0])
    rows, total = fc.take(doubled, words, axis=0) + 1, doubled.sum(axis=0)
    for device in ("numpy", "cpu"):
        got, whole = fc.resolve(rows, total, device=device)
        np.testing.assert_array_equal(got, LARGE[WORDS[:, 0]] * 2 + 1)
        np.testing.assert_allclose(whole, (LARGE * 2).sum(axis=0), rtol=1e-4, atol=1e-3)
    both = fc.take(doubled, words, axis=0) @ doubled.T
    np.testing.assert_allclose(
        both.resolve(device="numpy"), (LARGE[WORDS[:, 0]] * 2) @ (LARGE * 2).T, rtol=1e-4, atol=1e-4
    )


def test_one_table_with_several_lookups() -> None:
    doubled = fc.constant(LARGE) * 2
    first, second = fc.source(WORDS[:, 0]), fc.source(WORDS[:, 1])
    rows = fc.take(doubled, first, axis=0) - fc.take(doubled + 1, second, axis=0)
    same(rows, LARGE[WORDS[:, 0]] * 2 - (LARGE[WORDS[:, 1]] * 2 + 1))
    columns = fc.take(doubled, fc.source(WORDS[:, 0] % 8), axis=1)
    same(columns, taken(LARGE * 2, WORDS[:, 0] % 8, 1))


def test_a_deep_table_needs_no_deep_stack() -> None:
    table = fc.constant(LARGE)
    for _ in range(1100):
        table = -table
    same(fc.take(table, fc.source(WORDS[:, 0]), axis=0), LARGE[WORDS[:, 0]], devices=("numpy",))


# -- flows, checkpoints, refusals ------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_flows_take_any_pieces_and_go_on_elsewhere(device: str, tmp_path: Path) -> None:
    def rows() -> fc.Element:
        return fc.take(fc.constant(LARGE) * 2, fc.feed(dtype="int32"), axis=0) + 1

    words = WORDS[:, 0].astype(np.int32)
    wanted = LARGE[words] * 2 + 1
    with rows().flow(device=device) as flow:
        parts = []
        for start, stop in ((0, 1), (1, 1), (1, 90), (90, 91)):
            flow.send(words[start:stop])
            parts.append(flow.receive())
        flow.send(words[91:95])
        flow.freeze(tmp_path / "kept")
    other = {"numpy": "cpu", "cpu": "numpy"}[device]
    opener = fc.thaw(tmp_path / "kept").flow(device=other)
    with pytest.warns(CheckpointWarning, match="goes on on"):
        opened = opener.__enter__()
    with opened as flow:
        parts.append(flow.receive())
        flow.send(words[95:])
        parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == wanted.tobytes()


def test_a_bad_index_in_a_flow_is_counted_from_its_first_record() -> None:
    with (fc.take(fc.constant(TABLE), fc.feed(dtype="int64"), axis=0) * 2).flow(device="cpu") as flow:
        flow.send(np.zeros(10, np.int64))
        flow.receive()
        with pytest.raises(RunError, match="out of range") as caught:
            flow.send(np.array([1, 2, 40]))
        assert caught.value.got == "40 at record 12"


def test_a_run_is_resumed(tmp_path: Path) -> None:
    np.save(tmp_path / "words.npy", np.tile(WORDS[:, 0], 40))

    def rows() -> fc.Element:
        return fc.take(fc.constant(LARGE) * 2, fc.open(tmp_path / "words.npy"), axis=0) + 1

    def stop(run: fc.Run) -> None:
        run.freeze()

    strategy = fc.Strategy(batch_bytes=1 << 12)
    run = fc.start(rows(), checkpoint=tmp_path / "kept", on_batch=stop, strategy=strategy, progress=False)
    with pytest.raises(RunError, match="was frozen"):
        run.wait()
    (again,) = fc.run(rows(), checkpoint=tmp_path / "kept", progress=False).values
    assert np.asarray(again).tobytes() == (LARGE[np.tile(WORDS[:, 0], 40)] * 2 + 1).tobytes()


@given(st.data())
def test_random_tables_and_indices(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3), label="shape"))
    item = tuple(data.draw(st.lists(st.integers(0, 4), max_size=2), label="item"))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1), label="axis")
    size, records = shape[axis], data.draw(st.integers(0, 40), label="records")
    indices = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-size, size, (records, *item))
    table = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    rows = fc.take(fc.constant(table) * 2, fc.source(indices), axis=axis)
    strategy = fc.Strategy(batch_bytes=data.draw(st.sampled_from([8, 100, 10_000])))
    assert rows.resolve(device="numpy", strategy=strategy).tobytes() == (taken(table, indices, axis) * 2).tobytes()


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "floats": (lambda: fc.take(TABLE, fc.source(np.zeros(3)), axis=0), "or a stream of integers"),
    "bools": (lambda: fc.take(TABLE, fc.source(np.zeros(3, bool)), axis=0), "or a stream of integers"),
    "two streams": (lambda: fc.take(fc.source(TABLE), fc.source(INDICES), axis=1), "resident integers"),
    "no axis": (lambda: fc.take(TABLE, fc.source(INDICES)), "axis= for"),
    "an axis beyond": (lambda: fc.take(TABLE, fc.source(INDICES), axis=2), "axis"),
    "an axis of text": (lambda: fc.take(TABLE, fc.source(INDICES), axis="rows"), "axis"),  # type: ignore[arg-type]
    "a number for a table": (lambda: fc.take(1.0, fc.source(INDICES), axis=0), "axis"),
    "text for a table": (lambda: fc.take("words", fc.source(INDICES), axis=0), "operand"),
    "brackets of two streams": (lambda: fc.constant(TABLE)[fc.source(INDICES), fc.source(INDICES)], "step by step"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(case: str) -> None:
    build, words = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        build()
    assert words in str(caught.value)


def test_half_formats_are_computed_as_everywhere() -> None:
    table = LARGE.astype(ml_dtypes.bfloat16)
    rows = fc.take(fc.constant(table).astype("float32") * 3, fc.source(WORDS), axis=0)
    same(rows, (table.astype("f4") * 3)[WORDS])
