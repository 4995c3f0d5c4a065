"""Words of four narrow integers and their dot products: one instruction on NVIDIA, plain code elsewhere.

A float64 is made of the bits of a float32 here, too.
"""

from __future__ import annotations

from flowcompute.gpu.render.opencl_types import scalar_type
from flowcompute.ir import DotAdd, LowerRest, OfWords, Packed, ShiftedBits, UpperHalves

_DOT = """
static inline int {name}(int a, int b, int c) {{
    const {left}4 x = as_{left}4(a);
    const {right}4 y = as_{right}4(b);
    return as_int((uint)c + (uint)(x.s0 * y.s0 + x.s1 * y.s1 + x.s2 * y.s2 + x.s3 * y.s3));
}}
"""
_PTX_DOT = """
static inline int {name}(int a, int b, int c) {{
    int d;
    asm("dp4a.{x}32.{y}32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}}
"""


_UPPER_HALVES = """
static inline uint2 fc_upper_halves(float4 x) {
    uint a, b;
    asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(a) : "r"(as_uint(x.s0)), "r"(as_uint(x.s2)));
    asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(b) : "r"(as_uint(x.s1)), "r"(as_uint(x.s3)));
    return (uint2)(a, b);
}
"""
_LOWER_REST = """
static inline float4 fc_lower_rest(float4 x) {
    return x - as_float4(as_uint4(x) & (uint4)(0xffff0000));
}
"""


def of_words(expr: OfWords, helpers: dict[str, str]) -> str:
    """Return the text of an expression of words."""
    if isinstance(expr, Packed):
        return _packed(expr)
    if isinstance(expr, ShiftedBits):
        # One product in 64 bits: shifts of each word were slower for some items, and faster for none.
        return f"as_double(((long)as_int({expr.number.name}) * 0x20000000L) & 0x8fffffffffffffffL)"
    if isinstance(expr, UpperHalves):
        helpers.setdefault("fc_upper_halves", _UPPER_HALVES.lstrip("\n"))
        return f"fc_upper_halves({expr.numbers.name})"
    if isinstance(expr, LowerRest):
        helpers.setdefault("fc_lower_rest", _LOWER_REST.lstrip("\n"))
        return f"fc_lower_rest({expr.numbers.name})"
    assert isinstance(expr, DotAdd)
    return _dot_add(expr, helpers)


def _packed(expr: Packed) -> str:
    first = expr.numbers[0]
    if first.lanes == 4:
        return f"as_int({first.name})"
    return f"as_int(({scalar_type(first.dtype)}4)({', '.join(number.name for number in expr.numbers)}))"


def _dot_add(expr: DotAdd, helpers: dict[str, str]) -> str:
    left, right = (scalar_type(dtype) for dtype in expr.dtypes)
    x, y = (dtype.kind.replace("i", "s") for dtype in expr.dtypes)
    name = f"fc_dot_{left}_{right}"
    text = _PTX_DOT if expr.native else _DOT
    helpers.setdefault(name, text.format(name=name, left=left, right=right, x=x, y=y).strip("\n") + "\n")
    a, b, c = (var.name for var in (expr.a, expr.b, expr.c))
    lanes = expr.c.lanes
    each = ", ".join(f"{name}({a}.s{lane:x}, {b}.s{lane:x}, {c}.s{lane:x})" for lane in range(lanes))
    return f"(int{lanes})({each})"
