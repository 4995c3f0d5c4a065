"""Typed functions of `fc.kernel` as data, and back: everything is checked that typing a user's function ensures.

A function is a list of its parts (expressions and statements), each after those that it holds. It names these by their
places. Equal parts stand there once. So nothing is nested, however deep the function is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from flowcompute import function_ir as ir
from flowcompute.checkpoint.job.attributes import decode, encode
from flowcompute.checkpoint.job.fields import Fields, refuse, refused
from flowcompute.checkpoint.job.function_rules import Body, Frame

MOST_PARTS = 1 << 16
"""Parts of a function, those of the functions that it calls included each time."""


def describe_functions(functions: Mapping[str, ir.TypedFunction]) -> list[dict[str, Any]]:
    """Return these functions and those that they call, each behind what it calls."""
    found: dict[str, dict[str, Any]] = {}
    for function in functions.values():
        _describe(function, found)
    return list(found.values())


def _describe(function: ir.TypedFunction, found: dict[str, dict[str, Any]]) -> str:
    """Return the digest of a function, which is then among those found."""
    digest = function.digest
    if digest not in found:
        listing = _Listing(found)
        body = listing.all(function.body)
        found[digest] = {
            "digest": digest,
            "name": function.name,
            "parameters": list(function.parameters),
            "variables": [[one.name, one.dtype, one.size, one.counter] for one in function.variables],
            "results": list(function.results),
            "parts": listing.parts,
            "body": body,
        }
    return digest


class _Listing:
    """The parts of one function."""

    def __init__(self, found: dict[str, dict[str, Any]]) -> None:
        self.parts: list[list[Any]] = []
        self._found = found
        self._places: dict[str, int] = {}

    def all(self, parts: Iterable[Any]) -> list[int]:
        """Return places of parts."""
        return [self.place(part) for part in parts]

    def place(self, part: Any) -> int:
        """Return the place of a part, behind those of what it holds."""
        row = [ir.KEPT_NAMES[type(part)], *(self._field(getattr(part, one.name)) for one in fields(part))]
        key = repr(row)
        if key not in self._places:
            self._places[key] = len(self.parts)
            self.parts.append(row)
            if len(self.parts) > MOST_PARTS:
                refuse("cannot keep a kernel that is too long", expected=f"at most {MOST_PARTS} parts")
        return self._places[key]

    def _field(self, value: Any) -> Any:
        if isinstance(value, ir.TypedFunction):
            return _describe(value, self._found)
        if isinstance(value, ir.Expr | ir.Stmt):
            return self.place(value)
        if isinstance(value, tuple) and value and not isinstance(value[0], str):
            return self.all(value)
        return encode(value)


# -- and back ----------------------------------------------------------------------------------------

_FORMS: dict[type[Any], tuple[str, ...]] = {
    ir.NumberLiteral: ("value", "text"),
    ir.Parameter: ("count", "text"),
    ir.Local: ("text", "text"),
    ir.Operation: ("text", "exprs", "text"),
    ir.Cast: ("expr", "text"),
    ir.Choose: ("expr", "expr", "expr", "text"),
    ir.ItemAt: ("text", "expr", "text"),
    ir.Call: ("function", "exprs", "text"),
    ir.Set: ("text", "expr"),
    ir.SetAll: ("texts", "expr"),
    ir.Fill: ("text", "expr"),
    ir.PutAt: ("text", "expr", "expr"),
    ir.Branch: ("expr", "statements", "statements"),
    ir.WhileLoop: ("expr", "statements", "statements"),
    ir.ForRange: ("text", "whole", "whole", "whole", "statements"),
    ir.Leave: (),
    ir.Next: (),
    ir.Return: ("exprs",),
}
"""The fields of each class of parts."""

_KINDS = {ir.KEPT_NAMES[kind]: (kind, forms) for kind, forms in _FORMS.items()}
"""Each class of parts with its fields, by its kept name."""


def rebuild_functions(data: object) -> dict[str, ir.TypedFunction]:
    """Return the functions that were described, by digest.

    Raises:
        CheckpointError: for anything that typing a user's function does not make.
    """
    if not isinstance(data, list | tuple) or len(data) > MOST_PARTS:
        refuse(
            "cannot read the functions of kernels", expected=f"a list of at most {MOST_PARTS}", got=type(data).__name__
        )
    functions: dict[str, ir.TypedFunction] = {}
    sizes: dict[str, int] = {}
    for one in data:
        fields = Fields(one, "a kernel's function")
        digest = fields.text("digest")
        function, sizes[digest] = _Reading(fields, functions, sizes).function()
        fields.close()
        if function.digest != digest:
            refuse("cannot rebuild a kernel's function", expected=f"the digest {function.digest}", got=digest)
        functions[digest] = function
    return functions


class _Reading:
    """Reads one function."""

    def __init__(self, data: Fields, functions: Mapping[str, ir.TypedFunction], sizes: Mapping[str, int]) -> None:
        self._data = data
        self._functions = functions
        self._sizes = sizes
        self._frame = Frame(data)
        self._parts: list[Any] = []
        self._part_sizes: list[int] = []
        self._size = 0
        self._reads = 0

    def function(self) -> tuple[ir.TypedFunction, int]:
        """Return the function, and how many parts it has, those of functions that it calls included each time."""
        data, frame = self._data, self._frame
        name = data.text("name")
        if not name.isidentifier():
            data.wrong("name", "a name")
        for row in data.items("parts", MOST_PARTS):
            self._read(row)
        self._size = self._reads = 0
        body = self._held(data.take("body"), ir.Stmt)
        self._check_size()
        Body(frame).check(body)
        return ir.TypedFunction(name, frame.parameters, frame.variables, body, frame.results), self._size

    def _read(self, row: Any) -> None:
        if not isinstance(row, list | tuple) or not row or not isinstance(row[0], str) or row[0] not in _KINDS:
            refuse("cannot read a part of a kernel", expected="a list that begins with the name of a part", got=row)
        kind, forms = _KINDS[row[0]]
        if len(row) != 1 + len(forms):
            refuse("cannot read the fields of a kernel's part", expected=f"{len(forms)} fields", got=row)
        self._size, self._reads = 1, 0
        part = kind(*(self._field(value, form) for value, form in zip(row[1:], forms, strict=True)))
        self._check_size()
        self._frame.check(part, self._reads)
        self._parts.append(part)
        self._part_sizes.append(self._size)

    def _check_size(self) -> None:
        # Parts stand there once and may be held often: what is short as data may be long as a text.
        if self._size > MOST_PARTS:
            refuse("cannot read a kernel that is too long", expected=f"at most {MOST_PARTS} parts")

    def _field(self, value: Any, form: str) -> Any:
        match form:
            case "text" if isinstance(value, str):
                return value
            case "texts" if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
                return tuple(value)
            case "count" if type(value) is int and value >= 0:
                return value
            case "whole" if type(value) is int:
                return value
            case "value" if isinstance(number := decode(value), bool | int | float):
                return number
            case "function" if isinstance(value, str) and value in self._functions:
                self._size += self._sizes[value]
                return self._functions[value]
            case "expr":
                return self._held([value], ir.Expr)[0]
            case "exprs":
                return self._held(value, ir.Expr)
            case "statements":
                return self._held(value, ir.Stmt)
        raise refused("cannot read a field of a kernel's part", expected=form, got=value)

    def _held(self, places: Any, kind: Any) -> tuple[Any, ...]:
        """Return parts that stand before this one."""
        if not isinstance(places, list | tuple):
            refuse("cannot read what a kernel's part holds", expected="a list of places", got=places)
        parts = []
        for place in places:
            if type(place) is not int or not 0 <= place < len(self._parts) or not isinstance(self._parts[place], kind):
                refuse("cannot rebuild a kernel's part", expected="the place of a part before it", got=place)
            parts.append(self._parts[place])
            self._size += self._part_sizes[place]
            if kind is ir.Expr:
                self._reads |= self._frame.reads[id(parts[-1])]
        return tuple(parts)
