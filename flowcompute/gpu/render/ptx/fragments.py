"""Fragments of matrices and copies to local memory in inline PTX, for NVIDIA's tensor cores from 8.0 up.

The instructions are `ldmatrix`, `mma.sync` and `cp.async` of the PTX ISA (sections 9.7.14 and 9.7.9.25). `min.u16x2` is
one of compute capability 9.0 (section 9.7.1).
"""

from __future__ import annotations

import numpy as np

from flowcompute.gpu.render.opencl_types import type_of, vector
from flowcompute.ir import (
    Across,
    AwaitCopies,
    Copy,
    Copying,
    EarlyRead,
    EndCopies,
    Fragment,
    FragmentMultiply,
    FragmentOf,
    IndexLike,
    Join,
    Leading,
    NoneZero,
    NormalPower,
    OfFragments,
    PrefetchRun,
    Rest,
    SubGroupBarrier,
    Var,
    Words,
    WordsOf,
    index_text,
)
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, INT8, UINT8, is_float

_FRAGMENT = """static inline uint4 fc_fragment{suffix}(const __local void *from) {{
    uint a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((uint)(size_t)from) : "memory");
    return (uint4)(a, b, c, d);
}}
"""

_MULTIPLY = """static inline float4 fc_multiply_{name}(uint4 a, uint2 b, float4 c) {{
    float p = c.s0, q = c.s1, r = c.s2, s = c.s3;
    asm("mma.sync.aligned.m16n8{depth}.row.col.f32.{name}.{name}.f32 "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
        : "+f"(p), "+f"(q), "+f"(r), "+f"(s)
        : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3), "r"(b.s0), "r"(b.s1));
    return (float4)(p, q, r, s);
}}
"""

_PACK = """static inline uint4 fc_pack_{name}(float4 low, float4 high) {{
    uint a, b, c, d;
    asm("cvt.rn.{name}x2.f32 %0, %1, %2;" : "=r"(a) : "f"(low.s1), "f"(low.s0));
    asm("cvt.rn.{name}x2.f32 %0, %1, %2;" : "=r"(b) : "f"(low.s3), "f"(low.s2));
    asm("cvt.rn.{name}x2.f32 %0, %1, %2;" : "=r"(c) : "f"(high.s1), "f"(high.s0));
    asm("cvt.rn.{name}x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high.s3), "f"(high.s2));
    return (uint4)(a, b, c, d);
}}
"""

_ROUND = {
    FLOAT16: "{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}",
    BFLOAT16: "{.reg .b16 h, z; mov.b16 z, 0; cvt.rn.bf16.f32 h, %1; mov.b32 %0, {z, h};}",
}

# Half of a unit in the last place is added, then the bits behind that place are cut off. A NaN may thereby
# become a number, but its remainder is NaN.
_LEADING = """static inline uint4 fc_leading(uint4 x) {
    return (x + (uint4)(0x1000)) & (uint4)(0xffffe000);
}
"""

_ACROSS = """static inline {kind} {name}({kind} a, uint bit) {{
    {kind} b;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "={place}"(b) : "{place}"(a), "r"(bit));
    return b;
}}
"""

_POWER = """static inline float fc_normal_power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
"""

_LEAST = """static inline uint fc_least(uint least, uint4 x) {
    asm("min.u16x2 %0, %0, %1;" : "+r"(least) : "r"(x.s0));
    asm("min.u16x2 %0, %0, %1;" : "+r"(least) : "r"(x.s1));
    asm("min.u16x2 %0, %0, %1;" : "+r"(least) : "r"(x.s2));
    asm("min.u16x2 %0, %0, %1;" : "+r"(least) : "r"(x.s3));
    return least;
}
"""

_NONE_ZERO = """static inline uint fc_none_zero(uint least) {
    uint none;
    asm volatile("{.reg .pred own, all; setp.ne.u32 own, %1, 0; vote.sync.all.pred all, own, 0xffffffff;"
                 " selp.u32 %0, 1, 0, all;}" : "=r"(none) : "r"((least & 0xffff) != 0 && least >> 16 != 0));
    return none;
}
"""

# A copy of no bytes reads nothing, wherever the address points, and fills the destination with zeros.
_COPY = """static inline void fc_copy_{size}(__local void *to, const __global void *from, int exists) {{
    asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size}, %2;"
                 :: "r"((uint)(size_t)to), "l"(from), "r"(exists ? {size} : 0) : "memory");
}}
"""

_READ = """static inline float4 fc_read_early(uint from) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.s0), "=f"(x.s1), "=f"(x.s2), "=f"(x.s3) : "r"(from) : "memory");
    return x;
}
"""

FORMATS = {
    FLOAT16: ("f16", "k16"),
    BFLOAT16: ("bf16", "k16"),
    FLOAT32: ("tf32", "k8"),
    INT8: ("s8", "k32"),
    UINT8: ("u8", "k32"),
}
"""Name of a factor's numbers in instructions, and how many of k these multiply."""

_MEMORY = {1: "uchar", 2: "ushort", 4: "uint"}
"""Types of places in local memory by the bytes of a number."""


def rounding_helper(dtype: np.dtype, lanes: int, name: str) -> str:
    """Return the function that rounds floats to a half format, in a few instructions a number.

    Its results have the bits of the function that other devices have, those of NaN included.
    """
    kind, words = vector("float", lanes), vector("uint", lanes)
    each = ["x"] if lanes == 1 else [f"x.s{lane:x}" for lane in range(lanes)]
    return "\n".join(
        [
            f"static inline {kind} {name}({kind} x) {{",
            f"    float {', '.join(f'y{lane}' for lane in range(lanes))};",
            *(f'    asm("{_ROUND[dtype]}" : "=f"(y{lane}) : "f"({one}));' for lane, one in enumerate(each)),
            f"    {words} quiet = as_{words}(x) & ({words})(0x80000000) | ({words})(0x7fc00000);",
            f"    return x == x ? ({kind})({', '.join(f'y{lane}' for lane in range(lanes))}) : as_{kind}(quiet);",
            "}",
        ]
    )


