"""Folds beside the reductions that random programs over streams draw: statistics, sums by key, ends, products."""

from __future__ import annotations

import numpy as np

import flowcompute as fc
from flowcompute.spec import BOOL, INT64, is_float
from tests.properties import bounds, stream_bounds
from tests.properties.stream_bounds import known, moved, single
from tests.properties.stream_leaves import LeafBuilder
from tests.properties.values import Value

STATISTICS = ("count", "histogram", "bins", "segments", "segments", "top", "end", "cov", "gram", "quantile")


class FoldBuilder(LeafBuilder):
    """Draws folds."""

    def _statistic(self, value: Value) -> None:
        form = self.pick(STATISTICS)
        getattr(self, f"_{form}")(value)

    def _count(self, value: Value) -> None:
        axis = self.pick([None, 0])
        bound = bounds.reduced("sum", bounds.cast(bounds.cast(value.bound, BOOL), INT64),
                               (0,) if axis == 0 else tuple(range(value.bound.value.ndim)), False, INT64, 0)  # fmt: skip
        self.put(f"fc.count_nonzero({{0}}, {axis})", fc.count_nonzero(value.element, axis), bound, True, value)

    def _histogram(self, value: Value) -> None:
        if not known(value.bound):
            return
        edges = np.array(self.pick([[-1, 0, 1], [0.0, 0.5, 0.5, 2.0], [-9.0, -2.5, 0.0, 2.0, 9.0, 1e30]]))
        with np.errstate(invalid="ignore"):
            wanted = np.histogram(value.bound.value.astype(np.float64), edges)[0].astype(np.int64)
        counts, _ = fc.histogram(value.element, edges)
        self.put(f"fc.histogram({{0}}, {edges.tolist()})[0]", counts, bounds.exactly(wanted), True, value)

    def keys(self, length: int, count: int) -> Value | None:
        """A stream of integers from 0 to `count - 1`, or a resident vector of them."""
        fitting = [
            v
            for v in self.program.values
            if v.stream and v.bound.shape == (length,) and v.dtype.kind in "iu" and known(v.bound)
        ]
        if fitting and self.pick([True, True, False]):
            of = self.pick(fitting)
            modulus = bounds.exactly(np.asarray(count, of.dtype))
            self._apply_binary("remainder", of.element, count, (of,), (of.bound, modulus))
            return self.program.values[-1]
        array = self.rng.integers(0, count, length)
        made = self.pick([fc.source, fc.constant])(array)
        return self.put(f"keys({count})[{length}] as {made.label}", made, bounds.exactly(array), True)

    def _bins(self, value: Value) -> None:
        count = self.pick([1, 3, 10])
        keys = self.keys(value.bound.shape[0], count)
        if keys is None or not keys.stream:
            return
        wanted = np.bincount(keys.bound.value.astype(np.int64), minlength=count)
        self.put(f"fc.bincount({{0}}, {count})", fc.bincount(keys.element, count), bounds.exactly(wanted), True, keys)

    def _segments(self, value: Value) -> None:
        count = self.pick([1, 3, 10])
        keys = self.keys(value.bound.shape[0], count)
        if keys is None:
            return
        name = self.pick(["segment_sum", "segment_mean", "segment_min", "segment_max"])
        wide = single(value.dtype)
        bound = stream_bounds.segments(name, bounds.cast(value.bound, wide), keys.bound.value.astype(np.int64), count)
        element = getattr(fc, name)(value.element, keys.element, count)
        self.put(f"fc.{name}({{0}}, {{1}}, {count})", element, bounds.cast(bound, element.dtype), True, value, keys)

    def _top(self, value: Value) -> None:
        length = value.bound.shape[0]
        if value.element.ndim != 1 or not length or not known(value.bound):
            return
        k = self.whole(1, min(length, 20))
        for part, element, bound in zip(
            (0, 1), fc.top_k(value.element, k), stream_bounds.largest(value.bound, k), strict=True
        ):
            self.put(f"fc.top_k({{0}}, {k})[{part}]", element, bound, True, value)

    def _end(self, value: Value) -> None:
        length = value.bound.shape[0]
        if not length:
            return
        place = self.pick([0, -1, self.whole(0, length - 1)])
        self.put(f"{{0}}[{place}]", value.element[place], moved(value.bound, lambda a: a[place]), True, value)

    def _cov(self, value: Value) -> None:
        if value.element.ndim > 2:
            return
        correction = self.pick([0, 1])
        bound = stream_bounds.covariance(value.bound, correction)
        self.put(
            f"fc.cov({{0}}, correction={correction})", fc.cov(value.element, correction=correction), bound, False, value
        )

    def _gram(self, value: Value) -> None:
        if value.element.ndim != 2 or value.dtype == BOOL:
            return
        alike = [
            v
            for v in self.program.values
            if v.stream and v.element.ndim == 2 and (v.dtype, v.bound.shape[0]) == (value.dtype, value.bound.shape[0])
        ]
        other = self.pick([value, *alike])
        inner = single(value.dtype)
        pair = [bounds.cast(one.bound, inner) for one in (value, other)]
        bound = bounds.products(*pair, lambda a, b: a.T @ b, inner, value.bound.shape[0] + 64)
        element = value.element.T @ other.element
        self.put("{0}.T @ {1}", element, bounds.cast(bound, element.dtype), not is_float(inner), value, other)

    def _quantile(self, value: Value) -> None:
        if (
            value.element.ndim != 1
            or not known(value.bound)
            or not np.isfinite(value.bound.value.astype(np.float64)).all()
        ):
            return
        q = self.pick([0.5, 0, 1, 0.3])
        element = fc.quantile(value.element, q)
        wide = value.bound.value.astype(np.float64)
        number = np.quantile(wide, q) if len(wide) else np.array(np.nan)
        reach = np.max(np.abs(wide), initial=0.0)
        bound = bounds.rounded(
            np.asarray(number), np.asarray(8 * bounds.roundoff(element.dtype) * reach), element.dtype
        )
        self.put(f"fc.quantile({{0}}, {q})", element, bound, False, value)
