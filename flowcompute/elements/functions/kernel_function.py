"""`fc.kernel`: Python functions as element-wise operations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any, ClassVar, overload

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements.alignment import broadcast
from flowcompute.elements.compute import Compute, Constant, Operand, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import is_weak
from flowcompute.elements.functions.callable_tables import OPERATIONS
from flowcompute.elements.functions.calls import Nested
from flowcompute.elements.functions.neighbours import (
    Boundary,
    Neighbours,
    check_boundary,
    neighbour_operands,
    read_neighbours,
)
from flowcompute.elements.functions.own_gradient import Gradient, checked_gradient
from flowcompute.elements.functions.promote import BOOLEAN, WHOLE, Type, own_float
from flowcompute.elements.functions.read_source import check_parameters, read_source
from flowcompute.elements.functions.statements import typed
from flowcompute.elements.op import Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import KernelError, SpecError, short_repr
from flowcompute.imports import dataclass
from flowcompute.spec import Spec

_LOOP_COST = 100

TURNS = (1, 2, 4, 8, 16)
"""The numbers of turns in which a loop may be written out; 1 leaves it to the compiler."""


def _never_called(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("a kernel's dtypes are found by typing it")


def _evaluated(*_: object) -> np.ndarray:
    raise AssertionError("backends evaluate a kernel's typed function")


@dataclass(frozen=True, repr=False)
class UserOp(Op):
    """One result of a user's function as an element-wise operation.

    Attributes:
        function: what it computes, for arguments of known dtypes.
        result: which of its results.
        vjp: the gradient that its user gave it; None for the derivative of its statements.
    """

    made_by_call: ClassVar[bool] = True

    function: ir.TypedFunction = field(default_factory=lambda: ir.TypedFunction("", (), (), (), ()), hash=False)
    result: int = 0
    vjp: Gradient | None = field(default=None, hash=False, compare=False)

    @property
    def float64(self) -> bool:
        """True where anything in it is computed in float64."""
        return "float64" in ir.dtypes_inside(self.function)


_IN_PYTHON = ContextVar("_IN_PYTHON", default=False)


def _in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself, in which other kernels are the functions themselves too."""

    @functools.wraps(function)
    def python(*numbers: Any, **named: Any) -> Any:
        before = _IN_PYTHON.set(True)
        try:
            return function(*numbers, **named)
        finally:
            _IN_PYTHON.reset(before)

    return python


