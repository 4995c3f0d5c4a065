"""Folds over the stream beyond reductions: counts, segments, covariance, order statistics, the ends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.axes import section
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast, common_length, is_weak, truth
from flowcompute.elements.math import Axis, cut_along, normalise_axes, sum
from flowcompute.elements.op import Attrs, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.top_rows import top_of_rows
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, Spec, is_float


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("folds state their dtypes themselves")


def _fold(name: str, numpy: Callable[..., Any], arity: int = 1) -> Op:
    return Op(name, arity, Kind.FOLD, numpy, _declared, cost=100)


COV = _fold("cov", np.cov)
CORRCOEF = _fold("corrcoef", np.corrcoef)
HISTOGRAM = _fold("histogram", np.histogram, 2)
BINCOUNT = _fold("bincount", np.bincount)
SEGMENT_SUM = _fold("segment_sum", np.add.at, 2)
SEGMENT_MEAN = _fold("segment_mean", np.add.at, 2)
SEGMENT_MIN = _fold("segment_min", np.minimum.at, 2)
SEGMENT_MAX = _fold("segment_max", np.maximum.at, 2)
TOP_K_VALUES = _fold("top_k_values", np.sort)
TOP_K_INDICES = _fold("top_k_indices", np.argsort)
QUANTILE = _fold("quantile", np.quantile)
FIRST = _fold("first", np.take)
LAST = _fold("last", np.take)


def _stream(op: str, x: Operand, ranks: tuple[int, ...] = ()) -> Any:
    """The operand, which must be a stream, of one of these ranks (of any when none are given)."""
    element = as_element(x, op)
    if not element.spec.is_stream:
        raise SpecError(
            "folds a stream",
            element=op,
            site=user_site(),
            got=f"a resident value {element.spec}",
            hint="fc.source(array) makes a stream of an array's rows",
        )
    if ranks and element.ndim not in ranks:
        items = " or ".join("numbers" if rank == 1 else "rows" for rank in ranks)
        raise SpecError(f"takes a stream of {items}", element=op, site=user_site(), got=str(element.spec))
    return element


def _make(op: Op, inputs: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype, **attrs: Any) -> Compute:
    kept: Attrs = attrs
    return Compute(op, inputs, Spec(dtype, shape), kept)


def _count(op: str, what: str, value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise SpecError(f"{what} must be a positive int", element=op, site=user_site(), got=repr(value))
    return count


def count_nonzero(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """How many numbers over `axis` are not zero (NaN is not), as int64."""
    return sum(truth(as_element(x, "count_nonzero")), axis, keepdims=keepdims)


def first(x: Operand) -> Compute:
    """The first record of a stream, as a resident value; what comes behind it is not read for this.

    Raises:
        SpecError: if the stream is known to be empty; one that turns out to be is a RunError.
    """
    made = _end(FIRST, x)
    (stream,) = made.inputs
    return _make(FIRST, (section(stream, 0, 1, 1),), made.spec.shape, made.dtype)


def last(x: Operand) -> Compute:
    """The last record of a stream; as `first`."""
    return _end(LAST, x)


def _end(op: Op, x: Operand) -> Compute:
    element = _stream(op.name, x)
    if element.spec.length == 0:
        raise SpecError(f"an empty stream has no {op.name} record", element=op.name, site=user_site())
    return _make(op, (element,), element.spec.shape, element.dtype)


def cov(x: Operand, *, correction: float = 1) -> Compute:
    """Covariance of the columns of a stream of rows `(N, d)`, as float64 `(d, d)`; of numbers their variance.

    Records are observations: `np.cov(x, rowvar=False, ddof=correction)`. One reading: each
    block of records around its own mean, blocks merged by Chan, Golub and LeVeque, "Updating
    formulae and a pairwise algorithm for computing sample variances" (1979).

    Args:
        x: a stream of numbers or of rows.
        correction: what is subtracted from the number of records; 0 for a whole population.
            Where nothing is left the result is NaN or infinite.

    Raises:
        SpecError: if `x` is no such stream.
    """
    element = _stream("cov", x, (1, 2))
    return _make(COV, (element,), 2 * element.spec.shape, FLOAT64, correction=float(correction))


def corrcoef(x: Operand) -> Compute:
    """Correlation of the columns of a stream of rows, as float64 `(d, d)` from -1 to 1: `cov` scaled to variance 1.

    A column without spread gives NaN. As `np.corrcoef(x, rowvar=False)`.

    Raises:
        SpecError: if `x` is no stream of numbers or rows.
    """
    element = _stream("corrcoef", x, (1, 2))
    return _make(CORRCOEF, (element,), 2 * element.spec.shape, FLOAT64)


def histogram(
    x: Operand, bins: int | npt.ArrayLike = 10, range: tuple[float, float] | None = None
) -> tuple[Compute, Constant]:
    """How many numbers lie in each bin, NumPy's meaning: a bin holds its lower edge, the last also its upper one.

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
    element = _stream("histogram", x)
    equal = isinstance(bins, int | np.integer)
    if equal and range is None:
        raise SpecError(
            "needs the range of a number of bins",
            element="histogram",
            site=user_site(),
            hint="give range=(low, high), or bins= as the edges",
        )
    edges = _equal_edges(element.dtype, bins, range) if equal else _edges(bins)
    edges_constant = Constant(edges)
    counts = _make(HISTOGRAM, (element, edges_constant), (max(len(edges) - 1, 0),), INT64, equal=equal)
    return counts, edges_constant


