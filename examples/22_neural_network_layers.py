"""Layers of a neural network over a stream: convolution, norm, activation, pooling, softmax and its loss."""

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(22)
pictures = rng.standard_normal((300, 3, 16, 16), dtype=np.float32)
classes = rng.integers(0, 10, 300)
x, labels = fc.source(pictures, name="pictures"), fc.source(classes, name="classes")


def weights(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:], dtype=np.float32))


# Items are (C, H, W): convolve, normalise four groups of channels, pool; then a linear layer.
features = fc.nn.conv2d(x, weights(8, 3, 3, 3), bias=np.zeros(8, np.float32), padding="same")
features = fc.nn.gelu(fc.nn.group_norm(features, groups=4))
pooled = fc.nn.max_pool2d(features, 4)
assert pooled.shape == (300, 8, 4, 4)
logits = fc.reshape(pooled, (-1, 128)) @ weights(10, 128).T

shares = fc.nn.softmax(logits)
loss = fc.nn.cross_entropy(logits, labels, reduction="mean")
probabilities, value = fc.resolve(shares, loss)
np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
np.testing.assert_allclose(value, -np.log(probabilities[np.arange(300), classes]).mean(), rtol=1e-4)
print(f"loss {value:.3f} of untrained weights; log 10 is {np.log(10):.3f}")

# Over numbers in memory each of these is one kernel: windows are strides, not copies.
for layer in (fc.nn.layer_norm(x), fc.nn.softmax(x * 2, axis=1) + 1, fc.nn.avg_pool2d(x, 2), fc.nn.logsumexp(x)):
    assert len(fc.plan(layer).kernels) == 1
np.testing.assert_array_equal(
    fc.nn.unfold(x, size=3, axis=3, step=2).resolve(),
    np.lib.stride_tricks.sliding_window_view(pictures, 3, axis=3)[:, :, :, ::2],
)
