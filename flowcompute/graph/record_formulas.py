"""Resident formulas computed for each record: a formula of placeholders becomes one of streams, axis by axis the same.

What operations keep of axes counts those of items. So an operation on a resident value is made again of streams whose
items have that shape by the very function that makes it again from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from flowcompute.elements import MOST, MOST_AXES, Compute, Element, KeptOp, Kind, broadcast, user_site
from flowcompute.elements.axes import reshape
from flowcompute.elements.functions import UserOp
from flowcompute.elements.streams import KernelScan, kernel_scan
from flowcompute.errors import SpecError
from flowcompute.imports import dataclass
from flowcompute.spec import Spec

T = TypeVar("T")


class Placeholder(Element):
    """A resident value that stands for an item of a stream which is not there yet. No plan takes one."""

    def __init__(self, dtype: Any, shape: Sequence[int], name: str | None = None) -> None:
        super().__init__(Spec(np.dtype(dtype), tuple(shape)), name=name)


class _OwnAttrs:
    """The attributes of an operation that is made again here: they were checked when it was made."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self._attrs = attrs

    def __contains__(self, key: str, /) -> bool:
        return key in self._attrs

    def take(self, key: str) -> Any:
        """Return an attribute."""
        return self._attrs[key]

    def whole(self, key: str, least: int = 0, most: int = MOST - 1) -> int:
        """See `take`."""
        del least, most
        return int(self._attrs[key])

    flag = text = real = take

    def choice(self, key: str, options: Sequence[str]) -> str:
        """See `take`."""
        del options
        return str(self._attrs[key])

    def items(self, key: str, most: int = MOST_AXES) -> Sequence[Any]:
        """See `take`."""
        del most
        return tuple(self._attrs[key])

    def wholes(self, key: str, least: int = 0, most: int = MOST - 1, length: int = MOST_AXES) -> tuple[int, ...]:
        """See `take`."""
        del least, most, length
        return tuple(self._attrs[key])

    def maybe(self, key: str, read: Callable[[str], T]) -> T | None:
        """Return what another method reads, or None for None."""
        return None if self._attrs[key] is None else read(key)


@dataclass(frozen=True)
class Made:
    """A stream that stands for a placeholder, and is made of other values of the formulas.

    Attributes:
        of: these values.
        make: is called with what they have become.
    """

    of: tuple[Element, ...]
    make: Callable[..., Element]


def per_record(roots: Iterable[Element], streams: Mapping[Element, Element | Made]) -> list[Any]:
    """Return resident formulas as streams: each record is what the formula gives for the records of its placeholders.

    Args:
        roots: resident elements.
        streams: by placeholder the stream that it stands for, whose items have its shape.

    Returns:
        The streams; what no placeholder is part of stays as it is.

    Raises:
        SpecError: for an operation that streams do not have.
    """
    made: dict[Element, Any] = {}
    every = list(roots)
    # Formulas are deeper than Python's own stack.
    waiting = every[::-1]
    while waiting:
        element = waiting[-1]
        if element in made:
            waiting.pop()
            continue
        given = streams.get(element)
        needed = given.of if isinstance(given, Made) else () if given is not None else element.inputs
        missing = [one for one in needed if one not in made]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        inputs = tuple(made[one] for one in needed)
        if given is not None:
            made[element] = given.make(*inputs) if isinstance(given, Made) else given
        else:
            same = all(one is other for one, other in zip(inputs, needed, strict=True))
            made[element] = element if same else _of_streams(element, inputs)
    return [made[root] for root in every]


def _of_streams(element: Any, inputs: tuple[Any, ...]) -> Any:
    """Make an operation again of operands some of which are streams now."""
    if isinstance(element, KernelScan) and element.attrs["axis"] is not None:
        inputs = _of_one_rank(inputs)
        return kernel_scan(
            element.step.function,
            inputs,
            element.inits,
            element.attrs["axis"] + 1,
            associative=element.associative,
            result=element.step.result,
        )
    op = getattr(element, "op", None)
    if op is not None and op.transparent:
        return Compute(op, inputs, inputs[0].spec)
    if type(element) is not Compute or op is None or (op.rebuild is None and not isinstance(op, UserOp)):
        raise SpecError(
            "cannot compute this for each record",
            element=element.base_name,
            site=user_site(),
            expected="operations that streams of items have",
            got=element.label,
        )
    if op.kind in (Kind.ELEMENTWISE, Kind.CONTRACT, Kind.REDUCE):
        inputs = _of_one_rank(inputs)
    if isinstance(op, UserOp):
        aligned, shape, stream = broadcast(op.name, list(inputs))
        return Compute(op, tuple(aligned), Spec(element.dtype, shape, stream), element.attrs)
    assert op.rebuild is not None
    return op.rebuild(KeptOp(op, inputs, _OwnAttrs(element.attrs), element.spec))


def _of_one_rank(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give streams as many item axes as the operand with the most, so that all line up from the last one."""
    rank = max(len(one.spec.shape) for one in inputs)
    return tuple(
        reshape(one, (-1, *(1,) * (rank - len(one.spec.shape)), *one.spec.shape))
        if one.spec.is_stream and len(one.spec.shape) < rank
        else one
        for one in inputs
    )
