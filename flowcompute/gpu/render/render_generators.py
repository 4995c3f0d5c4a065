"""Renderer of generated streams to OpenCL C: positions, and random numbers from Philox blocks.

Lanes nearly always hold neighbouring numbers. Then each block is computed once and its words are distributed to
their lanes. Otherwise each lane computes its own block. Both give the same bits, since they use only integers
and + - * / sqrt without contraction.
"""

from __future__ import annotations

import math

import numpy as np

from flowcompute.elements.generated import BOX_MULLER, KEY_STEPS, MULTIPLIERS, ROUNDS, Generator
from flowcompute.gpu.render.opencl_types import scalar_type, type_names, var_type, vector
from flowcompute.ir import Generate, Var, index_text
from flowcompute.spec import FLOAT32, is_float

Helpers = dict[str, str]
"""Functions by name. Each comes after those that it calls."""

_WORD = "0xffffffffUL"

# Otherwise PoCL would call a function that is used twice, and compute the ten keys anew in each call.
_INLINE = "__attribute__((always_inline)) static inline"

# Words are kept in the lower halves of 64-bit lanes, where vector units multiply 32 by 32 bits. The
# bits in the upper halves never reach a product, and are dropped at the end.
_PHILOX = """
@INLINE@ void @NAME@(@V@ block, const ulong key, const ulong tag, @V@ *low, @V@ *high) {
    @V@ a = block & @WORD@, b = block >> 32, c = (@V@)(tag), d = (@V@)(0), p, q;
    ulong first = key & @WORD@, second = key >> 32;
@ROUNDS@
    *low = (a & @WORD@) | (b << 32);
    *high = (c & @WORD@) | (d << 32);
}
"""
# The rounds are unrolled here: PoCL does not unroll a loop of ten, which takes twice as long.
_ROUND = """    p = (a & @WORD@) * @M0@UL; q = (c & @WORD@) * @M1@UL;
    a = (q >> 32) ^ b ^ first; b = q; c = (p >> 32) ^ d ^ second; d = p;"""
_NEXT_KEY = """
    first += @K0@UL; second += @K1@UL;
"""

_BOX_MULLER = """
@INLINE@ void @NAME@(const @U@ x, const @U@ y, @T@ *even, @T@ *odd) {
#pragma OPENCL FP_CONTRACT OFF
    const @T@ v = convert_@T@(as_@I@(x >> @DROP@)) + (@T@)(0.5f);
    const @I@ exponent = (as_@I@(v) - (@I@)(@ROOT_HALF@)) >> @FRACTION@;
    const @T@ missing = (convert_@T@(as_@I@(~x >> @DROP@)) + (@T@)(0.5f)) * @UNIT@;
    const @T@ f = exponent == (@I@)(@KEPT@) ? -missing : as_@T@(as_@I@(v) - (exponent << @FRACTION@)) - (@T@)(1);
    const @T@ s = f / (f + (@T@)(2)), z = s * s;
    const @T@ half_f = (@T@)(0.5f) * f * f;
    const @T@ ln = f - (half_f - s * (half_f + @LOG@ * z));
    const @T@ minus_log = convert_@T@((@I@)(@KEPT@) - exponent) * @LN2@ - ln;
    const @T@ radius = sqrt(minus_log + minus_log);
    const @U@ quarter = (y + (@U@)(@EIGHTH@)) >> @QUARTER@;
    const @T@ rest = convert_@T@(as_@I@(y - (quarter << @QUARTER@))) * @TURN@, square = rest * rest;
    const @T@ sine = rest + rest * square * @SINE@;
    const @T@ cosine = (@T@)(1) - ((@T@)(0.5f) * square - square * square * @COSINE@);
    const @T@ first = (quarter & 1) != (@U@)(0) ? sine : cosine;
    const @T@ second = (quarter & 1) != (@U@)(0) ? cosine : sine;
    *even = radius * as_@T@(as_@U@(first) ^ (((quarter + 1) & 2) << @QUARTER@));
    *odd = radius * as_@T@(as_@U@(second) ^ ((quarter & 2) << @QUARTER@));
}
"""