def _equal_edges(dtype: np.dtype, bins: Any, range: Any) -> np.ndarray:
    # NumPy's own, in the dtype that it would choose.
    sample = np.empty(0, FLOAT32 if dtype == BFLOAT16 else np.uint8 if dtype.kind == "b" else dtype)
    try:
        with np.errstate(over="raise", invalid="raise"):
            return np.histogram_bin_edges(sample, bins, range)
    except (TypeError, ValueError, FloatingPointError) as error:
        raise SpecError(
            f"cannot make bins: {error}", element="histogram", site=user_site(), got=f"bins={bins!r}, range={range!r}"
        ) from error


def _edges(bins: Any) -> np.ndarray:
    try:
        edges = np.asarray(bins)
        sound = edges.ndim == 1 and len(edges) > 1 and bool(np.all(edges[:-1] <= edges[1:]))
    except (TypeError, ValueError):
        sound = False
    if not sound or edges.dtype.kind not in "iuf":
        raise SpecError(
            "bins= is a number of bins or an array of edges",
            element="histogram",
            site=user_site(),
            expected="at least two numbers that never descend",
            got=repr(bins),
        )
    return edges


def _keys(op: str, keys: Any) -> Any:
    if keys.dtype.kind not in "biu":
        raise SpecError(
            "keys are integers",
            element=op,
            site=user_site(),
            got=keys.dtype.name,
            hint='cast them with .astype("int64")',
        )
    return keys


def bincount(x: Operand, length: int) -> Compute:
    """How often each integer from 0 to `length - 1` comes, as int64 `(length,)`.

    Args:
        x: a stream of integers.
        length: how many there may be; unlike NumPy's `minlength` the result never has more.

    Raises:
        SpecError: if `x` is no stream of integers. One that is out of range is a RunError naming its record.
    """
    keys = _keys("bincount", _stream("bincount", x, (1,)))
    return _make(BINCOUNT, (keys,), (_count("bincount", "length", length),), INT64)


def _segments(op: Op, x: Operand, keys: Operand, num_segments: int, wide: np.dtype, result: np.dtype) -> Compute:
    values, named = as_element(x, op.name), as_element(keys, op.name)
    stream = values if values.spec.is_stream else _stream(op.name, named)
    values, named = cut_along(op.name, cast(values, wide), stream), cut_along(op.name, _keys(op.name, named), stream)
    if named.ndim != 1:
        raise SpecError("keys are a stream of numbers", element=op.name, site=user_site(), got=str(named.spec))
    common_length(op.name, [values, named])
    shape = (_count(op.name, "num_segments", num_segments), *values.spec.shape)
    return cast(_make(op, (values, named), shape, wide), result)  # type: ignore[return-value]


