"""Vectors whose numbers lie apart in memory, or of which only the first exist: functions for CPUs.

Distances and counts are numbers known when kernels are written, so that compilers see whole
vectors; `gather` and `scatter` of the prelude take them when running, number by number.
"""

from __future__ import annotations

import itertools

import numpy as np

from flowcompute.gpu.types import memory_type, scalar_type, type_of, vector
from flowcompute.planner.kernel import register_dtype
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16

PICKED_BYTES = 12
"""Numbers this close are picked out of whole vectors; others are faster read one by one."""

_OUTLINED = "static __attribute__((noinline))"
"""For functions of many statements: a call costs little beside them, copies would take long to compile."""


def load_every(dtype: np.dtype, stride: int, lanes: int, helpers: dict[str, str]) -> str:
    """The name of a function that loads `lanes` numbers `stride` apart."""
    name = f"fc_load_every_{str(stride).replace('-', 'minus_')}_{dtype.name}_{lanes}"
    if name in helpers:
        return name
    word, whole = _word(dtype), vector(_word(dtype), lanes)
    lines = [f"    const __global {word} *w = (const __global {word} *)p;"]
    places = [lane * stride for lane in range(lanes)]
    if 0 < stride * dtype.itemsize <= PICKED_BYTES:
        kind = "static inline"
        # The last vector ends with the last number: nothing behind it may be touched.
        starts = [*range(0, (stride - 1) * lanes, lanes), places[-1] + 1 - lanes]
        loose = loose_vector(dtype, lanes, helpers)
        lines += [f"    const {whole} v{i} = *(const __global {loose} *)(w + {at});" for i, at in enumerate(starts)]
        holders = [max(i for i, at in enumerate(starts) if at <= place) for place in places]
        words = [f"v{i}.s{place - starts[i]:x}" for i, place in zip(holders, places, strict=True)]
    else:
        kind, words = _OUTLINED, [f"w[{place}]" for place in places]
    lines += [
        f"    const {whole} all = ({whole})({', '.join(words)});",
        f"    return {_from_words('all', dtype, lanes)};",
    ]
    result = type_of(register_dtype(dtype), lanes, 1)
    _define(name, f"{kind} {result} {name}(const __global {memory_type(dtype)} *p)", lines, helpers)
    return name


def store_every(dtype: np.dtype, stride: int, lanes: int, helpers: dict[str, str]) -> str:
    """The name of a function that stores `lanes` numbers (bools as bytes) `stride` apart."""
    name = f"fc_store_every_{str(stride).replace('-', 'minus_')}_{dtype.name}_{lanes}"
    if name in helpers:
        return name
    lines = [
        f"    __global {_word(dtype)} *w = (__global {_word(dtype)} *)p;",
        *_to_words("value", dtype, lanes),
        *(f"    w[{lane * stride}] = all.s{lane:x};" for lane in range(lanes)),
    ]
    head = f"{_OUTLINED} void {name}({_stored(dtype, lanes)} value, __global {memory_type(dtype)} *p)"
    _define(name, head, lines, helpers)
    return name


def load_first(dtype: np.dtype, count: int, lanes: int, helpers: dict[str, str]) -> str:
    """The name of a function that loads the `count` first numbers of a vector; the other lanes are 0."""
    name = f"fc_load_first_{count}_{dtype.name}_{lanes}"
    if name in helpers:
        return name
    word, whole = _word(dtype), vector(_word(dtype), lanes)
    words = [
        f"w[{start}]" if size == 1 else f"*(const __global {loose_vector(dtype, size, helpers)} *)(w + {start})"
        for start, size in _runs(count)
    ]
    lines = [
        f"    const __global {word} *w = (const __global {word} *)p;",
        f"    const {whole} all = ({whole})({', '.join([*words, *['0'] * (lanes - count)])});",
        f"    return {_from_words('all', dtype, lanes)};",
    ]
    result = type_of(register_dtype(dtype), lanes, 1)
    _define(name, f"static inline {result} {name}(const __global {memory_type(dtype)} *p)", lines, helpers)
    return name


def store_first(dtype: np.dtype, count: int, lanes: int, helpers: dict[str, str]) -> str:
    """The name of a function that stores the `count` first numbers (bools as bytes) of a vector."""
    name = f"fc_store_first_{count}_{dtype.name}_{lanes}"
    if name in helpers:
        return name
    lines = [
        f"    __global {_word(dtype)} *w = (__global {_word(dtype)} *)p;",
        *_to_words("value", dtype, lanes),
    ]
    for start, size in _runs(count):
        part = "all.s" + "".join(f"{lane:x}" for lane in range(start, start + size))
        place = f"*(__global {loose_vector(dtype, size, helpers)} *)(w + {start})" if size > 1 else f"w[{start}]"
        lines.append(f"    {place} = {part};")
    head = f"static inline void {name}({_stored(dtype, lanes)} value, __global {memory_type(dtype)} *p)"
    _define(name, head, lines, helpers)
    return name


def loose_vector(dtype: np.dtype, lanes: int, helpers: dict[str, str]) -> str:
    """The name of a vector type that may begin at any number. On CPUs: PoCL's vload is a call."""
    name = f"fc_loose_{dtype.name}_{lanes}"
    aligned = f"__attribute__((aligned({dtype.itemsize})))"
    helpers.setdefault(name, f"typedef {vector(_word(dtype), lanes)} {name} {aligned};\n")
    return name


def _word(dtype: np.dtype) -> str:
    """The type of a number in memory that vectors can be made of: halves are moved as they are."""
    return "ushort" if dtype == FLOAT16 else memory_type(dtype)


def _stored(dtype: np.dtype, lanes: int) -> str:
    """The type in which a vector comes to be stored."""
    return vector("uchar" if dtype == BOOL else scalar_type(dtype), lanes)


def _from_words(words: str, dtype: np.dtype, lanes: int) -> str:
    """A vector to compute with, from what lies in memory."""
    if dtype == FLOAT16:
        return f"vload_half{lanes}(0, (const half *)&{words})"
    if dtype == BFLOAT16:
        return f"as_float{lanes}(convert_uint{lanes}({words}) << (uint{lanes})(16))"
    return f"({words} != (uchar{lanes})(0))" if dtype == BOOL else words


def _to_words(value: str, dtype: np.dtype, lanes: int) -> list[str]:
    """Lines that make `all`, what comes to lie in memory."""
    kind = vector(_word(dtype), lanes)
    if dtype == FLOAT16:
        return [f"    {kind} all;", f"    vstore_half{lanes}({value}, 0, (half *)&all);"]
    if dtype == BFLOAT16:
        value = f"convert_ushort{lanes}(as_uint{lanes}({value}) >> (uint{lanes})(16))"
    return [f"    const {kind} all = {value};"]


def _runs(count: int) -> list[tuple[int, int]]:
    """`count` numbers as runs of powers of two, longest first: where each starts, and how many it has."""
    sizes = [1 << bit for bit in reversed(range(count.bit_length())) if count >> bit & 1]
    return list(zip(itertools.accumulate([0, *sizes[:-1]]), sizes, strict=True))


def _define(name: str, head: str, lines: list[str], helpers: dict[str, str]) -> None:
    helpers[name] = "\n".join([head + " {", *lines, "}\n"])
