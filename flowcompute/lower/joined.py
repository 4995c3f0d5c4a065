"""Kernels that share a launch: each has a share of the work-groups, in the proportion of its tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from flowcompute.ir import GID, GSIZE, If, IndexLike, Kernel, Name, SetInteger, Stmt

GROUP, GROUPS = Name("group"), Name("groups")
"""Number of a work-group in the launch, and how many there are; a part sees its own as `gid` and `gsize`."""


def joined(kernels: Sequence[Kernel], name: str, region: str) -> Kernel:
    """Return one kernel that does what several of one form do, each number as its own kernel computes it.

    Args:
        kernels: of one form and one count of rows. Each takes its work by the number of its work-group, and its
            parameters have names of their own.
        name: of the kernel.
        region: name of what it computes.
    """
    parts, tiles = len(kernels), [0, *accumulate(kernel.tile[1] for kernel in kernels)]
    # A group for each part at least; `division` launches as many.
    begins: list[IndexLike] = [part + (GROUPS - parts) * tiles[part] // tiles[-1] for part in range(parts)]
    ends = [*begins[1:], GROUPS]
    body: tuple[Stmt, ...] = ()
    for part in reversed(range(parts)):
        own = (
            SetInteger(GID, GROUP - begins[part]),
            SetInteger(GSIZE, ends[part] - begins[part]),
            *kernels[part].body,
        )
        body = (If(True, own),) if part == parts - 1 else (If(GROUP < ends[part], own, body),)
    first = kernels[0]
    return replace(
        first,
        name=name,
        region=region,
        arguments=tuple(argument for kernel in kernels for argument in kernel.arguments),
        body=(SetInteger(GROUP, GID), SetInteger(GROUPS, GSIZE), *body),
        tile=(min(kernel.tile[0] for kernel in kernels), tiles[-1]),
        parts=parts,
    )
