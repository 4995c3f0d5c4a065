"""Kernel IR of tensor cores: fragments of matrices, and asynchronous copies. Rendered by `gpu/render`.

A **fragment** is a few small matrices that a sub-group of 32 neighbouring work-items holds together.

A **ring** is local memory in stages. One work-item fills a stage by copies of whole boxes, while the sub-groups
before it multiply the stages that are full. Barriers of the stages order them, so that no work-group waits as a whole.
"""

from __future__ import annotations

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.ir.index_nodes import ConditionLike, IndexLike, Name
from flowcompute.ir.nodes import Argument, Copying, OfFragments, Stmt, Var

MAP_BYTES = 128
"""Bytes of the map of a tensor copy."""
MOST_MAPS = 3
"""Most maps that a kernel makes."""
RING_GROUP = Name("ring_group")
"""Number of the work-item's group of four sub-groups, behind `OpenRing`.

The compiler knows that it is the same in a whole sub-group, which it does not know of `LID // 128`. Operands of
products are then computed once a sub-group.
"""


@dataclass(frozen=True, slots=True)
class Fragment(OfFragments):
    """Four 8 x 8 matrices of 16-bit numbers (8 x 4 of 32-bit ones) from local memory, as 4 words of 32 bits.

    Work-item l of a sub-group provides the address of row l % 8 of matrix l / 8. It receives word l % 4 of row l / 4 of
    each matrix; with `transposed`, for 16-bit numbers only, of column l / 4. `index` counts numbers of `dtype`,
    whatever the array is declared as.
    """

    array: str
    index: IndexLike
    dtype: np.dtype
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Words(OfFragments):
    """Four words of 32 bits from positions in local memory, counted in such words."""

    array: str
    indices: tuple[IndexLike, IndexLike, IndexLike, IndexLike]


@dataclass(frozen=True, slots=True)
class EarlyRead(OfFragments):
    """Four floats from a multiple of four in local memory, read where the text has it.

    The compiler moves other reads to where their numbers are used first.
    """

    array: str
    index: IndexLike


@dataclass(frozen=True, slots=True)
class Leading(OfFragments):
    """Float32 words rounded to the 11 bits of a significand that tensor cores multiply."""

    operand: Var


@dataclass(frozen=True, slots=True)
class Rest(OfFragments):
    """The difference between such words and their `leading` parts; NaN for infinities."""

    operand: Var
    leading: Var


@dataclass(frozen=True, slots=True)
class FragmentMultiply(OfFragments):
    """`c + a * b`: 16 x 16 numbers times 16 x 8 (16 x 8 times 8 x 8 of 32-bit ones), summed in float32.

    Only the sign, the exponent and the first 11 bits of the significand of 32-bit numbers are used.

    The matrices of `a` are the upper left, lower left, upper right and lower right ones. Those of `b`, transposed, are
    2 * `part` and the next. Work-item l of a sub-group holds columns 2 * (l % 4) and the next of `c`, in row l / 4,
    then in row l / 4 + 8. The order of additions in one such step depends on the device.
    """

    a: Var
    b: Var
    part: int
    c: Var
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class FragmentOf(OfFragments):
    """Sums of two blocks of 8 columns as a left operand with as many rows of k, rounded to a half format."""

    low: Var
    high: Var
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class WordsOf(OfFragments):
    """Sums of 8 columns as a left operand of float32 with as many rows of k.

    The columns are in the order 0, 2, 4, 6, 1, 3, 5, 7 of k, which the right operand must match.
    """

    operand: Var


@dataclass(frozen=True, slots=True)
class Join(OfFragments):
    """Two vectors concatenated."""

    low: Var
    high: Var


@dataclass(frozen=True, slots=True)
class Across(OfFragments):
    """The numbers of 32 bits of the work-item in the sub-group whose number differs in bit `bit`."""

    operand: Var
    bit: int


@dataclass(frozen=True, slots=True)
class NormalPower(OfFragments):
    """Two to the power of floats: the bits of the device's own function where the result is a normal number, else 0.

    One instruction a number. The device's own function takes four, since it gives numbers below 2^-126.
    """

    operand: Var


@dataclass(frozen=True, slots=True)
class NoneZero(OfFragments):
    """1 where no number of these fragments of a half format is +0 in any work-item of the sub-group, else 0.

    By an instruction of compute capability 9.0.
    """

    operands: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Copy(Copying):
    """Start an asynchronous copy of consecutive numbers of an argument to a local array; zeros unless `exists`.

    `place` counts numbers of the argument's dtype, whatever the array is declared as. It and `index` are multiples of
    `numbers`, a power of two of at most 16 bytes.
    """

    array: str
    place: IndexLike
    argument: Argument
    index: IndexLike
    numbers: int
    exists: ConditionLike = True