class KernelFunction:
    """A Python function that runs on elements; made by `fc.kernel`.

    Attributes:
        python: the function itself, run by Python on numbers: the oracle. Kernels that it calls are
            run by Python too.
        arity: number of its arguments.
    """

    def __init__(
        self, function: Callable[..., Any], boundary: Boundary | None = None, unroll: int | None = None
    ) -> None:
        self.source = read_source(function)
        self.names = check_parameters(self.source)
        check_boundary(boundary, self.source.name)
        self.boundary = boundary
        self.unroll = _checked_unroll(unroll, self.source.name)
        indexed = self.source.tree.args.kwonlyargs
        self.neighbours = read_neighbours(self.source, self.names) if indexed else None
        if boundary is not None and not indexed:
            raise self.source.error(
                self.source.tree,
                "cannot take a boundary without an index",
                expected="index parameters after *",
                hint=f"def {self.source.name}(x, *, i): ... x[i - 1]",
            )
        self.python = _in_python(function)
        self._vjp: Gradient | None = None
        self.arity = len(self.names)
        self.__name__ = self.source.name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.__module__ = function.__module__

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def __call__(self, *operands: Operand) -> Any:
        """Apply the function to elements, arrays and Python numbers, number by number: lazy, like a built-in.

        Raises:
            KernelError: where the function holds what a kernel cannot do, with its line.
            SpecError: if operands do not fit.
        """
        if _IN_PYTHON.get():
            return self.__wrapped__(*operands)
        if len(operands) != self.arity:
            raise SpecError(
                "cannot take so many operands",
                element=self.__name__,
                site=user_site(),
                expected=f"{self.arity}: {', '.join(self.names)}",
                got=str(len(operands)),
            )
        if not operands:
            raise SpecError(
                "cannot find the shape of a kernel without operands", element=self.__name__, site=user_site()
            )
        elements, types = self.typed_operands(operands)
        if self.neighbours is None:
            function, kinds = self.specialised(types, None, ())
        else:
            elements, types, function, kinds = self._around(self.neighbours, elements, types)
        aligned, shape, stream = broadcast(self.__name__, elements)
        op_values = [replace(user_op(function, i, self.__doc__ or ""), vjp=self._vjp) for i in range(len(kinds))]
        attrs = {"function": function.digest}
        results = tuple(
            Compute(op, tuple(aligned), Spec(kind.dtype, shape, stream), {**attrs, "result": op.result})
            for op, kind in zip(op_values, kinds, strict=True)
        )
        return results[0] if len(results) == 1 else results

    def vjp(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        """Give the function a gradient of its own, in place of the derivative of its statements: `@f.vjp`.

        Args:
            gradient: takes the operands as elements, then the cotangent of each result. It returns one cotangent for
                each operand, or None for 0; of one operand the cotangent itself.

        Returns:
            `gradient`, as it was given.

        Raises:
            SpecError: if it cannot be called.
        """
        self._vjp = checked_gradient(gradient, self.__name__)
        return gradient

    def _around(
        self, found: Neighbours, elements: Sequence[Element], types: Sequence[Type]
    ) -> tuple[list[Element], list[Type], ir.TypedFunction, tuple[Type, ...]]:
        """Return operands and function of a kernel that reads neighbours."""
        made, indices = neighbour_operands(found, self.__name__, elements, self.boundary)
        kinds = [*(types[operand] for operand, _ in found.parameters), *(WHOLE for _ in indices)]
        weak_float = own_float(types)
        function, results = typed(found.source, found.names, kinds, weak_float, self._nested(weak_float, ()))
        return [*made, *indices], kinds, replace(function, unroll=self.unroll), results

    def typed_operands(self, operands: Sequence[Operand]) -> tuple[list[Element], list[Type]]:
        """Return operands as elements; Python numbers are weak beside others."""
        strong = [None if is_weak(operand) else as_element(operand, self.__name__) for operand in operands]
        alone = all(element is None for element in strong)
        weak_float = own_float([Type(element.dtype) for element in strong if element is not None])
        elements, types = [], []
        for operand, element in zip(operands, strong, strict=True):
            if element is None and not alone:
                kind = BOOLEAN if isinstance(operand, bool) else WHOLE
                kind = Type(weak_float, weak=True) if isinstance(operand, float) else kind
                try:
                    element = Constant(np.asarray(operand, kind.dtype))
                except OverflowError:
                    raise SpecError(
                        "cannot hold a Python number in 64 bits",
                        element=self.__name__,
                        site=user_site(),
                        expected="a number of 64 bits",
                        got=short_repr(operand),
                    ) from None
            else:
                element = as_element(operand, self.__name__) if element is None else element
                kind = Type(element.dtype)
            elements.append(element)
            types.append(kind)
        return elements, types

    def specialised(
        self, types: Sequence[Type], weak_float: np.dtype | None, callers: tuple[KernelFunction, ...]
    ) -> tuple[ir.TypedFunction, tuple[Type, ...]]:
        """Type the function for arguments of these types; return it with the types of its results."""
        if self in callers:
            raise self.source.error(
                self.source.tree,
                "cannot call itself, directly or through another kernel",
                expected="functions that end with known depth",
                hint="write it as a loop",
            )
        if self.neighbours is not None:
            raise self.source.error(
                self.source.tree,
                "cannot be called by another kernel, since it reads neighbours",
                hint="call it on elements, and the other kernel on what it gives",
            )
        inner_float = weak_float or own_float(types)
        function, results = typed(self.source, self.names, types, inner_float, self._nested(inner_float, callers))
        return replace(function, unroll=self.unroll), results

    def _nested(self, weak_float: np.dtype, callers: tuple[KernelFunction, ...]) -> Nested:
        def nested(function: KernelFunction, given: Sequence[Type]) -> tuple[ir.TypedFunction, tuple[Type, ...]]:
            return function.specialised(given, weak_float, (*callers, self))

        return nested


def user_op(function: ir.TypedFunction, result: int, doc: str) -> UserOp:
    """Return the record of one result of a function."""
    cost = sum(OPERATIONS[part.op].cost for part in ir.parts(function) if isinstance(part, ir.Operation))
    looped = any(isinstance(part, ir.WhileLoop | ir.ForRange) for part in ir.parts(function))
    return UserOp(
        function.name,
        len(function.parameters),
        Kind.ELEMENTWISE,
        _evaluated,
        _never_called,
        cost=max(cost, 1) * (_LOOP_COST if looped else 1),
        doc=doc,
        function=function,
        result=result,
    )


def _checked_unroll(unroll: int | None, name: str) -> int:
    """Return how many turns are written out; 0 where nobody says so."""
    if unroll is not None and (type(unroll) is not int or unroll not in TURNS):
        raise KernelError(
            "cannot take unroll=",
            element=name,
            site=user_site(),
            expected=" or ".join(map(str, TURNS)),
            got=short_repr(unroll),
        )
    return unroll or 0


@overload
def kernel(function: Callable[..., Any]) -> KernelFunction: ...
@overload
def kernel(
    *, boundary: Boundary | None = None, unroll: int | None = None
) -> Callable[[Callable[..., Any]], KernelFunction]: ...
def kernel(
    function: Callable[..., Any] | None = None, *, boundary: Boundary | None = None, unroll: int | None = None
) -> Any:
    """Make a Python function an element-wise operation: typed, written as OpenCL C, fused like a built-in.

    The function is read, not run: its source is translated. It may hold arithmetic, comparisons,
    `and`/`or`/`not`, conditional expressions, `if`, `while` and `for` over `range`. It may set local
    variables and local arrays of known size (`a = [0.0] * 4`). It may call functions of `math`, NumPy's
    of numbers, `abs`, `min`, `max`, `round`, `int`, `float`, `bool` and other kernels. It returns a
    number or a tuple of them, which become several elements that share one kernel.

    Meaning is Python's, with dtypes in place of Python's numbers. Arguments keep theirs and promote as in NumPy.
    Python's own numbers (literals, counters, what `int()` and `math.floor` give) are weak, so float32 stays float32.
    `/` of integers gives float64. Half formats are computed in float32 and rounded where they are returned.

    What would raise in Python has a value here. A division by zero gives infinity, NaN, or 0 for integers. An index
    outside an array is the nearest inside. `min` and `max` are Python's too: they keep the first of two that do not
    compare.

    A loop that does not end for some number is stopped with the run by the NumPy backend. A kernel on a device cannot
    be stopped, so give such loops a limit.

    Numbers outside the function are captured by value whenever it is called with elements.

    Parameters after `*` are indices, one for each item axis (or for the stream, where its items are
    numbers). With them a kernel reads neighbours at known distances, and where it stands:

        @fc.kernel(boundary="edge")
        def blur(x, *, i, j):
            return (x[i - 1, j] + 2 * x[i, j] + x[i + 1, j]) / 4

    Args:
        function: what is to run on elements.
        boundary: what such a kernel reads beyond the edges. That is the last number ("edge"), what a mirror on it shows
            ("reflect"), the other end ("wrap", not of a stream), or a number.
        unroll: how many turns of its loops over `range` of known numbers are written out: 1 (as the
            compiler likes), 2, 4, 8 or 16. It changes no number, and so nothing of the job; unset it is
            `function_unroll` of the strategy, a knob that may be tuned.

    Returns:
        A `KernelFunction`; call it with elements, arrays and Python numbers, which broadcast as for
        a built-in. Its `.python` is the function itself.

    Raises:
        KernelError: with file and line, for source that is not to be had or cannot be translated. What depends on the
            arguments is found where it is called.
    """
    if function is None:
        return functools.partial(kernel, boundary=boundary, unroll=unroll)
    if not callable(function):
        raise KernelError("cannot make a kernel of this", site=user_site(), got=short_repr(function))
    return KernelFunction(function, boundary, unroll)
