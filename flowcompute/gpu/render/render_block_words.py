"""Runs of four numbers of a block in local memory: four bytes are a word, and what is alike is done for all at once.

Whole numbers from 0 to 255 are kept as the bytes of a word, less a bias that all lanes have. So a mask or a shift takes
one instruction for four numbers. A byte becomes a float without a conversion: below the exponent of 2^23 it is the
lowest part of a significand. One subtraction removes that power of two and the bias, without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import count

from flowcompute.elements.quantized import (
    RAISED,
    AsFloat,
    BlockFormat,
    Byte,
    Expression,
    FloatNumber,
    OfFloats,
    OfWhole,
    Place,
    Whole,
    WholeNumber,
    bounds_of,
    exact_products,
    lanes_of,
    moved,
    offset_between,
    operands,
    trailing_zeros,
)
from flowcompute.gpu.render.render_blocks import add_tables, expression_text
from flowcompute.imports import dataclass
from flowcompute.ir import RUN_NUMBERS, BlockRun, HalvesOfRun, index_text

_EACH = 0x01010101
"""The lowest bit of each byte of a word."""
_MOST = 255
_FIRST_WHOLE = 1 << 23
"""From here on neighbouring float32 numbers are 1 apart."""

_WORD = """
static inline uint fc_word(const __local uchar *p) {
    const __local ushort *halves = (const __local ushort *)p;
    return halves[0] | (uint)halves[1] << 16;
}
"""
_FLOATS = """
static inline float4 fc_floats_of_bytes(uint word) {
    uint4 bytes = (uint4)(word & 255, word >> 8 & 255, word >> 16 & 255, word >> 24);
    return as_float4(bytes | (uint4)(0x4b000000));
}
"""
_RAISED_FLOATS = """
static inline float4 fc_raised_bytes(uint word) {
    uint4 bytes = (uint4)(word << 8 & 65280, word & 65280, word >> 8 & 65280, word >> 16 & 65280);
    return as_float4(bytes | (uint4)(0x47000000));
}
"""


_LESS_HALVES = """
static inline uint fc_less_halves(uint a, uint b) {
    uint c;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return c;
}
"""
"""Sums of the halves of words as bfloat16, by the instruction that compute capability 8.0 has for them."""
_HALVES = 0x10001
"""The lowest bit of each half of a word."""
_128 = 0x4300
"""The bits of 128 in bfloat16, whose significand has seven more: below 256 neighbouring numbers are 1 apart."""


def _permuted(name: str, picks: Sequence[int], power: int) -> str:
    """Return the text of a function that puts each byte of a word beside those of a float, by PTX's `prmt`.

    The compiler takes two instructions a byte by itself.

    Args:
        name: of the function.
        picks: for each byte of the word, which bytes of the word and of the float the result has.
        power: the bits of the float.
    """
    lanes = [
        f'    asm("prmt.b32 %0, %1, %2, {pick:#06x};" : "=r"(bits.{lane}) : "r"(word), "r"({power:#x}));\n'
        for lane, pick in zip("xyzw", picks, strict=True)
    ]
    return f"""
