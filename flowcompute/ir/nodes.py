"""Kernel IR: a loop nest over named integers with typed vector values. Rendered by `gpu/render`.

Indices, bounds and conditions are those of `ir.index_nodes`. Each value is a `Var` that one `Let` declares.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from flowcompute.elements import Op
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.elements.generated import Generator
from flowcompute.elements.quantized import BlockFormat
from flowcompute.imports import dataclass
from flowcompute.ir.index_nodes import ConditionLike, IndexLike, Name
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32

ArgumentKind = Literal[
    "input", "output", "partial", "merged", "carry", "state", "words", "maps", "room", "scalar", "integer"
]


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a kernel.

    Attributes:
        name: its name.
        kind: "input" and "output" point to values. "partial" points to block results, "merged" to merged blocks, and
            "carry" to the unfinished block of a fold. "state" points to the carry of a scan from batch to batch, and
            "words" to the words that its tiles exchange; of no scan, to those that count work-groups. "maps" points to
            room for maps of tensor copies, "room" to what work-groups hand over. "scalar" is a number; "integer" is a
            long.
        dtype: its dtype.
        value: id of the value (of the fold for partials and carries); -1 for integers, and for words of no scan.
        part: index of the accumulator of a fold.
        period: number count of a resident operand that is read cyclically (padded by a vector); otherwise 0.
        blocks: format of the blocks that it points to, of which each load decodes float32. Indices count numbers.
        numbers: count of the numbers of a room; otherwise 0.
    """

    name: str
    kind: ArgumentKind
    dtype: np.dtype
    value: int = -1
    part: int = 0
    period: int = 0
    blocks: BlockFormat | None = None
    numbers: int = 0

    @property
    def loaded_dtype(self) -> np.dtype:
        """The dtype in which numbers that are loaded of it are computed with."""
        return register_dtype(self.dtype) if self.blocks is None else FLOAT32


@dataclass(frozen=True, slots=True)
class Var:
    """A value in registers: `lanes` numbers. A bool is a mask as wide as `mask_bytes` a lane."""

    name: str
    dtype: np.dtype
    lanes: int
    mask_bytes: int = 0


def register_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a stored dtype is computed: float32 for half formats."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


# -- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """`lanes` numbers from `argument` at `index`, `stride` apart; only `count` of them exist if it is given.

    A `stride` of 0 is one number in all lanes. `each` is a separate index for each lane, with `LANE` in it, for
    accesses without a single stride. `aligned` means that the index is a multiple of the lanes, and that the buffer
    begins at a multiple of a vector. Numbers of blocks that are apart are aligned if they are all of one block.

    Several runs of numbers that are decoded from blocks share an index that is a multiple of `together`, their numbers.
    Each begins `behind` numbers behind it, which the compiler knows, so scales are decoded once for all of them. Their
    index may lie `along` numbers behind `index`, which then begins a block: a pointer runs from block to block.
    Numbers that are computed as they are loaded have such an index, too, where `together` is given. Of plain numbers
    `index` is what stays in a loop: it is added to the pointer first.
    """

    argument: Argument
    index: IndexLike
    stride: int = 1
    count: IndexLike | None = None
    each: IndexLike | None = None
    aligned: bool = False
    behind: int = 0
    together: int = 0
    along: IndexLike = 0


@dataclass(frozen=True, slots=True)
class Apply:
    """An element-wise operation on operands of `dtype`.

    If `rounds` is given, the result is rounded to that half format.
    """

    op: Op
    operands: tuple[Var, ...]
    dtype: np.dtype
    rounds: np.dtype | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """A cast between dtypes with flowcompute's semantics (floats to integers saturate, NaN gives 0)."""

    operand: Var
    source: np.dtype
    target: np.dtype


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """A number in all lanes."""

    value: Any


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A scalar parameter in all lanes."""

    argument: Argument


@dataclass(frozen=True, slots=True)
class Splat:
    """One number (a value of one lane, or lane 0) in all lanes."""

    operand: Var


@dataclass(frozen=True, slots=True)
class Half:
    """The lower or upper half of a vector."""

    operand: Var
    upper: bool


@dataclass(frozen=True, slots=True)
class ArrayItem:
    """An element of an array.

    As a `vector` it is several numbers from `index` on. In local memory `index` is a multiple of their count.
    """

    array: str
    index: IndexLike
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Picked:
    """Selected lanes of vectors, counted through all of them. A single one is repeated in all lanes."""

    operands: tuple[Var, ...]
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer expression as an int64 value; with `step`, `value + step * lane` in each lane."""

    value: IndexLike | ConditionLike
    step: int = 0


@dataclass(frozen=True, slots=True)
class Generate:
    """Numbers generated from their positions: `position + step * lane`, or `each` as for `Load`.

    `operands` are scalar parameters.
    """

    op: Generator
    position: IndexLike
    step: int
    each: IndexLike | None
    operands: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Below:
    """A mask: true in the first `count` lanes; a condition counts as one lane."""

    count: IndexLike | ConditionLike