# The numbers from the first position of a block.
_ALIGNED = """
@INLINE@ @T@ @NAME@_aligned(const ulong n@PARAMETERS@) {
    @V@ low, high;
    @PHILOX@(@BLOCKS@, key, @TAG@, &low, &high);
@BODY@
}
"""

# On CPUs one text of the numbers serves both runs, since it is long and occurs in a kernel many times.
_RUN_CPU = """
@INLINE@ @T@ @NAME@(const ulong n@PARAMETERS@) {
    const ulong off = n % @SHARE@;
    @T@ two[2];
    const ulong runs = off == 0 ? 1 : 2;
    for (ulong run = 0; run < runs; run++) two[run] = @NAME@_aligned(n - off + run * @L@@ARGUMENTS@);
    if (off == 0) return two[0];
    const @S@ *at = (const @S@ *)two + off;
    return (@T@)(@LANES@);
}
"""

# On GPUs arrays lie in memory, which the usual case must not access.
_RUN_GPU = """
static inline @T@ @NAME@(const ulong n@PARAMETERS@) {
    const ulong off = n % @SHARE@;
    const @T@ one = @NAME@_aligned(n - off@ARGUMENTS@);
    if (off == 0) return one;
    const @T@ two[2] = {one, @NAME@_aligned(n - off + @L@@ARGUMENTS@)};
    const @S@ *at = (const @S@ *)two + off;
    return (@T@)(@LANES@);
}
"""

_ONE = """
static inline @S@ @NAME@(const ulong n@PARAMETERS@) {
    ulong low, high;
    @PHILOX@(n / @SHARE@, key, @TAG@, &low, &high);
@BODY@
}
"""

_OF = """
@INLINE@ @RESULT@ @NAME@(@TAKES@) {
    @BODY@
}
"""


def generated(expr: Generate, var: Var, helpers: Helpers, cpu: bool) -> str:
    """Return the text of generated numbers, and add the functions that it calls."""
    if expr.op.form == "position":
        return _positions(expr, var)
    arguments = "".join(f", {operand.name}" for operand in expr.operands)
    if var.lanes > 1 and expr.step == 1 and expr.each is None:
        return f"{_run(expr.op, var, helpers, cpu)}((ulong)({index_text(expr.position)}){arguments})"
    one = _one(expr.op, var.dtype, helpers)
    if var.lanes == 1 or (expr.step == 0 and expr.each is None):
        number = f"{one}((ulong)({_lane(expr, 0)}){arguments})"
        return number if var.lanes == 1 else f"({var_type(var)})({number})"
    numbers = ", ".join(f"{one}((ulong)({_lane(expr, lane)}){arguments})" for lane in range(var.lanes))
    return f"({var_type(var)})({numbers})"


def _lane(expr: Generate, lane: int) -> str:
    """Return the position of one lane."""
    if expr.each is not None:
        return index_text(expr.each, lane)
    text = index_text(expr.position)
    return f"{text} + {expr.step * lane}" if expr.step * lane else text


def _positions(expr: Generate, var: Var) -> str:
    kind = var_type(var)
    if expr.each is not None:
        return f"({kind})({', '.join(_lane(expr, lane) for lane in range(var.lanes))})"
    base = f"({kind})((long)({index_text(expr.position)}))"
    if var.lanes == 1 or expr.step == 0:
        return base
    return f"{base} + ({kind})({', '.join(str(expr.step * lane) for lane in range(var.lanes))})"


# -- functions --------------------------------------------------------------------------------------


def _filled(template: str, words: dict[str, str]) -> str:
    for key, word in (words | {"INLINE": _INLINE}).items():
        template = template.replace(f"@{key}@", word)
    return template.strip("\n") + "\n"


def _name(op: Generator, dtype: np.dtype, lanes: int) -> str:
    return f"fc_{op.name}{op.bits}_{vector(scalar_type(dtype), lanes)}"


