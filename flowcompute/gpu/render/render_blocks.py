"""Loads from blocks of quantised numbers: each format becomes a function that decodes a number of a block."""

from __future__ import annotations

from flowcompute import ir
from flowcompute.elements.quantized import (
    AsFloat,
    BlockFormat,
    Byte,
    CodebookEntry,
    Expression,
    FloatNumber,
    FromBits,
    OfFloats,
    OfWhole,
    Place,
    Whole,
    WholeChoice,
    WholeNumber,
    in_order,
    operands,
)
from flowcompute.gpu.render.cpu_functions import FMA
from flowcompute.gpu.render.render_block_runs import run_function
from flowcompute.gpu.render.strided_vectors import loose_vector
from flowcompute.ir import Var, factor_text, index_text, known_number
from flowcompute.spec import FLOAT32, UINT8

_HALF = """
static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
    return vload_half(0, (const half *)&half_bits);
}
"""
# PoCL's vload_half is a call. Where an instruction does it, Clang's builtin becomes that instruction.
_HALF_ON_CPUS = """
static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
#ifdef __F16C__
    return __builtin_load_halff((const half *)&half_bits);
#else
    return vload_half(0, (const half *)&half_bits);
#endif
}
"""

# All numbers of a run lie in one block wherever the run begins at a multiple of its length. The block's scales are then
# decoded once. A run across blocks, or of numbers that are apart, finds its block for each number.
_ALIGNED = """
static inline float{L} {F}_aligned{L}(const __global uchar *p, long n) {{
    return {F}_run{L}_of_block(p + (ulong)n / {N} * {B}, (int)((ulong)n % {N}));
}}
"""
# A run of several that share a part of a block: the compiler sees that they share what is decoded for it, too. Number
# `n` begins a block. Hardware prefetchers lose the way where a loop reads several columns.
_BEHIND = """
static inline float{L} {F}_{P}_behind{L}(const __global uchar *p, long n, long along, int behind) {{
    const __global uchar *block = p + (ulong)n / {N} * {B} + (ulong)along / {N} * {B};
    int place = (int)((ulong)along / {P} % ({N} / {P})) * {P};
    if (behind == 0) __builtin_prefetch((const void *)(size_t)(block + place * {B} / {N} + {AHEAD}), 0, 3);
    return {F}_run{L}_of_block(block, place + behind);
}}
"""
AHEAD_BYTES = 1024
"""Bytes between a block that is decoded along k and what is fetched into the cache meanwhile."""
_ANYWHERE = """
static inline float{L} {F}_run{L}(const __global uchar *p, long n) {{
    if (n % {L} == 0) return {F}_aligned{L}(p, n);
    float all[{L}];
    for (int lane = 0; lane < {L}; lane++) all[lane] = {F}(p, n + lane);
    return {ALL};
}}
"""
_RUN = """
static inline float{L} {F}_run{L}(const __global uchar *p, long n) {{
    float all[{L}];
    const __global uchar *block = p + (ulong)n / {N} * {B};
    int place = (int)((ulong)n % {N});
    if (place + {L} <= {N}) for (int lane = 0; lane < {L}; lane++) all[lane] = {F}_of_block(block, place + lane);
    else for (int lane = 0; lane < {L}; lane++) all[lane] = {F}(p, n + lane);
    return {ALL};
}}
"""
# A run as long as a block, of which a work-item has every {S}-th number, has its scales at places that compilers know.
_SPREAD = """
static inline float{L} {F}_spread{L}(const __global uchar *p, long n) {{
    const __global uchar *block = p + (ulong)n / {N} * {B};
    int place = (int)((ulong)n % {S});
    return (float{L})({ALL});
}}
"""
_APART = """
static inline float{L} {F}_apart{L}(const __global uchar *p, long n, long stride, long count) {{
    float all[{L}];
    for (int lane = 0; lane < {L}; lane++) all[lane] = lane < count ? {F}(p, n + lane * stride) : 0;
    return {ALL};
}}
"""


