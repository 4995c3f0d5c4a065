"""Values joined along an item axis, and streams played one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements.alignment import align_resident, common_dtype, common_length
from flowcompute.elements.arguments import several, whole
from flowcompute.elements.axes.along import concat_streams, flatten
from flowcompute.elements.axes.shape import lazily, make_view, reshape, view_op
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, KeptOp, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecIndexError
from flowcompute.spec import Spec, Stream, format_shape


@lazily
def _rebuild_joined(kept: KeptOp) -> Any:
    join = {"stack": stack, "concat": concat}[kept.op.name]
    streams = any(one.spec.is_stream for one in kept.inputs)
    return join(kept.inputs, kept.attrs.whole("axis", most=63) + streams)


STACK = view_op("stack", np.stack, _rebuild_joined, 2)
CONCAT = view_op("concat", np.concat, _rebuild_joined, 2)


def _joined(op: str, values: Sequence[Operand]) -> list[Any]:
    """Return values of one dtype."""
    elements = [
        as_element(value, op) for value in several(op, "values", values, f"a list of values, as in fc.{op}([x, y])")
    ]
    if not elements:
        raise SpecError("cannot join no values", element=op, site=user_site(), expected="at least one value")
    dtype = common_dtype(op, elements)
    return [cast(element, dtype) for element in elements]


def _lead(elements: Sequence[Any]) -> Any:
    """Return the first stream, or the first value where there is none."""
    return next((element for element in elements if element.spec.is_stream), elements[0])


def _refuse_residents(elements: Sequence[Any]) -> None:
    if len({element.spec.is_stream for element in elements}) > 1:
        raise SpecError(
            "cannot join streams and resident values along the stream",
            element="concat",
            site=user_site(),
            expected="streams only, or resident values only",
            hint="fc.source(array) is a stream of the rows of an array",
        )


def _beside(op: str, elements: Sequence[Any]) -> list[Any]:
    """Return values as they stand beside items of a stream: resident ones the same for each record, or cut along it.

    Raises:
        SpecError: for one of another rank than the stream or its items, or of other rows.
    """
    lead = _lead(elements)
    if not lead.spec.is_stream:
        return list(elements)
    length = common_length(op, [element for element in elements if element.spec.is_stream])
    for element in elements:
        if not element.spec.is_stream and element.ndim not in (lead.ndim, lead.ndim - 1):
            raise SpecError(
                "cannot join a stream and a resident value of another rank",
                element=op,
                site=user_site(),
                expected=f"{lead.ndim - 1} axes as items of {lead.spec} have, or {lead.ndim}",
                got=str(element.spec),
            )
    return [one if one.spec.is_stream else align_resident(op, one, lead, length) for one in elements]


@public
def stack(values: Sequence[Operand], axis: int = 0) -> Any:
    """Stack values of equal shape along a new axis; of streams an item axis, so `axis` is not 0.

    Args:
        values: elements; dtypes promote as NumPy's. A resident one beside a stream has the shape of an item, and is
            repeated for each record. With one axis more it has a row for each record, or one for all.
        axis: the place of the new axis in the result.

    Raises:
        SpecError: if shapes differ, or the axis would stand before the stream.
    """
    elements = _beside("stack", _joined("stack", values))
    lead = _lead(elements)
    if any(element.spec.shape != lead.spec.shape for element in elements):
        raise SpecError(
            "cannot stack values of different shape",
            element="stack",
            site=user_site(),
            expected="equal shapes",
            got=" and ".join(format_shape(element.spec.shape) for element in elements),
        )
    ndim = lead.ndim + 1
    place = whole("stack", "axis", axis, -MOST)
    if not -ndim <= place < ndim:
        raise SpecIndexError(
            f"cannot find axis {place}", element="stack", site=user_site(), expected=f"{-ndim} to {ndim - 1}"
        )
    along = place % ndim - lead.spec.is_stream
    if along < 0:
        raise SpecError(
            "cannot stack streams along the stream",
            element="stack",
            site=user_site(),
            expected=f"an axis from 1 to {ndim - 1}",
            got="axis 0, the stream",
            hint="fc.concat plays streams one after the other",
        )
    return _together(STACK, elements, (*lead.spec.shape[:along], len(elements), *lead.spec.shape[along:]), along)


@public
def concat(values: Sequence[Operand], axis: int | None = 0) -> Any:
    """Join values one after the other along an axis; along axis 0 streams are played one after the other.

    Args:
        values: elements of one rank; dtypes promote as NumPy's. A resident one beside a stream may lack axis 0 or have
            one row, and is repeated for each record: `concat([token, x], axis=1)`.
        axis: along which they are joined; None flattens each value first, whatever its rank.

    Raises:
        SpecError: if they differ in other axes.
    """
    elements = _joined("concat", values)
    if axis is None:
        _refuse_residents(elements)
        elements, axis = [_flat(element) for element in elements], 0
    lead = _lead(elements)
    place = whole("concat", "axis", axis, -MOST)
    if lead.spec.is_stream and place in (0, -lead.ndim):
        _refuse_residents(elements)
    else:
        elements = _beside("concat", elements)
    if any(len(element.spec.shape) != len(lead.spec.shape) for element in elements) or lead.ndim == 0:
        raise SpecError(
            "cannot join values of different rank",
            element="concat",
            site=user_site(),
            expected="as many axes in each value, at least one",
            got=" and ".join(str(element.spec) for element in elements),
            hint="y[:, None] has one axis more than y",
        )
    (normal,) = normalise_axes("concat", lead, place)
    if lead.spec.is_stream and normal == 0:
        return concat_streams(elements)
    along = normal - lead.spec.is_stream
    rest = {(*element.spec.shape[:along], *element.spec.shape[along + 1 :]) for element in elements}
    if len(rest) > 1:
        raise SpecError(
            "cannot join values that differ in another axis",
            element="concat",
            site=user_site(),
            expected="equal sizes along all other axes",
            got=" and ".join(format_shape(element.spec.shape) for element in elements),
        )
    total = sum(element.spec.shape[along] for element in elements)
    return _together(CONCAT, elements, (*lead.spec.shape[:along], total, *lead.spec.shape[along + 1 :]), along)


def _flat(element: Any) -> Any:
    """Return the numbers of a value in a row: of a stream those of one record after the other."""
    return flatten(element) if element.spec.is_stream else reshape(element, (-1,))


def _together(op: Op, elements: list[Any], shape: tuple[int, ...], axis: int) -> Any:
    if all(isinstance(element, Constant) for element in elements):
        return Constant(op.numpy([element.value for element in elements], axis=axis))
    streams = [element for element in elements if element.spec.is_stream]
    if not streams:
        return make_view(op, tuple(elements), shape, axis=axis)
    stream = Stream(common_length(op.name, streams))
    return Compute(op, tuple(elements), Spec(elements[0].dtype, shape, stream), {"axis": axis})
