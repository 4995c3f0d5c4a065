"""Declarations of those functions of OpenCL C that a text calls, in place of the header of all of them.

PoCL 3.0 has Clang read a header of 18,500 lines before each text, which takes many times as long as the text. The
header is guarded: it is left out of a text that brings the declarations it needs. Signatures are those of section 6.12
of the OpenCL C 1.2 specification. A test compares them with the header's own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

HEADER_LEFT_OUT = "-D_OPENCL_H_"
"""Compiler option that defines the header's guard."""

_INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
_FLOATS = ("float", "double", "half")
_WIDTHS = ("", "2", "3", "4", "8", "16")
_SPACES = ("__global", "__local", "__private")

_CONST, _PURE, _CONVERGENT = (f"__attribute__(({name})) " for name in ("const", "pure", "convergent"))
_EXTENSIONS = (("cl_khr_fp16", re.compile(r"\bhalf\d*\b(?! \*)")), ("cl_khr_fp64", re.compile(r"\bdouble")))
"""Extensions with what their declarations are told by. A pointer to half needs none."""

_OF_FLOATS = {
    1: "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor log log10 log1p log2"
    " rint round rsqrt sin sinh sqrt tan tanh trunc",
    2: "atan2 copysign fmod hypot nextafter pow remainder",
    3: "fma mad",
}
"""Functions of floats by the number of operands. All have the type of the result."""
_NATIVE = "native_exp native_exp2 native_log native_log2 native_recip native_rsqrt native_sqrt"
_TESTS = "isfinite isinf isnan signbit"
_WORK_ITEMS = "get_global_id get_global_offset get_global_size get_group_id get_local_id get_local_size get_num_groups"

_VECTORS = re.compile(r"v(load|store)(2|3|4|8|16)")
_HALVES = re.compile(r"v(load|store)_half(2|3|4|8|16)?(_rt[ezpn])?")
_CONVERSIONS = re.compile(r"convert_([a-z]+)(2|3|4|8|16)?(_sat)?(_rt[ezpn])?")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_OWN = re.compile(r"#\s*define\s+([A-Za-z_]\w*)\(|\b([A-Za-z_]\w*)\s*\([^()]*\)\s*\{")
"""Macros and functions that the text defines. A call after a `*` looks like a declaration, so these do not count."""
_NO_FUNCTION = re.compile(
    r"as_[a-z]+\d*|__\w+|if|for|while|switch|return|sizeof|volatile|aligned|reqd_work_group_size|asm"
)
"""Words before a parenthesis that need no declaration: Clang's own, and macros that stand in another header."""


def with_declarations(text: str) -> str | None:
    """Return a text with the declarations of all functions that it calls, or None if it calls one unknown here.

    Lines keep their numbers in messages of the compiler. The text has to be built with `HEADER_LEFT_OUT`.
    """
    bare = _COMMENT.sub(" ", text)
    names = sorted(set(_NAME.findall(bare)))
    declared = {name: lines for name in names if (lines := declarations(name))}
    own = {macro or function for macro, function in _OWN.findall(bare)}
    for name in set(_CALL.findall(bare)) - own:
        if name not in declared and not _NO_FUNCTION.fullmatch(name):
            return None
    return "".join(lines for name, lines in declared.items()) + "#line 1\n" + text


@functools.lru_cache(maxsize=1024)
def declarations(name: str) -> str:
    """Return the declarations of all overloads of a function, one a line, or "" if it is unknown here."""
    made = []
    for line in _signatures(name):
        extensions = [extension for extension, mark in _EXTENSIONS if mark.search(line)]
        made += [f"#ifdef {extension}\n" for extension in extensions]
        made.append(f"{line}\n")
        made += ["#endif\n"] * len(extensions)
    return "".join(made)


def _signatures(name: str) -> Iterator[str]:
    if conversion := _CONVERSIONS.fullmatch(name):
        yield from _conversions(name, *conversion.group(1, 2, 3))
    elif vectors := _VECTORS.fullmatch(name):
        for element in (*_INTEGERS, *_FLOATS):
            yield from _accesses(name, vectors[1] == "load", f"{element}{vectors[2]}", element)
    elif halves := _HALVES.fullmatch(name):
        if halves[1] == "store":
            for element in ("float", "double"):
                yield from _accesses(name, False, f"{element}{halves[2] or ''}", "half")
        elif halves[3] is None:
            yield from _accesses(name, True, f"float{halves[2] or ''}", "half")
    elif name in _TABLE:
        yield from _TABLE[name]


