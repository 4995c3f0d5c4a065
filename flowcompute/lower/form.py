"""A kernel form: one way of making a kernel of a region, as a record.

A form stands in one file, its record at the file's end. `lower.forms` asks the forms in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec, Kernel
from flowcompute.ir.launches import LaunchDivision, LaunchTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle


@dataclass(frozen=True)
class LoweringTask:
    """A region that is to become a kernel.

    Attributes:
        graph: to which the region belongs.
        region: what the kernel computes.
        style: what kernels are to look like on the device.
        folds: what each fold of the plan computes, by its node's id.
        name: of the kernel.
        before: the region that it follows in the same work-groups, if any.
    """

    graph: Graph
    region: Region
    style: KernelStyle
    folds: dict[int, FoldSpec]
    name: str
    before: Region | None = None

    @property
    def anchor(self) -> Node | None:
        """The region's anchor."""
        return None if self.region.anchor is None else self.graph.nodes[self.region.anchor]

    @property
    def is_gpu(self) -> bool:
        """True where the kernel is written for a GPU."""
        return self.style.capabilities.code_shape == "gpu"

    def refuse(self, text: str) -> Reason:
        """Return the reason why a form does not lower this region."""
        return Reason("form", self.region.name, text)


@dataclass(frozen=True)
class Form:
    """One way of making a kernel of a region.

    Attributes:
        name: no other form has it; `Kernel.form` keeps it.
        accepts: returns why the form does not lower a region, or None where it does. It changes nothing, and
            takes little time beside lowering.
        lower: returns the kernel of a region that was accepted.
        geometry: returns how a launch of its kernels is divided; `Kernel.division` keeps its name.
        knobs: that its kernels have.
        joins: whether its kernels take work by the number of their work-group alone, so that some can share a launch.
        leads: whether rows may follow its kernels in their launch, by work-groups of as many work-items.
        takes_rows: whether the kernel of a product makes the rows of its left factor by a `Region.row_maker`.
        family: what plans call its kernels; forms of one family have the same purpose. By default its name.
    """

    name: str
    accepts: Callable[[LoweringTask], Reason | None]
    lower: Callable[[LoweringTask], Kernel]
    geometry: Callable[[LaunchTask], LaunchDivision]
    knobs: FormKnobs = field(default_factory=FormKnobs)
    joins: bool = False
    leads: bool = False
    takes_rows: bool = False
    family: str = ""
