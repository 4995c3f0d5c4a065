"""Folds over the stream beyond reductions: counts, covariance, order statistics, the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import array_of, flag, meant, real, whole
from flowcompute.elements.axes import section
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, truth
from flowcompute.elements.math import Axis, normalise_axes, sum
from flowcompute.elements.op import MOST, Attrs, KeptOp, Kind, Op, Rebuild
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.top_rows import top_of_rows
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT32, FLOAT64, INT64, Spec


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("folds state their dtypes themselves")


def fold_op(name: str, numpy: Callable[..., Any], rebuild: Rebuild, arity: int = 1) -> Op:
    """Return the record of a fold on the host."""
    return Op(name, arity, Kind.FOLD, numpy, _declared, cost=100, rebuild=rebuild)


def kept_size(kept: KeptOp) -> int:
    """Return the size of a kept result of one axis.

    Raises:
        CheckpointError: if it has other axes.
    """
    kept.require(len(kept.spec.shape) == 1, "a result of one axis")
    return kept.spec.shape[0]


def _rebuild_cov(kept: KeptOp) -> Compute:
    return cov(kept.one(), correction=kept.attrs.real("correction"))


def _rebuild_corrcoef(kept: KeptOp) -> Compute:
    return corrcoef(kept.one())


def _rebuild_histogram(kept: KeptOp) -> Compute:
    x, edges = kept.operands(2)
    kept.require(isinstance(edges, Constant), "edges that are known")
    return _counts(folded_stream("histogram", x), edges, _edges(edges.value), equal=kept.attrs.flag("equal"))


def _rebuild_top_k(kept: KeptOp) -> Compute:
    return top_k(kept.stream(), kept_size(kept))[kept.op.name == "top_k_indices"]


def _rebuild_end(kept: KeptOp) -> Compute:
    return _end(kept.op, kept.one())


MOST_BINS = 1 << 24
"""Bins of a histogram, and places among quantiles: all of them are in memory."""

COV = fold_op("cov", np.cov, _rebuild_cov)
CORRCOEF = fold_op("corrcoef", np.corrcoef, _rebuild_corrcoef)
HISTOGRAM = fold_op("histogram", np.histogram, _rebuild_histogram, 2)
TOP_K_VALUES = fold_op("top_k_values", np.sort, _rebuild_top_k)
TOP_K_INDICES = fold_op("top_k_indices", np.argsort, _rebuild_top_k)
FIRST = fold_op("first", np.take, _rebuild_end)
LAST = fold_op("last", np.take, _rebuild_end)


def folded_stream(
    op: str, x: Operand, ranks: tuple[int, ...] = (), hint: str = "x[:, j] is a stream of numbers"
) -> Any:
    """Return the operand, which must be a stream, of one of these ranks (of any when none are given).

    `hint` says what to do about another rank.
    """
    element = as_element(x, op)
    if not element.spec.is_stream:
        raise SpecError(
            "cannot fold what is no stream",
            element=op,
            site=user_site(),
            expected="a stream",
            got=f"a resident value {element.spec}",
            hint="fc.source(array) makes a stream of an array's rows",
        )
    if ranks and element.ndim not in ranks:
        items = " or ".join("numbers" if rank == 1 else "rows" for rank in ranks)
        raise SpecError(
            "cannot fold a stream of such items",
            element=op,
            site=user_site(),
            expected=f"a stream of {items}",
            got=str(element.spec),
            hint=hint,
        )
    return element


def make_fold(op: Op, inputs: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype, **attrs: Any) -> Compute:
    """Return the fold of these inputs, a resident value of this shape and dtype."""
    kept: Attrs = attrs
    return Compute(op, inputs, Spec(dtype, shape), kept)


@public
def count_nonzero(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Count the numbers over `axis` that are not zero (NaN is not), as int64.

    Arguments and errors are those of `fc.sum`, without `dtype`.
    """
    return sum(truth(as_element(x, "count_nonzero")), axis, keepdims=keepdims)