def _parameters(op: Generator) -> dict[str, str]:
    letters = ["key", *"ab"[: op.arity - 1]]
    return {
        "PARAMETERS": "".join(f", const ulong {letter}" for letter in letters),
        "ARGUMENTS": "".join(f", {letter}" for letter in letters),
        "TAG": str(op.tag),
        "SHARE": str(op.share),
    }


def _run(op: Generator, var: Var, helpers: Helpers, cpu: bool) -> str:
    """Return the name of the function that computes the numbers of neighbouring positions."""
    name = _name(op, var.dtype, var.lanes)
    if name in helpers:
        return name
    count = var.lanes // op.share
    blocks = vector("ulong", count)
    numbers = f"({blocks})(n / {op.share})"
    if count > 1:
        numbers += f" + ({blocks})({', '.join(map(str, range(count)))})"
    words = _parameters(op) | {
        "NAME": name,
        "T": var_type(var),
        "S": scalar_type(var.dtype),
        "L": str(var.lanes),
        "V": blocks,
        "PHILOX": _philox(count, helpers),
        "BLOCKS": numbers,
        "BODY": _numbers_of_blocks(op, var, count, helpers),
        "LANES": ", ".join(f"at[{lane}]" for lane in range(var.lanes)),
    }
    if op.share == 1:
        words["NAME"] = name + "_aligned"
        helpers[name] = _filled(_ALIGNED.replace("@NAME@_aligned", name), words)
    else:
        helpers[name] = _filled(_ALIGNED, words) + _filled(_RUN_CPU if cpu else _RUN_GPU, words)
    return name


