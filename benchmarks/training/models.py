"""Models of the trainings: drawn data, first parameters, and the loss in flowcompute, torch and jax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import flowcompute as fc

RATE = 1e-3
"""Learning rate of Adam."""

Loss = Callable[[Mapping[str, Any], Any, Any], Any]
"""Gives the mean loss of a batch from parameters by name, what is read, and what is told of it."""


@dataclass(frozen=True)
class Model:
    """A training that all peers do alike.

    Attributes:
        steps, batch: how many mini-batches of how many records.
        data: what is read and what is told of it, in the order of the steps.
        first: parameters before the first step.
        by_flowcompute, by_torch, by_jax: the loss.
    """

    steps: int
    batch: int
    data: tuple[np.ndarray, np.ndarray]
    first: dict[str, np.ndarray]
    by_flowcompute: Loss
    by_torch: Loss
    by_jax: Loss

    def of_steps(self, steps: int) -> Model:
        """Return the same training of the first of its steps."""
        x, y = (one[: steps * self.batch] for one in self.data)
        return replace(self, steps=steps, data=(x, y))

    def part(self, step: int) -> slice:
        """Return the records of a step."""
        return slice(step * self.batch, (step + 1) * self.batch)


def _drawn(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]], gain: float) -> dict[str, np.ndarray]:
    fan = {name: shape[0] if len(shape) == 2 else int(np.prod(shape[1:])) for name, shape in shapes.items()}
    drawn = {name: rng.standard_normal(shape) * (gain / fan[name]) ** 0.5 for name, shape in shapes.items()}
    return {name: (one if one.ndim > 1 else np.zeros(one.shape)).astype("f4") for name, one in drawn.items()}


def _pictures(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.integers(0, 10, count)
    means = rng.standard_normal((10, *shape), dtype=np.float32)
    return means[labels] * np.float32(0.15) + rng.standard_normal((count, *shape), dtype=np.float32), labels


def _picked(jnp: Any, nn: Any, z: Any, y: Any) -> Any:
    """Return the mean of cross-entropies over the last axis, in jax."""
    return (nn.logsumexp(z, axis=-1) - jnp.take_along_axis(z, y[..., None], axis=-1)[..., 0]).mean()


def mlp(steps: int, batch: int = 128) -> Model:
    """Two layers, of 784, 128 and 10 numbers."""
    rng = np.random.default_rng(0)
    shapes = {"a": (784, 128), "b": (128,), "c": (128, 10), "d": (10,)}

    def by_flowcompute(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        return fc.nn.cross_entropy(fc.nn.relu(x @ p["a"] + p["b"]) @ p["c"] + p["d"], y, reduction="mean")

    def by_torch(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        import torch  # noqa: PLC0415 - a peer that may be missing

        return torch.nn.functional.cross_entropy(torch.relu(x @ p["a"] + p["b"]) @ p["c"] + p["d"], y)

    def by_jax(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        import jax  # noqa: PLC0415 - a peer that may be missing

        return _picked(jax.numpy, jax.nn, jax.nn.relu(x @ p["a"] + p["b"]) @ p["c"] + p["d"], y)

    data = _pictures(rng, steps * batch, (784,))
    return Model(steps, batch, data, _drawn(rng, shapes, 2), by_flowcompute, by_torch, by_jax)


def cnn(steps: int, batch: int = 128) -> Model:
    """Two convolutions of 3x3 with 8 and 16 channels, each halved by the largest of 2x2, and a layer of 10 numbers."""
    rng = np.random.default_rng(1)
    shapes = {"a": (8, 1, 3, 3), "b": (8,), "c": (16, 8, 3, 3), "d": (16,), "e": (784, 10), "f": (10,)}

    def by_flowcompute(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        h = fc.nn.max_pool2d(fc.nn.relu(fc.nn.conv2d(x, p["a"], p["b"], padding=1)), 2)
        h = fc.nn.max_pool2d(fc.nn.relu(fc.nn.conv2d(h, p["c"], p["d"], padding=1)), 2)
        return fc.nn.cross_entropy(fc.reshape(h, (-1, 784)) @ p["e"] + p["f"], y, reduction="mean")

    def by_torch(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        import torch.nn.functional as nn  # noqa: PLC0415 - a peer that may be missing

        h = nn.max_pool2d(nn.relu(nn.conv2d(x, p["a"], p["b"], padding=1)), 2)
        h = nn.max_pool2d(nn.relu(nn.conv2d(h, p["c"], p["d"], padding=1)), 2)
        return nn.cross_entropy(h.reshape(-1, 784) @ p["e"] + p["f"], y)

    def by_jax(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        import jax  # noqa: PLC0415 - a peer that may be missing

        h = x
        for weight, bias in (("a", "b"), ("c", "d")):
            names = ("NCHW", "OIHW", "NCHW")
            h = jax.lax.conv_general_dilated(h, p[weight], (1, 1), "SAME", dimension_numbers=names)
            h = jax.nn.relu(h + p[bias][:, None, None])
            h = jax.lax.reduce_window(h, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return _picked(jax.numpy, jax.nn, h.reshape(-1, 784) @ p["e"] + p["f"], y)

    data = _pictures(rng, steps * batch, (1, 28, 28))
    return Model(steps, batch, data, _drawn(rng, shapes, 2), by_flowcompute, by_torch, by_jax)


@dataclass(frozen=True)
class Sizes:
    """Sizes of a language model.

    Attributes:
        letters: tokens that there are.
        width, heads, layers: numbers of a token, heads that share them, and layers.
        length: tokens of a context.
        half: whether products and attention take bfloat16; what is added up and normed stays float32, as parameters.
    """

    letters: int
    width: int
    heads: int
    layers: int
    length: int
    half: bool = False


SMALL = Sizes(letters=256, width=128, heads=4, layers=4, length=128)
LARGE = Sizes(letters=256, width=1024, heads=16, layers=12, length=1024, half=True)


def gpt(steps: int, batch: int = 16, sizes: Sizes = SMALL) -> Model:
    """A causal language model of bytes: 4 layers of 128 numbers with 4 heads, contexts of 128."""
    rng = np.random.default_rng(2)
    letters, width, heads, length = sizes.letters, sizes.width, sizes.heads, sizes.length
    shapes: dict[str, tuple[int, ...]] = {"letters": (letters, width), "places": (length, width)}
    for layer in range(sizes.layers):
        shapes |= {f"{layer}q": (width, 3 * width), f"{layer}o": (width, width)}
        shapes |= {f"{layer}w": (width, 4 * width), f"{layer}n": (4 * width, width)}
    first = _drawn(rng, shapes, 1)
    first["letters"] *= np.float32(0.1)

    def by_flowcompute(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        def narrow(one: Any) -> Any:
            return one.astype("bfloat16") if sizes.half else one

        def times(one: Any, weights: Any) -> Any:
            # Of two factors in bfloat16 flowcompute returns float32, as NumPy does; peers round.
            return narrow(narrow(one) @ narrow(weights))

        h = fc.take(p["letters"], x, axis=0) + p["places"]
        for layer in range(sizes.layers):
            packed = times(fc.nn.layer_norm(h), p[f"{layer}q"])
            packed = fc.reshape(packed, (-1, length, 3, heads, width // heads))
            q, k, v = (fc.permute_dims(packed[:, :, i], (0, 2, 1, 3)) for i in range(3))
            attended = fc.permute_dims(fc.nn.attention(q, k, v, causal=True), (0, 2, 1, 3))
            h = h + times(fc.reshape(attended, (-1, length, width)), p[f"{layer}o"])
            h = h + times(fc.nn.relu(times(fc.nn.layer_norm(h), p[f"{layer}w"])), p[f"{layer}n"])
        z = times(fc.nn.layer_norm(h), p["letters"].T).astype("float32")
        return fc.nn.cross_entropy(z, y, axis=2, reduction="mean")

    def by_torch(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        import torch  # noqa: PLC0415 - a peer that may be missing

        nn = torch.nn.functional

        def narrow(one: Any) -> Any:
            return one.to(torch.bfloat16) if sizes.half else one

        def times(one: Any, weights: Any) -> Any:
            return narrow(one) @ narrow(weights)

        h = p["letters"][x] + p["places"]
        for layer in range(sizes.layers):
            packed = times(nn.layer_norm(h, (width,)), p[f"{layer}q"])
            q, k, v = packed.reshape(-1, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            attended = nn.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
            h = h + times(attended.reshape(-1, length, width), p[f"{layer}o"])
            h = h + times(torch.relu(times(nn.layer_norm(h, (width,)), p[f"{layer}w"])), p[f"{layer}n"])
        z = times(nn.layer_norm(h, (width,)), p["letters"].T).float()
        return nn.cross_entropy(z.reshape(-1, letters), y.reshape(-1))

    def by_jax(p: Mapping[str, Any], x: Any, y: Any) -> Any:
        import jax  # noqa: PLC0415 - a peer that may be missing

        def narrow(one: Any) -> Any:
            return one.astype("bfloat16") if sizes.half else one

        def times(one: Any, weights: Any) -> Any:
            return narrow(one) @ narrow(weights)

        h = p["letters"][x] + p["places"]
        for layer in range(sizes.layers):
            packed = times(jax.nn.standardize(h, epsilon=1e-5), p[f"{layer}q"])
            q, k, v = packed.reshape(-1, length, 3, heads, width // heads).transpose(2, 0, 1, 3, 4)
            attended = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            h = h + times(attended.reshape(-1, length, width), p[f"{layer}o"])
            h = h + times(jax.nn.relu(times(jax.nn.standardize(h, epsilon=1e-5), p[f"{layer}w"])), p[f"{layer}n"])
        z = times(jax.nn.standardize(h, epsilon=1e-5), p["letters"].T).astype("float32")
        return _picked(jax.numpy, jax.nn, z, y)

    # Letters that mostly follow one another, so that there is something to learn.
    text = (
        np.cumsum(rng.integers(0, 3, (steps * batch, length + 1)), axis=1)
        + rng.integers(0, letters, (steps * batch, 1))
    ) % letters
    return Model(steps, batch, (text[:, :-1], text[:, 1:]), first, by_flowcompute, by_torch, by_jax)


def large_gpt(steps: int, batch: int = 8) -> Model:
    """The same of 12 layers of 1024 numbers with 16 heads, contexts of 1024, in bfloat16."""
    return gpt(steps, batch, LARGE)


MODELS: dict[str, Callable[..., Model]] = {"mlp": mlp, "cnn": cnn, "gpt": gpt, "large": large_gpt}