@public
def first(x: Operand) -> Compute:
    """Return the first record of a stream, as a resident value; what comes behind it is not read for this.

    Args:
        x: a stream.

    Raises:
        SpecError: if the stream is known to be empty; one that turns out to be is a RunError.
    """
    made = _end(FIRST, x)
    (stream,) = made.inputs
    return make_fold(FIRST, (section(stream, 0, 1, 1),), made.spec.shape, made.dtype)


@public
def last(x: Operand) -> Compute:
    """Return the last record of a stream; as `first`.

    Raises:
        SpecError: if the stream is known to be empty; one that turns out to be is a RunError.
    """
    return _end(LAST, x)


def _end(op: Op, x: Operand) -> Compute:
    element = folded_stream(op.name, x)
    if element.spec.length == 0:
        raise SpecError(
            f"cannot take the {op.name} record of an empty stream",
            element=op.name,
            site=user_site(),
            expected="a stream of at least one record",
        )
    return make_fold(op, (element,), element.spec.shape, element.dtype)


@public
@meant(ddof="correction")
def cov(x: Operand, *, correction: float = 1) -> Compute:
    """Return the covariance of the columns of a stream of rows `(N, d)`, float64 `(d, d)`; of numbers their variance.

    Records are observations: `np.cov(x, rowvar=False, ddof=correction)`. It takes one reading: each block of records
    around its own mean. Blocks are merged by Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
    computing sample variances" (1979).

    Args:
        x: a stream of numbers or of rows.
        correction: what is subtracted from the number of records; 0 for a whole population.
            Where nothing is left the result is NaN or infinite.

    Raises:
        SpecError: if `x` is no such stream.
    """
    element = folded_stream("cov", x, (1, 2))
    return make_fold(COV, (element,), 2 * element.spec.shape, FLOAT64, correction=real("cov", "correction", correction))


@public
def corrcoef(x: Operand) -> Compute:
    """Correlate the columns of a stream of rows, as float64 `(d, d)` from -1 to 1: `cov` scaled to variance 1.

    A column without spread gives NaN. As `np.corrcoef(x, rowvar=False)`.

    Args:
        x: a stream of numbers or of rows.

    Raises:
        SpecError: if `x` is no stream of numbers or rows.
    """
    element = folded_stream("corrcoef", x, (1, 2))
    return make_fold(CORRCOEF, (element,), 2 * element.spec.shape, FLOAT64)


@public
def histogram(
    x: Operand, bins: int | npt.ArrayLike = 10, range: tuple[float, float] | None = None
) -> tuple[Compute, Constant]:
    """Count the numbers in each bin as NumPy does: a bin holds its lower edge, the last also its upper one.

    Numbers outside all bins and NaN are not counted.

    Args:
        x: a stream; all numbers of its items count.
        bins: the edges, ascending; or how many bins of equal width there are over `range`.
        range: lowest and highest edge for a number of `bins`.

    Returns:
        The counts, int64 `(bins,)`, and the edges as a constant.

    Raises:
        SpecError: if edges do not ascend, or `range` is missing: a stream is not read twice to find it.
    """
    element = folded_stream("histogram", x)
    equal = isinstance(bins, int | np.integer)
    if equal and range is None:
        raise SpecError(
            "cannot place bins without their range",
            element="histogram",
            site=user_site(),
            expected="range= beside a number of bins",
            hint="give range=(low, high), or bins= as the edges",
        )
    _require_computed("bins", bins)
    _require_computed("range", range)
    edges = _equal_edges(element.dtype, bins, range) if equal else _edges(bins)
    edges_constant = Constant(edges)
    return _counts(element, edges_constant, edges, equal=equal), edges_constant


def _counts(x: Any, edges_constant: Constant, edges: np.ndarray, *, equal: bool) -> Compute:
    return make_fold(HISTOGRAM, (x, edges_constant), (max(len(edges) - 1, 0),), INT64, equal=equal)


