"""A convolutional network learns to tell four kinds of pictures; its error on others decides when it has learnt."""

import numpy as np

import flowcompute as fc

rng = np.random.default_rng(37)
count, size = 1_280, 12
# Bars that lie or stand, crosses and squares: somewhere in the picture, under noise.
kinds = rng.integers(0, 4, count).astype(np.uint8)
pictures = rng.normal(0, 0.25, (count, size, size)).astype(np.float32)
for picture, kind, y, x in zip(pictures, kinds, *rng.integers(0, size - 5, (2, count)), strict=True):
    part = picture[y : y + 5, x : x + 5]
    part[2] += kind in (0, 2)
    part[:, 2] += kind in (1, 2)
    part[1:4, 1:4] += kind == 3


def parameter(name: str, *shape: int, fan: int) -> fc.Element:
    return fc.parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32((2 / fan) ** 0.5), name=name)


first, second = parameter("first", 8, 1, 3, 3, fan=9), parameter("second", 8, 8, 3, 3, fan=72)
last = parameter("last", 8, 4, fan=8)


def scores(images: fc.Element) -> fc.Element:
    x = fc.nn.max_pool2d(fc.nn.relu(fc.nn.conv2d(images[:, None], first, padding=1)), 2)
    return fc.nn.relu(fc.nn.conv2d(x, second, padding=1)).max(axis=(2, 3)) @ last


x, y = fc.source(pictures), fc.source(kinds)
loss = fc.nn.cross_entropy(scores(x[:1_024]), y[:1_024], reduction="mean")
right = {"right": (fc.argmax(scores(x[1_024:]), axis=1) == y[1_024:]).astype("float32").mean()}
adam, enough = fc.train.adam(0.01), lambda measures: measures["right"] > 0.9
trained = fc.train.fit(loss, adam, batch=64, epochs=12, shuffle=3, evaluate=right, stop=enough)
shares, losses = fc.resolve(trained.measures["right"], trained.losses)
print(f"loss {losses[0]:.2f}, then {losses[-8:].mean():.2f}; right after each epoch: {np.round(shares, 2)}")
assert shares[-1] > 0.9
assert len(losses) == 16 * len(shares)