def decoded(load: ir.Load, block_format: BlockFormat, var: Var, helpers: dict[str, str], cpu: bool) -> str:
    """Return the text of a load that decodes float32. The functions that it calls are added to `helpers`."""
    pointer, lanes = load.argument.name, var.lanes
    one, index = _function(block_format, helpers, cpu), load.index + load.along
    if load.stride == 0 or lanes == 1:
        number = f"{one}({pointer}, {index_text(index) if load.each is None else index_text(load.each, 0)})"
        return number if lanes == 1 else f"(float{lanes})({number})"
    if load.each is not None:
        every = [f"{one}({pointer}, {index_text(load.each, lane)})" for lane in range(lanes)]
        if load.count is not None:
            every = [f"({lane} < {factor_text(load.count)} ? {text} : 0)" for lane, text in enumerate(every)]
        return f"(float{lanes})({', '.join(every)})"
    if load.stride == 1 and load.count is None:
        if cpu and block_format.numbers % lanes == 0:
            return _vector(load, one, block_format, lanes, helpers)
        run = _several(_RUN, "run", one, block_format, lanes, helpers, cpu)
        return f"{run}({pointer}, {index_text(index + load.behind)})"
    if load.aligned:
        return f"{_spread(one, block_format, lanes, helpers)}({pointer}, {index_text(index)})"
    apart = _several(_APART, "apart", one, block_format, lanes, helpers, cpu)
    count = lanes if load.count is None else index_text(load.count)
    return f"{apart}({pointer}, {index_text(index)}, {load.stride}, {count})"


def _vector(load: ir.Load, one: str, block_format: BlockFormat, lanes: int, helpers: dict[str, str]) -> str:
    """Return the text of a load by CPUs that decodes neighbouring numbers as a vector, where they are one run."""
    name = f"{one}_run{lanes}_of_block"
    if name not in helpers:
        bytes_type = loose_vector(UINT8, lanes, helpers)
        fma, vector = f"fc_fma_float{lanes}", f"float{lanes}"
        helpers.setdefault(fma, FMA.format(T=vector, NAME=fma).strip("\n") + "\n")
        helpers[name] = run_function(name, block_format, lanes, expression_text, bytes_type, fma)
    pointer = load.argument.name
    if load.together and block_format.numbers % load.together == 0:
        kind = f"{load.together}_behind"
        behind = _several(_BEHIND, kind, one, block_format, lanes, helpers, cpu=True, together=load.together)
        begin, along = (0, load.index) if known_number(load.along) == 0 else (load.index, load.along)
        return f"{behind}({pointer}, {index_text(begin)}, {index_text(along)}, {load.behind})"
    run = _several(_ALIGNED, "aligned", one, block_format, lanes, helpers, cpu=True)
    if not load.aligned:
        run = _several(_ANYWHERE, "run", one, block_format, lanes, helpers, cpu=True)
    return f"{run}({pointer}, {index_text(load.index + load.along + load.behind)})"


def _spread(one: str, block_format: BlockFormat, lanes: int, helpers: dict[str, str]) -> str:
    """Return the name of the function that decodes numbers of a block that are equally far apart."""
    name, apart = f"{one}_spread{lanes}", block_format.numbers // lanes
    if name not in helpers:
        every = ", ".join(f"{one}_of_block(block, place + {lane * apart})" for lane in range(lanes))
        text = _SPREAD.format(F=one, L=lanes, N=block_format.numbers, B=block_format.block_bytes, S=apart, ALL=every)
        helpers[name] = text.lstrip("\n")
    return name


