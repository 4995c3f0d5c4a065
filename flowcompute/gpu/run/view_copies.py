"""Views of resident values, made by a device of what it has: a copy by strides."""

from __future__ import annotations

import math
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

_TURNED = """kernel void turn_view(
    global const {kind} *operand, global {kind} *view, const long offset, const long rows, const long columns,
    const long pitch
) {{
    // Neighbours of the operand are read, and neighbours of the view written.
    local {kind} tile[{side}][{side} + 1];
    const int x = get_local_id(0) % {side}, first = get_local_id(0) / {side};
    const long across = (columns + {side} - 1) / {side}, tiles = across * ((rows + {side} - 1) / {side});
    for (long t = get_group_id(0); t < tiles; t += get_num_groups(0)) {{
        const long row = t / across * {side}, column = t % across * {side};
        global const {kind} *from = operand + (offset + row + x + (column + first) * pitch);
        global {kind} *to = view + ((row + first) * columns + column + x);
        // Without conditions all loads of a tile are under way together.
        const int whole = row + {side} <= rows && column + {side} <= columns;
        if (whole) {{
            #pragma unroll
            for (int y = 0; y < {side}; y += {apart}) tile[first + y][x] = from[y * pitch];
        }} else {{
            for (int y = 0; y < {side}; y += {apart})
                if (row + x < rows && column + first + y < columns) tile[first + y][x] = from[y * pitch];
        }}
        barrier(CLK_LOCAL_MEM_FENCE);
        if (whole) {{
            #pragma unroll
            for (int y = 0; y < {side}; y += {apart}) to[y * columns] = tile[x][first + y];
        }} else {{
            for (int y = 0; y < {side}; y += {apart})
                if (row + first + y < rows && column + x < columns) to[y * columns] = tile[x][first + y];
        }}
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
}}
"""

_TILE_BYTES = 1 << 15
"""Most local memory of a tile that is turned."""
_GROUP = 256
"""Work-items that turn a tile."""


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

    @property
    def _side(self) -> int:
        """Rows and columns of a tile: 64 where local memory takes them."""
        return 64 if 64 * 65 * self.spec.dtype.itemsize <= _TILE_BYTES else 32

    @property
    def is_turned(self) -> bool:
        """True for a matrix whose columns are neighbours, of at least a tile."""
        return len(self.strides) == 2 and self.strides[0] == 1 and min(self.spec.shape) >= self._side

    @property
    def work_group(self) -> int:
        """Work-items of a work-group."""
        return _GROUP if self.is_turned else WORK_GROUP

    def groups(self, units: int) -> int:
        """Return the work-groups for a device of so many compute units."""
        if self.is_turned:
            return min(math.prod(-(-size // self._side) for size in self.spec.shape), GROUPS_PER_UNIT * units)
        return min(-(-self.numbers // WORK_GROUP), GROUPS_PER_UNIT * units)

    def built(self, launcher: Launcher) -> Any:
        """Return the kernel that copies numbers of this size along so many axes."""
        rank, kind = len(self.strides), _TYPES[self.spec.dtype.itemsize]
        if self.is_turned:
            text = _TURNED.format(kind=kind, side=self._side, apart=_GROUP // self._side)
            return launcher.build(text, "turn_view", [None, None, *[INT64] * 4])
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
        if self.is_turned:
            return [operand, view, self.offset, *self.spec.shape, self.strides[1]]
        axes = zip(self.spec.shape, self.strides, strict=True)
        return [operand, view, self.numbers, self.offset, *(number for axis in axes for number in axis)]
