"""Functions of OpenCL C are declared as PoCL's own header does, and only those that a text calls."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.math import ELEMENTWISE
from flowcompute.errors import KernelError
from flowcompute.gpu.device import programs
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.builtin_functions import HEADER_LEFT_OUT, declarations, with_declarations
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.device.programs import build

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.cl"))
KNOWN = {
    "__OPENCL_C_VERSION__", "__opencl_c_named_address_space_builtins", "cl_khr_fp16", "cl_khr_fp64",
    "cl_khr_global_int32_base_atomics", "cl_khr_global_int32_extended_atomics", "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
}  # fmt: skip
VERSIONS = {
    "__OPENCL_C_VERSION__": 120, "CL_VERSION_1_2": 120, "CL_VERSION_2_0": 200, "CL_VERSION_3_0": 300,
    "__OPENCL_CPP_VERSION__": 0, "cl_khr_gl_msaa_sharing": 0,
}  # fmt: skip
MARKS = {"__ovld": "overloadable", "__cnfn": "const", "__purefn": "pure", "__conv": "convergent"}
SIGNATURE = re.compile(r"([\w ]+?)\s+((?:__attribute__\(\(\w+\)\)\s*)+)(\w+)\s*\(([^)]*)\)\s*;")


def holds(directive: str, condition: str) -> bool:
    """Evaluate a condition of the preprocessor as for OpenCL C 1.2."""
    if directive != "if":
        return (condition.strip() in KNOWN) == (directive == "ifdef")
    condition = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda found: str(found[1] in KNOWN), condition)
    return bool(eval(condition.replace("&&", " and ").replace("||", " or "), {}, VERSIONS))


def taken(text: str) -> str:
    """Give what a preprocessor leaves of a header."""
    kept, open_ones = [], []
    for line in text.replace("\\\n", " ").splitlines():
        if found := re.match(r"\s*#\s*(ifdef|ifndef|if)\b(.*)", line):
            open_ones.append(holds(found[1], found[2]))
        elif re.match(r"\s*#\s*else", line):
            open_ones[-1] = not open_ones[-1]
        elif re.match(r"\s*#\s*endif", line):
            open_ones.pop()
        elif all(open_ones) and not line.lstrip().startswith("#"):
            kept.append(line)
    return "\n".join(kept)


def operand(text: str) -> str:
    """Give an operand's type without its name."""
    words = text.replace("unsigned int", "uint").replace("*", " * ").split()
    named = len(words) > 1 and words[-1] != "*"
    return " ".join(words[:-1] if named else words)


def signatures(text: str) -> dict[str, set[tuple[object, ...]]]:
    """Give result, attributes and operands of each function's overloads."""
    for mark, attribute in MARKS.items():
        text = re.sub(rf"\b{mark}\b", f"__attribute__(({attribute}))", text)
    found = defaultdict(set)
    for result, attributes, name, operands in SIGNATURE.findall(text):
        types = tuple(map(operand, operands.split(",")))
        found[name].add((result.strip().replace("unsigned int", "uint"), frozenset(attributes.split()), types))
    return found


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="no wheel of PoCL, see pyproject")
def test_declarations_are_those_of_the_header() -> None:
    spec = importlib.util.find_spec("pocl_binary_distribution")
    assert spec is not None
    assert spec.origin is not None
    version = ".".join(importlib.metadata.version("pocl-binary-distribution").split(".")[:2])
    assert f"PoCL {version}" == programs._HEADER_KNOWN, "compare the header of this version, then name it there"
    header = Path(spec.origin).parent / ".libs" / "share" / "pocl" / "include" / "opencl-c.h"
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.DOTALL)
    compared = 0
    for name, wanted in signatures(taken(bare)).items():
        if lines := declarations(name):
            assert signatures(re.sub(r"#.*", "", lines))[name] == wanted, name
            compared += 1
    assert compared == 693


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_form_of_kernels_spares_the_header(path: Path) -> None:
    text = path.read_text()
    declared = with_declarations(text)
    assert declared is not None
    assert declared.endswith("#line 1\n" + text)


def test_a_call_of_any_other_function_keeps_the_header() -> None:
    text = "__kernel void k(__global float *x) { float c; x[0] = %s(x[0], &c) + c; }"
    assert with_declarations(text % "sincos") is None
    assert with_declarations(text % "return sincos") is None
    assert with_declarations(text % "x * sincos") is None
    assert with_declarations(text % "float sincos") is None  # declared and defined elsewhere, if at all
    assert with_declarations("/* sincos( */" + text % "fmin") is not None
    assert with_declarations("// sincos(x)\n" + text % "fmin") is not None
    assert with_declarations("#define sincos fmin\n" + text % "sincos") is None
    assert with_declarations("static float sincos(float x, float *c) { return x; }" + text % "sincos") is not None


def test_both_ways_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    device = select_device("cpu", needs_float64=False)
    # Other drivers read their header for both.
    spares = programs._HEADER_KNOWN in device.version
    monkeypatch.setattr(device, "programs", {})
    monkeypatch.setattr(programs.ProgramStore, "load", lambda store, key: None)
    used = []
    real = programs.build_quietly
    monkeypatch.setattr(programs, "build_quietly", lambda one, options: used.append(options) or real(one, options))
    body = "__kernel void k(__global float *x) { float16 a = vload16(0, x); vstore16(fma(exp(a), a, sqrt(a)), 0, x); }"
    results = []
    for text in (body, "static float fract_of(float x) { float i; return fract(x, &i); }\n" + body):
        x = np.linspace(0, 2, 16, dtype=np.float32)
        buffer = cl.Buffer(device.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        kernel = cl.Kernel(build(device, text), "k")
        kernel.set_args(buffer)
        cl.enqueue_nd_range_kernel(device.queue, kernel, (1,), (1,))
        cl.enqueue_copy(device.queue, x, buffer)
        results.append(x.tobytes())
    assert [HEADER_LEFT_OUT in options for options in used] == [spares, False]
    assert results[0] == results[1]


def test_messages_tell_the_lines_of_the_text() -> None:
    device = select_device("cpu", needs_float64=False)
    with pytest.raises(KernelError, match=r"> +3 \|     x\[0\] = fmax\(missing, x\[0\]\);"):
        build(device, "__kernel void k(__global float *x)\n{\n    x[0] = fmax(missing, x[0]);\n}")


def test_every_element_wise_operation_spares_the_header() -> None:
    spared = 0
    for name, function in ELEMENTWISE.items():
        for dtype in ("f2", "f4", "f8", "i4", "u8", "?"):
            x = fc.source(np.ones((3, 40), dtype))
            try:
                made = function(*[x] * function.op.arity)
            except fc.SpecError:
                continue
            for kernel in fc.plan(made, device="cpu").kernels:
                assert with_declarations(kernel.source) is not None, (name, dtype)
                spared += 1
    assert spared > 3 * len(ELEMENTWISE)
