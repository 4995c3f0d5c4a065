"""Kernels that share a launch: each has a share of the work-groups, in the proportion of its tiles.

Some follow others in the same work-groups, and read at each place what these have stored there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from flowcompute.ir import (
    GID,
    GSIZE,
    Alias,
    Argument,
    If,
    IndexLike,
    Kernel,
    Name,
    SetInteger,
    Stmt,
    WorkGroupBarrier,
    choose,
)
from flowcompute.ir.launches import dealt

GROUP, GROUPS = Name("group"), Name("groups")
"""Number of a work-group in the launch, and how many there are; a part sees its own as `gid` and `gsize`."""


def joined(runs: Sequence[Sequence[Kernel]], name: str, region: str) -> Kernel:
    """Return one kernel that does what several of one form do, each number as its own kernel computes it.

    Args:
        runs: kernels of one form and one count of rows, in runs of those that follow each other in the same
            work-groups. Each takes its work by the number of its work-group, and its parameters have names of their
            own. Those of a run divide it alike.
        name: of the kernel.
        region: name of what it computes.
    """
    few = [[kernel.few for kernel in run if kernel.few is not None] for run in runs]
    have_few = [len(run) for run in few] == [len(run) for run in runs]
    few_rows = min(kernel.few_rows for run in runs for kernel in run)
    runs = [run if run[-1].both is None else [run[-1].both] for run in runs]
    firsts = [run[0] for run in runs]
    parts, tiles = len(runs), [0, *accumulate(kernel.tile[1] for kernel in firsts)]
    begins = first_groups(tiles, GROUPS)
    ends = [*begins[1:], GROUPS]
    # All work-groups of a GPU run at once.
    group = dealt(GID, GSIZE) if firsts[0].work_group == 1 else GID
    body: tuple[Stmt, ...] = ()
    for part in reversed(range(parts)):
        own = (
            SetInteger(GID, GROUP - begins[part]),
            SetInteger(GSIZE, ends[part] - begins[part]),
            *_one_by_one(runs[part]),
        )
        body = (If(True, own),) if part == parts - 1 else (If(GROUP < ends[part], own, body),)
    return replace(
        firsts[0],
        few=joined(few, name, region) if have_few else None,
        few_rows=few_rows,
        name=name,
        region=region,
        arguments=tuple(one for run in runs for one in parameters([kernel.arguments for kernel in run])),
        body=(SetInteger(GROUP, group), SetInteger(GROUPS, GSIZE), *body),
        tile=(min(kernel.tile[0] for kernel in firsts), tiles[-1]),
        parts=parts,
    )


def first_groups(tiles: Sequence[int], groups: IndexLike) -> list[IndexLike]:
    """Return the first work-group of each part, of at least as many as there are parts.

    Each part has one group at least. Where there is a group for each tile, no group has two tiles.

    Args:
        tiles: number of the first tile of each part, and of all tiles.
        groups: number of work-groups.
    """
    parts, total = len(tiles) - 1, tiles[-1]
    return [
        choose(groups < total, part + (groups - parts) * place // total, groups * place // total)
        for part, place in enumerate(tiles[:-1])
    ]


def _one_by_one(run: Sequence[Kernel]) -> tuple[Stmt, ...]:
    """Return the statements of kernels, each of which reads what its own work-group has stored before."""
    body = run[0].body
    for place, kernel in enumerate(run[1:], 1):
        assert (kernel.tile, kernel.work_group) == (run[0].tile, run[0].work_group), "a work-group has the same places"
        stored = [one for before in run[:place] for one in before.arguments]
        own = (*aliases(kernel.arguments, stored), *kernel.body)
        body = (If(True, body), WorkGroupBarrier(), If(True, own))
    return body


def parameters(parts: Sequence[Sequence[Argument]]) -> tuple[Argument, ...]:
    """Return the parameters of what is done in one launch, without inputs that an earlier part stores."""
    found: list[Argument] = []
    for own in parts:
        known = {alias.argument.name for alias in aliases(own, found)}
        found += [one for one in own if one.name not in known]
    return tuple(found)


def aliases(own: Sequence[Argument], before: Sequence[Argument]) -> list[Alias]:
    """Return the declarations of inputs that are results of earlier parts."""
    stored = {one.value: one for one in before if one.kind == "output"}
    return [Alias(one, (stored[one.value],)) for one in own if one.kind == "input" and one.value in stored]
