"""Functions for CPUs that load and store strided vectors, or vectors of which only the first numbers exist.

Strides and counts are known when kernels are rendered, so that compilers see whole vectors. `gather` and
`scatter` of the prelude take them at run time, number by number. Each function here returns the name of one in
OpenCL C, which it adds to `helpers` on first use. Bools are stored as bytes.
"""

from __future__ import annotations

import itertools

import numpy as np

from flowcompute.gpu.render.opencl_types import memory_type, scalar_type, type_of, vector
from flowcompute.ir import register_dtype
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16

PICKED_BYTES = 12
"""Largest stride in bytes at which numbers are taken out of whole vectors. Others are faster read one by one."""

_INLINE = "static inline"
_OUTLINED = "static __attribute__((noinline))"
"""Qualifier of long functions: a call costs little beside them, and inlined copies would take long to compile."""

Helpers = dict[str, str]


def loose_vector(dtype: np.dtype, lanes: int, helpers: Helpers) -> str:
    """Return the name of a vector type that may begin at any number. PoCL's vload is a call."""
    name = f"fc_loose_{dtype.name}_{lanes}"
    aligned = f"__attribute__((aligned({dtype.itemsize})))"
    helpers.setdefault(name, f"typedef {vector(_word(dtype), lanes)} {name} {aligned};\n")
    return name


def load_every(dtype: np.dtype, stride: int, lanes: int, helpers: Helpers, count: int | None = None) -> str:
    """Return a function that loads the `count` first of `lanes` numbers `stride` apart, and nothing behind the last.

    Without `count` it loads all. Lanes from `count` on are 0.
    """
    count = lanes if count is None else count
    first = "" if count == lanes else f"first_{count}_"
    name = f"fc_load_every_{_stride_name(stride)}_{first}{dtype.name}_{lanes}"
    places = [lane * stride for lane in range(count)]
    lines = []
    if picked := 0 < stride * dtype.itemsize <= PICKED_BYTES and places[-1] + 1 >= lanes:
        loose = loose_vector(dtype, lanes, helpers)
        # The last vector ends with the last number.
        starts = [*range(0, places[-1] + 1 - lanes, lanes), places[-1] + 1 - lanes]
        for i, start in enumerate(starts):
            lines.append(f"const {vector(_word(dtype), lanes)} v{i} = *(const __global {loose} *)(w + {start});")
        holders = [max(i for i, start in enumerate(starts) if start <= place) for place in places]
        words = [f"v{i}.s{place - starts[i]:x}" for i, place in zip(holders, places, strict=True)]
    else:
        words = [f"w[{place}]" for place in places]
    words += ["0"] * (lanes - count)
    return _load(_INLINE if picked else _OUTLINED, name, dtype, lanes, lines, words, helpers)


def load_first(dtype: np.dtype, count: int, lanes: int, helpers: Helpers) -> str:
    """Return a function that loads the `count` first numbers of a vector. Its other lanes are 0."""
    name = f"fc_load_first_{count}_{dtype.name}_{lanes}"
    words = []
    for start, size in _runs(count):
        loose = "" if size == 1 else loose_vector(dtype, size, helpers)
        words.append(f"*(const __global {loose} *)(w + {start})" if loose else f"w[{start}]")
    return _load(_INLINE, name, dtype, lanes, [], [*words, *["0"] * (lanes - count)], helpers)


def store_every(dtype: np.dtype, stride: int, lanes: int, helpers: Helpers) -> str:
    """Return a function that stores `lanes` numbers `stride` apart."""
    name = f"fc_store_every_{_stride_name(stride)}_{dtype.name}_{lanes}"
    lines = [f"w[{lane * stride}] = all.s{lane:x};" for lane in range(lanes)]
    return _store(_OUTLINED, name, dtype, lanes, lines, helpers)


def store_first(dtype: np.dtype, count: int, lanes: int, helpers: Helpers) -> str:
    """Return a function that stores the `count` first numbers of a vector."""
    name = f"fc_store_first_{count}_{dtype.name}_{lanes}"
    lines = []
    for start, size in _runs(count):
        loose = "" if size == 1 else loose_vector(dtype, size, helpers)
        place = f"*(__global {loose} *)(w + {start})" if loose else f"w[{start}]"
        lines.append(f"{place} = all.s{''.join(f'{lane:x}' for lane in range(start, start + size))};")
    return _store(_INLINE, name, dtype, lanes, lines, helpers)


def _word(dtype: np.dtype) -> str:
    """Return the memory type of a number that vectors can be made of. Without cl_khr_fp16 there are none of halves."""
    return "ushort" if dtype == FLOAT16 else memory_type(dtype)


def _stride_name(stride: int) -> str:
    return f"minus_{-stride}" if stride < 0 else str(stride)


def _runs(count: int) -> list[tuple[int, int]]:
    """Split `count` numbers into runs of powers of two, longest first. Return the start and the size of each."""
    sizes = [1 << bit for bit in reversed(range(count.bit_length())) if count >> bit & 1]
    return list(zip(itertools.accumulate([0, *sizes[:-1]]), sizes, strict=True))


def _load(
    kind: str, name: str, dtype: np.dtype, lanes: int, lines: list[str], words: list[str], helpers: Helpers
) -> str:
    """Define a function that makes a vector in registers from these words of memory."""
    whole = vector(_word(dtype), lanes)
    all_words = f"({whole})({', '.join(words)})"
    if dtype == FLOAT16:
        lines = ["const __global ushort *w = (const __global ushort *)p;", *lines, f"const {whole} all = {all_words};"]
        result = f"vload_half{lanes}(0, (const half *)&all)"
    elif dtype == BFLOAT16:
        result = f"as_float{lanes}(convert_uint{lanes}({all_words}) << (uint{lanes})(16))"
    else:
        result = f"({all_words} != ({whole})(0))" if dtype == BOOL else all_words
    pointer = f"const __global {memory_type(dtype)} *{'p' if dtype == FLOAT16 else 'w'}"
    made = type_of(register_dtype(dtype), lanes, 1)
    return _define(f"{kind} {made} {name}({pointer})", name, [*lines, f"return {result};"], helpers)


def _store(kind: str, name: str, dtype: np.dtype, lanes: int, lines: list[str], helpers: Helpers) -> str:
    """Define a function that makes words of memory, `all`, from a vector, and stores them by these lines."""
    whole, given = vector(_word(dtype), lanes), vector("uchar" if dtype == BOOL else scalar_type(dtype), lanes)
    value, pointer = "all", f"__global {memory_type(dtype)} *w"
    if dtype == FLOAT16:
        value, pointer = "value", "__global half *p"
        made = [f"{whole} all;", f"vstore_half{lanes}(value, 0, (half *)&all);"]
        lines = ["__global ushort *w = (__global ushort *)p;", *made, *lines]
    elif dtype == BFLOAT16:
        value = "value"
        lines = [f"const {whole} all = convert_{whole}(as_uint{lanes}(value) >> (uint{lanes})(16));", *lines]
    return _define(f"{kind} void {name}({given} {value}, {pointer})", name, lines, helpers)


def _define(head: str, name: str, lines: list[str], helpers: Helpers) -> str:
    helpers.setdefault(name, "\n".join([head + " {", *("    " + line for line in lines), "}\n"]))
    return name
