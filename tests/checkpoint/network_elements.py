"""Jobs of functions of networks: convolution, pooling, parts of the gradient of attention."""

from __future__ import annotations

import numpy as np

import flowcompute as fc
from flowcompute.elements.nn import attention_part, weighed
from tests.checkpoint.operands import Build, items, numbers, rows


def halves(count: int) -> list[fc.Element]:
    return [items(3, 8).astype("float16")] * count


NETWORKS: dict[str, Build] = {
    "convolution": lambda _: (
        fc.nn.conv1d(items(2, 9), np.ones((4, 2, 3), "f4"), bias=np.ones(4, "f4"), padding="same"),
        fc.nn.conv2d(items(4, 6, 6), np.ones((6, 2, 3, 2), "f4"), stride=2, dilation=(1, 2), groups=2),
        fc.nn.conv1d(np.ones((2, 2, 9)), np.ones((4, 2, 3)), padding=1),
        fc.nn.conv1d(np.ones((2, 2, 9)), np.ones((4, 1, 3)), groups=2),
        fc.nn.conv3d(items(1, 3, 4, 4), np.ones((2, 1, 2, 2, 2), "f4"), padding=1),
        fc.nn.conv2d(rows("i1", (5, 1, 4, 4)), np.ones((2, 1, 2, 2), "u1"), dtype="int32"),
        fc.nn.conv_transpose2d(items(2, 3, 3), np.ones((2, 2, 3, 2), "f4"), np.ones(2, "f4"), stride=2),
    ),
    "parts of attention's gradient": lambda _: (
        weighed(items(3, 8), items(4, 8), items(4, 6), None, causal=False, window=None, gate=3, result="sum"),
        weighed(items(3, 8), items(3, 8), items(3, 1), None, causal=True, window=2, gate=0, result="log"),
        attention_part("log", *halves(2), causal=True, window=2, scale=0.5),
        attention_part("log", *halves(2), causal=False, window=None, scale=0.5, mask=items(1, 3)),
        attention_part("keys", *halves(4), items(3, 1), items(3, 1), causal=False, window=None, scale=0.5),
    ),
    "windows of items": lambda _: (
        fc.nn.unfold(items(6, 7), (2, 3), (1, 2), step=(1, 2), dilation=2),
        fc.nn.max_pool2d(items(2, 6, 6), 2, padding=1),
        fc.nn.avg_pool1d(items(2, 7), 3, ceil_mode=True, count_include_pad=False),
        *fc.nn.max_pool2d(items(2, 6, 6), 2, padding=[(1, 0), (0, 1)], return_indices=True),
    ),
    "scattering": lambda _: (
        fc.scatter_elements(rows(), fc.argsort(rows()), rows() + 1, 1),
        fc.scatter_elements(rows("f2"), np.zeros((1, 2), int), 1, 1, "add"),
        fc.scatter_elements(np.ones((1, 6)), fc.argsort(rows()), rows("f8"), 1, "max"),
        fc.scatter_nd(items(3, 4), np.zeros((5, 2, 2), int), np.ones((5, 2)), "mul", batch_dims=1),
        fc.scatter_nd(items(3, 4).sum(axis=0), [[0, 1], [-1, -1]], np.ones(2, "f4")),
    ),
    "networks": lambda _: (
        fc.nn.softmax(rows()),
        fc.nn.log_softmax(rows("f2")),
        fc.nn.logsumexp(rows(), axis=0),
        fc.nn.gelu(rows()),
        fc.nn.gelu(rows(), approximate="tanh"),
        fc.nn.silu(rows("f2")),
        fc.nn.mish(rows()),
        fc.nn.hardswish(rows()),
        fc.nn.elu(rows()),
        fc.nn.leaky_relu(rows()),
        fc.nn.relu(rows("i2")),
        fc.nn.softplus(rows()),
        fc.nn.layer_norm(rows(), weight=np.ones(6, "f4"), bias=np.ones(6, "f4")),
        fc.nn.rms_norm(rows()),
        fc.nn.group_norm(items(4, 6), 2),
        fc.nn.instance_norm(items(4, 6)),
        fc.nn.mse(rows(), rows() + 1),
        fc.nn.huber(rows(), rows() + 1),
        fc.nn.cross_entropy(rows(), numbers("u1") % 6),
        fc.nn.binary_cross_entropy(fc.nn.sigmoid(rows()), rows("?")),
    ),
}
