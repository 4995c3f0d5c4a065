"""Attention in one kernel: no matrix of scores, memory that grows with the length; windows, masks, shared heads."""

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(23)
# Sequences as a transformer's layer makes them: (position, queries keys and values, head, d).
packed = rng.standard_normal((20, 96, 3, 4, 16), dtype=np.float32)
x = fc.source(packed, name="packed")
q, k, v = (fc.permute_dims(x[:, :, i], (0, 2, 1, 3)) for i in range(3))
assert q.shape == (20, 4, 96, 16)

# Strides, not copies; and what follows is part of the kernel.
attended = fc.nn.attention(q, k, v, causal=True)
layer = fc.nn.silu(attended * 0.5)
assert len(fc.plan(layer).kernels) == 1

# The definition: a product, a softmax, a product. It stores every score.
scores = (q * 0.25) @ fc.permute_dims(k, (0, 1, 3, 2))
visible = np.tril(np.ones((96, 96), bool))
plain = fc.nn.softmax(fc.where(visible, scores, -np.inf)) @ v
np.testing.assert_allclose(attended.resolve(), plain.resolve(), rtol=1e-4, atol=1e-5)


def planned_bytes(length: int) -> int:
    y = fc.source(np.zeros((1, 1, length, 16), np.float32))
    return fc.plan(fc.nn.attention(y, y, y)).memory.host_bytes


assert planned_bytes(8192) == 8 * planned_bytes(1024)

# One head of keys and values for all heads of queries, and each query sees 32 keys.
few = fc.nn.attention(q, k[:, :1], v[:, :1], causal=True, window=32)
# Scores grow smaller with distance (ALiBi), which a mask adds for each head; -inf hides a key.
distance = np.arange(96) - np.arange(96)[:, None]
slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)[:, None, None]
near = fc.nn.attention(q, k, v, mask=slopes * distance, causal=True)
first, second = fc.resolve(few, near)
print(f"{attended.shape} attended to; windows and slopes change {np.abs(first - second).mean():.2f} on average")
