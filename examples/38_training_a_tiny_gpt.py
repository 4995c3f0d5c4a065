"""A language model of one layer learns the letters of Python's own source text."""

import pathlib
import random

import numpy as np

import flowcompute as fc

LETTERS, WIDTH, HEADS, LENGTH = 128, 32, 2, 32
text = np.frombuffer(pathlib.Path(random.__file__).read_bytes(), np.uint8)
text = text[text < LETTERS][: 384 * (LENGTH + 1)]
rng = np.random.default_rng(38)


def parameter(name: str, *shape: int) -> fc.Element:
    return fc.parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32(shape[0] ** -0.5), name=name)


letters, places = parameter("letters", LETTERS, WIDTH), parameter("places", LENGTH, WIDTH)
packed, joined = parameter("packed", WIDTH, 3 * WIDTH), parameter("joined", WIDTH, WIDTH)
wide, narrow = parameter("wide", WIDTH, 4 * WIDTH), parameter("narrow", 4 * WIDTH, WIDTH)


def scores(tokens: fc.Element) -> fc.Element:
    x = fc.take(letters, tokens, axis=0) + places
    qkv = fc.reshape(fc.nn.layer_norm(x) @ packed, (-1, LENGTH, 3, HEADS, WIDTH // HEADS))
    q, k, v = (fc.permute_dims(qkv[:, :, i], (0, 2, 1, 3)) for i in range(3))
    attended = fc.permute_dims(fc.nn.attention(q, k, v, causal=True), (0, 2, 1, 3))
    x = x + fc.reshape(attended, (-1, LENGTH, WIDTH)) @ joined
    x = x + fc.nn.gelu(fc.nn.layer_norm(x) @ wide) @ narrow
    return fc.nn.layer_norm(x) @ letters.T


runs = fc.cut(fc.source(text), every=LENGTH + 1)
loss = fc.nn.cross_entropy(scores(runs[:, :-1]), runs[:, 1:], axis=2, reduction="mean")
trained = fc.train.fit(loss, fc.train.adam(0.02), batch=16, epochs=3, shuffle=1)
losses = trained.losses.resolve()
print(f"bits a letter: {losses[0] / np.log(2):.2f}, then {losses[-10:].mean() / np.log(2):.2f}")
assert losses[-10:].mean() < 0.75 * losses[0]
