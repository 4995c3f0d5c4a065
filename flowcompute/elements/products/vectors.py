"""Products of vectors that are no sums: outer products and cross products."""

from __future__ import annotations

from typing import Any

from flowcompute.elements.arguments import whole
from flowcompute.elements.axes import flatten, reshape, stack
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element
from flowcompute.elements.math import multiply, normalise_axes, subtract
from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError


@public
def outer(x1: Operand, x2: Operand) -> Any:
    """Multiply each number of `x1` by each of `x2`, as `numpy.outer`; what has several axes is flattened.

    Args:
        x1: any element; a stream gives a stream of rows, one for each of its numbers.
        x2: a resident value.

    Returns:
        An element of shape `(numbers of x1, numbers of x2)`, in the dtype that both promote to.

    Raises:
        SpecError: if `x2` is a stream: every record of one would meet every record of the other.
    """
    left: Any = as_element(x1, "outer")
    right: Any = as_element(x2, "outer")
    if right.spec.is_stream:
        both = left.spec.is_stream
        raise SpecError(
            "cannot multiply by every record of a stream",
            element="outer",
            site=user_site(),
            expected="a resident value on the right",
            got=str(right.spec),
            hint='fc.einsum("ni,nj->nij", x, y) multiplies record by record' if both else "fc.outer(y, x).T",
        )
    flat = flatten(left) if left.spec.is_stream else reshape(left, (-1,))
    return multiply(flat[:, None], reshape(right, (-1,)))


@public
def cross(x1: Operand, x2: Operand, axis: int = -1) -> Any:
    """Return the cross products of vectors of three numbers along `axis`; other axes broadcast.

    Args:
        x1, x2: elements with an axis of size 3 there.
        axis: not that of a stream.

    Raises:
        SpecError: if that axis is the stream or of another size, or the other axes do not broadcast.
    """
    left: Any = as_element(x1, "cross")
    right: Any = as_element(x2, "cross")
    place = whole("cross", "axis", axis, -MOST)
    a, b = (_components(one, place) for one in (left, right))
    parts = [subtract(multiply(a[i], b[j]), multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    (along,) = normalise_axes("cross", left if left.ndim >= right.ndim else right, place)
    return stack(parts, axis=along)


def _components(element: Any, axis: int) -> list[Any]:
    """Return the three numbers of each vector, one value for each place."""
    (along,) = normalise_axes("cross", element, axis)
    if (element.spec.is_stream and along == 0) or element.shape[along] != 3:
        raise SpecError(
            "cannot find vectors of three numbers along this axis",
            element="cross",
            site=user_site(),
            expected="an axis of items, of size 3",
            got=f"axis {axis} of {element.spec}",
        )
    lead = (slice(None),) * along
    return [element[(*lead, place)] for place in range(3)]
