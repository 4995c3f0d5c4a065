"""Losses in half formats: sums of gradients in float32, and scales that keep them from vanishing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.math import MATMUL
from flowcompute.errors import SpecError
from flowcompute.graph import build_graph
from flowcompute.spec import parse_dtype
from flowcompute.train import loss_scale as scales
from tests.train.problems import X, Y, loss, weights

NUMPY: dict[str, Any] = {"device": "numpy", "progress": False}
RECORDS = 6000
ONES = np.ones((RECORDS, 4), np.float32)
IMAGES = np.ones((RECORDS, 1, 2, 2), np.float32)
HALVES = ["float16", "bfloat16"]

USES: dict[str, tuple[tuple[int, ...], Callable[[Any, str], Any]]] = {
    "product": ((4, 2), lambda w, dtype: fc.source(ONES).astype(dtype) @ w),
    "factor": ((4,), lambda w, dtype: fc.source(ONES).astype(dtype) * w),
    "term": ((4,), lambda w, dtype: fc.source(ONES).astype(dtype) + w),
    "number": ((), lambda w, dtype: fc.source(ONES).astype(dtype) * w),
    "rows": ((3, 2), lambda w, dtype: fc.take(w, fc.source(np.ones(RECORDS, np.int64)), axis=0)),
    "convolution": ((1, 1, 1, 1), lambda w, dtype: fc.nn.conv2d(fc.source(IMAGES).astype(dtype), w)),
    "linear": ((2, 4), lambda w, dtype: fc.source(ONES).astype(dtype) @ w.T),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("use", USES)
def test_sums_over_records_are_those_of_float32(use: str, dtype: str) -> None:
    """A sum of thousands of equal numbers stands still where it is kept in a half format."""
    shape, used = USES[use]
    w = fc.parameter(np.ones(shape, "f4"), name="w")
    result = used(w.astype(dtype), dtype)
    gradient = fc.grad((result.astype("float32") * 0.125).sum(), w)
    found = gradient.resolve(**NUMPY)
    assert found.dtype == np.float32
    assert found.shape == shape
    expected = {"number": 4 * RECORDS / 8, "convolution": 4 * RECORDS / 8}.get(use, RECORDS / 8)
    if use == "rows":
        expected = np.array([[0.0], [expected], [0.0]]) * np.ones(shape)
    np.testing.assert_array_equal(found, np.broadcast_to(expected, shape))


@pytest.mark.compiles
@pytest.mark.parametrize("dtype", HALVES)
def test_kernels_sum_in_float32_too(dtype: str) -> None:
    for shape, used in USES.values():
        w = fc.parameter(np.ones(shape, "f4"), name="w")
        gradient = fc.grad((used(w.astype(dtype), dtype).astype("float32") * 0.125).sum(), w)
        kernels, numpy = (gradient.resolve(device=device, progress=False) for device in ("cpu", "numpy"))
        np.testing.assert_array_equal(kernels, numpy)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("records", [False, True], ids=["one matrix", "several"])
def test_rounded_products_of_halves_have_gradients_that_are_products_of_halves(dtype: str, records: bool) -> None:
    """Tensor cores multiply them. No number is rounded that was not before."""
    rng = np.random.default_rng(0)
    x, factor, seed = (rng.integers(-9, 9, shape).astype("f4") for shape in ((6, 4, 8), (8, 3), (6, 4, 3)))
    factor = np.broadcast_to(factor, (6, 8, 3)) if records else factor
    a, b = fc.source(x).astype(dtype), (fc.source if records else fc.parameter)(np.ascontiguousarray(factor))
    product = (a @ b.astype(dtype)).astype(dtype).astype("float32")
    # A third is no number of these formats, so that its cotangent is rounded.
    found = fc.grad((product * seed * np.float32(1 / 3)).sum(), [a, b])
    narrow = (seed * np.float32(1 / 3)).astype(parse_dtype(dtype))
    graph = build_graph([one >> fc.discard() for one in found])
    products = [node for node in graph.nodes if node.op is MATMUL]
    assert len(products) == 2
    assert {graph.nodes[i].spec.dtype.name for node in products for i in node.inputs} == {dtype}
    of_a, of_b = fc.resolve(*found, **NUMPY)
    wide = narrow.astype("f8")
    expected = x.swapaxes(1, 2).astype("f8") @ wide
    # A stream has cotangents of its own format.
    exact = {"rtol": 0.01, "atol": 0.05} if records else {"rtol": 1e-6, "atol": 1e-5}
    np.testing.assert_allclose(of_b.astype("f8"), expected if records else expected.sum(axis=0), **exact)
    np.testing.assert_allclose(of_a.astype("f8"), wide @ np.swapaxes(factor, -1, -2), rtol=0.01, atol=0.05)


def half(dtype: str, w: Any, b: Any, x: Any = X, y: Any = Y) -> Any:
    scores = fc.source(x).astype(dtype) @ w.astype(dtype) + b.astype(dtype)
    return fc.nn.cross_entropy(scores.astype("float32"), fc.source(y), reduction="mean")


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("scale", [None, 256, "dynamic"])
def test_a_half_network_learns_what_a_whole_one_does(dtype: str, scale: Any) -> None:
    w, b = weights()
    adam = fc.train.adam(0.02)
    trained = fc.train.fit(half(dtype, w, b), adam, batch=10, epochs=4, loss_scale=scale)
    whole = fc.train.fit(loss(fc.source(X), fc.source(Y), w, b), adam, batch=10, epochs=4)
    assert trained["w"].dtype == np.float32
    losses, expected, skipped = fc.resolve(trained.losses, whole.losses, trained.skipped, **NUMPY)
    np.testing.assert_allclose(losses, expected, rtol=0.01)
    assert skipped == 0


def test_what_would_vanish_is_kept_by_a_scale() -> None:
    w = fc.parameter(np.zeros(4, "f4"), name="w")
    inside = (fc.source(ONES).astype("float16") * w.astype("float16") * 1e-4 * 1e-4).astype("float32").sum()
    # The first dynamic scale is no number of float16, so that its first step is skipped.
    for scale, epochs, share in ((None, 1, 0), (4096.0, 1, 1), ("dynamic", 2, 1)):
        trained = fc.train.fit(inside, fc.train.sgd(1.0), batch=None, epochs=epochs, loss_scale=scale)
        w_after, skipped = fc.resolve(trained["w"], trained.skipped, **NUMPY)
        np.testing.assert_allclose(w_after, -RECORDS * 1e-8 * share, rtol=0.01)
        assert skipped == epochs - 1


class TestOverflows:
    """Records of 1e4 among others: a gradient of float16 with a scale of 65536 is infinite there."""

    def fitted(self, scale: Any, optimizer: Any = None, **options: Any) -> fc.train.Trained:
        w = fc.parameter(np.full(6, 0.01, "f4"), name="w")
        rows = X.copy()
        rows[20:30] = 1000
        result = (fc.source(rows).astype("float16") * w.astype("float16")).astype("float32")
        self.loss = (result.sum(axis=1) * 0.001).mean()
        options = {"batch": 10, "epochs": 3, **options}
        return fc.train.fit(self.loss, optimizer or fc.train.adam(0.01), loss_scale=scale, **options)

    def test_a_number_skips_each_of_them(self) -> None:
        trained = self.fitted(2.0**20)
        skipped, losses = fc.resolve(trained.skipped, trained.losses, **NUMPY)
        assert skipped == 3
        assert len(losses) == 15
        assert np.isfinite(losses).all()

    def test_a_dynamic_scale_falls_until_nothing_overflows(self) -> None:
        skipped, w = fc.resolve((trained := self.fitted("dynamic")).skipped, trained["w"], **NUMPY)
        whole, skipped_whole = fc.resolve((other := self.fitted(1.0))["w"], other.skipped, **NUMPY)
        assert 0 < skipped < 3
        assert skipped_whole == 0
        assert np.isfinite(w).all()
        assert not np.array_equal(w, whole)

    def test_skipped_steps_change_nothing(self) -> None:
        """The bits of a training without the records that overflow, moments and the number of the update included."""
        adam = fc.train.adam(fc.train.cosine(0.05, steps=12))
        trained = self.fitted(2.0**20, adam)
        w = fc.parameter(np.full(6, 0.01, "f4"), name="w")
        kept = np.concatenate([X[:20], X[30:]])
        result = (fc.source(kept).astype("float16") * w.astype("float16")).astype("float32")
        loss_of_kept = (result.sum(axis=1) * 0.001).mean()
        other = fc.train.fit(loss_of_kept, adam, batch=10, epochs=3, loss_scale=2.0**20)
        one, two, none = fc.resolve(trained["w"], other["w"], other.skipped, **NUMPY)
        assert none == 0
        assert one.tobytes() == two.tobytes()

    def test_they_are_counted_across_a_resume(self, tmp_path: Path) -> None:
        def roots() -> list[Any]:
            trained = self.fitted("dynamic", epochs=4)
            return [trained["w"], trained.skipped, trained.losses]

        whole = [np.asarray(one).tobytes() for one in fc.resolve(*roots(), **NUMPY)]
        for steps in (2, 3, 4, 12):
            with pytest.raises(fc.RunError, match="frozen"):
                fc.run(
                    *roots(),
                    checkpoint=tmp_path / "kept",
                    on_batch=lambda run, steps=steps: run.freeze() if run.progress.items >= steps else None,
                    **NUMPY,
                )
        thawed = fc.thaw(tmp_path / "kept").resolve(**NUMPY)
        assert [np.asarray(one).tobytes() for one in thawed] == whole

    def test_steps_from_python_have_the_same_bits(self, tmp_path: Path) -> None:
        trained = self.fitted("dynamic", fc.train.sgd(0.1, momentum=0.9), epochs=2)
        w, losses, skipped = fc.resolve(trained["w"], trained.losses, trained.skipped, **NUMPY)
        parameter = fc.parameter(np.full(6, 0.01, "f4"), name="w")
        rows = X.copy()
        rows[20:30] = 1000
        optimizer = fc.train.sgd(0.1, momentum=0.9)
        found = []
        with fc.train.Trainer([parameter], optimizer, loss_scale="dynamic", device="numpy") as trainer:
            for start in [*range(0, 50, 10)] * 2:
                result = (fc.source(rows[start : start + 10]).astype("float16") * parameter.astype("float16")).astype(
                    "float32"
                )
                found.append(trainer.step((result.sum(axis=1) * 0.001).mean()))
                if trainer.steps == 4:
                    trainer.save(tmp_path)
                    trainer.load(tmp_path)
            assert trainer.skipped == skipped > 0
            assert trainer.values["w"].tobytes() == w.tobytes()
            assert np.array_equal(found, losses)


def test_a_dynamic_scale_grows_and_stays_in_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scales, "GROWS_AFTER", 3)
    scale = scales.LossScale(None)
    state = [one.value for one in scale.begin()]  # type: ignore[attr-defined]
    seen = []
    for sound in [True] * 30 + [False] * 40 + [True] * 3:
        after = scale.after(fc.constant(np.bool_(sound)), [fc.constant(one) for one in state])
        state = list(fc.resolve(*after, **NUMPY))
        seen.append((int(state[0]), float(state[1]), int(state[2])))
    assert seen[:4] == [(0, 65536.0, 1), (0, 65536.0, 2), (0, 131072.0, 0), (0, 131072.0, 1)]
    assert seen[29] == (0, 2.0**24, 0)
    assert seen[30] == (1, 2.0**23, 0)
    assert seen[69] == (40, 1.0, 0)
    assert seen[72] == (40, 2.0, 0)


@pytest.mark.parametrize("given", [0, -1.0, float("inf"), float("nan"), "static", True, [1]])
def test_other_scales_are_refused(given: Any) -> None:
    w, b = weights()
    with pytest.raises(SpecError, match="loss_scale="):
        fc.train.fit(half("float16", w, b), fc.train.sgd(0.1), loss_scale=given)
    with pytest.raises(SpecError, match="loss_scale="):
        fc.train.Trainer([w, b], fc.train.sgd(0.1), loss_scale=given)
