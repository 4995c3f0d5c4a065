"""Functions of Python and of OpenCL C with gradients that their users give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc

X = np.random.default_rng(3).uniform(-1, 1, (5, 3))
CUBE = "double {name}(double x) {{ return x * x * x; }}"


def cubed(x: Any, g: Any) -> Any:
    return 3.0 * x * x * g


def test_a_function_of_python_has_the_gradient_that_it_is_given() -> None:
    x, w = fc.source(X), fc.parameter(np.eye(3, 4) + 0.5)

    def back(x: Any, w: Any, g: Any) -> Any:
        return g @ w.T, x.T @ g

    ours, theirs = fc.host(np.matmul, x, w, shape=(4,), vjp=back), x @ w
    wanted = [one for y in (ours, theirs) for one in fc.grad(fc.sum(y * y), [x, w])]
    found = fc.resolve(*wanted, device="numpy", progress=False)
    for one, other in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_number_stands_for_a_cotangent_of_equal_numbers() -> None:
    x, w = fc.source(X), fc.parameter(X[0])
    y = fc.host(np.add, x, w, vjp=lambda x, w, g: (2.0, None))
    by_x, by_w = fc.resolve(*fc.grad(y.sum(), [x, w]), device="numpy", progress=False)
    assert (by_x.tolist(), by_w.tolist()) == (np.full(X.shape, 2.0).tolist(), [0, 0, 0])


def test_a_function_of_opencl_has_the_gradient_that_it_is_given() -> None:
    x = fc.source(X)
    y = fc.opencl(CUBE.format(name="cube"), x, vjp=cubed)
    np.testing.assert_allclose(fc.grad(y.sum(), x).resolve(device="numpy", progress=False), 3 * X**2, rtol=1e-12)


def test_a_function_of_opencl_is_not_told_by_its_name() -> None:
    """Its user may call it like an operation, whose gradient is another one."""
    x = fc.source(X)
    with pytest.raises(fc.SpecError, match="gradient of square") as caught:
        fc.grad(fc.opencl(CUBE.format(name="square"), x).sum(), x)
    assert "vjp=" in str(caught.value)
    y = fc.opencl(CUBE.format(name="square"), x, vjp=cubed)
    np.testing.assert_allclose(fc.grad(y.sum(), x).resolve(device="numpy", progress=False), 3 * X**2, rtol=1e-12)


def test_it_is_trained_through() -> None:
    def trained(square: Any) -> Any:
        w = fc.parameter(np.ones(3), name="w")
        with fc.train.Trainer([w], fc.train.sgd(0.1), device="numpy") as trainer:
            for _ in range(2):
                trainer.step(square(fc.source(X) * w).mean())
            assert trainer.compiled == 1
            return trainer.values["w"]

    def back(x: Any, g: Any) -> Any:
        return 2.0 * x * g

    ours, theirs = trained(lambda one: fc.host(np.square, one, vjp=back)), trained(fc.square)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    "own",
    [
        lambda x, back: fc.host(np.square, x, vjp=back),
        lambda x, back: fc.opencl(CUBE.format(name="cube"), x, vjp=back),
    ],
)
def test_a_loss_with_another_gradient_is_another_one(own: Any) -> None:
    w = fc.parameter(np.ones(3), name="w")
    gradients = [lambda x, g, k=k: k * g for k in (1.0, 2.0)]
    with fc.train.Trainer([w], fc.train.sgd(0.1)) as trainer:
        for back in [gradients[0], gradients[1], gradients[0]]:
            trainer.step(own(fc.source(X) * w, back).mean())
        assert trainer.compiled == 2


@pytest.mark.parametrize(
    ("back", "text"),
    [
        (lambda x, w, g: (g, g), r"cannot take this gradient of host(.|\n)*sum over the records"),
        (lambda x, w, g: (x[:, :2], None), r"cannot take this gradient of host(.|\n)*float64\(5, 3\) stream"),
        (lambda x, w, g: (g[:, None], None), "cannot take this gradient of host"),
        (lambda x, w, g: (g,), "cannot take so many gradients of host"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(back: Any, text: str) -> None:
    x, w = fc.source(X), fc.parameter(X[0])
    loss = fc.host(np.multiply, x, w, vjp=back).sum()
    with pytest.raises(fc.SpecError, match=text):
        fc.grad(loss, [x, w])


def test_arguments() -> None:
    x: Any = fc.source(X)
    not_a_function: Any = 3
    for make in (
        lambda: fc.host(np.sin, x, vjp=not_a_function),
        lambda: fc.opencl(CUBE.format(name="f"), x, vjp=not_a_function),
    ):
        with pytest.raises(fc.SpecError, match="cannot take this as a gradient"):
            make()
    with pytest.raises(fc.SpecError, match="cannot take vjp= where records are dropped"):
        fc.host(np.sin, x, on_error="skip", vjp=cubed)
    for loss in (fc.host(np.sin, x).sum(), fc.host(np.sin, x, on_error="skip").sum()):
        with pytest.raises(fc.SpecError, match=r"vjp="):
            fc.grad(loss, x)