def _numbers_of_blocks(op: Generator, var: Var, count: int, helpers: Helpers) -> str:
    """Return the code that turns the words of `count` blocks into the numbers of all lanes, in order."""
    more = "".join(f", {letter}" for letter in "ab"[: op.arity - 1])
    if op.form == "block":
        return f"    return {_of(op, var.dtype, var.lanes, helpers)}(low, high{more});"
    parts = [f"low.s{i:x}, high.s{i:x}" for i in range(count)] if count > 1 else ["low, high"]
    both = f"({vector('ulong', 2 * count)})({', '.join(parts)})"
    wide = f"const {_word(op, var.lanes)} w = {both if op.bits == 64 else f'as_uint{var.lanes}({both})'};"
    if op.form == "word":
        return f"    {wide}\n    return {_of(op, var.dtype, var.lanes, helpers)}(w{more});"
    half = vector(scalar_type(var.dtype), var.lanes // 2)
    function = _of(op, var.dtype, var.lanes // 2, helpers)
    return f"""    {wide}
    {half} even, odd;
    {function}(w.even, w.odd, &even, &odd{more});
    {var_type(var)} result;
    result.even = even;
    result.odd = odd;
    return result;"""


def _one(op: Generator, dtype: np.dtype, helpers: Helpers) -> str:
    """Return the name of the function that computes the number of one position."""
    name = _name(op, dtype, 1)
    if name in helpers:
        return name
    more = "".join(f", {letter}" for letter in "ab"[: op.arity - 1])
    function = _of(op, dtype, 1, helpers)
    half = "n & 1" if op.bits == 64 else "n & 2"
    if op.form == "block":
        body = f"    return {function}(low, high{more});"
    elif op.form == "word":
        word = f"({half} ? high : low)"
        body = f"    return {function}({word if op.bits == 64 else f'(uint)({word} >> (n & 1) * 32)'}{more});"
    else:
        pair = "low, high" if op.bits == 64 else f"(uint)({half} ? high : low), (uint)(({half} ? high : low) >> 32)"
        body = f"    {scalar_type(dtype)} even, odd;\n    {function}({pair}, &even, &odd{more});\n"
        body += "    return n & 1 ? odd : even;"
    words = _parameters(op) | {"NAME": name, "S": scalar_type(dtype), "PHILOX": _philox(1, helpers), "BODY": body}
    helpers[name] = _filled(_ONE, words)
    return name


def _word(op: Generator, lanes: int) -> str:
    return vector("uint" if op.bits == 32 else "ulong", lanes)


def _of(op: Generator, dtype: np.dtype, lanes: int, helpers: Helpers) -> str:
    """Return the name of the function that turns words into numbers."""
    name = f"{_name(op, dtype, lanes)}_of"
    if name in helpers:
        return name
    number, word = vector(scalar_type(dtype), lanes), _word(op, lanes)
    takes = {
        "word": [f"const {word} w"],
        "block": [f"const {word} low", f"const {word} high"],
        "pair": [f"const {word} x", f"const {word} y", f"{number} *even", f"{number} *odd"],
        "position": [],
    }[op.form] + [f"const ulong {letter}" for letter in "ab"[: op.arity - 1]]
    names = type_names(dtype, lanes)
    if "{BOX_MULLER}" in op.helper["any"]:
        names["BOX_MULLER"] = _box_muller(dtype, lanes, helpers)
    body = op.helper["any"].strip().format(**names)
    result = number if op.form != "pair" else "void"
    helpers[name] = _filled(_OF, {"RESULT": result, "NAME": name, "TAKES": ", ".join(takes), "BODY": body})
    return name


def _philox(count: int, helpers: Helpers) -> str:
    """Return the name of the function that computes `count` blocks."""
    kind = vector("ulong", count)
    name = f"fc_philox_{kind}"
    rounds = _NEXT_KEY.join([_ROUND] * ROUNDS)
    words = {"ROUNDS": rounds, "NAME": name, "V": kind, "WORD": _WORD}
    words |= {f"M{i}": f"0x{number:X}" for i, number in enumerate(MULTIPLIERS)}
    words |= {f"K{i}": f"0x{number:X}" for i, number in enumerate(KEY_STEPS)}
    helpers.setdefault(name, _filled(_PHILOX, words))
    return name


def _box_muller(dtype: np.dtype, lanes: int, helpers: Helpers) -> str:
    """Return the name of the Box-Muller transform."""
    known, names = BOX_MULLER[dtype], type_names(dtype, lanes)
    name = f"fc_box_muller_{names['T']}"
    width = 8 * dtype.itemsize
    suffix = "u" if dtype == FLOAT32 else "UL"
    words = names | {
        "NAME": name,
        "DROP": str(known.drop),
        "KEPT": str(known.kept),
        "FRACTION": str(known.fraction),
        "ROOT_HALF": hex(known.root_half) + ("" if dtype == FLOAT32 else "L"),
        "EIGHTH": hex(1 << (width - 3)) + suffix,
        "QUARTER": str(width - 2),
        "UNIT": _constant(2.0**-known.kept, dtype, lanes),
        "LN2": _constant(math.log(2), dtype, lanes),
        "TURN": _constant(2 * math.pi / 2**width, dtype, lanes),
        "LOG": _series("z", known.log, dtype, lanes),
        "SINE": _series("square", known.sine, dtype, lanes),
        "COSINE": _series("square", known.cosine, dtype, lanes),
    }
    helpers.setdefault(name, _filled(_BOX_MULLER, words))
    return name


def _series(x: str, coefficients: tuple[float, ...], dtype: np.dtype, lanes: int) -> str:
    """Return the text of a polynomial by Horner's scheme."""
    text = _constant(coefficients[-1], dtype, lanes)
    for coefficient in reversed(coefficients[:-1]):
        text = f"({_constant(coefficient, dtype, lanes)} + {x} * {text})"
    return text


def _constant(value: float, dtype: np.dtype, lanes: int) -> str:
    """Return a float as text that is read back exactly in the dtype."""
    assert is_float(dtype)
    number = float(dtype.type(value)).hex() + ("f" if dtype == FLOAT32 else "")
    return f"({vector(scalar_type(dtype), lanes)})({number})"
