"""Products with weights of few bits, several of which share a byte."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.onnx.logical_value import Value, together
from flowcompute.onnx.operators.layers import product
from flowcompute.onnx.operators.microsoft.fused_layers import DOMAIN
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal


def unpacked(x: Any, bits: int, count: int) -> Any:
    """Return the numbers of `bits` bits that bytes along the last axis hold, the lowest bits first.

    Views and element-wise operations do it, so kernels read the bytes themselves.
    """
    each = 8 // bits
    lead, size = x.spec.shape[:-1], x.spec.shape[-1]
    spread = fc_axes.broadcast_to(fc_axes.reshape(x, (*lead, size, 1)), (*lead, size, each))
    numbers = fc.bitwise_and(
        fc.bitwise_right_shift(spread, np.arange(0, 8, bits).astype(np.uint8)), np.uint8(2**bits - 1)
    )
    flat = fc_axes.reshape(numbers, (*lead, size * each))
    return flat if count == size * each else flat[(*(slice(None),) * len(lead), slice(0, count))]


def _matmul_bits(call: NodeCall) -> Value:
    a, packed, scales, zeros = call[0], call[1].resident("weights"), call[2].resident("scales"), call.get(3)
    depth, columns, bits, size = (call.attribute(name) for name in ("K", "N", "bits", "block_size"))
    if bits not in (2, 4, 8) or size < 16 or size & (size - 1):
        raise Refusal("attribute", f"bits={bits}, block_size={size}", "use 2, 4 or 8 bits, and a power of two from 16")
    if call.get(4) is not None:
        raise Refusal("missing", "weights in another order (g_idx)", "quantise without reordering")
    blocks = -(-depth // size)
    numbers = unpacked(fc_axes.reshape(packed, (columns, blocks, size * bits // 8)), bits, size)
    wide = fc.astype(numbers, scales.dtype)
    lead = (columns, blocks, 1)
    if zeros is None:
        wide = fc.subtract(wide, 2.0 ** (bits - 1))
    else:
        zero = zeros.resident("zero points")
        if zero.dtype == np.uint8:
            zero = fc.astype(unpacked(fc_axes.reshape(zero, (columns, -1)), bits, blocks), scales.dtype)
        wide = fc.subtract(wide, fc_axes.reshape(zero, lead))
    wide = fc_axes.reshape(fc.multiply(wide, fc_axes.reshape(scales, lead)), (columns, blocks * size))
    matrix = fc_axes.permute_dims(wide if blocks * size == depth else wide[:, :depth], (1, 0))
    made = product(a, Value.of(matrix))
    bias = call.get(5)
    return made if bias is None else together(fc.add, made, bias)


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "MatMulNBits", _matmul_bits, domain=DOMAIN,
        attributes={"K": REQUIRED, "N": REQUIRED, "bits": 4, "block_size": REQUIRED, "accuracy_level": 0,
                    "weight_prepacked": 0},
    ),
)  # fmt: skip
