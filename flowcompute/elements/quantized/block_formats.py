"""The block formats of GGUF: one record each, with the expression that decodes a number.

Numbers lie in blocks of equal length. A block has fields, one after the other, whose words have the lower byte first. A
record has the fields' names and bytes in order, and says how a number follows from them. Each follows the arithmetic of
`ggml-quants.c` of ggml (https://github.com/ggml-org/ggml), operation by operation, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from types import SimpleNamespace
from typing import Any

from flowcompute.elements.quantized.codebooks import (
    E2M1,
    IQ1,
    IQ2_LEVELS,
    IQ2_S,
    IQ2_XS,
    IQ2_XXS,
    IQ3_LEVELS,
    IQ3_S,
    IQ3_XXS,
    IQ4,
    POWERS_OF_3,
    SIGNS,
    Codebook,
)
from flowcompute.elements.quantized.decoding import (
    PLACE,
    AsFloat,
    CodebookEntry,
    Float,
    FloatNumber,
    FromBits,
    Whole,
    WholeChoice,
    bits,
    byte,
    half,
    signed_byte,
    whole,
    word16,
    word32,
)
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class BlockFormat:
    """A block format.

    Attributes:
        name: its name in GGUF.
        numbers: numbers in a block.
        fields: name and bytes of each field, in order.
        value: the number at `PLACE` of a block.
    """

    name: str
    numbers: int
    fields: tuple[tuple[str, int], ...]
    value: Float = field(repr=False, compare=False)

    @property
    def block_bytes(self) -> int:
        """Bytes in a block."""
        return sum(size for _, size in self.fields)


def _format(name: str, numbers: int, value: Callable[[Any], Float], **fields: int) -> BlockFormat:
    """Return a format, whose `value` is given the place at which each field begins."""
    places, at = {}, 0
    for key, size in fields.items():
        places[key], at = at, at + size
    return BlockFormat(name, numbers, tuple(fields.items()), value(SimpleNamespace(**places)))


# -- parts that formats share -------------------------------------------------------------------------


def _nibble(at: int, run: int) -> Whole:
    """Return four bits. Each run of bytes holds as many lower halves, then as many upper halves."""
    return _share(at, run, 2)


def _share(at: int, run: int, shares: int) -> Whole:
    """Return the share of a number in its byte. Each run of bytes holds first all lowest shares, then the next ones."""
    width = 8 // shares
    turn = PLACE >> run.bit_length() - 1
    source = byte(at + run * (turn >> shares.bit_length() - 1) + (PLACE & run - 1))
    return bits(source, width * (turn & shares - 1), width)


def _of_pair(at: int, number: Whole) -> Whole:
    """Return four bits of which a byte holds two neighbours, the first one in its lower half."""
    return bits(byte(at + (number >> 1)), 4 * (number & 1), 4)


def _bit_plane(at: int) -> Whole:
    """Return a bit of 32 bytes, of which the lowest bits come first."""
    return bits(byte(at + (PLACE & 31)), PLACE >> 5, 1)


def _bit(at: int, number: Whole) -> Whole:
    """Return a bit, counted from the lowest of the first byte."""
    return bits(byte(at + (number >> 3)), number & 7, 1)


def _six_bits(at: int) -> tuple[Whole, Whole]:
    """Return scale and minimum of eight groups of 32 numbers, six bits each in twelve bytes."""
    group, part = PLACE >> 5, PLACE >> 5 & 3
    low, high, both = byte(at + part), byte(at + 4 + part), byte(at + 8 + part)
    first = group.below(4)
    scale = WholeChoice(first, low & 63, both & 15 | low >> 2 & 48)
    minimum = WholeChoice(first, high & 63, both >> 4 | high >> 2 & 48)
    return scale, minimum


def _entry(codebook: Codebook, row: Whole, width: int) -> Whole:
    """Return the entry of a number in a row of a packed codebook of `width` bits an entry."""
    return bits(CodebookEntry(codebook, row), width * (PLACE & 16 // width - 1), width)


def _signed(value: Float, minus: Whole) -> Float:
    """Return a value with the other sign where `minus` is 1."""
    return value * (whole(1) - (minus << 1))


def _one_of_signs(word: Whole) -> Whole:
    """Return the sign of a number, of 7 bits for each run of 8 numbers in a word."""
    return bits(CodebookEntry(SIGNS, word), PLACE & 7, 1)


def _e8m0(at: int) -> Float:
    """Return half of the power of two with this exponent."""
    exponent = byte(at)
    subnormal = whole(0x200000) << (exponent & 1)
    return FromBits(WholeChoice(exponent.below(2), subnormal, (exponent - 1 & 255) << 23))


def _e4m3(at: Whole) -> Float:
    """Return half of the float of eight bits without a sign; 0x7f is 0."""
    bits8 = byte(at)
    exponent, fraction = bits(bits8, 3, 4), bits8 & 7
    is_tiny = exponent.equals(0)
    tiny = AsFloat(WholeChoice(is_tiny, fraction, whole(0))) * FloatNumber(2.0**-10)
    normal = FromBits(WholeChoice(is_tiny | bits8.equals(0x7F), whole(0), exponent + 119 << 23 | fraction << 20))
    # One of the two is 0, so the sum is the other one.
    return tiny + normal


# -- formats ------------------------------------------------------------------------------------------


def _q5(f: Any) -> Whole:
    return _nibble(f.qs, 16) | _bit(f.qh, PLACE) << 4


def _q2_k(f: Any) -> Float:
    scale = byte(f.scales + (PLACE >> 4))
    return half(f.d) * (scale & 15) * _share(f.qs, 32, 4) - half(f.dmin) * (scale >> 4)


def _q3_k(f: Any) -> Float:
    group = PLACE >> 4
    low = bits(byte(f.scales + (group & 7)), 4 * (group >> 3), 4)
    high = bits(byte(f.scales + 8 + (group & 3)), 2 * (group >> 2), 2)
    quant = _share(f.qs, 32, 4) - ((_bit_plane(f.hmask) ^ 1) << 2)
    return half(f.d) * ((low | high << 4) - 32) * quant


def _with_minimum(f: Any, quant: Whole) -> Float:
    scale, minimum = _six_bits(f.scales)
    return half(f.d) * scale * quant - half(f.dmin) * minimum


def _q6_k(f: Any) -> Float:
    quant = (_nibble(f.ql, 64) | _share(f.qh, 32, 4) << 4) - 32
    return half(f.d) * signed_byte(f.scales + (PLACE >> 4)) * quant


def _tq1_0(f: Any) -> Float:
    second, third = PLACE - 160, PLACE - 240
    in_first, in_second = PLACE.below(160), PLACE.below(240)
    later = WholeChoice(in_second, f.qs + 32 + (second & 15), f.qh + (third & 3))
    source = byte(WholeChoice(in_first, f.qs + (PLACE & 31), later))
    digit = WholeChoice(in_first, PLACE >> 5, WholeChoice(in_second, second >> 4, third >> 2))
    # Multiplied by a power of 3 the byte drops the digits before; its highest digit is what is left, times 3.
    rest = source * CodebookEntry(POWERS_OF_3, digit & 7) & 255
    return half(f.d) * ((rest * 3 >> 8) - 1)


def _nvfp4(f: Any) -> Float:
    source = byte(f.qs + 8 * (PLACE >> 4) + (PLACE & 7))
    return _e4m3(f.d + (PLACE >> 4)) * CodebookEntry(E2M1, bits(source, PLACE >> 1 & 4, 4))


def _by_half(scale: Whole) -> Float:
    return FloatNumber(0.5) + AsFloat(scale)


def _iq2(f: Any, scale: Whole, codebook: Codebook, row: Whole, sign: Whole) -> Float:
    scaled = half(f.d) * _by_half(scale) * FloatNumber(0.25)
    return _signed(scaled * CodebookEntry(IQ2_LEVELS, _entry(codebook, row, 2)), sign)


def _iq2_xxs(f: Any) -> Float:
    group, part = f.qs + 8 * (PLACE >> 5), PLACE >> 3 & 3
    sign = _one_of_signs(bits(word32(group + 4), 7 * part, 7))
    return _iq2(f, byte(group + 7) >> 4, IQ2_XXS, byte(group + part), sign)


def _iq2_xs(f: Any) -> Float:
    word = word16(f.qs + 2 * (PLACE >> 3))
    return _iq2(f, _of_pair(f.scales, PLACE >> 4), IQ2_XS, word & 511, _one_of_signs(word >> 9))


def _iq2_s(f: Any) -> Float:
    run = PLACE >> 3
    high = bits(byte(f.qh + (run >> 2)), 2 * (run & 3), 2)
    row = byte(f.qs + run) | high << 8
    return _iq2(f, _of_pair(f.scales, PLACE >> 4), IQ2_S, row, _bit(f.signs, PLACE))


def _iq3_xxs(f: Any) -> Float:
    group, part = f.scales + 4 * (PLACE >> 5), PLACE >> 3 & 3
    scaled = half(f.d) * _by_half(byte(group + 3) >> 4) * FloatNumber(0.5)
    level = CodebookEntry(IQ3_LEVELS, _entry(IQ3_XXS, byte(f.qs + (PLACE >> 2)), 4))
    return _signed(scaled * level, _one_of_signs(bits(word32(group), 7 * part, 7)))


def _iq3_s(f: Any) -> Float:
    run = PLACE >> 2
    row = byte(f.qs + run) | _bit(f.qh, run) << 8
    scaled = half(f.d) * (2 * _of_pair(f.scales, PLACE >> 5) + 1)
    return _signed(scaled * (2 * _entry(IQ3_S, row, 4) + 1), _bit(f.signs, PLACE))


def _iq1(scaled: Float, row: Whole, minus: Whole) -> Float:
    level = AsFloat(_entry(IQ1, row, 2) - 1)
    return scaled * (level + _signed(FloatNumber(0.125), minus))


def _iq1_s(f: Any) -> Float:
    word, run = word16(f.qh + 2 * (PLACE >> 5)), PLACE >> 3
    row = byte(f.qs + run) | bits(word, 3 * (run & 3), 3) << 8
    return _iq1(half(f.d) * (2 * bits(word, 12, 3) + 1), row, word >> 15)


def _iq1_m(f: Any) -> Float:
    run, group = PLACE >> 3, PLACE >> 4
    words = [word16(f.scales + 2 * k) for k in range(4)]
    # The float16 is spread over the highest four bits of four words.
    scale = FromBits(words[0] >> 12 | words[1] >> 8 & 0xF0 | words[2] >> 4 & 0xF00 | words[3] & 0xF000, half=True)
    own = bits(word16(f.scales + 2 * (group >> 2)), 3 * (group & 3), 3)
    high = _of_pair(f.qh, run)
    return _iq1(scale * (2 * own + 1), byte(f.qs + run) | (high & 7) << 8, high >> 3)


def _iq4_xs(f: Any) -> Float:
    group = PLACE >> 5
    high = bits(word16(f.scales_h), 2 * group, 2)
    scale = (_of_pair(f.scales_l, group) | high << 4) - 32
    return half(f.d) * scale * CodebookEntry(IQ4, _nibble(f.qs, 16))


BLOCK_FORMATS: dict[str, BlockFormat] = {
    one.name: one
    for one in (
        _format("F32", 1, lambda f: FromBits(word32(f.x)), x=4),
        _format("F16", 1, lambda f: half(f.x), x=2),
        _format("BF16", 1, lambda f: FromBits(word16(f.x) << 16), x=2),
        _format("Q4_0", 32, lambda f: half(f.d) * (_nibble(f.qs, 16) - 8), d=2, qs=16),
        _format("Q4_1", 32, lambda f: half(f.d) * _nibble(f.qs, 16) + half(f.m), d=2, m=2, qs=16),
        _format("Q5_0", 32, lambda f: half(f.d) * (_q5(f) - 16), d=2, qh=4, qs=16),
        _format("Q5_1", 32, lambda f: half(f.d) * _q5(f) + half(f.m), d=2, m=2, qh=4, qs=16),
        _format("Q8_0", 32, lambda f: half(f.d) * signed_byte(f.qs + PLACE), d=2, qs=32),
        _format("Q2_K", 256, _q2_k, scales=16, qs=64, d=2, dmin=2),
        _format("Q3_K", 256, _q3_k, hmask=32, qs=64, scales=12, d=2),
        _format("Q4_K", 256, lambda f: _with_minimum(f, _nibble(f.qs, 32)), d=2, dmin=2, scales=12, qs=128),
        _format("Q5_K", 256, lambda f: _with_minimum(f, _nibble(f.qs, 32) | _bit_plane(f.qh) << 4),
                d=2, dmin=2, scales=12, qh=32, qs=128),
        _format("Q6_K", 256, _q6_k, ql=128, qh=64, scales=16, d=2),
        _format("TQ1_0", 256, _tq1_0, qs=48, qh=4, d=2),
        _format("TQ2_0", 256, lambda f: half(f.d) * (_share(f.qs, 32, 4) - 1), qs=64, d=2),
        _format("MXFP4", 32, lambda f: _e8m0(f.e) * CodebookEntry(E2M1, _nibble(f.qs, 16)), e=1, qs=16),
        _format("NVFP4", 64, _nvfp4, d=4, qs=32),
        _format("IQ1_S", 256, _iq1_s, d=2, qs=32, qh=16),
        _format("IQ1_M", 256, _iq1_m, qs=32, qh=16, scales=8),
        _format("IQ2_XXS", 256, _iq2_xxs, d=2, qs=64),
        _format("IQ2_XS", 256, _iq2_xs, d=2, qs=64, scales=8),
        _format("IQ2_S", 256, _iq2_s, d=2, qs=32, signs=32, qh=8, scales=8),
        _format("IQ3_XXS", 256, _iq3_xxs, d=2, qs=64, scales=32),
        _format("IQ3_S", 256, _iq3_s, d=2, qs=64, qh=8, signs=32, scales=4),
        _format("IQ4_NL", 32, lambda f: half(f.d) * CodebookEntry(IQ4, _nibble(f.qs, 16)), d=2, qs=16),
        _format("IQ4_XS", 256, _iq4_xs, d=2, scales_h=2, scales_l=4, qs=128),
    )
}  # fmt: skip
"""Every format, by its name in GGUF."""
