"""Kernels that read neighbours: `x[i - 1]` becomes an operand of its own, a view of padded items."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from flowcompute.elements.axes import pad, window
from flowcompute.elements.compute import Constant
from flowcompute.elements.element import Element
from flowcompute.elements.functions.read_source import FunctionSource, assigned_names
from flowcompute.elements.generated import index as positions
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import dataclass

Boundary = Literal["edge", "reflect", "wrap"] | float


@dataclass(frozen=True)
class Neighbours:
    """The neighbours that a function reads around the present number.

    Attributes:
        source: the function with a parameter of its own for each neighbour, so that it is element-wise.
        parameters: of that function: (which operand, offsets or None where it is not indexed).
        indices: index parameters that it reads as numbers, after those.
        axes: index parameters that it declares.
        halo: how far it reads on each axis.
    """

    source: FunctionSource
    names: tuple[str, ...]
    parameters: tuple[tuple[int, tuple[int, ...] | None], ...]
    indices: tuple[int, ...]
    axes: int
    halo: tuple[int, ...]


class _Rewriter(ast.NodeTransformer):
    """Replaces what is indexed by index parameters."""

    def __init__(self, source: FunctionSource, names: Sequence[str], indices: Sequence[str]) -> None:
        self.source = source
        self.names = list(names)
        self.indices = list(indices)
        self.found: dict[tuple[int, tuple[int, ...]], str] = {}
        self.plain: set[str] = set()
        self.read: set[str] = set()

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Translate `x[i - 1, j]`."""
        if not (isinstance(node.value, ast.Name) and node.value.id in self.names):
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise self.source.error(node, f"cannot assign to {self.source.text(node)}", expected="to read neighbours")
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(keys) != len(self.indices):
            raise self.source.error(
                node,
                "cannot read without an index for each axis",
                expected=f"[{', '.join(self.indices)}]",
                got=self.source.text(node),
            )
        offsets = tuple(self._offset(key, name) for key, name in zip(keys, self.indices, strict=True))
        key = self.names.index(node.value.id), offsets
        said = "_".join(str(offset).replace("-", "m") for offset in offsets)
        name = self.found.setdefault(key, f"{node.value.id}_at_{said}")
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return a parameter or index on its own."""
        if node.id in self.names:
            self.plain.add(node.id)
        if node.id in self.indices:
            self.read.add(node.id)
        return node

    def _offset(self, node: ast.expr, index: str) -> int:
        match node:
            case ast.Name(id=name) if name == index:
                return 0
            case ast.BinOp(
                left=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int() as by)
            ):
                if name == index and not isinstance(by, bool):
                    return by if isinstance(op, ast.Add) else -by
        raise self.source.error(
            node,
            f"cannot read at {self.source.text(node)}, which is no known distance from the present number",
            expected=f"{index}, {index} + 1 or {index} - 1, with a number that stands there",
        )


def read_neighbours(source: FunctionSource, names: tuple[str, ...]) -> Neighbours:
    """Return the element-wise function that remains when neighbours are operands of their own.

    Raises:
        KernelError: for indices that are no fixed distance, or indices that are assigned.
    """
    indices = tuple(argument.arg for argument in source.tree.args.kwonlyargs)
    taken = assigned_names(source.tree) & {*names, *indices}
    if taken:
        raise source.error(
            source.tree,
            f"cannot assign to {', '.join(sorted(taken))}",
            expected="variables of its own in a kernel with indices",
        )
    rewriter = _Rewriter(source, names, indices)
    body = [rewriter.visit(part) for part in source.tree.body]
    both = {names[operand] for operand, _ in rewriter.found} & rewriter.plain
    if both:
        one = min(both)
        raise source.error(
            source.tree, f"cannot read {one!r} both with an index and without", expected=f"{one}[{', '.join(indices)}]"
        )
    parameters: list[tuple[int, tuple[int, ...] | None]] = [*rewriter.found]
    parameters += [(i, None) for i, name in enumerate(names) if name in rewriter.plain]
    own = [*rewriter.found.values(), *(name for name in names if name in rewriter.plain)]
    used = tuple(i for i, name in enumerate(indices) if name in rewriter.read)
    offsets = [at for _, at in rewriter.found]
    halo = tuple(max((abs(at[axis]) for at in offsets), default=0) for axis in range(len(indices)))
    tree = ast.FunctionDef(
        source.tree.name, source.tree.args, body, [], lineno=source.tree.lineno, col_offset=source.tree.col_offset
    )
    all_names = (*own, *(indices[i] for i in used))
    return Neighbours(replace(source, tree=tree), all_names, tuple(parameters), used, len(indices), halo)


def neighbour_operands(
    found: Neighbours, name: str, operands: Sequence[Any], boundary: Boundary | None
) -> tuple[list[Any], list[Element]]:
    """Return an operand for each parameter of the element-wise function, and the indices that it reads.

    Raises:
        SpecError: if operands have other axes, or nothing says what lies beyond the boundary.
    """
    if any(found.halo) and boundary is None:
        raise SpecError(
            "cannot read neighbours without a boundary",
            element=name,
            site=user_site(),
            hint='@fc.kernel(boundary="edge"), "reflect", "wrap" or a number',
        )
    around = {operand: operands[operand] for operand, offsets in found.parameters if offsets is not None}
    for element in around.values():
        _check_axes(element, found, name)
    shapes = {element.spec.shape for element in around.values()}
    if len(shapes) > 1:
        raise SpecError(
            "cannot index operands of different axes together",
            element=name,
            site=user_site(),
            got=" and ".join(map(str, shapes)),
        )
    padded = {operand: _padded(element, found, name, boundary) for operand, element in around.items()}
    made = [
        operands[operand] if offsets is None else _view(padded[operand], operands[operand], offsets, found.halo)
        for operand, offsets in found.parameters
    ]
    first = next(iter(around.values()), None)
    return made, [_index(first, axis, found, name) for axis in found.indices]


def _check_axes(element: Element, found: Neighbours, name: str) -> None:
    along_stream = element.spec.is_stream and not element.spec.shape
    axes = 1 if along_stream else len(element.spec.shape)
    if axes != found.axes:
        raise SpecError(
            "cannot read without an index for each item axis",
            element=name,
            site=user_site(),
            expected=f"{axes} for {element.spec}" if axes else "an operand with axes",
            got=str(found.axes),
            hint="the stream itself is indexed only where its items are numbers",
        )


def _padded(element: Element, found: Neighbours, name: str, boundary: Boundary | None) -> Element:
    """Return the operand with as much beyond its edges as is read; of a stream of numbers its windows."""
    if not any(found.halo):
        return element
    if not element.spec.shape:
        if boundary == "wrap":
            raise SpecError(
                "cannot wrap around a stream",
                element=name,
                site=user_site(),
                expected='boundary="edge", "reflect" or a number',
            )
        return window(element, 2 * found.halo[0] + 1, pad=boundary)
    widths = [(by, by) for by in found.halo]
    named = isinstance(boundary, str)
    made: Element = pad(element, widths, boundary) if named else pad(element, widths, constant_values=boundary)  # type: ignore[arg-type]
    return made


def _view(padded: Element, element: Element, offsets: Sequence[int], halo: Sequence[int]) -> Element:
    """Return the numbers that lie so far from each."""
    lead = (slice(None),) if element.spec.is_stream else ()
    if not any(halo):
        return element
    if not element.spec.shape:
        column: Element = padded[:, halo[0] + offsets[0]]
        return column
    sizes = element.spec.shape
    starts = [by + offset for by, offset in zip(halo, offsets, strict=True)]
    keys = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    made: Element = padded[(*lead, *keys)]
    return made


def _index(element: Element | None, axis: int, found: Neighbours, name: str) -> Element:
    """Return the place of each number on an axis."""
    if element is None:
        raise SpecError("cannot use an index without an operand that is indexed", element=name, site=user_site())
    if not element.spec.shape:
        length = element.spec.length
        if length is None:
            raise SpecError("cannot know the index in a stream of unknown length", element=name, site=user_site())
        return positions(length)
    size = element.spec.shape[axis]
    return Constant(np.arange(size).reshape(size, *(1,) * (found.axes - axis - 1)))


def check_boundary(boundary: Boundary | None, name: str) -> None:
    """Raise SpecError for what is no boundary rule."""
    number = isinstance(boundary, int | float) and not isinstance(boundary, bool)
    if boundary is None or number or boundary in ("edge", "reflect", "wrap"):
        return
    raise SpecError(
        "cannot take boundary=",
        element=name,
        site=user_site(),
        expected='"edge", "reflect", "wrap" or a number',
        got=short_repr(boundary),
    )
