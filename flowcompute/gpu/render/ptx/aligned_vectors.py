"""Loads and stores of four numbers in global memory as one instruction where they lie at a multiple of their size.

OpenCL's `vload4`, `vstore4` and `vstore_half4` know no alignment: the compiler moves one number after the other.
"""

from __future__ import annotations

import numpy as np

from flowcompute.ir import Store, index_text
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT32, UINT8, is_float

LANES = 4

_QUIET = """static inline ushort4 fc_packed{name}(float4 x) {{
    uint2 both;
    asm("cvt.rn.{kind}x2.f32 %0, %2, %1;" : "=r"(both.s0) : "f"(x.s0), "f"(x.s1));
    asm("cvt.rn.{kind}x2.f32 %0, %2, %1;" : "=r"(both.s1) : "f"(x.s2), "f"(x.s3));
    // Platforms give NaNs different bits.
    return convert_short4(x == x) ? as_ushort4(both) : (ushort4)({nan});
}}
"""

_HALVES = {
    FLOAT16: ("fc_packed", _QUIET.format(name="", kind="f16", nan="0x7e00")),
    BFLOAT16: ("fc_packed_bfloat16", _QUIET.format(name="_bfloat16", kind="bf16", nan="0x7fc0")),
}
"""Function of four numbers of a half format, and its text."""

_HALF = """static inline void fc_store_{name}_4(__global {memory} *to, float4 x) {{
    const ushort4 bits = {packed}(x);
    if ((ulong)to % 8 == 0) *(__global ushort4 *)to = bits;
    else vstore4(bits, 0, (__global ushort *)to);
}}
"""

_WHOLE = """static inline void fc_store_{name}_4(__global {kind} *to, {kind}4 x) {{
    if ((ulong)to % {size} == 0) *(__global {kind}4 *)to = x;
    else vstore4(x, 0, to);
}}
"""

_STORED = {
    FLOAT16: _HALF.format(name="float16", memory="half", packed="fc_packed"),
    BFLOAT16: _HALF.format(name="bfloat16", memory="ushort", packed="fc_packed_bfloat16"),
    **{
        dtype: _WHOLE.format(name=dtype.name, kind=kind, size=LANES * dtype.itemsize)
        for dtype, kind in ((FLOAT32, "float"), (BOOL, "uchar"), (INT8, "char"), (UINT8, "uchar"), (INT32, "int"))
    },
}

_FIRST_HALF = """static inline void fc_store_first_{name}_4(__global {memory} *first, float4 x, long count) {{
    const ushort4 bits = {packed}(x);
    __global ushort *to = (__global ushort *)first;
    if (count > 3 && (ulong)to % 4 == 0) {{
        *(__global ushort2 *)to = bits.lo;
        *(__global ushort2 *)(to + 2) = bits.hi;
    }} else {{
        if (count > 0) to[0] = bits.s0;
        if (count > 1) to[1] = bits.s1;
        if (count > 2) to[2] = bits.s2;
        if (count > 3) to[3] = bits.s3;
    }}
}}
"""

_FIRST_STORED = {
    FLOAT16: _FIRST_HALF.format(name="float16", memory="half", packed="fc_packed"),
    BFLOAT16: _FIRST_HALF.format(name="bfloat16", memory="ushort", packed="fc_packed_bfloat16"),
    FLOAT32: """static inline void fc_store_first_float32_4(__global float *to, float4 x, long count) {
    if (count > 0) to[0] = x.s0;
    if (count > 1) to[1] = x.s1;
    if (count > 2) to[2] = x.s2;
    if (count > 3) to[3] = x.s3;
}
""",
}

_LOADED = """static inline {memory}4 fc_load_{memory}_4(const __global {memory} *from) {{
    if ((ulong)from % {size} == 0) return *(const __global {memory}4 *)from;
    return vload4(0, from);
}}
"""


def takes_packed(store: Store) -> bool:
    """Check whether `store_packed` stores this vector: four numbers side by side, whose NaNs have one form."""
    if store.each is not None or store.stride != 1 or store.var.lanes != LANES:
        return False
    dtype = store.argument.dtype
    has_one_nan = store.canonical or not is_float(dtype)
    return dtype in (_STORED if store.count is None else _FIRST_STORED) and has_one_nan


def store_packed(store: Store, value: str, helpers: dict[str, str]) -> str:
    """Return the statement that stores four numbers. Halves are rounded by it, and bools given as 0 and 1.

    Where fewer exist they are stored one by one, but without a branch for the NaNs of each.
    """
    argument = store.argument
    if argument.dtype in _HALVES:
        helpers.setdefault(*_HALVES[argument.dtype])
    part, texts = ("", _STORED) if store.count is None else ("first_", _FIRST_STORED)
    name = f"fc_store_{part}{argument.dtype.name}_4"
    helpers.setdefault(name, texts[argument.dtype])
    count = "" if store.count is None else f", {index_text(store.count)}"
    return f"{name}({argument.name} + ({index_text(store.index)}), {value}{count});"


def load_packed(memory: str, dtype: np.dtype, place: str, helpers: dict[str, str]) -> str:
    """Return the expression that loads four numbers of a dtype, as they lie in memory.

    Args:
        memory: type of a number in memory.
        dtype: of the numbers.
        place: address of the first one.
        helpers: texts of functions by name; more are added.
    """
    name = f"fc_load_{memory}_4"
    helpers.setdefault(name, _LOADED.format(memory=memory, size=LANES * dtype.itemsize))
    return f"{name}({place})"
