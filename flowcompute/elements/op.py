"""The record that defines an operation, and what one is rebuilt from. Adding an op is adding a record to a table."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from flowcompute.errors import CheckpointError
from flowcompute.imports import dataclass
from flowcompute.spec import BFLOAT16, BOOL, Spec, parse_dtype

T = TypeVar("T")

MOST = 1 << 63
"""Counts, sizes and positions are below this."""

MOST_AXES = 64
"""Axes, and entries of a list in the attributes of an operation."""

Attrs = dict[str, Any]
"""Attributes of an operation: plain data (numbers, strings, tuples, dtypes, None)."""


class Kind(enum.Enum):
    """The way an operation treats the stream axis, and so how it runs."""

    ELEMENTWISE = "elementwise"  # a map of numbers: batches may be cut anywhere, even inside items
    REDUCE = "reduce"  # a map that reduces item axes
    CONTRACT = "contract"  # a map that multiplies matrices
    FOLD = "fold"  # consumes the stream axis
    SCAN = "scan"  # carries along the stream axis
    WINDOW = "window"  # sees neighbours along the stream axis
    SELECT = "select"  # emits fewer items of the stream
    REBATCH = "rebatch"  # reshapes the stream axis, or joins streams end to end
    VIEW = "view"  # item axes seen in another way: index arithmetic, no copy
    ALONG = "along"  # a resident value cut along the stream
    HOST = "host"  # a Python function on batches

    # There is one object for each kind. The hash of an Enum is that of its name, and is computed in Python.
    __hash__ = object.__hash__


DtypeRule = Callable[..., tuple[np.dtype, ...]]
"""`rule(*operand dtypes or int/float/bool for weak scalars) -> (operand dtypes..., result dtype)`"""

Rebuild = Callable[["KeptOp"], Any]
"""Makes an operation again from its operands and attributes. Whoever asks compares the result with what was kept."""


@dataclass(frozen=True)
class Op:
    """An operation.

    Attributes:
        name: the Array API name where there is one; also what errors and drawings say.
        arity: number of operands.
        kind: how it treats the stream axis.
        numpy: its meaning, `numpy(*arrays, **attrs)`. For a fold see `reference/`.
        dtypes: which dtypes operands are cast to, and the dtype of the result.
        shape: spec of the result where broadcasting does not give it.
        text: OpenCL C of an element-wise op by class of operand dtype ("float", "int",
            "uint", "bool", or "any"). `{a} {b} {c}` are operands, `{T}` is the operands' vector
            type. `{I}` and `{U}` are the signed and unsigned integer types of the same width, `{R}` the
            floats of it, `{W}` the bits of a number. `{F}` is the name of the helper. A missing text means a
            call by the op's own name.
        helper: the body of a helper function `{T} {F}({T} a, {T} b)` by class, for longer texts.
        ulp: largest error on any device in units in the last place; 0 is exact or correctly rounded.
        cost: rough instructions per number; above 8 a value is worth keeping, not recomputing.
        arithmetic: whether a NaN in the result is made here (and so made canonical when stored).
        reads_sign: whether the sign of an operand that is NaN shows in the result.
        commutes: whether operands may be swapped without changing a bit.
        transparent: whether a graph holds its operand in its place, since only composing tells them apart.
        doc: one sentence for users.
        rebuild: makes a Compute of this operation again from what a checkpoint keeps of it, by the function that
            users call where there is one. None for an operation that no kept job holds by its record.
        made_by_call: whether each call makes a record of its own, which no later call finds again.
    """

    made_by_call: ClassVar[bool] = False

    name: str
    arity: int
    kind: Kind
    numpy: Callable[..., Any]
    dtypes: DtypeRule
    shape: Callable[..., Spec] | None = None
    text: dict[str, str] = field(default_factory=dict, hash=False, compare=False)
    helper: dict[str, str] = field(default_factory=dict, hash=False, compare=False)
    ulp: float = 0.0
    cost: int = 1
    arithmetic: bool = True
    reads_sign: bool = False
    commutes: bool = False
    transparent: bool = False
    doc: str = ""
    rebuild: Rebuild | None = field(default=None, hash=False, compare=False)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def kept_name(self) -> str:
        """The name of this operation in kept jobs: its kind and name. It never changes."""
        return f"{self.kind.value}.{self.name}"


class KeptAttrs(Protocol):
    """Attributes of an operation from a checkpoint. Each is taken by name, type and range, or is a CheckpointError."""

    def __contains__(self, key: str, /) -> bool: ...

    def take(self, key: str) -> Any:
        """Return an attribute unchecked."""

    def whole(self, key: str, least: int = 0, most: int = MOST - 1) -> int:
        """Return a whole number of that range."""

    def flag(self, key: str) -> bool:
        """Return True or False."""

    def text(self, key: str) -> str:
        """Return text of bounded length."""

    def choice(self, key: str, options: Sequence[str]) -> str:
        """Return one of these words."""

    def real(self, key: str) -> float:
        """Return a float."""

    def items(self, key: str, most: int = MOST_AXES) -> Sequence[Any]:
        """Return a list of no more than so many things."""

    def wholes(self, key: str, least: int = 0, most: int = MOST - 1, length: int = MOST_AXES) -> tuple[int, ...]:
        """Return a list of whole numbers of that range."""

    def maybe(self, key: str, read: Callable[[str], T]) -> T | None:
        """Return what another method reads, or None for None."""


@dataclass(frozen=True)
class KeptOp:
    """An operation from a checkpoint, which its record's `rebuild` makes again.

    Attributes:
        op: its record.
        inputs: its operands, made already.
        attrs: its attributes, to be taken one by one.
        spec: the Spec that was kept. A rebuild takes from it only what operands and attributes do not say.
    """

    op: Op
    inputs: tuple[Any, ...]
    attrs: KeptAttrs
    spec: Spec

    def one(self) -> Any:
        """Return the only operand."""
        return self.operands(1)[0]

    def operands(self, *counts: int) -> tuple[Any, ...]:
        """Return the operands.

        Args:
            counts: the numbers of operands that the operation may have.

        Raises:
            CheckpointError: if there is another number of them.
        """
        if len(self.inputs) not in counts:
            raise CheckpointError(
                f"cannot make {self.op.name} again",
                expected=f"{' or '.join(map(str, counts))} operands",
                got=str(len(self.inputs)),
            )
        return self.inputs

    def stream(self) -> Any:
        """Return the only operand, a stream."""
        return self.streams(1)[0]

    def streams(self, *counts: int) -> tuple[Any, ...]:
        """Return the operands, all of them streams; see `operands`."""
        self.require(all(one.spec.is_stream for one in self.operands(*counts)), "streams")
        return self.inputs

    def require(self, sound: bool, expected: str) -> None:
        """Raise CheckpointError unless `sound`, with `expected` as what would be."""
        if not sound:
            got = ", ".join(str(one.spec) for one in self.inputs[:4])[:200]
            raise CheckpointError(
                f"cannot make {self.op.name} again", expected=expected, got=f"other attributes or operands: {got}"
            )

    def public_axis(self, axis: int | None) -> int:
        """Return an axis of items, or None for the stream, as users count axes: the stream is axis 0."""
        return 0 if axis is None else axis + self.inputs[0].spec.is_stream


def by_ufunc(ufunc: np.ufunc) -> DtypeRule:
    """Return the dtype rule of a NumPy ufunc (NEP 50), weak Python scalars included."""

    @functools.lru_cache(256)
    def rule(*operands: Any) -> tuple[np.dtype, ...]:
        # ml_dtypes knows no weak scalars: a Python number takes bfloat16 beside it. A Python bool is never wider
        # than its partner, and NumPy knows no weak form of it.
        bfloat = any(isinstance(operand, np.dtype) and operand == BFLOAT16 for operand in operands)
        operands = tuple(
            operand if isinstance(operand, np.dtype) else BFLOAT16 if bfloat else BOOL if operand is bool else operand
            for operand in operands
        )
        return tuple(map(parse_dtype, ufunc.resolve_dtypes((*operands, *[None] * ufunc.nout))))

    return rule


def _same(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _transparent(name: str, doc: str) -> Op:
    return Op(
        name, 1, Kind.ELEMENTWISE, np.asarray, _same, text={"any": "{a}"}, arithmetic=False, transparent=True, doc=doc,
    )  # fmt: skip


PARAMETER = _transparent("parameter", "A resident value that a gradient is taken of.")
RECOMPUTE = _transparent("recompute", "The value, which gradients compute again.")
STOP_GRADIENT = _transparent("stop_gradient", "The value, through which no gradient flows.")