def multiply_helper(dtype: np.dtype) -> tuple[str, str]:
    """Return the name and text of the function that multiplies fragments of a dtype and adds."""
    kind, depth = FORMATS[dtype]
    return f"fc_multiply_{kind}", _MULTIPLY.format(name=kind, depth=depth)


def of_fragments(expr: OfFragments, helpers: dict[str, str]) -> str:
    """Return the text of an expression of fragments, such as a load or a product."""
    match expr:
        case Fragment(array, index, dtype, transposed):
            suffix = "_transposed" if transposed else ""
            name = f"fc_fragment{suffix}"
            helpers.setdefault(name, _FRAGMENT.format(suffix=suffix, trans=".trans" if transposed else ""))
            return f"{name}({local_place(array, index, dtype)})"
        case FragmentMultiply(a, b, part, c, dtype):
            name, text = multiply_helper(dtype)
            helpers.setdefault(name, text)
            return f"{name}({a.name}, {b.name}.{'hi' if part else 'lo'}, {c.name})"
        case Words(array, indices):
            words = (f"((__local uint *){array})[{index_text(index)}]" for index in indices)
            return f"(uint4)({', '.join(words)})"
        case EarlyRead(array, index):
            helpers.setdefault("fc_read_early", _READ)
            return f"fc_read_early((uint)(size_t){array} + 4 * (uint)({index_text(index)}))"
        case Leading(operand):
            helpers.setdefault("fc_leading", _LEADING)
            return f"fc_leading({operand.name})"
        case Rest(operand, leading):
            return f"as_uint4(as_float4({operand.name}) - as_float4({leading.name}))"
        case FragmentOf(low, high, dtype):
            kind, _ = FORMATS[dtype]
            helpers.setdefault(f"fc_pack_{kind}", _PACK.format(name=kind))
            return f"fc_pack_{kind}({low.name}, {high.name})"
        case WordsOf(operand):
            return f"as_uint4({operand.name}.s0213)"
        case Join(low, high):
            return f"({type_of(low.dtype, low.lanes + high.lanes, 0)})({low.name}, {high.name})"
        case Across(operand, bit):
            kind, place, name = (
                ("float", "f", "fc_across") if is_float(operand.dtype) else ("int", "r", "fc_across_int")
            )
            helpers.setdefault(name, _ACROSS.format(kind=kind, place=place, name=name))
            return _each_lane(operand, f"{name}({{}}, {bit})")
        case NoneZero(operands):
            helpers.setdefault("fc_least", _LEAST)
            helpers.setdefault("fc_none_zero", _NONE_ZERO)
            least = "0xffffffffu"
            for operand in operands:
                least = f"fc_least({least}, {operand.name})"
            return f"fc_none_zero({least})"
        case NormalPower(operand):
            helpers.setdefault("fc_normal_power", _POWER)
            return _each_lane(operand, "fc_normal_power({})")
        case _:
            raise NotImplementedError(expr)


def _each_lane(operand: Var, call: str) -> str:
    """Return a call of a function of one number for each lane."""
    if operand.lanes == 1:
        return call.format(operand.name)
    each = (call.format(f"{operand.name}.s{lane:x}") for lane in range(operand.lanes))
    return f"({type_of(operand.dtype, operand.lanes, 0)})({', '.join(each)})"


def copying(statement: Copying, helpers: dict[str, str]) -> str:
    """Return the statement that begins a copy, ends a group of copies, or waits for groups."""
    match statement:
        case Copy():
            return _copy(statement, helpers)
        case EndCopies():
            return 'asm volatile("cp.async.commit_group;" ::: "memory");'
        case AwaitCopies(pending):
            return f'asm volatile("cp.async.wait_group {pending};" ::: "memory");'
        case SubGroupBarrier():
            return 'asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");'
        case PrefetchRun(argument, index, count):
            place, size = f"{argument.name} + ({index_text(index)})", count * argument.dtype.itemsize
            operands = f'"l"((ulong)({place})), "r"({size}u)'
            return f'asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: {operands} : "memory");'
        case _:
            raise NotImplementedError(statement)


def _copy(copy: Copy, helpers: dict[str, str]) -> str:
    argument, dtype = copy.argument, copy.argument.dtype
    size, to = copy.numbers * dtype.itemsize, local_place(copy.array, copy.place, dtype)
    if size == 2:
        # No instruction copies so few bytes, so this is not asynchronous.
        number = f"((const __global ushort *){argument.name})[{index_text(copy.index)}]"
        return f"*({to}) = ({index_text(copy.exists)}) ? {number} : 0;"
    # Only copies of 16 bytes can bypass the first cache, which shares its memory with the tiles.
    helpers.setdefault(f"fc_copy_{size}", _COPY.format(size=size, cache="cg" if size == 16 else "ca"))
    return f"fc_copy_{size}({to}, {argument.name} + ({index_text(copy.index)}), {index_text(copy.exists)});"


def local_place(array: str, index: IndexLike, dtype: np.dtype) -> str:
    """Return a place in a local array, counted in numbers of a dtype."""
    return f"(__local {_MEMORY[dtype.itemsize]} *){array} + ({index_text(index)})"