def _require_computed(what: str, given: Any) -> None:
    """Refuse lazy edges: their number is the shape of the result, and their values are needed to count."""
    if hasattr(given, "spec") or (isinstance(given, tuple | list) and any(hasattr(one, "spec") for one in given)):
        raise SpecTypeError(
            f"cannot count between edges that are not computed yet, in {what}=",
            element="histogram",
            site=user_site(),
            expected="numbers",
            hint="compute them first: low, high = fc.resolve(x.min(), x.max())",
        )


def _equal_edges(dtype: np.dtype, bins: Any, range: Any) -> np.ndarray:
    # NumPy's own, in the dtype that it would choose.
    sample = np.empty(0, FLOAT32 if dtype == BFLOAT16 else np.uint8 if dtype.kind == "b" else dtype)
    try:
        with np.errstate(over="raise", invalid="raise"):
            return np.histogram_bin_edges(sample, whole("histogram", "bins", bins, 1, MOST_BINS), range)
    except SpecError:
        raise
    except (TypeError, ValueError, FloatingPointError, OverflowError, IndexError) as error:
        raise SpecError(
            f"cannot make bins: {error}",
            element="histogram",
            site=user_site(),
            got=f"bins={short_repr(bins)}, range={short_repr(range)}",
        ) from error


def _edges(bins: Any) -> np.ndarray:
    try:
        edges = array_of("histogram", "bins", bins, "edges", most=MOST_BINS)
        sound = edges.ndim == 1 and len(edges) > 1 and bool(np.all(edges[:-1] <= edges[1:]))
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound or edges.dtype.kind not in "iuf":
        raise SpecError(
            "cannot count between these edges",
            element="histogram",
            site=user_site(),
            expected="at least two numbers that never descend",
            got=short_repr(bins),
        )
    return edges


@public
def top_k(x: Operand, k: int, axis: int = 0, *, largest: bool = True) -> tuple[Compute, Compute]:
    """Find the k largest numbers of a stream, or along an item axis, descending, and their indices (int64).

    NaN counts as the largest, as in `argmax`. Of equal numbers the earlier comes first. Zeros in a row are equal, and
    the values are zeros of either sign. More than 16 numbers of a row come from a sort of it.

    Args:
        x: a stream of numbers; or anything with item axes (axes, for a resident value).
        k: how many. Along an item axis a kernel sweeps a row twice for each, up to 16 of them.
        axis: 0 folds a stream; others stand for themselves, and have the size k in the results.
        largest: False for the k smallest along an item axis, ascending, from a sort; NaN comes last.

    Raises:
        SpecError: if axis 0 is that of a stream of anything but numbers, or there are fewer than k. Also if k is too
            large, or the smallest of a stream are asked for. A stream that turns out to be shorter is a RunError.
    """
    given = as_element(x, "top_k")
    (place,) = normalise_axes("top_k", given, whole("top_k", "axis", axis, -MOST)) if given.ndim else (0,)
    count = whole("top_k", "k", k, 1, expected="a positive int")
    if given.ndim and (place or not given.spec.is_stream):
        return top_of_rows(given, count, place, largest=flag("top_k", "largest", largest))
    if not flag("top_k", "largest", largest):
        raise SpecError(
            "cannot find the smallest numbers of a stream",
            element="top_k",
            site=user_site(),
            expected="largest=True, or an item axis",
            got="axis 0, the stream",
            hint="fc.top_k(-x, k) finds them with their sign changed",
        )
    element = folded_stream("top_k", x, (1,), "axis=1 finds the largest of each item; x[:, j] is a stream of numbers")
    length = element.spec.length
    if length is not None and length < count:
        raise SpecError(
            "cannot find so many numbers in the stream",
            element="top_k",
            site=user_site(),
            expected=f"k <= {length}",
            got=f"k={k}",
        )
    return make_fold(TOP_K_VALUES, (element,), (count,), element.dtype), make_fold(
        TOP_K_INDICES, (element,), (count,), INT64
    )
