"""Values that gradients compute again: the bits of those that are kept, in less memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError

NUMPY: dict[str, Any] = {"device": "numpy", "progress": False}
RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((60, 16), dtype=np.float32)
TARGETS = RNG.standard_normal((60, 16), dtype=np.float32)
IMAGES = RNG.standard_normal((60, 1, 4, 4), dtype=np.float32)

Mark = Callable[[Any], Any]


def parameters(count: int, shape: tuple[int, ...] = (16, 16)) -> list[Any]:
    rng = np.random.default_rng(1)
    return [fc.parameter((rng.standard_normal(shape) / 4).astype("f4"), name=f"w{i}") for i in range(count)]


@fc.kernel
def bent(a: Any, b: Any) -> Any:
    return a * b if a > b else a - b


def dense(mark: Mark, ws: list[Any]) -> Any:
    h = fc.source(ROWS)
    for i, w in enumerate(ws):
        h = mark(fc.nn.dropout(fc.nn.gelu(h @ w), 0.25, seed=i))
    return h


def wide(mark: Mark, ws: list[Any]) -> Any:
    """One mark around all of it."""
    return mark(dense(lambda h: h, ws))


def nested(mark: Mark, ws: list[Any]) -> Any:
    h = fc.source(ROWS)
    for w in ws:
        inner = mark(fc.tanh(h @ w) * fc.sin(h))
        h = mark(fc.nn.softmax(inner, axis=1) + inner * h)
    return h


def skipping(mark: Mark, ws: list[Any]) -> Any:
    """What is used inside and outside of a mark."""
    h = fc.exp(fc.source(ROWS) * 0.1)
    for w in ws:
        t = fc.tanh(h @ w)
        h = mark(fc.nn.layer_norm(t * h, 1)) + t
    return h


def functions(mark: Mark, ws: list[Any]) -> Any:
    h = fc.source(ROWS)
    for w in ws:
        h = mark(bent(fc.reshape(fc.reshape(h, (-1, 4, 4)), (-1, 16)) @ w, h)) + fc.max(h, axis=1, keepdims=True)
    return h


def drawn(mark: Mark, ws: list[Any]) -> Any:
    noise = fc.random.normal(60, shape=(16,), seed=5, dtype="float32")
    return mark(fc.tanh((fc.source(ROWS) + mark(noise * 2.0)) @ ws[0])) @ ws[1]


def images(mark: Mark, ws: list[Any]) -> Any:
    kernel = fc.reshape(ws[0][:4, :9], (4, 1, 3, 3))
    x = mark(fc.nn.relu(fc.nn.conv2d(fc.source(IMAGES), kernel, padding=1)))
    return mark(fc.reshape(fc.nn.max_pool2d(x, 2), (-1, 16)) @ ws[1])


NETS = [dense, wide, nested, skipping, functions, drawn, images]


def gradients(net: Any, mark: Mark, count: int = 3) -> tuple[Any, ...]:
    ws = parameters(count)
    ws = ws[:2] if net in (drawn, images) else ws
    error = net(mark, ws) - fc.source(TARGETS)
    loss = (error * error).mean()
    return (loss, *fc.grad(loss, ws))


def unmarked(x: Any) -> Any:
    return x


@pytest.mark.parametrize("net", NETS)
def test_no_bit_changes(net: Any) -> None:
    same_bits(net, device="numpy", progress=False)


@pytest.mark.compiles
@pytest.mark.parametrize("net", [dense, skipping, functions])
def test_no_bit_of_kernels_changes(net: Any) -> None:
    same_bits(net, device="cpu", progress=False)


def same_bits(net: Any, **options: Any) -> None:
    kept = fc.resolve(*gradients(net, unmarked), **options)
    again = fc.resolve(*gradients(net, fc.recompute), **options)
    small = fc.resolve(*gradients(net, fc.recompute), strategy=fc.Strategy(batch_bytes=600), **options)
    for one, other, third in zip(kept, again, small, strict=True):
        assert one.tobytes() == other.tobytes() == third.tobytes()


def test_gradients_of_streams_and_of_values_inside() -> None:
    def made(mark: Mark) -> Any:
        x = fc.source(ROWS)
        h = fc.tanh(x @ parameters(1)[0])
        loss = (mark(fc.exp(h) * fc.sin(x)) ** 2.0).sum()
        return fc.resolve(*fc.grad(loss, [x, h]), **NUMPY)

    for one, other in zip(made(fc.recompute), made(unmarked), strict=True):
        assert one.tobytes() == other.tobytes()


def test_gradients_of_gradients() -> None:
    def made(mark: Mark) -> Any:
        w = parameters(1)[0]
        loss = (mark(fc.tanh(fc.source(ROWS) @ w)) ** 2.0).sum()
        return fc.grad((fc.grad(loss, w) ** 2.0).sum(), w).resolve(**NUMPY)

    np.testing.assert_allclose(made(fc.recompute), made(unmarked), rtol=1e-4, atol=1e-3)


def record_bytes(plan: Any) -> int:
    """What a record takes between the kernels of a pass."""
    return sum(size for name, size in plan.memory.items if "(between kernels)" in name) // 60


def one_batch(*elements: Any, **options: Any) -> Any:
    return fc.plan(*elements, strategy=fc.Strategy(batch_bytes=1 << 20), **options)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
def test_the_plan_is_smaller(device: str) -> None:
    def planned(mark: Mark, count: int) -> int:
        h, ws = fc.source(ROWS), parameters(count)
        for i, w in enumerate(ws):
            for _ in range(3):
                h = fc.nn.softmax(h + fc.sin(h), axis=1)
            h = fc.nn.layer_norm(h @ w, 1)
            h = mark(h) if i % 2 else h
        loss = ((h - fc.source(TARGETS)) ** 2.0).mean()
        return record_bytes(one_batch(*fc.grad(loss, ws), device=device))

    few, many = planned(unmarked, 4), planned(unmarked, 12)
    few_again, many_again = planned(fc.recompute, 4), planned(fc.recompute, 12)
    assert few_again < few
    assert many_again < 0.65 * many
    # What a further layer takes.
    assert many_again - few_again < 0.6 * (many - few)


def test_a_training_takes_less(tmp_path: Path) -> None:
    def trained(mark: Mark) -> Any:
        ws = parameters(8)
        error = dense(mark, ws) - fc.source(TARGETS)
        return fc.train.fit((error * error).mean(), fc.train.adam(1e-3), batch=None, epochs=3)

    sizes, found = [], []
    for mark in (unmarked, fc.recompute):
        made = trained(mark)
        (inner,) = made["w0"].plan(device="numpy").inner.values()
        sizes.append(inner[0].memory.host_bytes)
        found.append(made["w0"].resolve(**NUMPY).tobytes())
    assert sizes[1] < sizes[0]
    assert found[0] == found[1]
    with pytest.raises(fc.RunError, match="frozen"):
        fc.run(
            trained(fc.recompute)["w0"],
            checkpoint=tmp_path / "kept",
            on_batch=lambda run: run.freeze() if run.progress.items == 1 else None,
            **NUMPY,
        )
    thawed = fc.thaw(tmp_path / "kept")
    assert thawed.resolve(**NUMPY).tobytes() == found[0]


def test_a_thawed_job_computes_again_too(tmp_path: Path) -> None:
    made = gradients(dense, fc.recompute, 6)[1:]
    plan = one_batch(*made, device="numpy")
    with pytest.raises(fc.RunError, match="frozen"):
        fc.run(
            *made, checkpoint=tmp_path / "kept", on_batch=lambda run: run.freeze(), strategy=fc.Strategy(batch_bytes=600),
            **NUMPY,
        )  # fmt: skip
    thawed = fc.thaw(tmp_path / "kept")
    again = [node.name for node in plan.graph.nodes if node.again]
    assert again
    found = thawed.resolve(**NUMPY)
    for one, other in zip(found, fc.resolve(*made, **NUMPY), strict=True):
        assert one.tobytes() == other.tobytes()


def test_functions_of_python_are_called_once() -> None:
    """Nothing is known of them: what they give is kept."""
    calls: list[int] = []

    def doubled(x: Any) -> Any:
        calls.append(len(x))
        return x * 2

    w = parameters(1)[0]
    noted = fc.stop_gradient(fc.host(doubled, fc.source(ROWS), shape=(16,), dtype="float32"))
    loss = (fc.recompute(fc.tanh(noted @ w) * noted) ** 2.0).sum()
    fc.grad(loss, w).resolve(**NUMPY)
    assert sum(calls) == 60


def test_without_a_gradient_a_mark_is_nothing() -> None:
    one, other = dense(fc.recompute, parameters(3)), dense(unmarked, parameters(3))
    assert len(one.plan().steps) == len(other.plan().steps)
    assert one.resolve(**NUMPY).tobytes() == other.resolve(**NUMPY).tobytes()


def test_what_cannot_be_computed_again_is_refused() -> None:
    x = fc.source(ROWS)
    for refused in (
        x,
        fc.constant(ROWS) * 2.0,
        x.sum(axis=0),
        fc.recompute(x * 2.0),
        fc.cumulative_sum(x, axis=0),
        3.0,
    ):
        with pytest.raises(SpecError, match="cannot compute this again") as error:
            fc.recompute(refused)
        assert "test_recompute.py" in str(error.value.site)
