"""Parts of attention's gradient in half formats by tensor cores: emulated everywhere, on a device where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.nn import attention_part
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper, real_device

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
PARTS = ("log", "queries", "keys")


@dataclass(frozen=True)
class Case:
    """Two records of attention."""

    queries: int
    keys: int
    size: int
    columns: int
    heads: int = 1
    dtype: Any = "f2"
    causal: bool = False
    window: int | None = None
    crossed: bool = False
    masked: bool = False

    @property
    def scale(self) -> float:
        return self.size**-0.5

    def arrays(self) -> dict[str, np.ndarray]:
        """Queries, keys, values and cotangents as they are stored; terms of queries as the exact ones."""
        rng = np.random.default_rng([self.queries, self.keys, self.size])
        shapes = {
            "q": (self.queries, self.size),
            "k": (self.keys, self.size),
            "v": (self.keys, self.columns),
            "g": (self.queries, self.columns),
        }
        made = {name: rng.standard_normal((2, self.heads, *shape)).astype(self.dtype) for name, shape in shapes.items()}
        if self.masked:
            made["mask"] = rng.standard_normal((2, 1, self.queries, self.keys)).astype("f4")
            made["mask"][..., 1], made["mask"][..., 2, :] = -np.inf, -np.inf
        weights, less = self._weights(made)
        out = weights @ made["v"].astype("f8")
        made["less"] = less.astype("f4")
        made["shift"] = -(out * made["g"].astype("f8")).sum(-1, keepdims=True).astype("f4")
        if self.crossed:
            made |= {name: np.ascontiguousarray(np.swapaxes(made[name], -1, -2)) for name in shapes}
        return made

    def _seen(self) -> np.ndarray:
        last, key = np.arange(self.queries)[:, None] + (self.keys - self.queries), np.arange(self.keys)
        seen = (key <= last) if self.causal else np.ones((self.queries, self.keys), bool)
        return seen if self.window is None else seen & (key > last - self.window)

    def _weights(self, made: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        q, k = (made[name].astype("f8") for name in "qk")
        scores = q @ np.swapaxes(k, -1, -2) * self.scale + made.get("mask", 0)
        weights = np.where(self._seen(), np.exp(scores), 0)
        total = weights.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            less = np.where(total == 0, -np.inf, -np.log(total))
        return weights / np.where(total == 0, 1, total), less

    def root(self, part: Any) -> Any:
        arrays = self.arrays()
        names = ("q", "k") if part == "log" else ("q", "k", "v", "g", "less", "shift")
        mask = fc.source(arrays["mask"], name="mask") if self.masked else None
        given = [fc.source(arrays[name], name=name) for name in names]
        if self.crossed:
            given[:4] = [fc.permute_dims(one, (0, 1, 3, 2)) for one in given[:4]]
        return attention_part(part, *given, causal=self.causal, window=self.window, scale=self.scale, mask=mask)

    def check(self, part: str, made: np.ndarray) -> None:
        arrays = self.arrays()
        if self.crossed:
            arrays |= {name: np.swapaxes(arrays[name], -1, -2) for name in "qkvg"}
        weights, less = self._weights(arrays)
        if part == "log":
            np.testing.assert_allclose(made, np.where(less == -np.inf, less, -less), rtol=1e-5, atol=1e-5)
            return
        q, k, v, g = (arrays[name].astype("f8") for name in "qkvg")
        slopes = weights * (g @ np.swapaxes(v, -1, -2) + arrays["shift"]) * self.scale
        turned = np.swapaxes(slopes, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ g
        wanted = slopes @ k if part == "queries" else np.concatenate(turned, axis=-1)
        tolerance = 2e-3 if self.dtype == "f2" else 1.5e-2
        np.testing.assert_allclose(made, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


CASES = {
    "one tile": Case(64, 64, 16, 16),
    "few of everything": Case(1, 1, 1, 1),
    "ragged": Case(37, 70, 24, 40, heads=2),
    "that lies badly": Case(70, 33, 7, 5),
    "across": Case(70, 40, 24, 16, crossed=True),
    "several tiles": Case(150, 130, 16, 32),
    "bfloat16": Case(70, 130, 64, 64, dtype=BFLOAT16),
    "causal": Case(140, 140, 16, 16, causal=True, heads=2),
    "causal, fewer keys": Case(150, 70, 16, 16, causal=True),
    "causal, more keys": Case(70, 150, 16, 16, causal=True),
    "a mask": Case(70, 90, 16, 16, heads=2, masked=True),
    "a mask, causal": Case(140, 140, 16, 24, heads=2, masked=True, causal=True),
    "a window": Case(150, 150, 16, 16, causal=True, window=20),
    "a window, fewer keys": Case(150, 80, 8, 16, causal=True, window=70),
}
LARGE = {
    "wide": Case(200, 330, 128, 128),
    "long": Case(1024, 1024, 64, 64, causal=True, heads=2, dtype=BFLOAT16),
    "two sizes": Case(300, 300, 64, 128, causal=True),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("part", PARTS)
def test_parts_have_their_definition(name: str, part: str) -> None:
    case = CASES[name]
    root, arrays = case.root(part), case.arrays()
    case.check(part, emulated(root, arrays))


def test_what_follows_is_computed_in_the_kernel() -> None:
    case = CASES["ragged"]
    made = emulated(case.root("keys") * 2 + 1, case.arrays())
    case.check("keys", (made - 1) / 2)


@pytest.mark.parametrize("part", PARTS)
def test_texts_are_opencl_but_for_their_assembly(part: str) -> None:
    (kernel,) = plan_on_paper(CASES["a window"].root(part)).kernels
    assert compiles_without_assembly(kernel.source)


@pytest.mark.parametrize("name", CASES | LARGE)
@pytest.mark.parametrize("part", PARTS)
def test_parts_on_a_device(name: str, part: str) -> None:
    device, case = real_device(), (CASES | LARGE)[name]
    made = np.asarray(fc.resolve(case.root(part), device=device))
    case.check(part, made)
    single = fc.Strategy(batch_bytes=1)
    assert np.array_equal(made, np.asarray(fc.resolve(case.root(part), device=device, strategy=single)))
