"""A plan as rows of plain data: each value once, after those that it is made of.

A row is a number, a text, a flag or None; or a list of a tag and of the places of earlier rows. Tags are those of the
tables here, so reading makes instances of these classes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from flowcompute import fuse, ir, rewrite, spec
from flowcompute.elements import RECORDS, Element, Op, math
from flowcompute.elements.quantized import BlockFormat, formats_by_name
from flowcompute.graph import Graph, Node, UnknownError
from flowcompute.schedule.plan import Clock, MemoryPlan, Pass, SinkStage, SourceStage
from flowcompute.schedule.steps import NodeStep, RegionStep
from flowcompute.strategy import KernelKnobs

_PLAIN = frozenset({bool, int, str, float, type(None)})
_DTYPES = {dtype.name: dtype for dtype in spec.SUPPORTED_DTYPES}
_OPS = {op.kept_name: op for op in vars(math).values() if isinstance(op, Op)} | RECORDS
"""Operations of kernels: no graph has some of them."""

_CLASSES: dict[str, type[Any]] = {
    one.__name__: one
    for one in (
        *(Clock, MemoryPlan, Pass, SinkStage, SourceStage, NodeStep, RegionStep, KernelKnobs),
        *(fuse.Access, fuse.Reason, fuse.Region, fuse.WeightTiles, rewrite.Entry, spec.Spec, spec.Stream),
        *[one for one in vars(ir).values() if isinstance(one, type) and is_dataclass(one)],
    )
}


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if one.init)


_FIELDS = {kind: _names(kind) for kind in _CLASSES.values()}


class PlanWriter:
    """Writer of rows. Equal values of one type are written once; 0.0, -0.0, 0 and False are not equal here.

    Attributes:
        rows: that were written.
    """

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[object, int] = {}
        self._known: dict[int, tuple[int, object]] = {}

    def place(self, value: Any) -> int:
        """Return the place of the row of a value, which is written where there is none.

        Raises:
            UnknownError: for a value of a class that is not in the tables.
        """
        kind = type(value)
        if kind in _PLAIN:
            return self._row((kind, repr(value)), value)
        known = self._known.get(id(value))
        if known is None:
            # What is known by its identity is held, so that nothing else gets it.
            known = self._known[id(value)] = self._written(kind, value), value
        return known[0]

    def _written(self, kind: type[Any], value: Any) -> int:
        if kind is tuple:
            return self._shared("tuple", value)
        if kind in _FIELDS:
            return self._shared(kind.__name__, [getattr(value, name) for name in _FIELDS[kind]])
        if kind is dict:
            # Whoever made it may have made two that are equal now.
            parts = [part for pair in value.items() for part in pair]
            self.rows.append(["dict", *map(self.place, parts)])
            return len(self.rows) - 1
        if kind is frozenset:
            return self._shared("frozenset", sorted(value, key=repr))
        if kind is Element:
            # Of the plan without elements: whoever binds it to a graph puts others there.
            return self._shared("nothing", [])
        if kind is Node:
            return self._shared("node", [value.id])
        if isinstance(value, np.dtype) and _DTYPES.get(value.name) == value:
            return self._shared("dtype", [value.name])
        if isinstance(value, Op) and _OPS.get(value.kept_name) is value:
            return self._shared("op", [value.kept_name])
        if isinstance(value, BlockFormat) and formats_by_name().get(value.name) is value:
            return self._shared("blocks", [value.name])
        raise UnknownError

    def _shared(self, tag: str, parts: Sequence[Any]) -> int:
        places = tuple(map(self.place, parts))
        return self._row((tag, places), [tag, *places])

    def _row(self, key: object, row: Any) -> int:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.rows)
            self.rows.append(row)
        return place


def read_rows(rows: Sequence[Any], graph: Graph) -> list[Any]:
    """Return the values of rows, by place.

    Args:
        rows: as `PlanWriter` wrote them.
        graph: whose nodes steps have.

    Raises:
        IndexError, KeyError, TypeError, ValueError: if something else wrote them.
    """
    makers: Mapping[str, Callable[[list[Any]], Any]] = {**_MAKERS, "node": lambda parts: graph.nodes[parts[0]]}
    values: list[Any] = []
    for row in rows:
        values.append(makers[row[0]]([values[i] for i in row[1:]]) if type(row) is list else row)
    return values


def _maker(kind: type[Any]) -> Callable[[list[Any]], Any]:
    names = _FIELDS[kind]
    if any(one.kw_only for one in fields(kind)):
        return lambda parts: kind(**dict(zip(names, parts, strict=True)))
    return lambda parts: kind(*parts)


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    **{name: _maker(kind) for name, kind in _CLASSES.items()},
    "tuple": tuple,
    "frozenset": frozenset,
    "dict": lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "nothing": lambda _: None,
    "dtype": lambda parts: _DTYPES[parts[0]],
    "op": lambda parts: _OPS[parts[0]],
    "blocks": lambda parts: formats_by_name()[parts[0]],
}
