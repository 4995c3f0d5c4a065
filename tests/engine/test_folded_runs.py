"""Folds of runs of records: those that lie within a batch are reduced together, to the bits of each alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.engine.folds import Fold
from flowcompute.engine.streams.input_buffers import EachInput, make_input_buffer
from flowcompute.ir import FoldSpec
from tests.properties.cases import cases
from tests.support.work import lines_run

OPERATIONS = ("sum", "prod", "min", "max", "argmin", "argmax", "mean", "var", "vecdot", "any")
RECORDS = 700


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    # Many are equal, so that places of extremes are chosen among several.
    made = rng.integers(-3, 4, (RECORDS, *shape)).astype(dtype)
    if dtype.startswith("float"):
        made = made + rng.standard_normal(made.shape).astype(dtype) * (rng.random(made.shape) < 0.3)
        made[rng.random(made.shape) < 0.01] = np.nan
    return made.astype(dtype)


@cases(60)
@given(
    st.sampled_from(OPERATIONS),
    st.sampled_from([(), (3,), (2, 2)]),
    st.sampled_from(["float32", "float64", "int32"]),
    st.sampled_from([1, 2, 7, 70, 350]),
)
def test_runs_together_have_the_bits_of_each_alone(op: str, shape: tuple[int, ...], dtype: str, every: int) -> None:
    kind = np.dtype("bool") if op == "any" else np.dtype(dtype)
    values = [numbers(shape, dtype, seed).astype(kind) for seed in range(2 if op == "vecdot" else 1)]
    places = np.dtype("int64") if op.startswith("arg") else kind
    spec = FoldSpec(op, kind, shape, places, shape, inputs=len(values))
    runs = [[value[first : first + every] for value in values] for first in range(0, RECORDS, every)]
    made = Fold(spec).values_of_runs(values, every)
    assert made is not None
    assert len(made) == len(runs)
    for run, got in zip(runs, made, strict=True):
        alone = Fold(spec)
        alone.push_records(run)
        assert (got.dtype, got.shape) == (alone.result().dtype, alone.result().shape)
        assert got.tobytes() == alone.result().tobytes()


def buffer_of(every: int, op: str) -> EachInput:
    element = getattr(fc, op)(fc.cut(fc.source(np.zeros((RECORDS, 3), np.float32)), every, tail="emit"), axis=1)
    plan = fc.plan(element, device="numpy")
    entry = next(entry for clock in plan.passes[0].clocks for entry in clock.entries)
    made = make_input_buffer(plan.graph, entry, {})
    assert isinstance(made, EachInput)
    return made


@pytest.mark.parametrize("op", ["max", "argmax", "sum"])
@pytest.mark.parametrize("every", [1, 7, 100, 699])
def test_batches_may_end_within_runs(op: str, every: int) -> None:
    x = numbers((3,), "float32", 5)
    whole = getattr(np, op)
    found = []
    for cuts in ([RECORDS], [1, 6, 8, 50, 300, 301, RECORDS]):
        buffer, start = buffer_of(every, op), 0
        for stop in cuts:
            buffer.feed(0, [x[start:stop]], start)
            buffer.settle()
            start = stop
        buffer.end(0, RECORDS)
        found.append(buffer.take(buffer.available))
    assert found[0].tobytes() == found[1].tobytes()
    wanted = [whole(x[first : first + every], axis=0) for first in range(0, RECORDS, every)]
    np.testing.assert_allclose(found[0], np.stack(wanted), rtol=1e-5, atol=1e-5)


def test_many_runs_of_a_batch_take_about_as_many_calls_as_few() -> None:
    x = numbers((3,), "float32", 6)
    few, many = buffer_of(7, "max"), buffer_of(7, "max")
    assert lines_run(lambda: many.feed(0, [x[:693]], 0)) < 2 * lines_run(lambda: few.feed(0, [x[:14]], 0))
    assert many.available == 99
