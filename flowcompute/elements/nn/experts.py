"""Products with matrices that each record chooses: the experts of a mixture (N. Shazeer et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.axes import checked_indices, reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.elementwise_functions import resolve_dtypes
from flowcompute.elements.math import MATMUL
from flowcompute.elements.op import KeptOp, Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, Spec, Stream

NAME = "experts"


def experts_of(
    x: np.ndarray, weights: np.ndarray, chosen: np.ndarray, *, product: Callable[..., np.ndarray] = np.matmul
) -> np.ndarray:
    """Compute products on arrays of one dtype: x (n, 1 or k, in), weights (experts, out, in), chosen (n, k).

    Args:
        x, weights, chosen: the operands.
        product: of a stack of matrices of one row (m, 1, in) and a matrix (in, out).
    """
    rows = np.broadcast_to(x, (*chosen.shape, x.shape[-1]))
    made = np.empty((*chosen.shape, weights.shape[1]), x.dtype)
    for number in np.unique(chosen):
        here = chosen == number
        made[here] = product(rows[here][:, None], weights[number].T)[:, 0]
    return made


def _rebuild(kept: KeptOp) -> Any:
    """Make the products again, before they are rounded."""
    x, weights, chosen = kept.operands(3)
    rows, matrices, choices = (one.spec.shape for one in (x, weights, chosen))
    kept.require(x.spec.is_stream and chosen.spec.is_stream and not weights.spec.is_stream, "two streams, and matrices")
    kept.require(len(rows) == 2 and len(matrices) == 3 and len(choices) == 1, "rows, matrices and choices")
    fits = rows[0] in (1, *choices) and rows[1] == matrices[2] and x.dtype == weights.dtype and x.dtype != BOOL
    kept.require(fits and 0 not in (*matrices, *choices) and chosen.dtype.kind in "iu", "operands that fit each other")
    return _chosen_products(x, weights, chosen)


EXPERTS = Op(
    NAME, 3, Kind.CONTRACT, experts_of, by_ufunc(np.matmul), cost=1000, doc="Products with chosen matrices.",
    rebuild=_rebuild,
)  # fmt: skip


@public
def experts(x: Operand, weights: Operand, chosen: Operand) -> Any:
    """Multiply each record by the matrices that it chooses, one product a choice.

    Of the matrices only the chosen ones are read. Those of a mapped file that nobody chooses are never paged in, and
    blocks of quantized numbers are decoded where they are loaded. On a device product j of a record has the bits of
    `x @ weights[chosen[j]].T`. A device with memory of its own is given all matrices once, or the chosen
    ones with each batch where they do not fit.

    Args:
        x: a stream of vectors `(in,)` that all chosen matrices multiply, or of items `(k, in)`, a vector for each
            choice.
        weights: resident matrices `(experts, out, in)`.
        chosen: a stream of numbers of matrices, items `(k,)`, or single integers for one choice. Negative ones count
            from the end.

    Returns:
        A stream of items `(k, out)`, or `(out,)` for single integers, in the dtype that x and weights promote to. Half
        formats are summed in float32 and rounded once.

    Raises:
        SpecError: if shapes or dtypes do not fit. A choice that is out of range is a RunError naming its record.
    """
    value, matrices, numbers = (as_element(one, NAME) for one in (x, weights, chosen))
    shape, choices = value.spec.shape, numbers.spec.shape
    single = choices == ()
    fits = (
        value.spec.is_stream
        and numbers.spec.is_stream
        and not matrices.spec.is_stream
        and numbers.dtype.kind in "iu"
        and len(matrices.shape) == 3
        and 0 not in matrices.shape
        and len(choices) <= 1
        and shape in ((matrices.shape[-1],), (*choices, matrices.shape[-1]))
        and 0 not in choices
    )
    if not fits:
        raise SpecError(
            "cannot multiply by chosen matrices",
            element=NAME,
            site=user_site(),
            expected="streams x (in,) or (k, in) and chosen (k,) of integers, and resident weights (experts, out, in)",
            got=", ".join(str(one.spec) for one in (value, matrices, numbers)),
        )
    common_length(NAME, [value, numbers])
    *_, result = resolve_dtypes(MATMUL, [value.dtype, matrices.dtype])
    if result == BOOL:
        raise SpecError("cannot multiply bools", element=NAME, site=user_site(), expected="a dtype of numbers")
    wide = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    rows = reshape(value, (-1, 1, *shape)) if len(shape) == 1 else value
    asked = reshape(numbers, (-1, 1)) if single else numbers
    made = cast(_chosen_products(cast(rows, wide), cast(matrices, wide), asked), result)
    return reshape(made, (-1, matrices.spec.shape[1])) if single else made


def _chosen_products(rows: Any, matrices: Any, chosen: Any) -> Compute:
    """Multiply rows (1 or k, in) by the matrices (experts, out, in) that a record chooses, (k,)."""
    shape = (chosen.spec.shape[0], matrices.shape[1])
    stream = Stream(common_length(NAME, [rows, chosen]))
    return Compute(
        EXPERTS, (rows, matrices, checked_indices(chosen, matrices.shape[0])), Spec(rows.dtype, shape, stream)
    )
