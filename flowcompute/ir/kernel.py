"""The lowered kernel: its parameters, its statements, and how its work is divided."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Any, Literal

from flowcompute.imports import dataclass
from flowcompute.ir.nodes import Argument, Stmt
from flowcompute.strategy import KernelKnobs

ANY_ROWS = 1 << 62
"""More rows than there are."""
LEAST_ROUNDS = 1.35
"""Rounds of whole tiles, over those that shared tiles take, from which on tiles are shared."""


@dataclass(frozen=True)
class Kernel:
    """A lowered kernel.

    Attributes:
        name: unique in its plan.
        region: name of the region it computes.
        arguments: its parameters, in order.
        body: its statements.
        work: unit of the global size. "flat" counts vectors, "rows" rows, "records" and "columns" blocks of a fold.
            "matmul" and "scan" count tiles, "walk" counts sequences of a serial scan, and "attend" records.
        work_group: work-items that share local memory; 1 on CPUs.
        block: records in a canonical block, for kernels with folds.
        columns: for folds of columns, columns per work-item (0: all).
        units: numbers or rows in one record, by which work is divided.
        lanes: numbers in a vector.
        tile: rows (tiles of a scan) per work-group, or per work-item of a CPU. The second number is the count of
            work-groups that span the columns of a matrix product or scan.
        parts: kernels that share its launch, each of which takes one work-group at least.
        stages: how often it is launched over the same records; `phase` is the number of the launch.
        at_once: records up to which one launch does all stages; its `phase` is `stages`.
        few: what is launched instead for up to `few_rows` rows, or its own `few`. Its results have the same bits.
        shares: work-groups of a launch that hand tiles over, so that all end together. As `few`, it is launched only
            where that saves enough. 0 where work-groups have whole tiles.
        both: what does the work of this kernel and of the one that it follows in its work-groups, where that is faster.
        contract: whether multiplications and additions may be fused (`precision="fast"`).
        tensor: whether tensor cores multiply its matrices as stored.
        form: name of the form that lowered its region; see `lower.forms`. Empty where no region was lowered.
        division: how its launches are divided: name of a function of `ir.launches`. Empty where no region was lowered.
        family: name of that form in plans; "fixed" where the kernel has no knobs.
        knobs: values of all its knobs.
        notes: further facts for users.
    """

    name: str
    region: str
    arguments: tuple[Argument, ...]
    body: tuple[Stmt, ...]
    work: Literal["flat", "rows", "records", "columns", "matmul", "scan", "walk", "attend"]
    work_group: int = 1
    block: int = 0
    columns: int = 0
    units: int = 1
    lanes: int = 1
    tile: tuple[int, int] = (1, 1)
    parts: int = 1
    stages: int = 1
    at_once: int = 0
    few: Kernel | None = None
    few_rows: int = 0
    shares: int = 0
    both: Kernel | None = None
    contract: bool = False
    tensor: bool = False
    form: str = ""
    division: str = ""
    family: str = "fixed"
    knobs: KernelKnobs = field(default_factory=KernelKnobs)
    notes: dict[str, Any] = field(default_factory=dict, compare=False)

    def phases(self, items: int) -> range:
        """Return the phases of the launches over so many records."""
        return range(self.stages, self.stages + 1) if items <= self.at_once else range(self.stages)

    def of_items(self, items: int) -> Kernel:
        """Return the kernel that is launched over so many records."""
        if self.of_few is None or items * self.units > self.few_rows or not self.of_few.saves(items):
            return self
        return self.of_few.of_items(items)

    def saves(self, items: int) -> bool:
        """Check whether sharing tiles saves enough, where the kernel does that.

        Whole tiles would take work-groups of a launch some rounds, of which the last one has few of them.
        """
        if not self.shares:
            return True
        tiles = -(-items * self.units // self.tile[0]) * self.tile[1]
        rounds = -(-tiles // self.shares)
        return rounds > 1 and rounds * self.shares >= LEAST_ROUNDS * tiles

    @cached_property
    def of_few(self) -> Kernel | None:
        """Kernel that is launched for up to `few_rows` rows, as one of its own; None where there is no other."""
        if self.few is None:
            return None
        own: dict[str, Any] = {"form": self.form, "division": self.division, "family": self.family}
        own |= {"name": f"{self.name}_few", "region": self.region, "contract": self.contract}
        return replace(self.few, **own)