@dataclass(frozen=True, slots=True)
class EndCopies(Copying):
    """The end of a group of copies: all that were started since the previous one. Groups complete in order."""


@dataclass(frozen=True, slots=True)
class AwaitCopies(Copying):
    """Wait until at most `pending` groups of the work-item are incomplete. A barrier makes them visible to others."""

    pending: int


@dataclass(frozen=True, slots=True)
class SubGroupBarrier(Copying):
    """A meeting of the 32 work-items of a sub-group, after which they see what the others copied or wrote."""


@dataclass(frozen=True, slots=True)
class Planes:
    """Planes of rows, one behind the other, of which a box has several.

    Attributes:
        count: number of planes.
        distance: from one plane to the next, in numbers; a multiple of 16 bytes.
        box: planes of a box.
    """

    count: int
    distance: int
    box: int


@dataclass(frozen=True, slots=True)
class TensorMap:
    """Rows of an argument, of which boxes are copied; zeros stand for what is outside of them.

    Attributes:
        argument: where the rows are.
        begin: index of the first number; a multiple of 16 bytes, as `pitch` and `matrices` are.
        width: numbers in a row.
        rows: number of rows.
        pitch: distance from one row to the next, in numbers.
        box: numbers in a row of a box (128 bytes), and rows of a box (at most 256).
        matrices: distance in numbers of which matrices of such rows lie at multiples; 0 where there is one.
        planes: planes of such rows, if there are several.
        many: number of matrices, where a copy may ask for one that is not there.
    """

    argument: Argument
    begin: int
    width: int
    rows: IndexLike
    pitch: int
    box: tuple[int, int]
    matrices: int = 0
    planes: Planes | None = None
    many: IndexLike | None = None

    @property
    def box_bytes(self) -> int:
        """Bytes of a box."""
        planes = 1 if self.planes is None else self.planes.box
        return self.box[0] * self.box[1] * planes * self.argument.dtype.itemsize


@dataclass(frozen=True, slots=True)
class BoxCopy:
    """Start a copy of the box at `column` and `row` of a map to a place in local memory, counted in numbers.

    The box lies there row by row, and plane by plane. In row r the chunks of 16 bytes are exchanged: chunk c is at
    c ^ (r % 8). `plane` is the first plane of a map that has several; `matrix` counts the distances of its matrices.
    """

    map: TensorMap
    place: IndexLike
    column: IndexLike
    row: IndexLike
    matrix: IndexLike = 0
    plane: IndexLike = 0


@dataclass(frozen=True, slots=True)
class OpenRing(Copying):
    """Make the maps and the barriers of a ring, once a work-group; all work-items meet.

    Attributes:
        maps: views of arguments that are copied from.
        room: where the device keeps the maps: `MAP_BYTES` for each map of each work-group.
        fields: local array of as many bytes, in which a work-group makes its maps.
        barriers: local array of two barriers of 8 bytes for each stage, or three where stages are prepared.
        stages: stages of the ring.
        workers: work-items that multiply; a sub-group behind them copies.
        preparers: work-items behind the workers that prepare stages, the one that copies among them; 0 for none.
    """

    maps: tuple[TensorMap, ...]
    room: Argument
    fields: str
    barriers: str
    stages: int
    workers: int
    preparers: int = 0


@dataclass(frozen=True, slots=True)
class RingLoop(Copying):
    """Fill stages of a local array by copies, step after step, while the workers work on those that are full.

    Work-items meet before the first copy, and not at the end. The workers wait for each step's stage and give it back,
    by `AwaitStage` and `FreeStage`, in the order of the steps or nearly so.

    Attributes:
        ring: what was opened.
        array: local array of the stages.
        step, stage: names of the step and of its stage, in the copies.
        steps: number of steps.
        fills: what fills the stage of a step: `fills[step % len(fills)]`.
        first: copies that arrive with those of step 0.
        work: what the workers do.
        prepare: what the preparers do with each stage that is full, before workers have it.
    """

    ring: OpenRing
    array: str
    step: Name
    stage: Name
    steps: IndexLike
    fills: tuple[tuple[BoxCopy, ...], ...]
    work: tuple[Stmt, ...]
    first: tuple[BoxCopy, ...] = ()
    prepare: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class RingRoles(Copying):
    """Part a work-group for good: one work-item copies for one tile after another, and the workers work on them.

    Work-items meet before, and not at the end. Copies run ahead of the work, also to the next tile, as far as there
    are stages. Both sides pass the same steps, by `FillStages` and `PassSteps`.

    Attributes:
        ring: what was opened; it has no preparers.
        copies: what the copying work-item does.
        work: what the workers do.
        registers: registers of a work-item behind the workers, and of a worker, as multiples of 8; None for equal
            shares. Groups of four sub-groups give back and take registers, so both sides are such groups.
    """

    ring: OpenRing
    copies: tuple[Stmt, ...]
    work: tuple[Stmt, ...]
    registers: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FillStages(Copying):
    """Fill stages of a local array by copies, step after step, and pass these steps.

    Attributes:
        ring, array, step, stage, steps, fills, first: as those of `RingLoop`.
        behind: `first` replaces what is read until the stage of so many steps before step 0 is given back.
    """

    ring: OpenRing
    array: str
    step: Name
    stage: Name
    steps: IndexLike
    fills: tuple[tuple[BoxCopy, ...], ...]
    first: tuple[BoxCopy, ...]
    behind: int


