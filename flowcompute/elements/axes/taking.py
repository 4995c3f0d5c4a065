"""Numbers at given indices along an axis: `fc.take`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.axes.shape import item_axis, make_view, view_op
from flowcompute.elements.compute import Constant, Operand, as_element
from flowcompute.elements.op import KeptOp
from flowcompute.elements.site import public, user_site
from flowcompute.errors import SpecError


def _rebuild_take(kept: KeptOp) -> Any:
    x, indices = kept.operands(2)
    return take(x, indices, kept.public_axis(kept.attrs.whole("axis", most=63)))


TAKE = view_op("take", np.take, _rebuild_take, 2)


@public
def take(x: Operand, indices: Operand, axis: int | None = None) -> Any:
    """Take the numbers at `indices` along an item axis, as `numpy.take`.

    Args:
        x: any element.
        indices: a resident vector of integers; negative ones count from the end.
        axis: may be left out where there is one axis.

    Raises:
        SpecError: if an index that is known is out of range, or `axis` is the stream.
    """
    element = as_element(x, "take")
    where = as_element(np.empty(0, np.int64) if isinstance(indices, list | tuple) and not indices else indices, "take")
    if axis is None and element.ndim != 1:
        raise SpecError(
            "cannot choose an axis",
            element="take",
            site=user_site(),
            expected=f"axis= for {element.spec}",
        )
    along = item_axis("take", element, 0 if axis is None else axis)
    if where.spec.is_stream or where.ndim != 1 or where.dtype.kind not in "iu":
        raise SpecError(
            "cannot take by these indices",
            element="take",
            site=user_site(),
            expected="a resident vector of integers",
            got=str(where.spec),
        )
    size = element.spec.shape[along]
    known = where.value if isinstance(where, Constant) else np.empty(0, where.dtype)
    bad = known[(known < -size) | (known >= size)]
    if len(bad):
        raise SpecError(
            "cannot take a number outside the axis",
            element="take",
            site=user_site(),
            expected=f"{-size} to {size - 1}",
            got=str(bad[0]),
        )
    shape = (*element.spec.shape[:along], *where.spec.shape, *element.spec.shape[along + 1 :])
    return make_view(TAKE, (element, where), shape, axis=along)
