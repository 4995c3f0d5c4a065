"""A fold begun anew every so many records: reductions of runs that are never seen whole.

`fc.cut(x, every=n, tail="emit").sum(axis=1)` is one, whose last run may be shorter; the planner
makes others of reductions over items larger than the memory budget.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.compute import Compute
from flowcompute.elements.math.primitives import reduced_dtype
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.spec import Spec, Stream

_FOLDS = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "vecdot")


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("folds state their dtypes themselves")


def _rebuild_each(kept: KeptOp) -> Compute:
    fold = kept.attrs.choice("fold", _FOLDS)
    inputs = kept.streams(2 if fold == "vecdot" else 1)
    every, correction = kept.attrs.whole("every", least=1), kept.attrs.real("correction")
    x = inputs[0]
    same = all(one.dtype == x.dtype and one.spec.shape == x.spec.shape for one in inputs)
    kept.require(same, "operands of one dtype and item shape")
    common_length(fold, list(inputs))
    return each(fold, inputs, every, reduced_dtype(kept, fold, x.dtype), x.spec.shape, correction)


EACH = Op("each", 2, Kind.REBATCH, np.asarray, _declared, cost=100, rebuild=_rebuild_each)


def each(
    fold: str, inputs: tuple[Any, ...], every: int, dtype: np.dtype, shape: tuple[int, ...], correction: float = 0.0
) -> Compute:
    """Fold each run of `every` records; the results are a stream of this dtype and item shape."""
    length = inputs[0].spec.length
    stream = Stream(None if length is None else -(-length // every))
    attrs = {"fold": fold, "every": every, "correction": correction}
    return Compute(EACH, inputs, Spec(dtype, shape, stream), attrs)


def open_cut(element: Any) -> tuple[Any, int] | None:
    """Return the stream and the size of runs of a cut whose last run may be shorter; None for anything else."""
    if isinstance(element, Compute) and element.op.name == "cut" and element.attrs["tail"] == "emit":
        return element.inputs[0], int(element.attrs["every"])
    return None
