"""Convolution as a product of matrices whose right factor is the windows, read where they lie (implicit im2col)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowcompute.elements.axes import permute_dims, reshape
from flowcompute.elements.math import product_of_windows
from flowcompute.elements.nn.windows import slide


def implicit_convolution(
    name: str, x: Any, weight: Any, bias: Any, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Any:
    """Multiply weights (groups, O / groups, k) by windows (groups, k, places), with k = channels * kernel.

    Operands are of the dtype in which it is computed, items padded, weights (O, C / groups, *kernel).
    """
    dims, first = len(stride), int(x.spec.is_stream)
    out, channels, *kernel = weight.spec.shape
    length = -1 if first else x.shape[0]
    split = (groups,) if groups > 1 else ()
    grouped = reshape(x, (length, *split, channels, *x.shape[2:])) if split else x
    at = grouped.ndim - dims - first
    seen = slide(name, grouped, tuple((at + axis, kernel[axis], stride[axis], dilation[axis]) for axis in range(dims)))
    lead, places = seen.ndim - 2 * dims, seen.shape[-2 * dims : -dims]
    turned = (*range(lead), *range(lead + dims, lead + 2 * dims), *range(lead, lead + dims))
    seen = permute_dims(seen, turned)
    own = (*split, out // groups)
    weights = reshape(weight, (*own, channels * math.prod(kernel)))
    made: Any = product_of_windows(weights, seen, 1 + dims, dims)
    if bias is not None:
        made = made + reshape(bias, (*own, *(1,) * dims))
    return reshape(made, (length, out, *places)) if split else made
