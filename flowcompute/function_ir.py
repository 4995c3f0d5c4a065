"""Functions of users after typing: plain data that says everything a backend needs to know.

Dtypes are names ("float32"). Expressions are in dtypes that are computed in: half formats are
float32 inside a function and rounded where its results are stored. Every variable has one
dtype in the whole function. A division of integers by zero, shifts and casts mean what
flowcompute's own operations mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields

import numpy as np

from flowcompute.imports import dataclass, hashlib
from flowcompute.spec import BFLOAT16

# -- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number that is known."""

    value: bool | int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of the function."""

    index: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Local:
    """The present value of a variable."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An element-wise operation of the tables, by name; its operands are of one dtype."""

    op: str
    operands: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A number in another dtype; floats to integers saturate, and NaN gives 0."""

    operand: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Choose:
    """`yes` where the condition holds, else `no`."""

    condition: Expr
    yes: Expr
    no: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class ItemAt:
    """A number of an array. A negative index counts from the end, one outside is the nearest inside."""

    array: str
    index: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """Another function, of which one result is wanted here (all of them in `SetAll`)."""

    function: TypedFunction
    operands: tuple[Expr, ...]
    dtype: str


Expr = NumberLiteral | Parameter | Local | Operation | Cast | Choose | ItemAt | Call


# -- statements -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Set:
    """A statement that gives a variable a value."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class SetAll:
    """A statement that gives variables the results of a function, one each."""

    names: tuple[str, ...]
    call: Call


@dataclass(frozen=True, slots=True)
class Fill:
    """Make all numbers of an array one value."""

    array: str
    value: Expr


@dataclass(frozen=True, slots=True)
class PutAt:
    """Set a number of an array; see `ItemAt` for the index."""

    array: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`."""

    condition: Expr
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class WhileLoop:
    """Repeat while the condition holds; `step` also runs after `Next`."""

    condition: Expr
    body: tuple[Stmt, ...]
    step: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class ForRange:
    """Repeat with `counter` at known numbers: start, start + step, ... up to but without stop."""

    counter: str
    start: int
    stop: int
    step: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """`break`."""


@dataclass(frozen=True, slots=True)
class Next:
    """`continue`."""


@dataclass(frozen=True, slots=True)
class Return:
    """End with these results."""

    values: tuple[Expr, ...]


Stmt = Set | SetAll | Fill | PutAt | Branch | WhileLoop | ForRange | Leave | Next | Return


@dataclass(frozen=True, slots=True)
class Variable:
    """A local variable; `size` is 0, or how many numbers an array holds.

    `counter`: of a `ForRange`, set by nothing else.
    """

    name: str
    dtype: str
    size: int = 0
    counter: bool = False


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """A function for arguments of known dtypes.

    Attributes:
        name: its name in Python.
        parameters: dtypes of the arguments, as stored.
        variables: what its statements set.
        body: its statements; each way through them ends with a `Return`.
        results: dtypes of the results, as stored.
        unroll: turns of its loops with a `counter` that are written out; 0 leaves it to the kernel. No part of
            what the function is: it changes no number.
    """

    name: str
    parameters: tuple[str, ...]
    variables: tuple[Variable, ...]
    body: tuple[Stmt, ...]
    results: tuple[str, ...]
    unroll: int = field(default=0, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits, equal for functions that compute the same by the same steps."""
        return hashlib.blake2b(_written_out(self).encode(), digest_size=8).hexdigest()


Part = Expr | Stmt | TypedFunction

KEPT_NAMES: dict[type, str] = {
    NumberLiteral: "Number",
    Parameter: "Parameter",
    Local: "Local",
    Operation: "Operation",
    Cast: "Cast",
    Choose: "Choose",
    ItemAt: "Item",
    Call: "Call",
    Set: "Set",
    SetAll: "SetAll",
    Fill: "Fill",
    PutAt: "Put",
    Branch: "Branch",
    WhileLoop: "While",
    ForRange: "For",
    Leave: "Leave",
    Next: "Next",
    Return: "Return",
    Variable: "Variable",
    TypedFunction: "Function",
}
"""The name of each class of parts in checkpoints and in digests. A class may be renamed; its name here stays."""


def _written_out(function: TypedFunction) -> str:
    """Return a function as the text that its digest is made of: calls of constructors, under the kept names."""
    text: list[str] = []
    todo: list[object] = [function]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            text.append(one)
        elif isinstance(one, tuple):
            inside = [piece for value in one for piece in (_piece(value), ", ")]
            # As Python writes it: a tuple of one ends with a comma.
            ends = inside[:-1] if len(one) != 1 else [*inside[:-1], ","]
            todo += reversed(["(", *ends, ")"])
        elif isinstance(one, Part | Variable):
            said = [(field.name, getattr(one, field.name)) for field in fields(one) if field.repr]
            inside = [piece for name, value in said for piece in (f"{name}=", _piece(value), ", ")]
            todo += reversed([f"{KEPT_NAMES[type(one)]}(", *inside[:-1], ")"])
    return "".join(text)


def _piece(value: object) -> object:
    """Return a part or a tuple as it is, and anything else as text."""
    return value if isinstance(value, tuple | Part | Variable) else repr(value)


def parts(node: Part) -> Iterator[Part]:
    """Yield a node and everything in it, called functions included."""
    todo: list[object] = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo.extend(part)
        elif isinstance(part, Part):
            yield part
            todo.extend(getattr(part, one.name) for one in fields(part))


def functions(function: TypedFunction) -> list[TypedFunction]:
    """Return a function and those that it calls, at any depth."""
    return [part for part in parts(function) if isinstance(part, TypedFunction)]


def leaves_unroll_open(function: TypedFunction) -> bool:
    """Check whether a function, or one it calls, has loops over known numbers and no say in how they are written."""
    return any(one.unroll == 0 and any(variable.counter for variable in one.variables) for one in functions(function))


def loops(function: TypedFunction) -> bool:
    """Check whether numbers may take different numbers of steps, and so perhaps never end."""
    return any(isinstance(part, WhileLoop) for part in parts(function))


def stored(name: str) -> np.dtype:
    """Return the dtype of this name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def dtypes_inside(function: TypedFunction) -> set[str]:
    """Return every dtype that is computed in."""
    return {part.dtype for part in parts(function) if isinstance(part, Expr)} | set(function.results)