def segment_sum(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """The sum of the records of each key, `(num_segments, *item)`; 0 for a key without records.

    Integers and bools sum in int64 or uint64. Floats are added record after record in float64
    (an error of at most n * 2^-53 of the sum of n magnitudes) and rounded once to their dtype.

    Args:
        x: a stream of items.
        keys: a stream of integers beside it, or a resident vector with one for each record.
        num_segments: how many keys there are.

    Raises:
        SpecError: if these do not fit. A key from outside 0 to `num_segments - 1` is a RunError naming its record.
    """
    dtype = as_element(x, "segment_sum").dtype
    result = INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else dtype
    return _segments(SEGMENT_SUM, x, keys, num_segments, _wide(result), result)


def segment_mean(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """The mean of the records of each key, NaN for a key without records; integers in float64. See `segment_sum`."""
    dtype = as_element(x, "segment_mean").dtype
    result = dtype if is_float(dtype) else FLOAT64
    return _segments(SEGMENT_MEAN, x, keys, num_segments, _wide(result), result)


def segment_min(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """The smallest numbers of the records of each key, NaN if there is one.

    For a key without records it is what is no smaller than any number: infinity, the largest
    integer, True. Arguments as for `segment_sum`.
    """
    dtype = as_element(x, "segment_min").dtype
    return _segments(SEGMENT_MIN, x, keys, num_segments, dtype, dtype)


def segment_max(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """The largest numbers of the records of each key, -infinity (the smallest integer, False) without records.

    NaN if there is one. Arguments as for `segment_sum`.
    """
    dtype = as_element(x, "segment_max").dtype
    return _segments(SEGMENT_MAX, x, keys, num_segments, dtype, dtype)


def _wide(dtype: np.dtype) -> np.dtype:
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def top_k(x: Operand, k: int, axis: int = 0) -> tuple[Compute, Compute]:
    """The k largest numbers of a stream, or along an item axis, descending, and their indices (int64).

    NaN counts as the largest, as in `argmax`; of equal numbers the earlier comes first, and of
    zeros in a row the value is +0 if one of them is.

    Args:
        x: a stream of numbers; or anything with item axes (axes, for a resident value).
        k: how many. Along an item axis at most 16: one kernel sweeps a row twice for each.
        axis: 0 folds a stream; others stand for themselves, and have the size k in the results.

    Raises:
        SpecError: if axis 0 is that of a stream of anything but numbers, there are fewer than k, or k is
            too large; a stream that turns out to be shorter is a RunError.
    """
    given = as_element(x, "top_k")
    (place,) = normalise_axes("top_k", given, axis) if given.ndim else (0,)
    count = _count("top_k", "k", k)
    if given.ndim and (place or not given.spec.is_stream):
        return top_of_rows(given, count, place)
    element = _stream("top_k", x, (1,))
    length = element.spec.length
    if length is not None and length < count:
        raise SpecError(
            "the stream is shorter than that",
            element="top_k",
            site=user_site(),
            expected=f"k <= {length}",
            got=f"k={k}",
        )
    return _make(TOP_K_VALUES, (element,), (count,), element.dtype), _make(TOP_K_INDICES, (element,), (count,), INT64)


def quantile(x: Operand, q: npt.ArrayLike) -> Compute:
    """Quantiles of a stream of numbers, of the shape of `q`; NaN if one of them is, or without any.

    Up to 8192 records they are NumPy's (linear interpolation). Beyond, they come from a sketch
    of sorted blocks of 8192 (Manku, Rajagopalan, Lindsay, 1998; made without chance): what is
    given for `q` stands, in the sorted records, at most `N * ceil(L / 2) / 16384` places from
    `q * (N - 1)`, where `L = floor(log2(N / 8192))`. That is 0.02 % of the records for a
    million and 0.05 % for a thousand million. The same records give the same bits, whatever
    the batches. The dtype is NumPy's, except that quantiles of integers are always floats.

    Args:
        x: a stream of numbers.
        q: from 0 to 1.

    Raises:
        SpecError: for a `q` outside 0 to 1, or if `x` is no stream of numbers.
    """
    element = _stream("quantile", x, (1,))
    try:
        wanted = np.asarray(q, FLOAT64)
        sound = bool(((wanted >= 0) & (wanted <= 1)).all())
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise SpecError("q is from 0 to 1", element="quantile", site=user_site(), got=repr(q))
    result = element.dtype if is_float(element.dtype) else FLOAT64
    if not is_weak(q) and np.asarray(q).dtype.kind == "f":
        result = np.result_type(FLOAT32 if element.dtype == BFLOAT16 else element.dtype, np.asarray(q).dtype)
    numbers = tuple(float(one) for one in wanted.reshape(-1))
    return _make(QUANTILE, (element,), wanted.shape, result, q=numbers)
