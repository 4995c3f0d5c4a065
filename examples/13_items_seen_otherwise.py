"""Items seen otherwise: indexing, reshaping and permuting are strides of the kernels that read, not copies."""

import numpy as np

import flowcompute as fc

pictures = np.random.default_rng(0).integers(0, 256, (500, 24, 32, 3)).astype(np.float32)
x = fc.source(pictures, name="pictures")

# Axis 0 is the stream; the others are indexed as NumPy indexes them.
red, green, blue = x[..., 0], x[..., 1], x[..., 2]
grey = 0.299 * red + 0.587 * green + 0.114 * blue
thumbnail = fc.flip(grey, axis=2)[:, ::4, ::4]
plan = thumbnail.plan()
assert len(plan.kernels) == 1, plan  # nothing but the thumbnail is computed, and nothing else is stored
weights = np.array([0.299, 0.587, 0.114], np.float32)
expected = (pictures @ weights)[:, :, ::-1][:, ::4, ::4]
np.testing.assert_allclose(thumbnail.resolve(), expected, rtol=1e-5, atol=1e-3)

# Planes before pixels, as neural networks like them; blocks of 8 by 8 as axes of their own.
planes = fc.permute_dims(x, (0, 3, 1, 2))
blocks = fc.reshape(planes, (-1, 3, 3, 8, 4, 8)).max(axis=(3, 5))
np.testing.assert_array_equal(
    blocks.resolve(), pictures.transpose(0, 3, 1, 2).reshape(-1, 3, 3, 8, 4, 8).max(axis=(3, 5))
)

# Values joined along item axes; indices may be the result of a pass over the data.
both = fc.stack([grey.mean(axis=(1, 2)), grey.max(axis=(1, 2))], axis=1)
assert both.shape == (500, 2)
strongest = fc.argmax(x.mean(axis=(0, 1, 2)))
only = x[:, 0, 0, strongest[None]]
np.testing.assert_array_equal(only.resolve(), pictures[:, 0, 0, [pictures.mean(axis=(0, 1, 2)).argmax()]])

# The stream keeps its order: what would turn it around is refused with a reason.
try:
    fc.flip(x, axis=0)
except fc.SpecError as error:
    print(error)
print("ok")
