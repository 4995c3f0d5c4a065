"""Numbers seen as the numbers of another dtype that have the same bits."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, as_operation
from flowcompute.elements.elementwise_functions import elementwise, rebuild_elementwise
from flowcompute.elements.op import Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, UINT8, parse_dtype


def _bits(kind: str, doc: str, **text: str) -> Op:
    """Return the operation whose result has a kind of dtype, as wide as that of its operand."""

    def dtypes(dtype: np.dtype) -> tuple[np.dtype, ...]:
        if dtype in (FLOAT16, BFLOAT16, BOOL):
            raise TypeError("half formats and bools have other bits in kernels than in memory")
        return dtype, np.dtype(f"{kind}{dtype.itemsize}")

    def viewed(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array).view(f"{kind}{array.dtype.itemsize}").reshape(array.shape)

    # The sign of a NaN is one of the bits that show.
    return Op(f"bits.{kind}", 1, Kind.ELEMENTWISE, viewed, dtypes, text=text, arithmetic=False, reads_sign=True,
              doc=doc, rebuild=rebuild_elementwise)  # fmt: skip


SIGNED = _bits("i", "The signed integer of these bits.", float="as_{I}({a})", uint="as_{I}({a})", int="{a}")
UNSIGNED = _bits("u", "The unsigned integer of these bits.", float="as_{U}({a})", int="as_{U}({a})", uint="{a}")
FLOATING = _bits("f", "The float of these bits.", int="as_{R}({a})", uint="as_{R}({a})", float="{a}")

BITS = {"i": SIGNED, "u": UNSIGNED, "f": FLOATING}
"""The operation by the kind of its result's dtype."""


@public
def view(x: Operand, dtype: object) -> Compute:
    """See the bits of numbers as those of another dtype of the same width, as `ndarray.view` of NumPy.

    Nothing is converted: `fc.view(x, "int32")` of float32 gives sign, exponent and fraction. A NaN that an operation
    made is the quiet one without a sign or a payload.

    Args:
        x: any element but of half formats; bools are seen as 8-bit integers.
        dtype: as wide as that of `x`; no half format, and bool of bools only.

    Raises:
        SpecError: for a dtype that is not supported, or of another width.
    """
    element = as_element(x, "view")
    try:
        wanted = parse_dtype(dtype)  # type: ignore[arg-type]
    except TypeError as error:
        raise SpecError(str(error), element="view", site=user_site()) from error
    if wanted == element.dtype:
        return as_operation(element, wanted)
    halves = {element.dtype, wanted} & {FLOAT16, BFLOAT16}
    if wanted.itemsize != element.dtype.itemsize or halves or wanted == BOOL:
        raise SpecError(
            "cannot see these numbers as those of another dtype",
            element="view",
            site=user_site(),
            expected=f"a dtype of {8 * element.dtype.itemsize} bits, no half format and not bool",
            got=f"{element.dtype.name} as {wanted.name}",
            hint='fc.astype converts numbers; x != 0 makes bools, and .astype("float32") widens half formats',
        )
    if element.dtype == BOOL:
        # True is 1 in memory.
        whole = as_operation(element, UINT8)
        return whole if wanted == UINT8 else elementwise(SIGNED, whole)
    return elementwise(BITS[wanted.kind], element)
