"""Kernels whose rows are made of by others in the same launch, or in a second one where there are more rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flowcompute.fuse import FEW_ROWS
from flowcompute.ir import (
    GID,
    GSIZE,
    PHASE,
    Argument,
    Array,
    If,
    Kernel,
    LastGroup,
    Name,
    SetInteger,
    Stmt,
    choose,
    equal,
    unequal,
)
from flowcompute.lower.following_rows import FollowingRows
from flowcompute.lower.joined import aliases, parameters

STAGES = 2
"""Launches where there are many rows: one makes what the second one makes rows of."""
FIRST, STEP, MAKES = Name("first_row"), Name("row_step"), Name("makes_rows")
"""The first row of a work-group, from each to the next, and whether it makes any."""


def followed(kernel: Kernel, rows: FollowingRows, *, fences: bool) -> Kernel:
    """Return a kernel that does what another one does, and then makes rows of its results.

    In a launch of few rows the last work-group that ends makes them all, where the device has `fences` for it.

    Args:
        kernel: of one stage. It takes its work by the number of its work-group.
        rows: of which there are as many as the kernel counts.
        fences: whether a work-group sees what others stored before they told it.
    """
    assert kernel.stages == 1, "the phase is that of rows"
    own = (*aliases(rows.arguments, kernel.arguments), *rows.body)
    counter = [Argument("arrived_groups", "words", np.dtype(np.uint64))] if fences else []
    last: list[Stmt] = [Array("arrived", np.dtype(np.int32), 1, 1, local=True)] if fences else []
    last += [If(equal(PHASE, STAGES), (LastGroup(MAKES, one),)) for one in counter]
    body: tuple[Stmt, ...] = (
        SetInteger(FIRST, choose(equal(PHASE, 1), GID, 0)),
        SetInteger(STEP, choose(equal(PHASE, 1), GSIZE, 1)),
        SetInteger(MAKES, PHASE),
        If(unequal(PHASE, 1), kernel.body),
        *last,
        If(MAKES > 0, (SetInteger(GID, FIRST), SetInteger(GSIZE, STEP), *own)),
    )
    return replace(
        kernel,
        arguments=parameters([kernel.arguments, rows.arguments, counter]),
        body=body,
        stages=STAGES,
        at_once=FEW_ROWS // rows.units if fences else 0,
    )
