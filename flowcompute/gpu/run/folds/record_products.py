"""The product `X.T @ Y` of the records of a short stream on a CPU, in the order of products by kernels.

Sizes are arguments: one program for each dtype serves all folds, where a kernel of the plan would be compiled for each
number of records. Steps of trainings have such kernels, which take less time and give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.gpu.worker import Launcher
from flowcompute.imports import LateModule
from flowcompute.spec import FLOAT64, INT64

if TYPE_CHECKING:
    from flowcompute.gpu import render
    from flowcompute.lower import matmul
else:
    render = LateModule("flowcompute.gpu.render")
    matmul = LateModule("flowcompute.lower.matmul")

NAME = "multiply_records"

VECTOR_BYTES = 32
"""Bytes of a vector: as few registers as most CPUs have hold the sums of a tile."""

GROUPS_PER_UNIT = 4

_TILE_ROWS, _TILE_VECTORS = 4, 2
"""Rows of the result, and vectors of each, that are summed together."""


def product_text(dtype: np.dtype) -> str:
    """Return the program: sums over records in order, each product added with one rounding, panel by panel."""
    own, lanes = "double" if dtype == FLOAT64 else "float", VECTOR_BYTES // dtype.itemsize
    vector = f"{own}{lanes}"
    parameters = f"global const {own} *restrict a, global const {own} *restrict b, global {own} *restrict made"
    sizes = "const long rows, const long left, const long right"
    functions = {
        "tile": _tile(_TILE_ROWS, _TILE_VECTORS, vector, lanes, "loose"),
        "line": _tile(1, 1, vector, lanes, "loose"),
        "number": _tile(1, 1, own, 1, own),
    }
    texts = [
        f"static inline void {name}({parameters}, {sizes}, const long i, const long j) {{\n{body}\n}}\n"
        for name, body in functions.items()
    ]
    both = "a, b, made, rows, left, right"
    return (
        f"{'#pragma OPENCL EXTENSION cl_khr_fp64 : enable' if dtype == FLOAT64 else ''}\n"
        "#pragma OPENCL FP_CONTRACT OFF\n"
        f"typedef {vector} loose __attribute__((aligned({dtype.itemsize})));\n"
        f"{''.join(render.FMA.format(T=kind, NAME=f'add_{kind}') for kind in (vector, own))}"
        f"{''.join(texts)}"
        f"kernel void {NAME}({parameters}, {sizes}) {{\n"
        f"    const long high = (left + {_TILE_ROWS - 1}) / {_TILE_ROWS}, wide = {lanes * _TILE_VECTORS};\n"
        "    const long tiles = high * ((right + wide - 1) / wide);\n"
        "    for (long at = get_global_id(0); at < tiles; at += get_global_size(0)) {\n"
        f"        const long i = at % high * {_TILE_ROWS}, j = at / high * wide;\n"
        f"        const long below = i + {_TILE_ROWS} < left ? i + {_TILE_ROWS} : left;\n"
        "        const long end = j + wide < right ? j + wide : right;\n"
        f"        if (below - i == {_TILE_ROWS} && end - j == wide) {{\n"
        f"            tile({both}, i, j);\n"
        "            continue;\n"
        "        }\n"
        "        for (long r = i; r < below; ++r) {\n"
        "            long c = j;\n"
        f"            for (; c + {lanes} <= end; c += {lanes}) line({both}, r, c);\n"
        f"            for (; c < end; ++c) number({both}, r, c);\n"
        "        }\n"
        "    }\n"
        "}\n"
    )


def _tile(rows: int, vectors: int, kind: str, lanes: int, stored: str) -> str:
    """Return the statements that compute a tile of the result, from row `i` and column `j` on.

    Args:
        rows, vectors: of it, whose sums are in registers.
        kind, lanes: type and numbers of a vector.
        stored: its type in memory, which asks for no alignment.
    """
    sums = [(row, place) for row in range(rows) for place in range(vectors)]
    lines = [
        f"for (long first = 0; first < rows; first += {matmul.PANEL}) {{",
        f"    const long stop = first + {matmul.PANEL} < rows ? first + {matmul.PANEL} : rows;",
        *(f"    {kind} s{row}{place} = ({kind})(-0.0f);" for row, place in sums),
        "    #pragma unroll 4",
        "    for (long k = first; k < stop; ++k) {",
    ]
    for place in range(vectors):
        at = f"b + k * right + j + {place * lanes}"
        lines.append(f"        const {kind} b{place} = *(global const {stored} *)({at});")
    lines += [f"        const {kind} a{row} = ({kind})(a[k * left + i + {row}]);" for row in range(rows)]
    lines += [f"        s{row}{place} = add_{kind}(a{row}, b{place}, s{row}{place});" for row, place in sums]
    lines.append("    }")
    for row, place in sums:
        at = f"*(global {stored} *)(made + (i + {row}) * right + j + {place * lanes})"
        lines.append(f"    {at} = first ? {at} + s{row}{place} : s{row}{place};")
    return "\n".join(f"    {line}" for line in (*lines, "}"))


class RecordProducts:
    """Products of records, launched one at a time.

    Args:
        launcher: of a CPU.
        units: of it.
    """

    def __init__(self, launcher: Launcher, units: int) -> None:
        self._launcher, self._units = launcher, units
        self._built: dict[np.dtype, Any] = {}

    def multiply(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return `left.T @ right` of matrices `(rows, numbers)` that are C-contiguous, in their dtype."""
        if left.shape[1] > right.shape[1]:
            # Vectors are along the longer side; which side has them changes no bit.
            return self.multiply(right, left).T
        launcher, memory = self._launcher, self._launcher.memory
        if left.dtype not in self._built:
            types = [None, None, None, INT64, INT64, INT64]
            self._built[left.dtype] = launcher.build(product_text(left.dtype), NAME, types)
        made = np.empty((left.shape[1], right.shape[1]), left.dtype)
        keys = [(NAME, place) for place in range(3)]
        operands = [memory.input(key, array, fresh=True) for key, array in zip(keys, (left, right), strict=False)]
        target = memory.output(keys[2], made)
        values = [*operands, target, len(left), left.shape[1], right.shape[1]]
        launcher.launch(self._built[left.dtype], values, GROUPS_PER_UNIT * self._units, 1, [target], timed=False)
        memory.fetch(keys[2], made)
        memory.release({*keys})
        return made
