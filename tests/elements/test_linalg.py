"""`fc.linalg`: NumPy's values on matrices that are resident and in items, computed once, and refusals that say why."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.graph import build_graph
from flowcompute.schedule.placement.shared_passes import why_in_order
from flowcompute.spec import BFLOAT16, FLOAT64, is_float
from tests.properties.cases import cases
from tests.support.slow import compiled_but, slow_but

RNG = np.random.default_rng(31)
DEVICES = ("numpy", "cpu")
SMALL = fc.Strategy(batch_bytes=1 << 10)


def values_of(*elements: Any, device: str = "numpy", strategy: fc.Strategy | None = None) -> tuple[Any, ...]:
    return fc.run(*elements, device=device, strategy=strategy, progress=False).values


def definite(stack: tuple[int, ...], n: int, dtype: str = "f8", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*stack, n, n + 2))
    return (x @ x.swapaxes(-1, -2) + np.eye(n)).astype(dtype)


OF_SQUARES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "solve": (lambda x: fc.linalg.solve(x, x[..., :2] * 3), lambda x: np.linalg.solve(x, x[..., :2] * 3)),
    "cholesky": (fc.linalg.cholesky, np.linalg.cholesky),
    "cholesky, upper": (
        lambda x: fc.linalg.cholesky(x, upper=True),
        lambda x: np.linalg.cholesky(x).swapaxes(-1, -2),
    ),
    "inv": (fc.linalg.inv, np.linalg.inv),
    "det": (fc.linalg.det, np.linalg.det),
    "slogdet": (lambda x: fc.linalg.slogdet(x), np.linalg.slogdet),
    "eigvalsh": (fc.linalg.eigvalsh, np.linalg.eigvalsh),
    "matrix_power": (lambda x: fc.linalg.matrix_power(x, 3), lambda x: np.linalg.matrix_power(x, 3)),
    "matrix_power, 1": (lambda x: fc.linalg.matrix_power(x, 1), lambda x: x),
    "matrix_power, -2": (lambda x: fc.linalg.matrix_power(x, -2), lambda x: np.linalg.matrix_power(x, -2)),
    "pinv": (fc.linalg.pinv, np.linalg.pinv),
    "svdvals": (fc.linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False)),
    "matrix_rank": (fc.linalg.matrix_rank, lambda x: np.linalg.matrix_rank(x).astype("i8")),
    "nuc": (lambda x: fc.linalg.matrix_norm(x, ord="nuc"), lambda x: np.linalg.matrix_norm(x, ord="nuc")),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", slow_but(["f4"], ["f4", "f8"]))
@pytest.mark.parametrize("name", OF_SQUARES)
def test_numpys_values(name: str, dtype: str, device: str) -> None:
    ours, theirs = OF_SQUARES[name]
    for stack in ((), (2,), (9,), (5, 3)):
        array = definite(stack, 4, dtype)
        wanted = theirs(array)
        for x in (fc.constant(array), *([fc.source(array)] if stack else [])):
            made = ours(x)
            several = isinstance(made, tuple)
            elements = made if several else (made,)
            values = values_of(*elements, device=device)
            for element, value, want in zip(elements, values, wanted if several else [wanted], strict=True):
                assert element.shape == np.shape(value) == np.shape(want)
                assert element.dtype == value.dtype == want.dtype
                assert np.allclose(value, want, rtol=1e-3 if dtype == "f4" else 1e-9, atol=1e-4)
            again = values_of(*elements, device=device, strategy=SMALL)
            assert [np.asarray(one).tobytes() for one in again] == [np.asarray(one).tobytes() for one in values]


SHAPES = st.tuples(st.integers(0, 6), st.integers(0, 6))


@cases(40)
@given(shape=SHAPES, streamed=st.booleans(), seed=st.integers(0, 99), full=st.booleans())
def test_factors_multiply_to_the_matrix(shape: tuple[int, int], streamed: bool, seed: int, full: bool) -> None:
    array = np.random.default_rng(seed).standard_normal((3, *shape))
    x = fc.source(array) if streamed else fc.constant(array)
    u, s, vh = values_of(*fc.linalg.svd(x, full_matrices=full))
    least = min(shape)
    assert np.allclose((u[..., :least] * s[..., None, :]) @ vh[..., :least, :], array)
    assert (np.diff(s, axis=-1) <= 0).all()
    assert np.allclose(u.swapaxes(-1, -2) @ u, np.eye(u.shape[-1]))
    assert u.shape[-1] == (shape[0] if full else least)
    q, r = values_of(*fc.linalg.qr(x, mode="complete" if full else "reduced"))
    assert np.allclose(q @ r, array)
    assert np.array_equal(np.triu(r), r)
    assert q.shape[-1] == (shape[0] if full else least)
    inverse = values_of(fc.linalg.pinv(x))[0]
    assert inverse.shape == (3, *shape[::-1])
    assert np.allclose(array @ inverse @ array, array)
    assert np.array_equal(values_of(fc.linalg.matrix_rank(x))[0], [least] * 3)


@cases(30)
@given(n=st.integers(0, 6), seed=st.integers(0, 99))
def test_eigenvectors_are_eigenvectors(n: int, seed: int) -> None:
    array = definite((4,), n, seed=seed)
    values, vectors = values_of(*fc.linalg.eigh(fc.source(array)))
    assert np.allclose(array @ vectors, vectors * values[:, None, :])
    assert np.array_equal(values, np.linalg.eigh(array)[0])


def test_a_factorisation_is_computed_once() -> None:
    x = fc.constant(definite((), 4))
    for made in (fc.linalg.svd(x), fc.linalg.qr(x), fc.linalg.eigh(x), fc.linalg.slogdet(x)):
        graph = build_graph([*made, *(one * 2 for one in made)])
        assert len([node for node in graph.nodes if node.kind is not None and node.kind.value == "host"]) == 1
    assert fc.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert fc.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert fc.linalg.qr(x)._fields == ("Q", "R")
    assert fc.linalg.slogdet(x)._fields == ("sign", "logabsdet")


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8"])
def test_integers_are_computed_in_float64(dtype: str) -> None:
    array = np.array([[3, 1], [0, 2]]).astype(dtype)
    assert fc.linalg.det(array).dtype == FLOAT64
    assert np.allclose(values_of(fc.linalg.inv(array))[0], np.linalg.inv(array.astype("f8")))
    assert fc.linalg.solve(array, np.float32([1, 2])).dtype == np.result_type(array.dtype, np.float32)


def test_right_sides() -> None:
    a, b = definite((6,), 3), RNG.standard_normal((6, 3, 2))
    want = np.linalg.solve(a, b)
    made = [
        fc.linalg.solve(fc.source(a), fc.source(b)),
        fc.linalg.solve(fc.source(a), b),
        fc.linalg.solve(a, fc.source(b)),
        fc.linalg.solve(a, b),
        fc.linalg.solve(fc.source(a), b[0]),
        fc.linalg.solve(a[0], fc.source(b)),
        fc.linalg.solve(fc.source(a), b[0, :, 0]),
        fc.linalg.solve(a, b[0, :, 0]),
        fc.linalg.solve(a[0], b[0, :, 0]),
    ]
    column = np.linalg.solve(a, b[0, :, :1])[..., 0]
    wanted = [want] * 4 + [np.linalg.solve(a, b[0]), np.linalg.solve(a[0], b), column, column, column[0]]
    for element, value, one in zip(made, values_of(*made), wanted, strict=True):
        assert element.shape == value.shape == one.shape
        assert np.allclose(value, one)


def test_streams_of_unknown_length() -> None:
    array = definite((20,), 3)
    x = fc.iterate([array[:7], array[7:]], shape=(3, 3), dtype="f8")
    u, s, _ = fc.linalg.svd(x)
    values = values_of(u, s, fc.linalg.inv(x))
    for value, want in zip(values, (*np.linalg.svd(array)[:2], np.linalg.inv(array)), strict=True):
        assert np.allclose(value, want)


# -- norms -------------------------------------------------------------------------------------------


ORDERS = [2, 0, 1, 3, 0.5, -1, -2, np.inf, -np.inf]


@pytest.mark.parametrize(
    ("ord", "device"),
    compiled_but(
        # Kernels of counts, of squares, of powers and of extremes; NumPy has all orders.
        [*itertools.product(ORDERS, ["numpy"]), *itertools.product([2, 0, 0.5, np.inf], ["cpu"])],
        itertools.product(ORDERS, DEVICES),
    ),
)
def test_norms_of_vectors(ord: float, device: str) -> None:
    array = (RNG.standard_normal((50, 3, 4)) + 0.1).astype("f4")
    axes = [None, 0, 1, (1, 2), (0, 2), (0, 1, 2)]
    made = [
        fc.linalg.vector_norm(fc.source(array), axis=axis, ord=ord, keepdims=keep) for axis in axes for keep in (0, 1)
    ]
    values = values_of(*made, device=device)
    wide = array.astype("f8")
    wanted = [np.linalg.vector_norm(wide, axis=axis, ord=ord, keepdims=bool(keep)) for axis in axes for keep in (0, 1)]
    for element, value, want in zip(made, values, wanted, strict=True):
        assert element.shape == np.shape(value) == want.shape
        assert value.dtype == array.dtype
        assert np.allclose(value, want, rtol=1e-4)
    again = values_of(*made, device=device, strategy=SMALL)
    assert [one.tobytes() for one in again] == [one.tobytes() for one in values]


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", BFLOAT16, "f4", "f8"])
def test_dtypes_of_norms(dtype: Any) -> None:
    array = np.array([[3, 0], [4, 0]]).astype(dtype)
    want = array.dtype if is_float(array.dtype) else FLOAT64
    for made in (
        fc.linalg.vector_norm(fc.source(array), axis=0),
        fc.linalg.matrix_norm(array),
        fc.linalg.norm(fc.source(array)),
    ):
        assert made.dtype == want
    assert float(values_of(fc.linalg.norm(fc.source(array)))[0]) == pytest.approx(
        np.linalg.norm(array.astype("f8")), rel=1e-2
    )


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(ord: Any) -> None:
    array = RNG.standard_normal((7, 3, 4))
    for keep in (False, True):
        made = [fc.linalg.matrix_norm(x, ord=ord, keepdims=keep) for x in (fc.source(array), fc.constant(array))]
        for value in values_of(*made):
            want = np.linalg.matrix_norm(array, ord=ord, keepdims=keep)
            assert value.shape == want.shape
            assert np.allclose(value, want)


@pytest.mark.parametrize(
    ("axis", "ord"),
    [(None, None), (0, None), (1, 3), (-1, 1), ((1, 2), None), ((1, 2), 1), ((2, 1), 1), ((1, 2), "nuc"), ((2, 1), -np.inf),
     ((0, 1), "fro"), ((0, 2), None), (0, np.inf)],
)  # fmt: skip
def test_norm_is_numpys(axis: Any, ord: Any) -> None:
    array = RNG.standard_normal((7, 3, 4))
    for keep in (False, True):
        made = fc.linalg.norm(fc.source(array), ord, axis, keep)
        want = np.linalg.norm(array, ord, axis, keep)
        value = values_of(made)[0]
        assert made.shape == np.shape(value) == np.shape(want)
        assert np.allclose(value, want)
    assert np.allclose(values_of(fc.linalg.norm(array[0], "nuc"))[0], np.linalg.norm(array[0], "nuc"))


# -- whole jobs --------------------------------------------------------------------------------------


def regression(path: Path) -> list[Any]:
    rows = fc.open(path, name="rows")
    x, y = rows[:, :-1], rows[:, -1]
    x1 = fc.concat([x, fc.linalg.vector_norm(x, axis=1, keepdims=True) * 0 + 1], axis=1)
    weights = fc.linalg.solve(x1.T @ x1, x1.T @ y)
    return [weights, ((y - x1 @ weights) ** 2).mean()]


def principal(path: Path) -> list[Any]:
    rows = fc.open(path, name="rows")
    variances, directions = fc.linalg.eigh(fc.cov(rows))
    return [variances, fc.flip(directions, axis=1), (rows - rows.mean(axis=0)) @ fc.flip(directions, axis=1)[:, :2]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    features = RNG.standard_normal((5000, 4)) @ RNG.standard_normal((4, 4))
    target = features @ [1.0, -2, 0.5, 3] + 0.7 + RNG.standard_normal(5000) / 10
    np.save(tmp_path / "rows.npy", np.column_stack([features, target]))
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("device", DEVICES)
def test_regression_and_principal_components_of_a_file(table: Path, device: str) -> None:
    array = np.load(table)
    design = np.column_stack([array[:, :-1], np.ones(len(array))])
    want, residual, *_ = np.linalg.lstsq(design, array[:, -1])
    weights, error = values_of(*regression(table), device=device)
    assert np.allclose(weights, want)
    assert np.allclose(error, residual / len(array))
    variances, directions, projected = values_of(*principal(table), device=device)
    singular = np.linalg.svd(array - array.mean(axis=0), full_matrices=False)[1]
    assert np.allclose(variances[::-1], singular**2 / (len(array) - 1))
    assert np.allclose(projected, (array - array.mean(axis=0)) @ directions[:, :2])


@pytest.mark.parametrize("job", [regression, principal])
@pytest.mark.parametrize("batches", [2, 21, 30])
def test_jobs_go_on_from_a_checkpoint(
    table: Path, tmp_path: Path, job: Callable[[Path], list[Any]], batches: int
) -> None:
    small = fc.Strategy(batch_bytes=1 << 12)
    wanted = values_of(*job(table))
    seen = []

    def watch(run: fc.Run) -> None:
        seen.append(run)
        if len(seen) == batches:
            run.freeze()

    kept = tmp_path / "kept"
    run = fc.start(*job(table), device="numpy", progress=False, strategy=small, on_batch=watch, checkpoint=kept)
    with pytest.raises(fc.RunError, match="was frozen"):
        run.wait()
    again = fc.thaw(kept).run(device="numpy", progress=False).values
    assert [one.tobytes() for one in again] == [one.tobytes() for one in wanted]
    done = fc.run(*job(table), device="numpy", progress=False, checkpoint=kept).values
    assert [one.tobytes() for one in done] == [one.tobytes() for one in wanted]


def test_batches_may_be_computed_in_any_order() -> None:
    """Unlike a user's function, which may remember what it was called with."""
    x = fc.source(definite((9,), 3))
    for made, free in ((fc.linalg.inv(x), True), (fc.host(np.linalg.inv, x), False)):
        steps = [step for clock in fc.plan(made, device="numpy").passes[0].clocks for step in clock.steps]
        assert [why_in_order(step) is None for step in steps] == [free]


