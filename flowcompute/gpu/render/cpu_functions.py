"""Mathematical functions that CPU kernels define themselves, in place of OpenCL's own.

PoCL's library functions are real calls that spill every live vector. Inlined functions are up to twice as fast,
and one text for 1 to 16 lanes gives equal bits by construction. GPUs use their compiler's functions.

`{T}` is the vector type, and `{I}` and `{U}` are the integer types of its width. `{FMA}` is the name of the
fused multiply-add, and `{EXP}` that of our exp.
"""

from __future__ import annotations

import numpy as np

from flowcompute.gpu.render.error_function import ERF32, ERF64
from flowcompute.lower import COMPUTED_IN_DOUBLE
from flowcompute.spec import FLOAT32, FLOAT64

# It is fused where the processor can. Contraction is off everywhere else.
FMA = """
static inline {T} {NAME}({T} a, {T} b, {T} c) {{
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}}
"""

# exp: x = k ln 2 + r with ln 2 in two parts (Cody and Waite, 1980). The polynomial in r has the coefficients of Cephes'
# expf. It is scaled by 2^k in two steps, so that overflow and subnormal results are right. The error is below 1 ulp.
_REDUCED32 = """
    {T} k = {FMA}(z, ({T})(1.44269504088896341f), ({T})(12582912.0f));
    {I} n = as_{I}(k) - ({I})(0x4b400000);
    k = k - ({T})(12582912.0f);
    {T} r = {FMA}(k, ({T})(-0.693359375f), z);
    r = {FMA}(k, ({T})(2.12194440e-4f), r);
    {T} p = ({T})(1.9875691500e-4f);
    p = {FMA}(p, r, ({T})(1.3981999507e-3f));
    p = {FMA}(p, r, ({T})(8.3334519073e-3f));
    p = {FMA}(p, r, ({T})(4.1665795894e-2f));
    p = {FMA}(p, r, ({T})(1.6666665459e-1f));
    p = {FMA}(p, r, ({T})(5.0000001201e-1f));
    p = {FMA}(p, r * r, r);"""

_EXP32 = (
    """
    {T} z = a > ({T})(104.0f) ? ({T})(104.0f) : a;
    z = z < ({T})(-104.0f) ? ({T})(-104.0f) : z;"""
    + _REDUCED32
    + """
    p = p + ({T})(1.0f);
    {I} half_n = n >> 1;
    return p * as_{T}((half_n + 127) << 23) * as_{T}((n - half_n + 127) << 23);"""
)

# tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1 is accurate for small numbers.
_TANH32 = (
    """
    {T} size = as_{T}(as_{I}(a) & 0x7fffffff);
    {T} z = size > ({T})(10.0f) ? ({T})(20.0f) : size + size;"""
    + _REDUCED32
    + """
    {T} s = as_{T}((n + 127) << 23);
    {T} e = {FMA}(p, s, s - ({T})(1.0f));
    {T} t = e / (e + ({T})(2.0f));
    return as_{T}(as_{I}(t) | (as_{I}(a) & ({I})(0x80000000)));"""
)

# The same in double precision: the polynomial is SLEEF's, of degree 12.
_EXP64_COEFFICIENTS = (
    2.51112930892876518610661e-08,
    2.75573911234900471893338e-07,
    2.75573362911928827629423e-06,
    2.4801587159235472998791e-05,
    0.000198412698960509205564975,
    0.00138888888889774492207962,
    0.00833333333331652721664984,
    0.0416666666666665047591422,
    0.166666666666666851703837,
    0.5,
)
_EXP64 = (
    """
    {T} z = a > ({T})(710.5) ? ({T})(710.5) : a;
    z = z < ({T})(-746.0) ? ({T})(-746.0) : z;
    {T} k = {FMA}(z, ({T})(1.4426950408889634074), ({T})(6755399441055744.0));
    {I} n = as_{I}(k) - ({I})(0x4338000000000000L);
    k = k - ({T})(6755399441055744.0);
    {T} r = {FMA}(k, ({T})(-6.93147180369123816490e-01), z);
    r = {FMA}(k, ({T})(-1.90821492927058770002e-10), r);
    {T} p = ({T})(2.08860621107283687536341e-09);"""
    + "".join(f"\n    p = {{FMA}}(p, r, ({{T}})({value!r}));" for value in _EXP64_COEFFICIENTS)
    + """
    p = {FMA}(p, r * r, r) + ({T})(1.0);
    {I} half_n = ((n + 4096) >> 1) - 2048;
    return p * as_{T}((half_n + 1023) << 52) * as_{T}((n - half_n + 1023) << 52);"""
)

# e = exp(-|x|) never overflows. Below 0 the result is e / (1 + e), which is accurate for small ones.
_SIGMOID = """
    {T} e = {EXP}(-as_{T}(as_{I}(a) & ({I})(SIZE)));
    return (a < ({T})(0) ? e : ({T})(1)) / (({T})(1) + e);"""

# Numbers of this size have no fraction. What is added to the next smaller ones rounds them, halves to even. The sign is
# put back, since 0 has the sign of what was rounded.
_ROUND = """
    {T} size = as_{T}(as_{I}(a) & ({I})(SIZE));
    {T} near = (size + ({T})(WHOLE)) - ({T})(WHOLE);
    near = size < ({T})(WHOLE) ? near : size;
    return as_{T}(as_{I}(near) | (as_{I}(a) & ~({I})(SIZE)));"""


def _of_sizes(text: str, size: str, whole: str = "") -> str:
    """Return a body with the mask of all bits but the sign, and the smallest number whose neighbours are whole."""
    return text.replace("SIZE", size).replace("WHOLE", whole)


CPU_FUNCTIONS: dict[tuple[str, np.dtype], str] = {
    ("exp", FLOAT32): _EXP32,
    ("tanh", FLOAT32): _TANH32,
    ("exp", FLOAT64): _EXP64,
    ("erf", FLOAT32): ERF32,
    ("erf", FLOAT64): ERF64,
    ("sigmoid", FLOAT32): _of_sizes(_SIGMOID, "0x7fffffff"),
    ("sigmoid", FLOAT64): _of_sizes(_SIGMOID, "0x7fffffffffffffffL"),
    ("round", FLOAT32): _of_sizes(_ROUND, "0x7fffffff", "8388608.0f"),
    ("round", FLOAT64): _of_sizes(_ROUND, "0x7fffffffffffffffL", "4503599627370496.0"),
}
"""Bodies by op name and dtype."""

_IN_DOUBLE = "convert_{T}({NAME}(convert_{D}({a})))"

CPU_TEXTS: dict[tuple[str, np.dtype], str] = {
    ("abs", FLOAT32): "as_{T}(as_{I}({a}) & ({I})(0x7fffffff))",
    ("abs", FLOAT64): "as_{T}(as_{I}({a}) & ({I})(0x7fffffffffffffffL))",
    **{(name, FLOAT32): _IN_DOUBLE for name in COMPUTED_IN_DOUBLE},
}
"""Texts that replace an op's own text."""

GPU_FUNCTIONS: dict[tuple[str, np.dtype], str] = {
    # A correctly rounded quotient takes as long as the exponential. A GPU's reciprocal to one ulp suffices.
    ("sigmoid", FLOAT32): """
    {T} e = exp(-fabs(a)), d = ({T})(1) + e, r = native_recip(d);
    return (a < ({T})(0) ? e : ({T})(1)) * r;""",
}
"""Bodies by op name and dtype that replace an op's own text."""
