"""Transposed convolution: what a convolution's gradient does, also called fractionally strided or deconvolution.

Along an axis results whose places differ by a multiple of the stride see the same taps of the weights. So there are
as many ordinary convolutions as such classes of places, with the taps of each, and no zeros are put between numbers
(W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016). Classes that see the same
numbers are one convolution with more channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import whole
from flowcompute.elements.axes import concat, pad, permute_dims, reshape, take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, cast
from flowcompute.elements.nn.convolution import Padding, check_convolution, multiplied, padding_edges
from flowcompute.elements.nn.implicit import implicit_convolution
from flowcompute.elements.nn.windows import Sizes, whole_numbers
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class _Taps:
    """Classes of places along an axis that see the same numbers.

    Attributes:
        residues: places modulo the stride.
        first: the place before that of the result from which the last tap comes.
        taps: for each class its places in the weights, those that see earlier numbers first.
    """

    residues: tuple[int, ...]
    first: int
    taps: np.ndarray


@dataclass(frozen=True)
class _Axis:
    """An axis of `size` numbers whose results stand `stride` to a number: `count` times, from which they are cut."""

    size: int
    kernel: int
    stride: int
    dilation: int
    count: int

    def classes(self) -> list[_Taps]:
        """Return the classes of places that have taps, those together that see the same numbers."""
        by_residue: dict[int, list[int]] = {}
        for tap in range(self.kernel):
            by_residue.setdefault(tap * self.dilation % self.stride, []).insert(0, tap)
        found: dict[tuple[int, int], list[tuple[int, list[int]]]] = {}
        for residue, taps in sorted(by_residue.items()):
            first = taps[-1] * self.dilation // self.stride
            found.setdefault((len(taps), first), []).append((residue, taps))
        return [
            _Taps(tuple(residue for residue, _ in every), first, np.array([taps for _, taps in every]))
            for (_, first), every in found.items()
        ]

    @property
    def spread(self) -> int:
        """Numbers from one that a class sees to the next."""
        return self.dilation // math.gcd(self.stride, self.dilation)

    def edges(self, taps: _Taps) -> tuple[int, int]:
        """Return the zeros before and after, negative where numbers are left out, for `count` results."""
        before = taps.first + self.spread * (taps.taps.shape[1] - 1)
        return before, self.count - self.size - taps.first


MOST_STRIDE = 4096
"""Places to a number: what no number reaches is put between by a list of them."""


@public
def conv_transpose1d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    output_padding: Sizes = 0,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Compute:
    """Spread each number over the last axis of (N, C, L) by weights (C, O / groups, K) to (N, O, M).

    result[n, o, i * stride + k * dilation - before] is bias[o] + the sum over all such i, k and c of
    x[n, c, i] * weight[c, o, k]. There are M = (L - 1) stride - padding + dilation (K - 1) + 1 + output_padding
    results, where padding counts both sides.

    Args:
        x: a stream of items (C, L), or a resident value (N, C, L).
        weight: resident.
        bias: resident, one number for each output channel.
        stride: from the first result of one number to that of the next.
        padding: results left out on both sides, or `[(before, after)]`.
        dilation: from one result of a number to its next.
        groups: a divisor of C: input channels of a group make the output channels of theirs.
        output_padding: results added behind; those that no number reaches are 0.
        dtype: as of `conv1d`.

    Returns:
        An element of the dtype that operands promote to, or of `dtype`; computed as `conv1d` is.

    Raises:
        SpecError: if shapes do not fit each other or the groups, nothing would be left, weights or bias are streams, or
            all are bool.
    """
    return _transposed("conv_transpose1d", 1, x, weight, bias, stride, padding, dilation, groups, output_padding, dtype)


@public
def conv_transpose2d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    output_padding: Sizes = 0,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Compute:
    """Spread each number over the last two axes of (N, C, H, W) by weights (C, O / groups, K, L) to (N, O, P, Q).

    As `conv_transpose1d`, along two axes: sizes are one number for both, or one for each.
    """
    return _transposed("conv_transpose2d", 2, x, weight, bias, stride, padding, dilation, groups, output_padding, dtype)


@public
def conv_transpose3d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    output_padding: Sizes = 0,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Compute:
    """Spread each number over the last three axes of (N, C, D, H, W) by weights (C, O / groups, K, L, M).

    As `conv_transpose1d`, along three axes: sizes are one number for all, or one for each.
    """
    return _transposed("conv_transpose3d", 3, x, weight, bias, stride, padding, dilation, groups, output_padding, dtype)


def _transposed(
    name: str,
    dims: int,
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    output_padding: Sizes,
    dtype: npt.DTypeLike | None,
) -> Compute:
    (items, weights, *rest), result = multiplied(name, (x, weight, *([] if bias is None else [bias])), dtype)
    count = whole(name, "groups", groups, 1)
    check_convolution(name, dims, items, weights, rest, count, transposed=True)
    strides, spreads = whole_numbers(name, "stride", stride, dims), whole_numbers(name, "dilation", dilation, dims)
    if max(strides) > MOST_STRIDE:
        raise SpecError(
            "cannot spread numbers so far apart",
            element=name,
            site=user_site(),
            expected=f"a stride of at most {MOST_STRIDE}",
            got=short_repr(stride),
        )
    kernel = weights.spec.shape[2:]
    edges = padding_edges(name, padding, kernel, strides, spreads)
    more = whole_numbers(name, "output_padding", output_padding, dims, least=0)
    sizes = items.spec.shape[-dims:]
    whole_sizes = [
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, s, d, k, extra in zip(sizes, strides, spreads, kernel, more, strict=True)
    ]
    if any(full <= sum(edge) for full, edge in zip(whole_sizes, edges, strict=True)) or 0 in sizes:
        raise SpecError(
            "cannot leave out so many results",
            element=name,
            site=user_site(),
            expected=f"fewer than {tuple(whole_sizes)}",
            got=f"padding={short_repr(padding)} of {items.spec}",
        )
    axes = [
        _Axis(n, k, s, d, -(-full // s))
        for n, k, s, d, full in zip(sizes, kernel, strides, spreads, whole_sizes, strict=True)
    ]
    made = _interleaved(name, items, weights, axes, count)
    keys = tuple(slice(before, full - after) for full, (before, after) in zip(whole_sizes, edges, strict=True))
    made = made[(slice(None), slice(None), *keys)]
    if rest:
        made = made + reshape(rest[0], (-1, *(1,) * dims))
    return cast(made, result)  # type: ignore[return-value]


def _interleaved(name: str, x: Any, weight: Any, axes: Sequence[_Axis], groups: int) -> Any:
    """Return the results (N, O, *sizes) of all classes of places, each where it belongs."""
    dims, length = len(axes), -1 if x.spec.is_stream else x.shape[0]
    out = weight.spec.shape[1] * groups
    classes = [axis.classes() for axis in axes]

    def along(chosen: tuple[_Taps, ...]) -> Any:
        """Return (N, O, *classes, *places), all classes of the axes behind those whose class is chosen."""
        if len(chosen) == dims:
            return _of_classes(name, x, weight, axes, chosen, groups)
        at = len(chosen)
        parts = [along((*chosen, one)) for one in classes[at]]
        made = parts[0] if len(parts) == 1 else concat(parts, axis=2 + at)
        there = [residue for one in classes[at] for residue in one.residues]
        missing = [residue for residue in range(axes[at].stride) if residue not in there]
        if missing:
            widths = [(0, len(missing) if axis == 2 + at else 0) for axis in range(made.ndim)]
            made = pad(made, widths)
        order = np.argsort([*there, *missing])
        return made if (np.diff(order) == 1).all() else take(made, order, axis=2 + at)

    made = along(())
    turned = [place for axis in range(dims) for place in (2 + dims + axis, 2 + axis)]
    made = permute_dims(made, (0, 1, *turned))
    return reshape(made, (length, out, *(axis.count * axis.stride for axis in axes)))


def _of_classes(name: str, x: Any, weight: Any, axes: Sequence[_Axis], chosen: Sequence[_Taps], groups: int) -> Any:
    """Return one convolution (N, O, *classes, *places) for a class of places along each axis."""
    dims, length = len(axes), -1 if x.spec.is_stream else x.shape[0]
    channels, own, *_ = weight.spec.shape
    taps: Any = reshape(weight, (groups, channels // groups, own, *weight.spec.shape[2:]))
    for axis, one in enumerate(chosen):
        at = 3 + 2 * axis
        # Known weights are put in order when composed, others before the first batch.
        known = isinstance(taps, Constant)
        taps = Constant(np.take(taps.value, one.taps, axis=at)) if known else take(taps, one.taps, axis=at)
    # (groups, C / groups, O / groups, class, taps, class, taps ...)
    of_class, of_taps = (tuple(range(first, 3 + 2 * dims, 2)) for first in (3, 4))
    taps = permute_dims(taps, (0, 2, *of_class, 1, *of_taps))
    counts = tuple(len(one.residues) for one in chosen)
    sizes = tuple(one.taps.shape[1] for one in chosen)
    taps = reshape(taps, (groups * own * math.prod(counts), channels // groups, *sizes))
    edges = [axis.edges(one) for axis, one in zip(axes, chosen, strict=True)]
    seen = x[(..., *(slice(None, min(0, after) or None) for _, after in edges))]
    widths = [(0, 0)] * (len(seen.spec.shape) - dims) + [(before, max(0, after)) for before, after in edges]
    padded = pad(seen, widths) if any(map(any, widths)) else seen
    made = implicit_convolution(name, padded, taps, None, (1,) * dims, [axis.spread for axis in axes], groups)
    return reshape(made, (length, groups * own, *counts, *(axis.count for axis in axes)))
