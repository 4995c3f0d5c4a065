"""Convolution of items with resident weights, as neural networks mean it: weights are not turned around."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flowcompute.elements.alignment import common_dtype
from flowcompute.elements.arguments import dtype_of, is_whole, one_of, several, whole
from flowcompute.elements.axes import pad, permute_dims, reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, as_operation, cast
from flowcompute.elements.math import multiply, sum
from flowcompute.elements.nn.implicit import implicit_convolution
from flowcompute.elements.nn.windows import Sizes, slide, whole_numbers
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, format_shape, is_float

Padding = Literal["same", "valid"] | int | Sequence[int | Sequence[int]]
"""Zeros on both sides of all axes, of each, or (before, after) of each; or what they are for."""

LETTERS: dict[int, tuple[str, ...]] = {1: ("L",), 2: ("H", "W"), 3: ("D", "H", "W")}
"""The names of axes by how many there are, for errors."""


@public
def conv1d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Compute:
    """Convolve along the last axis of (N, C, L) with weights (O, C / groups, K) to (N, O, M).

    result[n, o, i] = bias[o] + sum over c and k of x[n, c, i * stride + k * dilation] * weight[o, c, k].
    There c runs over the channels of o's group, and x is padded with zeros. Along L numbers stand
    M = (L + zeros - dilation (K - 1) - 1) // stride + 1 of them. Padded items are put together first.

    Args:
        x: a stream of items (C, L), or a resident value (N, C, L).
        weight: resident.
        bias: resident, one number for each output channel.
        stride: from one result to the next.
        padding: zeros on both sides, `[(before, after)]`, or "valid" for none. "same" is as many as keep the size, the
            odd one after (with a stride of 1 only).
        dilation: from one number that is multiplied to the next.
        groups: a divisor of C and O: output channels of a group see the input channels of theirs.
            As many groups as channels is a depthwise convolution.
        dtype: in which is multiplied and added up, and of the result; by default what operands promote to.
            `dtype="int32"` of int8 and uint8 is exact where int8 would wrap.

    Returns:
        An element of `dtype`. Half formats are multiplied and added up in float32 and rounded once; integers wrap as
        in `matmul`.

    Raises:
        SpecError: if shapes do not fit each other or the groups, or the weights do not fit into the items. Also if
            weights or bias are streams, all are bool, or floats shall be multiplied as integers.
    """
    return _convolution("conv1d", 1, x, weight, bias, stride, padding, dilation, groups, dtype)


@public
def conv2d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Compute:
    """Convolve over the last two axes of (N, C, H, W) with weights (O, C / groups, K, L) to (N, O, P, Q).

    As `conv1d`, along two axes: sizes are one number for both, or one for each.
    """
    return _convolution("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, dtype)


@public
def conv3d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Compute:
    """Convolve over the last three axes of (N, C, D, H, W) with weights (O, C / groups, K, L, M).

    As `conv1d`, along three axes: sizes are one number for all, or one for each.
    """
    return _convolution("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, dtype)


def _convolution(
    name: str,
    dims: int,
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    dtype: npt.DTypeLike | None,
) -> Compute:
    (items, weights, *rest), result = multiplied(name, (x, weight, *([] if bias is None else [bias])), dtype)
    check_convolution(name, dims, items, weights, rest, groups)
    if isinstance(weights, Constant):
        # Some devices multiply halves as they are stored, so they are not cast here and now.
        given = as_element(weight, name)
        weights = as_operation(given, weights.dtype) if given.dtype in (FLOAT16, BFLOAT16) else weights
    strides = whole_numbers(name, "stride", stride, dims)
    spreads = whole_numbers(name, "dilation", dilation, dims)
    edges = padding_edges(name, padding, weights.spec.shape[2:], strides, spreads)
    lead = [(0, 0)] * (len(items.spec.shape) - dims)
    padded = pad(items, [*lead, *edges]) if any(map(any, edges)) else items
    made = implicit_convolution(name, padded, weights, rest[0] if rest else None, strides, spreads, groups)
    return cast(made, result)  # type: ignore[return-value]


def multiplied(name: str, operands: Sequence[Operand], dtype: npt.DTypeLike | None) -> tuple[list[Any], np.dtype]:
    """Return operands in the dtype in which they are multiplied, and the dtype of the result.

    Raises:
        SpecError: for bools, and for floats that would become integers.
    """
    given = [as_element(one, name) for one in operands]
    result = common_dtype(name, given) if dtype is None else dtype_of(name, dtype)
    if result == BOOL or (not is_float(result) and any(is_float(one.dtype) for one in given)):
        raise SpecError(
            "cannot multiply bools" if result == BOOL else "cannot multiply floats as integers",
            element=name,
            site=user_site(),
            expected="a dtype of numbers" if result == BOOL else "a floating dtype",
            got=result.name,
            hint="cast to an integer dtype",
        )
    inner = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    return [cast(one, inner) for one in given], result


def _naive_convolution(
    name: str,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """Convolve by a sum of products over windows, which are read where they lie: the oracle of faster ones.

    Operands are of the dtype in which it is computed, items padded, weights (O, C / groups, *kernel).
    """
    dims, first = len(stride), int(x.spec.is_stream)
    out, channels, *kernel = weight.spec.shape
    length = -1 if first else x.shape[0]
    grouped = reshape(x, (length, groups, channels, *x.shape[2:]))
    at = 3 - first
    windows = tuple((at + axis, kernel[axis], stride[axis], dilation[axis]) for axis in range(dims))
    seen = slide(name, grouped, windows)
    # (N, groups, 1, *places, channels, *kernel) beside (groups, O / groups, *ones, channels, *kernel).
    places = tuple(range(3, 3 + dims))
    seen = permute_dims(seen, (0, 1, *places, 2, *(axis + dims for axis in places)))
    sizes = seen.shape[2 : 2 + dims]
    seen = reshape(seen, (length, groups, 1, *seen.shape[2:]))
    weights = reshape(weight, (groups, out // groups, *(1,) * dims, channels, *kernel))
    made: Any = sum(multiply(seen, weights), tuple(range(-dims - 1, 0)), dtype=x.dtype)
    if bias is not None:
        made = made + reshape(bias, (groups, out // groups, *(1,) * dims))
    return reshape(made, (length, out, *sizes))


def check_convolution(
    name: str, dims: int, x: Any, weight: Any, bias: Sequence[Any], groups: int, *, transposed: bool = False
) -> None:
    """Check that shapes fit each other, of a convolution or of a transposed one.

    Raises:
        SpecError: if they do not, or weights or bias are streams.
    """

    def refuse(message: str, expected: str, got: str) -> SpecError:
        return SpecError(message, element=name, site=user_site(), expected=expected, got=got)

    if x.ndim != dims + 2:
        raise refuse("cannot convolve this", f"(N, C, {', '.join(LETTERS[dims])})", str(x.spec))
    if any(one.spec.is_stream for one in (weight, *bias)):
        raise refuse("cannot convolve with a stream of weights or bias", "no stream", str(weight.spec))
    shape, channels, count = weight.spec.shape, x.shape[1], whole(name, "groups", groups, 1)
    if channels % count or (shape and not transposed and shape[0] % count):
        raise refuse("cannot divide the channels into groups", f"a divisor of {channels}", short_repr(groups))
    place, taken = (0, channels) if transposed else (1, channels // count)
    if len(shape) != dims + 2 or shape[place] != taken or 0 in shape:
        wanted = f"({taken}, O / groups, *sizes)" if transposed else f"(O, {taken}, *sizes)"
        raise refuse("cannot convolve with weights of this shape", wanted, format_shape(shape))
    made = (shape[1] * count,) if transposed else shape[:1]
    if bias and bias[0].spec.shape != made:
        raise refuse("cannot add a bias of this shape", format_shape(made), str(bias[0].spec))


def padding_edges(
    name: str, padding: Padding, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """Return zeros before and after each axis."""
    dims = len(kernel)
    named = one_of(name, "padding", padding, ("same", "valid")) if isinstance(padding, str) else None
    if named == "valid":
        return [(0, 0)] * dims
    if named == "same":
        if max(stride) > 1:
            raise SpecError(
                'cannot keep the size by padding="same"',
                element=name,
                site=user_site(),
                expected="a stride of 1",
                got=f"stride {tuple(stride)}",
            )
        zeros = [(size - 1) * spread for size, spread in zip(kernel, dilation, strict=True)]
        return [(whole // 2, whole - whole // 2) for whole in zeros]
    words = f'{dims} numbers or pairs, one number, "same" or "valid"'
    pairs: list[Any] = [padding] * dims if is_whole(padding) else several(name, "padding", padding, words)
    if len(pairs) != dims:
        raise SpecError(
            "cannot take padding=",
            element=name,
            site=user_site(),
            expected=words,
            got=short_repr(padding),
        )
    both = (whole_numbers(name, "padding", pair, 2, least=0) for pair in pairs)
    return [(before, after) for before, after in both]