@dataclass(frozen=True, slots=True)
class Combine:
    """One part of a step of a reduction: `left`, then `right` (tuples of accumulator parts).

    `ordered` applies to argmin and argmax: every index on the right is larger.
    """

    op: str
    left: tuple[Var, ...]
    right: tuple[Var, ...]
    part: int
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class MultiplyAdd:
    """`a * b + c` rounded once (floats), or wrapping (integers)."""

    a: Var
    b: Var
    c: Var


@dataclass(frozen=True, slots=True)
class Select:
    """`yes` if `mask` is true, otherwise `no`."""

    mask: Var
    yes: Var
    no: Var


class OfWords:
    """An expression of words that hold several narrow integers; see `ir.packed_nodes`."""

    __slots__ = ()


class OfFragments:
    """An expression of fragments of matrices; see `ir.tensor_nodes`."""

    __slots__ = ()


Expr = (
    Load
    | Apply
    | Convert
    | ConstantValue
    | ScalarArgument
    | Splat
    | Half
    | ArrayItem
    | Picked
    | Integer
    | Generate
    | Below
    | Combine
    | MultiplyAdd
    | OfWords
    | Select
    | OfFragments
)


# -- statements -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    """Declare a value."""

    var: Var
    expr: Expr


@dataclass(frozen=True, slots=True)
class Assign:
    """Assign a new content to a declared value."""

    var: Var
    expr: Expr


@dataclass(frozen=True, slots=True)
class SetInteger:
    """Declare (`new`) or assign an integer, with as many bits as its name has."""

    name: Name
    value: IndexLike | ConditionLike
    new: bool = True


@dataclass(frozen=True, slots=True)
class Store:
    """Store a value's lanes `stride` apart from `index`; only the first `count` if it is given.

    `canonical` replaces every NaN by the canonical quiet one. `each` and `aligned` are as for `Load`.
    """

    argument: Argument
    index: IndexLike
    var: Var
    stride: int = 1
    count: IndexLike | None = None
    canonical: bool = False
    each: IndexLike | None = None
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """A private array (`local`: shared by the work-group) of vectors of a value's type, at a multiple of bytes."""

    name: str
    dtype: np.dtype
    lanes: int
    size: int
    local: bool = False
    mask_bytes: int = 0
    alignment: int = 64


@dataclass(frozen=True, slots=True)
class PutItem:
    """Set an element of an array; as a `vector`, several numbers of a private one from `index` on."""

    array: str
    index: IndexLike
    var: Var
    vector: bool = False


ROLLED = -1
"""Value of `For.unroll` that prevents unrolling."""


@dataclass(frozen=True, slots=True)
class For:
    """`for (long index = start; index < stop; index += step)`.

    `unroll` asks the compiler to unroll the loop: by this factor, completely with 1, or not at all with `ROLLED`.
    """

    index: Name
    start: IndexLike
    stop: IndexLike
    step: IndexLike
    body: tuple[Stmt, ...]
    unroll: int = 0


@dataclass(frozen=True, slots=True)
class While:
    """Repeat while an integer condition holds."""

    condition: ConditionLike
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Branch on an integer condition."""

    condition: ConditionLike
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Alias:
    """Let a parameter point to what another one does: to what an earlier part of the launch stores, or to one of many.

    Attributes:
        argument: that the statements behind it name.
        among: parameters, of which it is the one at a place.
        place: of that one.
    """

    argument: Argument
    among: tuple[Argument, ...]
    place: IndexLike = 0


@dataclass(frozen=True, slots=True)
class WorkGroupBarrier:
    """A barrier of all work-items of a work-group, after which they see each other's writes."""


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Declare all results of a user's function; only `count` lanes exist if it is given.

    The result of a function written in OpenCL C is rounded to the half format `rounds` if it is given. Other functions
    know the dtypes of their results.
    """

    vars: tuple[Var, ...]
    op: UserOp | SourceOp
    operands: tuple[Var, ...]
    count: IndexLike | None = None
    rounds: np.dtype | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Declare the values that `sources` have in another work-item of the same sub-group.

    A sub-group has `subgroup` neighbouring work-items, a power of two. It has up to 32 with `shuffle`, and up to a
    whole work-group of 256 without. `distance` is relative to the own position; None reads the first work-item.

    With `shuffle` a device instruction exchanges registers. Otherwise the exchange uses local memory and one barrier of
    the work-group. Consecutive exchanges then alternate `turn` between 0 and 1 to use different memory.
    """

    variables: tuple[Var, ...]
    sources: tuple[Var, ...]
    subgroup: int
    distance: int | None
    shuffle: bool
    turn: int = 0


class Copying:
    """A statement of asynchronous copies; see `ir.tensor_nodes` and `ir.prefetch`."""

    __slots__ = ()


class CarryStatement:
    """A statement by which work-groups tell each other of their work; see `ir.scan_nodes`."""

    __slots__ = ()


Stmt = (
    Alias
    | CarryStatement
    | Copying
    | Exchange
    | CallFunction
    | Let
    | Assign
    | SetInteger
    | Store
    | Array
    | PutItem
    | For
    | While
    | If
    | WorkGroupBarrier
)
