"""Exchange of values between neighbouring work-items: NVIDIA's shuffle instruction, or local memory elsewhere."""

from __future__ import annotations

from dataclasses import replace

from flowcompute import ir
from flowcompute.gpu.render.opencl_types import type_bytes, var_type
from flowcompute.gpu.render.prelude import LocalArray
from flowcompute.ir import Var
from flowcompute.spec import BOOL

# Each moves the bits of 32 numbers. Sub-groups smaller than a warp are segments of it.
_SHUFFLE = """static inline uint fc_shuffle_{kind}(uint bits, uint place, uint segment) {{
    uint other;
    asm volatile("shfl.sync.{kind}.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=r"(other) : "r"(bits), "r"(place), "r"(segment));
    return other;
}}
"""


def exchanged(exchange: ir.Exchange, helpers: dict[str, str]) -> list[str]:
    """Return the lines of an exchange. `local_arrays` declares its local arrays."""
    pairs = list(zip(exchange.variables, exchange.sources, strict=True))
    if exchange.shuffle:
        return [f"{var_type(var)} {var.name} = {_shuffled(exchange, var, source, helpers)};" for var, source in pairs]
    place = f"lid & ~{exchange.subgroup - 1}"
    if exchange.distance is not None:
        place = f"({place}) + ((lid + {exchange.distance}) & {exchange.subgroup - 1})"
    arrays = _arrays(exchange)
    return [
        *(f"{array}[lid] = {source.name};" for array, (_, source) in zip(arrays, pairs, strict=True)),
        "barrier(CLK_LOCAL_MEM_FENCE);",
        *(f"{var_type(var)} {var.name} = {array}[{place}];" for array, (var, _) in zip(arrays, pairs, strict=True)),
    ]


def local_arrays(exchange: ir.Exchange, work_group: int) -> list[LocalArray]:
    """Return the local arrays of an exchange."""
    if exchange.shuffle:
        return []
    pairs = zip(exchange.sources, _arrays(exchange), strict=True)
    return [
        LocalArray(var_type(one), array, work_group, type_bytes(one.dtype, one.lanes, one.mask_bytes))
        for one, array in pairs
    ]


def _arrays(exchange: ir.Exchange) -> list[str]:
    """Return a name for each value.

    Values of one type and turn share memory between exchanges, but not within one.
    """
    kinds = [var_type(source) for source in exchange.sources]
    return [f"exchange{exchange.turn}_{kind}_{kinds[:at].count(kind)}" for at, kind in enumerate(kinds)]


def _shuffled(exchange: ir.Exchange, var: Var, source: Var, helpers: dict[str, str]) -> str:
    kind = "idx" if exchange.distance is None else "down"
    helpers.setdefault(f"fc_shuffle_{kind}", _SHUFFLE.format(kind=kind))
    place, segment = exchange.distance or 0, (32 - exchange.subgroup) << 8 | 0x1F
    if source.lanes > 1:
        lanes = [replace(source, name=f"{source.name}.s{lane:x}", lanes=1) for lane in range(source.lanes)]
        ones = [_shuffled(exchange, replace(var, lanes=1), lane, helpers) for lane in lanes]
        return f"({var_type(var)})({', '.join(ones)})"
    name, dtype = source.name, source.dtype

    def bits(text: str) -> str:
        return f"fc_shuffle_{kind}({text}, {place}, {segment})"

    if dtype == BOOL:
        return f"({bits(f'(uint)({name} != 0)')} != 0)"
    if dtype.itemsize == 8:
        both = f"as_uint2({name})"
        return f"as_{var_type(var)}((uint2)({bits(f'{both}.x')}, {bits(f'{both}.y')}))"
    if dtype.itemsize == 4:
        return f"as_{var_type(var)}({bits(f'as_uint({name})')})"
    return f"({var_type(var)}){bits(f'(uint){name}')}"