@dataclass(frozen=True, slots=True)
class PassSteps(Copying):
    """Pass steps of which the workers need no more: steps are counted from behind them."""

    ring: OpenRing
    steps: IndexLike


@dataclass(frozen=True, slots=True)
class RingGroupBarrier(Copying):
    """Meeting of the four sub-groups of a group in local memory; the other groups go on."""


@dataclass(frozen=True, slots=True)
class TakeTurn(Copying):
    """Wait until the group before, round the `groups` of a ring, has passed the turn once more than it was taken."""

    groups: int


@dataclass(frozen=True, slots=True)
class PassTurn(Copying):
    """Pass the turn to the next group, without waiting for it.

    Each group takes and passes it by turns, as often as the others. The last group passes it once before, to the first.
    """

    groups: int


@dataclass(frozen=True, slots=True)
class AwaitStage(Copying):
    """Wait until the stage of a step is full, and prepared where the ring has preparers, and declare its name."""

    ring: OpenRing
    step: IndexLike
    stage: Name


@dataclass(frozen=True, slots=True)
class FreeStage(Copying):
    """Give a stage back, when all that reads it has ended."""

    ring: OpenRing
    stage: Name


@dataclass(frozen=True, slots=True)
class GroupMultiply(Copying):
    """Add `a @ b` to sums, by four sub-groups together: 64 rows times 8 columns for each of `sums`.

    Sums are float32, or int32 for whole numbers of a byte, which wrap.

    The operands lie as boxes in a local array. Lines of a box run along k, or across it in several boxes side by
    side. Sub-group g holds rows 16 * g to 16 * g + 15, as fragments like those of `FragmentMultiply`. Sums run in
    steps of 32 bytes of k, which have the bits of that node's.

    Attributes:
        sums: accumulators, in order of their columns.
        array: where the operands are.
        a: place of the left operand, counted in numbers, or its fragments, one for each 32 bytes of k.
        b: place of the right operand, counted in numbers.
        along_k: whether lines of `b` run along k, as those of `a` do. Only 16-bit numbers may lie across k.
        depth: numbers of k, a multiple of 32 bytes; at most 128 bytes where lines of `b` run across k.
        dtype: of the factors; of 32-bit numbers only the first 11 bits of the significand are used.
        further: distance in numbers from 128 bytes of k to the next, in `a` and in `b`.
        fresh: whether the sums begin at zero.
        before: fragments and places of other pairs of operands, which each step multiplies and adds first.
        aside: distance in numbers from one box of `b` to the next, where its lines run across k.
        turned: whether lines of `a` in the array run across k, in one box; of 16-bit numbers only.
        right_dtype: of `b`, where one factor has a sign and the other one none.
    """

    sums: tuple[Var, ...]
    array: str
    a: IndexLike | tuple[Var, ...]
    b: IndexLike
    along_k: bool
    depth: int
    dtype: np.dtype
    further: tuple[int, int] = (0, 0)
    fresh: bool = False
    before: tuple[tuple[tuple[Var, ...], IndexLike], ...] = ()
    aside: int = 64 * 64
    turned: bool = False
    right_dtype: np.dtype | None = None


@dataclass(frozen=True, slots=True)
class OverlappedMultiply(Copying):
    """Products of which two are under way at a time.

    When one has ended, what is behind it runs beside the next product. Then the one after that is started.

    Attributes:
        products: what is started, in this order. Neighbours have different sums.
        behind: what runs when each product has ended. It touches neither sums nor fragments of the next product. What
            it declares is known behind it, too.
    """

    products: tuple[GroupMultiply, ...]
    behind: tuple[tuple[Stmt, ...], ...]