def _declared(name: str, made: str, *operands: str, of: str = _CONST) -> str:
    return f"{made} __attribute__((overloadable)) {of}{name}({', '.join(operands)});"


def _conversions(name: str, element: str, width: str | None, saturates: str | None) -> Iterator[str]:
    if element in _INTEGERS or (element in _FLOATS and not saturates):
        for source in (*_INTEGERS, *_FLOATS):
            yield _declared(name, f"{element}{width or ''}", f"{source}{width or ''}")


def _accesses(name: str, loads: bool, value: str, element: str) -> Iterator[str]:
    for space in ("__constant", *_SPACES) if loads else _SPACES:
        if loads:
            yield _declared(name, value, "size_t", f"const {space} {element} *", of=_PURE)
        else:
            yield _declared(name, "void", value, "size_t", f"{space} {element} *", of="")


def _same(name: str, elements: Iterable[str], operands: int, widths: Iterable[str] = _WIDTHS) -> Iterator[str]:
    for element in elements:
        for width in widths:
            yield _declared(name, f"{element}{width}", *[f"{element}{width}"] * operands)


def _with_one_number(name: str, elements: Iterable[str], others: int) -> Iterator[str]:
    """Declare what takes numbers after a vector, for all lanes."""
    for element in elements:
        for width in _WIDTHS[1:]:
            yield _declared(name, f"{element}{width}", f"{element}{width}", *[element] * others)


def _extremes(name: str, elements: tuple[str, ...], others: int = 1) -> Iterator[str]:
    yield from _same(name, elements, 1 + others)
    yield from _with_one_number(name, elements, others)


def _tests(name: str) -> Iterator[str]:
    for element, signed in (("float", "int"), ("double", "long"), ("half", "short")):
        for width in _WIDTHS:
            yield _declared(name, f"{signed}{width}" if width else "int", f"{element}{width}")


def _atomics(name: str, operands: int) -> Iterator[str]:
    for space in ("__global", "__local"):
        for element in ("int", "uint", *(["float"] if name == "atomic_xchg" else [])):
            yield _declared(name, element, f"volatile {space} {element} *", *[element] * operands, of="")


def _table() -> dict[str, tuple[str, ...]]:
    made: dict[str, Iterable[str]] = {}
    for count, names in _OF_FLOATS.items():
        made |= {name: _same(name, _FLOATS, count) for name in names.split()}
    made |= {name: _same(name, ("float",), 1) for name in _NATIVE.split()}
    made |= {name: _tests(name) for name in _TESTS.split()}
    made |= {name: [_declared(name, "size_t", "uint")] for name in _WORK_ITEMS.split()}
    made |= {name: _extremes(name, _FLOATS) for name in ("fmin", "fmax")}
    made |= {name: _extremes(name, (*_INTEGERS, *_FLOATS)) for name in ("min", "max")}
    made["clamp"] = _extremes("clamp", (*_INTEGERS, *_FLOATS), 2)
    made |= {name: _same(name, _INTEGERS, 2) for name in ("mul_hi", "rotate")}
    made |= {name: _same(name, _INTEGERS, 1) for name in ("clz", "popcount")}
    made["abs"] = [
        _declared("abs", f"u{element.lstrip('u')}{width}", f"{element}{width}")
        for element in _INTEGERS
        for width in _WIDTHS
    ]
    made |= {
        name: [_declared(name, "int", f"{element}{width}") for element in _INTEGERS[::2] for width in _WIDTHS]
        for name in ("all", "any")
    }
    made |= {name: _atomics(name, 1) for name in ("atomic_add", "atomic_max", "atomic_min", "atomic_xchg")}
    made |= {name: _atomics(name, 0) for name in ("atomic_dec", "atomic_inc")}
    made["barrier"] = [_declared("barrier", "void", "cl_mem_fence_flags", of=_CONVERGENT)]
    made["mem_fence"] = [_declared("mem_fence", "void", "cl_mem_fence_flags", of="")]
    return {name: tuple(lines) for name, lines in made.items()}


_TABLE = _table()
