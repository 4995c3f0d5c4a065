"""Functions that kernels may need beside OpenCL's own. The renderer fills in `@NAME@` and similar markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class LocalArray(NamedTuple):
    """An array in local memory, which only a kernel can declare.

    Attributes:
        kind: of its items, in OpenCL C.
        name: of the array.
        size: its items.
        item_bytes: of an item.
        alignment: in bytes; None for that of the items.
    """

    kind: str
    name: str
    size: int
    item_bytes: int
    alignment: int | None = None

    @property
    def declared(self) -> str:
        """Its declaration, without the address space."""
        aligned = "" if self.alignment is None else f" __attribute__((aligned({self.alignment})))"
        return f"{self.kind} {self.name}[{self.size}]{aligned};"

    @property
    def most_bytes(self) -> int:
        """Most bytes that it takes, with those that align it."""
        return self.size * self.item_bytes + (self.alignment or self.item_bytes) - 1


class RenderedBody(NamedTuple):
    """A kernel without its frame, for functions that do the same.

    Attributes:
        contract: whether the compiler may contract products and sums.
        arrays: its local arrays.
        helpers: functions that it calls, by name.
        parameters: declarations, without the number of the work-group and of all, `gid` and `gsize`.
        lines: its body.
    """

    contract: bool
    arrays: Sequence[LocalArray]
    helpers: Mapping[str, str]
    parameters: Sequence[str]
    lines: Sequence[str]


HELPERS: dict[str, str] = {
    # Lanes that do not exist are zero, so nothing past the end is read.
    "gather": """
static inline @V@ @NAME@(const __global @M@ *p, long stride, long count) {
    @S@ all[@L@];
    for (int lane = 0; lane < @L@; lane++) all[lane] = lane < count ? @TRUE@@READ@ : 0;
    return vload@L@(0, all);
}
""",
    "scatter": """
static inline void @NAME@(@W@ value, __global @M@ *p, long stride, long count) {
    @B@ all[@L@];
    vstore@L@(value, 0, all);
    for (int lane = 0; lane < @L@; lane++) if (lane < count) @WRITE@;
}
""",
    # Rounds to the nearest half, ties to even, as a float. Devices that need it lack cl_khr_fp16.
    # Below 2^-14 halves are 2^-24 apart, as floats are at 0.5.
    "round_float16": """
static inline @V@ @NAME@(@V@ x) {
    @U@ bits = as_@U@(x), sign = bits & (@U@)(0x80000000), size = bits ^ sign;
    @U@ near = (size + (@U@)(0xfff) + ((size >> (@U@)(13)) & (@U@)(1))) & (@U@)(0xffffe000);
    @V@ tiny = (as_@V@(size) + (@V@)(0.5f)) - (@V@)(0.5f);
    @U@ result = size < (@U@)(0x38800000) ? as_@U@(tiny) : near;
    result = near >= (@U@)(0x47800000) ? (@U@)(0x7f800000) : result;
    result = size > (@U@)(0x7f800000) ? (@U@)(0x7fc00000) : result;
    return as_@V@(result | sign);
}
""",
    "round_bfloat16": """
static inline @V@ @NAME@(@V@ x) {
    @U@ bits = as_@U@(x), sign = bits & (@U@)(0x80000000), size = bits ^ sign;
    @U@ near = (size + (@U@)(0x7fff) + ((size >> (@U@)(16)) & (@U@)(1))) & (@U@)(0xffff0000);
    near = size > (@U@)(0x7f800000) ? (@U@)(0x7fc00000) : near;
    return as_@V@(near | sign);
}
""",
    # Saturates and drops the fraction of what is no NaN; of a NaN to an unsigned integer it makes 0. Compilers know how
    # to pack the integers of clamped floats. Of a conversion that saturates they make three times as many instructions.
    "narrow": """
static inline @V@ @NAME@(@F@ x) {
    x = x > (@F@)(@LEAST@) ? x : (@F@)(@LEAST@);
    x = x < (@F@)(@MOST@) ? x : (@F@)(@MOST@);
    return @PACKED@;
}
""",
    # Rounds a double to odd, so that rounding the float to half is equal to rounding once.
    "odd": """
static inline @F@ @NAME@(@V@ x) {
    @F@ near = convert_@F@_rtz(x);
    @I@ inexact = convert_@I@(convert_@V@(near) != x) & (@I@)(1);
    return as_@F@(as_@I@(near) | inexact);
}
""",
}