static inline float4 {name}(uint word) {{
    uint4 bits;
{"".join(lanes)}    return as_float4(bits);
}}
"""


_NATIVE_FLOATS = _permuted("fc_floats_of_bytes", (0x7440, 0x7441, 0x7442, 0x7443), 0x4B000000)
_NATIVE_RAISED_FLOATS = _permuted("fc_raised_bytes", (0x7404, 0x7414, 0x7424, 0x7434), 0x47000000)


@dataclass(frozen=True)
class _Packed:
    """Four whole numbers as the bytes of a word.

    Attributes:
        word: its text.
        bias: what is subtracted from each byte.
    """

    word: str
    bias: int = 0


def halves_of_run(halves: HalvesOfRun, helpers: dict[str, str]) -> str:
    """Return the text of the whole numbers of a run as halves. The functions that it calls are added to `helpers`."""
    run = halves.run
    at = "".join(f"_{number}" for number in (run.begin, run.known, run.multiple))
    name = f"fc_{run.blocks.name.lower()}_halves{at}"
    if name not in helpers:
        helpers.setdefault("fc_word", _WORD.lstrip("\n"))
        helpers.setdefault("fc_less_halves", _LESS_HALVES.lstrip("\n"))
        add_tables(run.blocks, helpers, cpu=False)
        known = _KnownRun(run.blocks, run.lanes, run.begin, run.span, run.known, run.multiple, run.raised)
        helpers[name] = f"static inline uint2 {name}(const __local uchar *block, int place) {{\n{_halves_of(known)}}}\n"
    return _call(name, run)


def _call(name: str, run: BlockRun) -> str:
    bytes_of = f"(const __local uchar *){run.array} + ({index_text(run.block)})"
    return f"{name}({bytes_of}, (int)({index_text(run.place)}))"


def block_run(run: BlockRun, helpers: dict[str, str]) -> str:
    """Return the text of a run. The functions that it calls are added to `helpers`."""
    at = "".join(f"_{number}" for number in (run.begin, run.known, run.multiple))
    kind = ("raised" if run.raised else "") + ("words" if run.lanes == RUN_NUMBERS else f"runs{run.lanes}")
    name = f"fc_{run.blocks.name.lower()}_{kind}{at}"
    if name not in helpers:
        helpers.setdefault("fc_word", _WORD.lstrip("\n"))
        floats = (_NATIVE_FLOATS if run.native else _FLOATS).lstrip("\n")
        raised = (_NATIVE_RAISED_FLOATS if run.native else _RAISED_FLOATS).lstrip("\n")
        helpers.setdefault(*(("fc_raised_bytes", raised) if run.raised else ("fc_floats_of_bytes", floats)))
        add_tables(run.blocks, helpers, cpu=False)
        known = _KnownRun(run.blocks, run.lanes, run.begin, run.span, run.known, run.multiple, run.raised)
        helpers[name] = _function(name, known)
    return _call(name, run)


@dataclass(frozen=True)
class _KnownRun:
    """Attributes of a `BlockRun` that its text depends on; see there."""

    blocks: BlockFormat
    lanes: int
    begin: int
    span: int
    known: int
    multiple: int
    raised: bool


@cache
def _function(name: str, run: _KnownRun) -> str:
    # What a block means is data, so `precision="fast"` contracts nothing in it.
    return (
        f"static inline float{run.lanes} {name}(const __local uchar *block, int place) {{\n"
        f"#pragma OPENCL FP_CONTRACT OFF\n{_WordRun(run).body()}}}\n"
    )


@cache
def _halves_of(run: _KnownRun) -> str:
    return _WordRun(run).halves()


class _WordRun:
    """The text of a run that is decoded by words."""

    def __init__(self, run: _KnownRun) -> None:
        self._run = run
        self._count = run.lanes
        self._each = lanes_of(run.blocks, run.lanes, run.begin, run.span)
        self._bounds = bounds_of(run.blocks)
        self._exact = exact_products(run.blocks)
        self._lines: list[str] = []
        self._names = count()
        self._numbers: dict[Expression, str] = {}
        self._words: dict[Expression, _Packed | None] = {}
        self._lanes: dict[Expression, list[str]] = {}
        self._floats: dict[Expression, str] = {}

    def body(self) -> str:
        """Return the body of the function."""
        value = self._float(self._run.blocks.value)
        return "".join(self._lines) + f"    return (float{self._count})({value});\n"

    def halves(self) -> str:
        """Return the body of the function that returns whole numbers as halves."""
        match self._run.blocks.value:
            case AsFloat(OfWhole("-", _, WholeNumber(bias)) as number):
                packed = self._packed(number)
        if packed is None:
            each = [f"(uint)({one} + {bias})" for one in self._whole(number)]
            parts = [f"{low} | {high} << 16" for low, high in zip(each[:2], each[2:], strict=True)]
        else:
            word = self._declared("uint", packed.word)
            parts = [f"{word}{shift} & {_MOST * _HALVES:#x}u" for shift in ("", " >> 8")]
        made = []
        for part in (self._declared("uint", text) for text in parts):
            # The bits of a bfloat16 from 128 to 255 are those of 128 plus the difference.
            less = f"{((_128 | 0x8000) + bias) * _HALVES:#x}u"
            if bias == 128:
                # The leading bit is worth 128, so that bytes without it are less by as much again.
                less = f"~{part} & {128 * _HALVES:#x}u | {(_128 | 0x8000) * _HALVES:#x}u"
            made.append(f"fc_less_halves({part} & {127 * _HALVES:#x}u | {_128 * _HALVES:#x}u, {less})")
        return "".join(self._lines) + f"    return (uint2)({', '.join(made)});\n"

    def _declared(self, kind: str, text: str) -> str:
        if text.isidentifier():
            return text
        name = f"v{next(self._names)}"
        self._lines.append(f"    {kind} {name} = {text};\n")
        return name

    def _is_one(self, node: Expression) -> bool:
        """Check whether all lanes have the same number."""
        return all(other is self._each[node][0] for other in self._each[node])

    # -- one number -------------------------------------------------------------------------------

    def _number(self, node: Expression) -> str:
        """Return the text of one number, as one lane has it."""
        if node not in self._numbers:
            text = self._two_bytes(node)
            if text is None:
                text = expression_text(node, [self._number(one) for one in operands(node)])
            if not isinstance(node, Place | WholeNumber | FloatNumber):
                text = self._declared("int" if isinstance(node, Whole) else "float", text)
            self._numbers[node] = text
        return self._numbers[node]

    def _two_bytes(self, node: Expression) -> str | None:
        """Return the load of 16 bits from an even address; None for other expressions."""
        match node:
            case OfWhole("|", Byte(low), OfWhole("<<", Byte(high), WholeNumber(8))) if offset_between(low, high) == 1:
                if self._alignment(low) > 1:
                    return f"*(const __local ushort *)(block + {self._number(low)})"
        return None

    def _alignment(self, place: Whole) -> int:
        """Return of how many bytes the address of a place is known to be a multiple, at most 4."""
        return min(self._run.multiple, 1 << trailing_zeros(moved(place, self._run.known), self._count))

    # -- four numbers -----------------------------------------------------------------------------

    def _packed(self, node: Whole) -> _Packed | None:
        """Return whole numbers as bytes of a word; None where they are not computed as such."""
        if node not in self._words:
            packed = self._as_bytes(node)
            if packed is not None and not isinstance(node, WholeNumber):
                packed = _Packed(self._declared("uint", packed.word), packed.bias)
            self._words[node] = packed
        return self._words[node]

    def _as_bytes(self, node: Whole) -> _Packed | None:
        if self._is_one(node):
            return self._repeated(node)
        match node:
            case Byte():
                return self._word(node)
            case OfWhole("&" | "|" | "^" as op, left, right) if self._fit(node, left, right):
                a, b = self._packed(left), self._packed(right)
                if a is not None and b is not None and not a.bias and not b.bias:
                    return _Packed(f"({a.word} {op} {b.word})")
            case OfWhole("<<" | ">>" as op, left, right) if self._fit(node, left) and self._is_one(right):
                a = self._packed(left)
                if a is not None and not a.bias:
                    shift = self._number(self._each[right][0])
                    # Bits of the byte above enter from the left.
                    kept = f" & {_EACH}u * ({_MOST}u >> {shift})" if op == ">>" else ""
                    return _Packed(f"({a.word} {op} {shift}{kept})")
            case OfWhole("-", left, WholeNumber(number)):
                a = self._packed(left)
                return None if a is None else _Packed(a.word, a.bias + number)
            case OfWhole("-", left, right) if self._fit(left, right):
                a, b, most = self._packed(left), self._packed(right), self._bounds[right][1]
                if a is not None and b is not None and not a.bias and self._bounds[left][1] + most <= _MOST:
                    return _Packed(f"({a.word} + {most * _EACH}u - {b.word})", most)
        return None

    def _fit(self, *nodes: Whole) -> bool:
        """Check whether all values of some expressions are bytes."""
        return all(self._bounds[one][0] >= 0 and self._bounds[one][1] <= _MOST for one in nodes)

    def _repeated(self, node: Whole) -> _Packed | None:
        """Return a number that all lanes have as each byte of a word."""
        if not self._fit(node):
            return None
        if isinstance(node, WholeNumber):
            return _Packed(f"{node.value * _EACH}u")
        return _Packed(f"({self._number(self._each[node][0])} * {_EACH}u)")

    def _word(self, node: Byte) -> _Packed | None:
        """Return four neighbouring bytes as they lie in the block."""
        places = [each.at for each in self._each[node] if isinstance(each, Byte)]
        if any(offset_between(places[0], place) != lane for lane, place in enumerate(places)):
            return None
        place = f"block + {self._number(places[0])}"
        if self._count < RUN_NUMBERS:
            aligned = self._alignment(places[0]) >= self._count
            return _Packed(f"*(const __local ushort *)({place})" if aligned else f"as_ushort(vload2(0, {place}))")
        match self._alignment(places[0]):
            case 4:
                return _Packed(f"*(const __local uint *)({place})")
            case 2:
                return _Packed(f"fc_word({place})")
        return _Packed(f"as_uint(vload4(0, {place}))")

    def _whole(self, node: Whole) -> list[str]:
        """Return the texts of four whole numbers."""
        if self._is_one(node):
            return [self._number(self._each[node][0])] * self._count
        if node not in self._lanes:
            packed = self._packed(node)
            if packed is not None:
                less = f" - {packed.bias}" if packed.bias else ""
                every = [f"(int)({packed.word} >> {8 * lane} & {_MOST}u){less}" for lane in range(self._count)]
            elif isinstance(node, Place | Byte):
                every = [self._number(own) for own in self._each[node]]
            else:
                every = self._in_lanes(node)
            self._lanes[node] = [self._declared("int", text) for text in every]
        return self._lanes[node]

    def _in_lanes(self, node: Expression) -> list[str]:
        """Return the texts of an operation on each lane."""
        parts = [self._whole(one) if isinstance(one, Whole) else self._of_floats(one) for one in operands(node)]
        return [expression_text(node, [part[lane] for part in parts]) for lane in range(self._count)]

    def _of_floats(self, node: Expression) -> list[str]:
        text = self._float(node)
        return [text if self._is_one(node) else f"{text}.s{lane}" for lane in range(self._count)]

    def _float(self, node: Expression) -> str:
        """Return the text of four floats; of one number where all are equal."""
        if self._is_one(node):
            return self._number(self._each[node][0])
        if node not in self._floats:
            match node:
                case AsFloat(of) if (packed := self._packed(of)) is not None:
                    half = "" if self._count == RUN_NUMBERS else ".s01"
                    text = f"fc_floats_of_bytes({packed.word}){half} - {_FIRST_WHOLE + packed.bias}.0f"
                case OfFloats("+" | "-" as op, OfFloats("*", a, b) as left, right) if left in self._exact:
                    # A product that is not rounded makes one operation with the sum.
                    sign = "-" if op == "-" else ""
                    factors = (f"(float{self._count})({self._float(one)})" for one in (a, b))
                    text = f"fma({', '.join(factors)}, (float{self._count})({sign}{self._float(right)}))"
                case OfFloats("*", scale, AsFloat(of)) if self._run.raised and (packed := self._packed(of)) is not None:
                    text = self._raised(self._float(scale), packed)
                case OfFloats(op, left, right):
                    text = f"{self._float(left)} {op} {self._float(right)}"
                case _:
                    text = f"(float{self._count})({', '.join(self._in_lanes(node))})"
            self._floats[node] = self._declared(f"float{self._count}", text)
        return self._floats[node]

    def _raised(self, scale: str, packed: _Packed) -> str:
        """Return the text of bytes less their bias, times a scale, as one multiply-add that rounds nothing."""
        width = f"float{self._count}"
        less = self._declared("float", f"{scale} * -{RAISED + packed.bias}.0f")
        half = "" if self._count == RUN_NUMBERS else ".s01"
        return f"fma(fc_raised_bytes({packed.word}){half}, ({width})({scale}), ({width})({less}))"