def _several(
    template: str,
    kind: str,
    one: str,
    block_format: BlockFormat,
    lanes: int,
    helpers: dict[str, str],
    cpu: bool,
    together: int = 0,
) -> str:
    """Return the name of a function that decodes the numbers of several lanes."""
    name = f"{one}_{kind}{lanes}"
    if name not in helpers:
        # PoCL's vload is a call, which may lose half of a vector of 64 bytes.
        every = f"*({loose_vector(FLOAT32, lanes, helpers)} *)all" if cpu else f"vload{lanes}(0, all)"
        text = template.format(
            F=one,
            L=lanes,
            N=block_format.numbers,
            B=block_format.block_bytes,
            ALL=every,
            P=together,
            AHEAD=AHEAD_BYTES,
        )
        helpers[name] = text.lstrip("\n")
    return name


def _function(block_format: BlockFormat, helpers: dict[str, str], cpu: bool) -> str:
    """Return the name of the function that decodes number `n` from the first block on."""
    name = f"fc_{block_format.name.lower()}"
    if name in helpers:
        return name
    value: Expression = block_format.value
    nodes = in_order(value)
    add_tables(block_format, helpers, cpu)
    numbers, size = block_format.numbers, block_format.block_bytes
    helpers[f"{name}_of_block"] = _of_block(name, value, nodes)
    helpers[name] = (
        f"static inline float {name}(const __global uchar *p, long n) {{\n"
        f"    return {name}_of_block(p + (ulong)n / {numbers} * {size}, (int)((ulong)n % {numbers}));\n}}\n"
    )
    return name


def add_tables(block_format: BlockFormat, helpers: dict[str, str], cpu: bool) -> None:
    """Add the codebooks of a format to `helpers`, and the function that converts its half floats."""
    for node in in_order(block_format.value):
        if isinstance(node, CodebookEntry):
            codebook = node.codebook
            codes = ", ".join(map(str, codebook.numbers))
            table = f"__constant {codebook.type} fc_{codebook.name}_codes[{len(codebook.numbers)}] = {{{codes}}};\n"
            helpers.setdefault(f"fc_{codebook.name}_codes", table)
        if isinstance(node, FromBits) and node.half:
            helpers.setdefault("fc_float_of_half", (_HALF_ON_CPUS if cpu else _HALF).lstrip("\n"))


def _of_block(name: str, value: Expression, nodes: list[Expression]) -> str:
    """Return the function that decodes the number at a place of a block. Parts that are used twice are variables.

    What a block means is data, so `precision="fast"` contracts nothing in it.
    """
    uses: dict[Expression, int] = {}
    for node in nodes:
        for one in operands(node):
            uses[one] = uses.get(one, 0) + 1
    lines: list[str] = []
    texts: dict[Expression, str] = {}
    for node in nodes:
        text = expression_text(node, [texts[one] for one in operands(node)])
        if uses.get(node, 0) > 1 and not isinstance(node, Place | WholeNumber | FloatNumber):
            kind, variable = "int" if isinstance(node, Whole) else "float", f"v{len(lines)}"
            lines.append(f"    {kind} {variable} = {text};\n")
            text = variable
        texts[node] = text
    body = "".join(lines)
    return (
        f"static inline float {name}_of_block(const __global uchar *block, int place) {{\n"
        f"#pragma OPENCL FP_CONTRACT OFF\n{body}    return {texts[value]};\n}}\n"
    )


def expression_text(node: Expression, parts: list[str]) -> str:
    """Return the text of an expression of one number, given those of its operands."""
    match node:
        case Place():
            return "place"
        case WholeNumber(value):
            return str(value)
        case FloatNumber(value):
            return f"{value.hex()}f"
        case Byte():
            return f"(int)block[{parts[0]}]"
        case CodebookEntry(codebook):
            return f"(int)fc_{codebook.name}_codes[{parts[0]}]"
        case WholeChoice():
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        case AsFloat():
            return f"(float)({parts[0]})"
        case FromBits(_, half):
            return f"fc_float_of_half({parts[0]})" if half else f"as_float({parts[0]})"
        case OfWhole(op) | OfFloats(op):
            return f"({parts[0]} {op} {parts[1]})"
    raise AssertionError(f"an expression of another kind: {node}")
