"""Quantised weights: a product reads four-bit blocks in a file, and never stores the numbers that they mean."""

import json
import os
import struct
import tempfile

import numpy as np

import flowcompute as fc

# Q4_0 as GGUF has it: blocks of 32 numbers, each a float16 scale and 32 times four bits, q - 8.
rng = np.random.default_rng(26)
blocks = rng.standard_normal((256, 16, 32), dtype=np.float32)
scale = (np.abs(blocks).max(axis=2, keepdims=True) / 7).astype(np.float16)
q = np.clip(np.rint(blocks / scale.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
stored = np.concatenate([scale.view(np.uint8), q[:, :, :16] | q[:, :, 16:] << 4], axis=2).reshape(256, 288)
meant = (scale.astype(np.float32) * (q.astype(np.float32) - 8)).reshape(256, 512)

# A file of weights: of GGUF files `weights["name"]` decodes; a safetensors file holds the plain bytes.
with tempfile.TemporaryDirectory() as folder:
    header = json.dumps({"w": {"dtype": "U8", "shape": [256, 288], "data_offsets": [0, stored.nbytes]}}).encode()
    path = os.path.join(folder, "weights.safetensors")
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + stored.tobytes())
    w = fc.dequantize(fc.weights(path)["w"], "Q4_0")
    assert (w.shape, w.dtype) == ((256, 512), np.float32)
    assert np.array_equal(w.resolve(), meant)

    x = rng.standard_normal((1000, 512), dtype=np.float32)
    y = fc.maximum(fc.source(x) @ w.T, 0)
    plan = fc.plan(y)
    print(plan)
    assert len(plan.kernels) == 1, "decoding, product and maximum"
    np.testing.assert_allclose(y.resolve(), np.maximum(x @ meant.T, 0), rtol=1e-4, atol=1e-3)

    # Rows that a stream of numbers asks for are all that is decoded.
    rows = fc.take(w, fc.source(np.array([3, 255, 3])), axis=0)
    assert np.array_equal(rows.resolve(), meant[[3, 255, 3]])