# -- refusals ----------------------------------------------------------------------------------------


def test_a_singular_matrix_names_the_element_and_its_line() -> None:
    x = fc.source(np.ones((20, 3)))
    made = fc.linalg.solve(x.T @ x, np.ones(3)).named("weights")
    with pytest.raises(fc.RunError, match=r"weights: cannot compute with this matrix: Singular") as caught:
        made.resolve(device="numpy", progress=False)
    assert "test_linalg.py" in str(caught.value)
    assert "fc.linalg.pinv" in str(caught.value)


@pytest.mark.parametrize("strategy", [None, SMALL])
def test_a_matrix_that_is_refused_names_its_record(strategy: fc.Strategy | None) -> None:
    array = definite((300,), 3)
    array[171] = -np.eye(3)
    array[201] = -np.eye(3)
    with pytest.raises(fc.RunError, match="not positive definite") as caught:
        values_of(fc.linalg.cholesky(fc.source(array)), strategy=strategy)
    assert caught.value.records == (171, 172)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: fc.linalg.inv(x), ValueError, "not square"),
        (lambda x: fc.linalg.inv(x[:, 0]), ValueError, "fold the stream to one matrix first"),
        (lambda x: fc.linalg.inv(x.astype("f2")), ValueError, "not square"),
        (lambda x: fc.linalg.svd(x.astype("bfloat16")), TypeError, "half formats"),
        (lambda x: fc.linalg.solve(np.eye(3), x), ValueError, "differ in size"),
        (lambda x: fc.linalg.solve(np.ones((3, 3, 3)), np.ones((2, 3, 1))), ValueError, "stacks of matrices"),
        (lambda x: fc.linalg.solve(fc.source(np.ones((3, 2, 2))), x[:, :, :]), ValueError, "different length"),
        (lambda x: fc.linalg.qr(x, mode="raw"), ValueError, "mode="),
        (lambda x: fc.linalg.pinv(x, rtol=-1), ValueError, "rtol="),
        (lambda x: fc.linalg.matrix_power(np.eye(2), 1.5), TypeError, "n="),
        (lambda x: fc.linalg.matrix_norm(x, ord=3), ValueError, "ord="),
        (lambda x: fc.linalg.vector_norm(x, ord="fro"), TypeError, "ord="),
        (lambda x: fc.linalg.vector_norm(x, ord=np.nan), ValueError, "ord="),
        (lambda x: fc.linalg.norm(x, 1), ValueError, "of this order over these axes"),
        (lambda x: fc.linalg.norm(x, 1, (0, 1)), ValueError, "one axis is the stream"),
        (lambda x: fc.linalg.norm(x, axis=5), IndexError, "axis 5"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(fc.SpecError, match=text) as caught:
        call(fc.source(np.ones((6, 2, 3), "f4")))
    assert isinstance(caught.value, kind)
