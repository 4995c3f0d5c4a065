"""Kernel IR: a loop nest over named integers with typed vector values. Rendered by `gpu/render`.

Indices, bounds and conditions are integer expressions in C's syntax, kept as text: every
dialect shares it and nothing rewrites it. Values are `Var`s made by one `Let` each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from flowcompute.elements import Op
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.elements.generated import Generator
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32
from flowcompute.strategy import KernelKnobs

ArgumentKind = Literal["input", "output", "partial", "merged", "carry", "state", "words", "scalar", "integer"]


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a kernel.

    Attributes:
        kind: "input" and "output" point to values; "partial" to block results, "merged" to what they are
            merged into and "carry" to the unfinished block of a fold; "state" to what a scan carries from batch
            to batch, and "words" to what its tiles hand on; "scalar" is a number; "integer" a long.
        value: id of the value (of the fold for partials and carries); -1 for integers.
        part: which accumulator of a fold.
        period: for a resident operand read cyclically, its numbers (it is padded by a vector).
    """

    name: str
    kind: ArgumentKind
    dtype: np.dtype
    value: int = -1
    part: int = 0
    period: int = 0


@dataclass(frozen=True, slots=True)
class Var:
    """A value in registers: `lanes` numbers. A bool is a mask as wide as `mask_bytes` a lane."""

    name: str
    dtype: np.dtype
    lanes: int
    mask_bytes: int = 0


def register_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which a stored dtype is computed: float32 for half formats."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


# -- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """`lanes` numbers from `argument` at `index`, `stride` apart; only `count` of them exist when given.

    `stride` "0" is one number in all lanes. `each` gives a separate index for each lane, with
    `{lane}` in it, where no single stride does. `aligned`: the index is a multiple of the lanes,
    and the buffer begins at a multiple of a vector.
    """

    argument: Argument
    index: str
    stride: int = 1
    count: str | None = None
    each: str | None = None
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """An element-wise operation. `dtype` is the operands', `rounds` to a half format after it if given."""

    op: Op
    operands: tuple[Var, ...]
    dtype: np.dtype
    rounds: np.dtype | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """A cast between dtypes with our meaning (floats to integers saturate, NaN gives 0)."""

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
    """An element of an array; as a `vector`, several numbers from `index` on (in local memory they divide it)."""

    array: str
    index: str
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Picked:
    """Lanes of vectors, counted through all of them; a single one in all lanes."""

    operands: tuple[Var, ...]
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer expression as an int64 value; with `step`, `text + step * lane` in each lane."""

    text: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class Generate:
    """Numbers that follow from their positions: `text + step * lane`, or `each` as for `Load`.

    `operands` are scalar parameters.
    """

    op: Generator
    text: str
    step: int
    each: str | None
    operands: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Below:
    """A mask: true in the first `count` lanes."""

    count: str


@dataclass(frozen=True, slots=True)
class Combine:
    """One part of a step of a reduction: `left` and then `right` (tuples of accumulator parts).

    `ordered`: of argmin and argmax, where every index on the right is larger.
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
    """`yes` where `mask`, else `no`."""

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
    """Give a declared value another content."""

    var: Var
    expr: Expr


@dataclass(frozen=True, slots=True)
class SetInteger:
    """Declare (`new`) or assign an integer of 64 bits, or of 32 (`narrow`)."""

    name: str
    text: str
    new: bool = True
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """Store a value's lanes `stride` apart from `index`, only the first `count` when given.

    `canonical` makes every NaN the canonical quiet one. `each` and `aligned` as for `Load`.
    """

    argument: Argument
    index: str
    var: Var
    stride: int = 1
    count: str | None = None
    canonical: bool = False
    each: str | None = None
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """A private array (`local`: shared by the work-group) of vectors of a value's type."""

    name: str
    dtype: np.dtype
    lanes: int
    size: int
    local: bool = False
    mask_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PutItem:
    """Set an element of an array; as a `vector`, several numbers of a private one from `index` on."""

    array: str
    index: str
    var: Var
    vector: bool = False


ROLLED = -1
"""Of a loop that is to stay one."""


@dataclass(frozen=True, slots=True)
class For:
    """`for (long index = start; index < stop; index += step)`.

    With `unroll` the compiler is asked to write it out: so many turns, with 1 all of them, or with `ROLLED` none.
    """

    index: str
    start: str
    stop: str
    step: str
    body: tuple[Stmt, ...]
    unroll: int = 0


@dataclass(frozen=True, slots=True)
class While:
    """Repeat while an integer condition holds."""

    condition: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Branch on an integer condition."""

    condition: str
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkGroupBarrier:
    """All work-items of a work-group meet; what they wrote is visible to each other after it."""


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Declare all results of a user's function; only `count` lanes exist when given.

    What is written by hand `rounds` to a half format if given; other functions know their results.
    """

    vars: tuple[Var, ...]
    op: UserOp | SourceOp
    operands: tuple[Var, ...]
    count: str | None = None
    rounds: np.dtype | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Declare the values that `sources` have in another work-item of the same team.

    Work-items form teams of `subgroup` neighbours, a power of two: up to 32 with `shuffle`, up to
    a whole work-group of 256 without. `distance` counts on from the own place; None takes the
    first work-item's. `shuffle`: by an instruction of the device for its 32 neighbours, else
    through local memory, for which the whole work-group meets once; exchanges that follow each
    other differ in `turn`, 0 or 1, and so use different memory.
    """

    variables: tuple[Var, ...]
    sources: tuple[Var, ...]
    subgroup: int
    distance: int | None
    shuffle: bool
    turn: int = 0


class Copying:
    """A statement of copies that go on beside what follows; see `ir.tensor_nodes` and `ir.prefetch`."""

    __slots__ = ()


class CarryStatement:
    """A statement by which tiles of a scan hand on what they carry; see `ir.scan_nodes`."""

    __slots__ = ()


Stmt = (
    CarryStatement
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


@dataclass(frozen=True)
class Kernel:
    """A lowered kernel.

    Attributes:
        region: name of the region it computes.
        arguments: its parameters, in order.
        work: what the global size counts: "chunks" of `chunk` flat vectors or rows (the runtime
            passes the count), "blocks" of a fold, "tiles" of a matrix product, or of a "scan", sequences of a "walk".
        work_group: work-items that share local memory; 1 on CPUs.
        block: records in a canonical block, for kernels with folds.
        columns: for folds of columns, columns that one work-item takes (0: all).
        units: numbers or rows in one record, by which work is divided.
        lanes: numbers in a vector.
        tile: rows (tiles of a scan) that one work-group (or work-item of a CPU) takes together, and how many
            work-groups span the columns of a matrix product or scan.
        contract: whether multiplications and additions may be fused (`precision="fast"`).
        tensor: whether tensor cores multiply its matrices as they are.
        form: name of what lowered its region; see `lower.forms`. Empty where no region was lowered.
        family: what plans call that form; "fixed" where the kernel has no knobs.
        knobs: what they were set to, all that it has.
    """

    name: str
    region: str
    arguments: tuple[Argument, ...]
    body: tuple[Stmt, ...]
    work: Literal["flat", "rows", "records", "columns", "matmul", "scan", "walk"]
    work_group: int = 1
    block: int = 0
    columns: int = 0
    units: int = 1
    lanes: int = 1
    tile: tuple[int, int] = (1, 1)
    contract: bool = False
    tensor: bool = False
    form: str = ""
    family: str = "fixed"
    knobs: KernelKnobs = field(default_factory=KernelKnobs)
    notes: dict[str, Any] = field(default_factory=dict, compare=False)
