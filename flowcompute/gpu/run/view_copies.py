"""Views of resident values, made by a device of what it has: a copy by strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.gpu.worker import Launcher
from flowcompute.graph import Node
from flowcompute.imports import dataclass
from flowcompute.ir import view_array
from flowcompute.spec import INT64, Spec

_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
"""Types of OpenCL C that move numbers of so many bytes."""

WORK_GROUP = 64
GROUPS_PER_UNIT = 16


@dataclass(frozen=True)
class ViewCopy:
    """Copy of a view by the strides that it has in its operand.

    Attributes:
        spec: of the view.
        offset: of the first number, in numbers.
        strides: by axis, in numbers.
    """

    spec: Spec
    offset: int
    strides: tuple[int, ...]

    @classmethod
    def of(cls, node: Node, operand: Spec) -> ViewCopy:
        """Find the strides of a view that has some, from one of memory that nobody touches."""
        whole = np.empty(operand.shape, operand.dtype)
        seen, size = view_array(node, [whole], stream=False), operand.dtype.itemsize
        offset = seen.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        return cls(node.spec, offset // size, tuple(stride // size for stride in seen.strides))

    @property
    def numbers(self) -> int:
        """Return the count of numbers that are copied."""
        return self.spec.item_numbers

    def built(self, launcher: Launcher) -> Any:
        """Return the kernel that copies numbers of this size along so many axes."""
        rank, kind = len(self.strides), _TYPES[self.spec.dtype.itemsize]
        sizes = "".join(f", const long size{axis}, const long stride{axis}" for axis in range(rank))
        places = "".join(
            f"        at += rest % size{axis} * stride{axis};\n        rest /= size{axis};\n"
            for axis in reversed(range(rank))
        )
        text = (
            f"kernel void copy_view(global const {kind} *operand, global {kind} *view, const long numbers, "
            f"const long offset{sizes}) {{\n"
            "    for (long i = get_global_id(0); i < numbers; i += get_global_size(0)) {\n"
            "        long rest = i, at = offset;\n"
            f"{places}"
            "        view[i] = operand[at];\n"
            "    }\n"
            "}\n"
        )
        return launcher.build(text, "copy_view", [None, None, *[INT64] * (2 + 2 * rank)])

    def values(self, operand: Any, view: Any) -> list[Any]:
        """Return the arguments of the kernel, which copies from one buffer into the other."""
        axes = zip(self.spec.shape, self.strides, strict=True)
        return [operand, view, self.numbers, self.offset, *(number for axis in axes for number in axis)]
