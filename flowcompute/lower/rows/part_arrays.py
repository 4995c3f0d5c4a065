"""Arrays of states of reductions, one array for each accumulator part."""

from __future__ import annotations

from flowcompute.ir import Array, ArrayItem, IndexLike, PutItem, merge_dtype
from flowcompute.lower.emit import Scope
from flowcompute.lower.reduction import Parts, Reduction


class PartArrays:
    """Arrays that hold `size` states of each reduction.

    Args:
        scope: where they are declared.
        reductions: at least one.
        prefix: first letters of their names.
        lanes: numbers in a vector.
        size: states of a reduction.
        local: whether the work-group shares them.
        merging: whether they have the dtypes in which blocks are merged.
    """

    def __init__(
        self,
        scope: Scope,
        reductions: list[Reduction],
        prefix: str,
        *,
        lanes: int,
        size: int,
        local: bool = False,
        merging: bool = False,
    ) -> None:
        self.arrays: list[list[Array]] = []
        for reduction in reductions:
            dtypes = [(merge_dtype(dtype) if merging else dtype, dtype.itemsize) for dtype in reduction.dtypes]
            made = [Array(scope.name(prefix).name, dtype, lanes, size, local, masks) for dtype, masks in dtypes]
            scope.add(*made)
            self.arrays.append(made)

    def state(self, scope: Scope, reduction: int, index: IndexLike) -> Parts:
        """Load a state of the reduction with this number."""
        return tuple(
            scope.let(ArrayItem(array.name, index), array.dtype, array.lanes, array.mask_bytes)
            for array in self.arrays[reduction]
        )

    def states(self, scope: Scope, index: IndexLike) -> list[Parts]:
        """Load a state of each reduction."""
        return [self.state(scope, number, index) for number in range(len(self.arrays))]

    def puts(self, index: IndexLike, states: list[Parts]) -> list[PutItem]:
        """Return the statements that keep a state of each reduction."""
        return [put for number, parts in enumerate(states) for put in self.puts_of(number, index, parts)]

    def puts_of(self, reduction: int, index: IndexLike, parts: Parts) -> list[PutItem]:
        """Return the statements that keep a state of the reduction with this number."""
        return [PutItem(array.name, index, var) for array, var in zip(self.arrays[reduction], parts, strict=True)]
