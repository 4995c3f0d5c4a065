"""Renderer of look-back scans to OpenCL C: how tiles pass on the sum of all earlier tiles, and work-groups are counted.

Work-groups take tiles by ticket. The owner of a tile therefore knows that all earlier tiles have been begun, by
work-groups that run or have ended. Waiting for those ends wherever a work-group that has begun goes on (T.
Sorensen, A. F. Donaldson et al., "Portable inter-workgroup barrier synchronisation for GPUs", 2016).

A slot of a tile and column holds the tile's own sum until the sum up to its end is known (D. Merrill and M.
Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016). Their algorithm adds any sums that
it finds. Here the sums after the latest known prefix are added in order, so that timing changes no bit.

Each 64-bit word carries half of a number, and a flag with the number of the launch. Words therefore need no
fences, and no clearing between launches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowcompute.elements.functions import UserOp
from flowcompute.gpu.render.functions import call_lines
from flowcompute.gpu.render.opencl_types import scalar_type
from flowcompute.gpu.render.ptx import group_barrier
from flowcompute.gpu.render.render_expressions import ExpressionRenderer
from flowcompute.ir import (
    ADDS,
    BUSY,
    ENDS,
    RING_GROUP,
    Argument,
    Await,
    AwaitSlot,
    CallFunction,
    CarryStatement,
    Combine,
    HandOver,
    LastGroup,
    LookBack,
    LookBehind,
    Publish,
    TakeOver,
    Ticket,
    Var,
    factor_text,
    index_text,
)
from flowcompute.spec import FLOAT32, FLOAT64

ASKED = 8
"""Sums of tiles that are loaded before the first of them is added."""

_TAKE = """static inline long fc_take(volatile __global ulong *words, long last) {
    const long ticket = atomic_inc((volatile __global uint *)words);
    if (ticket == last) atomic_xchg((volatile __global uint *)words, 0u);
    return ticket;
}
"""
_FENCE = """static inline void fc_fence(void) {
#ifdef __NV_CL_C_VERSION
    asm volatile("membar.gl;" ::: "memory");
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
}
"""
_PUBLISH = """static inline void fc_publish(volatile __global ulong *slot, ulong bits, ulong flag) {
    slot[0] = bits << 32 | flag;
    slot[1] = (bits & 0xffffffff00000000UL) | flag;
}
"""
_KNOWN = """static inline int fc_known(ulong low, ulong high, uint launch, ulong *bits) {
    *bits = low >> 32 | (high & 0xffffffff00000000UL);
    return (uint)low == (uint)high && (uint)low >> 1 == launch ? 1 + ((int)low & 1) : 0;
}
"""
_AWAIT = """static inline ulong fc_await(volatile __global ulong *slot, uint launch) {
    ulong bits;
    while (fc_known(slot[0], slot[1], launch, &bits) != 2) {}
    return bits;
}
"""
_SEEN = """static inline int fc_seen(volatile __global ulong *slot, uint launch, ulong *bits) {
    int known;
    do known = fc_known(slot[0], slot[1], launch, bits); while (known == 0);
    return known;
}
"""


def handed_on(statement: CarryStatement, expressions: ExpressionRenderer) -> list[str]:
    """Return the lines of a statement, and add the functions that they call to `expressions.helpers`."""
    helpers = expressions.helpers
    match statement:
        case Ticket():
            helpers.setdefault("fc_take", _TAKE)
            return _ticket(statement, expressions.cpu)
        case Publish(argument, slot, var, prefix):
            helpers.setdefault("fc_publish", _PUBLISH)
            flag = f"(ulong)chunk << 1 | {int(prefix)}"
            return [f"fc_publish({_slot(argument, index_text(slot))}, {_bits(var)}, {flag});"]
        case Await(var, argument, slot):
            helpers.setdefault("fc_known", _KNOWN)
            helpers.setdefault("fc_await", _AWAIT)
            known = _number(f"fc_await({_slot(argument, index_text(slot))}, (uint)chunk)", var.dtype)
            return [f"const {scalar_type(var.dtype)} {var.name} = {known};"]
        case AwaitSlot(var, kind, argument, slot):
            helpers.setdefault("fc_known", _KNOWN)
            helpers.setdefault("fc_seen", _SEEN)
            bits = f"{var.name}_bits"
            return [
                f"ulong {bits};",
                f"int {kind.name} = fc_seen({_slot(argument, index_text(slot))}, (uint)chunk, &{bits});",
                f"const {scalar_type(var.dtype)} {var.name} = {_number(bits, var.dtype)};",
            ]
        case LastGroup(name, argument):
            helpers.setdefault("fc_take", _TAKE)
            helpers.setdefault("fc_fence", _FENCE)
            return [
                "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                "if (lid == 0) {",
                "    fc_fence();",
                f"    arrived[0] = fc_take({argument.name}, gsize - 1) == gsize - 1;",
                "    fc_fence();",
                "}",
                "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                f"{name.name} = arrived[0];",
            ]
        case HandOver():
            helpers.setdefault("fc_fence", _FENCE)
            return _hand_over(statement)
        case TakeOver():
            helpers.setdefault("fc_fence", _FENCE)
            return _take_over(statement)
        case LookBehind():
            helpers.setdefault("fc_known", _KNOWN)
            return _look_behind(statement, expressions)
        case LookBack():
            helpers.setdefault("fc_known", _KNOWN)
            return _look_back(statement, expressions)
    raise AssertionError(statement)


def _ticket(ticket: Ticket, cpu: bool) -> list[str]:
    """Take the next ticket. The work-group that takes the last one resets the counter."""
    taken = f"fc_take({ticket.argument.name}, {factor_text(ticket.tickets)} + gsize - 1)"
    declared = "long " if ticket.new else ""
    if cpu:
        return [f"{declared}{ticket.name.name} = {taken};"]
    return [f"{declared}{ticket.name.name} = lid == {ticket.by} ? {taken} : 0;"]


def _hand_over(one: HandOver) -> list[str]:
    """Store all variables, and tell so when all work-items have done it."""
    first, barrier, word = _meeting(one)
    return [
        *(f"{place} = {var.name};" for var, place in _places(one)),
        barrier,
        f"if ({first}) {{",
        "    fc_fence();",
        f"    {word} = 1;",
        "}",
    ]


def _take_over(one: TakeOver) -> list[str]:
    """Wait by one work-item, and load all variables when it has seen that they are there."""
    first, barrier, word = _meeting(one)
    return [
        f"if ({first}) {{",
        f"    while ({word} == 0) {{}}",
        "    fc_fence();",
        f"    {word} = 0;",
        "}",
        barrier,
        *(f"{var.name} = {place};" for var, place in _places(one)),
    ]


def _meeting(one: HandOver | TakeOver) -> tuple[str, str, str]:
    """Return what only one work-item is, the barrier of those that hand over together, and their word."""
    if not one.groups:
        word = f"{one.words.name}[{index_text(1 + one.place)}]"
        return "lid == 0", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);", word
    word = f"{one.words.name}[{index_text(1 + one.place * one.groups + RING_GROUP)}]"
    return "lid % 128 == 0", group_barrier(), word


def _places(one: HandOver | TakeOver) -> Iterator[tuple[Var, str]]:
    """Yield each variable with the text of its place. Neighbours of a work-group have theirs side by side."""
    numbers = one.work_items * sum(var.lanes for var in one.variables)
    begin, room = 0, f"{one.room.name} + {factor_text(one.place)} * {numbers}"
    for var in one.variables:
        kind = scalar_type(var.dtype) + (str(var.lanes) if var.lanes > 1 else "")
        yield var, f"*(__global {kind} *)({room} + {begin} + lid * {var.lanes})"
        begin += var.lanes * one.work_items


def _look_behind(look: LookBehind, expressions: ExpressionRenderer) -> list[str]:
    """Return the lines of a look-back with one work-item for each earlier tile.

    The sums after the nearest known prefix are added in order.
    """
    dtype, name, last = look.var.dtype, look.var.name, look.window - 1
    tile = factor_text(look.tile)
    kind, slot = scalar_type(dtype), _slot(look.argument, f"{tile} - 1 - back")
    some = [Var(f"{name}_{i}", dtype, 1) for i in range(ASKED)]
    loads = [f"    const {kind} {other.name} = ahead[{name}_back - {i + 1}];" for i, other in enumerate(some)]
    steps = [["    " + line for line in _combine_lines(look.op, look.var, other, expressions)] for other in some]
    return [
        f"if (lid >= {BUSY} && lid < {BUSY + look.window}) {{",
        f"    const int back = lid - {BUSY};",
        "    int known = 0;",
        f"    if (back < {tile}) {{",
        "        ulong bits;",
        "        do {",
        f"            const ulong2 word = *(volatile __global ulong2 *)({slot});",
        "            known = fc_known(word.x, word.y, (uint)chunk, &bits);",
        f"        }} while (known < (back == {last} || back == {tile} - 1 ? {ENDS} : {ADDS}));",
        f"        ahead[back] = {_number('bits', dtype)};",
        # The last tile changes the state once it has seen what all others add: the first one alone reads it.
        f"    }} else if (back == 0 && {tile} == 0) {{",
        f"        ahead[back] = {look.state.name}[0];",
        f"        known = {ENDS};",
        "    }",
        f"    if (known == {ENDS}) atomic_min(nearest, back);",
        "}",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"int {name}_back = nearest[0];",
        f"{kind} {name} = ahead[{name}_back];",
        # All are loaded before the first is used.
        f"for (; {name}_back >= {ASKED}; {name}_back -= {ASKED}) {{",
        *loads,
        *(line for step in steps for line in step),
        "}",
        f"for (; {name}_back > 0; {name}_back--) {{",
        loads[0],
        *steps[0],
        "}",
    ]


def _look_back(look: LookBack, expressions: ExpressionRenderer) -> list[str]:
    """Return the lines that compute the sum before a tile, for all columns.

    A work-group reads `window` earlier tiles at once.
    """
    rounds = range(0, look.columns, look.together)
    return [line for start in rounds for line in _round(look, start, expressions)]


def _round(look: LookBack, start: int, expressions: ExpressionRenderer) -> list[str]:
    """Return the lines for the columns from `start` on.

    All words of a work-item are on their way before the first is looked at. Those that are not known yet are asked
    for again.
    """
    dtype, turn = look.state.dtype, look.work_group
    columns = min(look.together, look.columns - start)
    kind, looks = scalar_type(dtype), -(-look.window * columns // turn)
    each = [
        "#pragma unroll",
        f"for (int i = 0; i < {looks}; i++) {{",
        f"    const int entry = lid + i * {turn}, back = entry / {columns}, column = entry % {columns};",
    ]
    word = _slot(look.argument, f"(tile - 1 - back) * {look.columns} + {start} + column")
    missing = f"known[i] < (back == last ? {ENDS} : {ADDS})"
    some = [Var(f"other_{i}", dtype, 1) for i in range(ASKED)]
    total = Var("total", dtype, 1)
    loads = [f"const {kind} {one.name} = ahead[(back - {i + 1}) * {columns} + i];" for i, one in enumerate(some)]
    steps = [_combine_lines(look.op, total, one, expressions) for one in some]
    lines = [
        f"const long tile = {index_text(look.tile)};",
        f"const int last = (int)min({look.window}L, tile) - 1;",
        f"for (int i = lid; i < {columns}; i += {turn}) marks[i] = {look.window};",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"ulong2 word[{looks}];",
        f"ulong bits[{looks}];",
        f"int known[{looks}], open = 1;",
        *each,
        # Nothing is asked for beyond the window, and before the first tile.
        f"    known[i] = entry < {look.window * columns} && back < tile ? 0 : {ENDS};",
        "    bits[i] = 0;",
        "}",
        "while (open) {",
        "    open = 0;",
        *("    " + line for line in each),
        f"        if ({missing}) word[i] = *(volatile __global ulong2 *)({word});",
        "    }",
        *("    " + line for line in each),
        f"        if ({missing}) known[i] = fc_known(word[i].x, word[i].y, (uint)chunk, &bits[i]);",
        f"        if ({missing}) open = 1;",
        "    }",
        "}",
        *each,
        # The last tile changes the state once it has seen what all others add: the first one alone reads it.
        f"    if (tile == 0 && entry < {columns}) {{",
        f"        ahead[entry] = {look.state.name}[{start} + column];",
        "        marks[column] = 0;",
        f"    }} else if (entry < {look.window * columns} && back < tile) {{",
        f"        ahead[entry] = {_number('bits[i]', dtype)};",
        f"        if (known[i] == {ENDS}) atomic_min(&marks[column], back);",
        "    }",
        "}",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"for (int i = lid; i < {columns}; i += {turn}) {{",
        "    int back = marks[i];",
        f"    {kind} total = ahead[back * {columns} + i];",
        # All are loaded before the first is used.
        f"    for (; back >= {ASKED}; back -= {ASKED}) {{",
        *("        " + line for line in loads),
        *("        " + line for step in steps for line in step),
        "    }",
        "    for (; back > 0; back--) {",
        "        " + loads[0],
        *("        " + line for line in steps[0]),
        "    }",
        f"    {look.into}[{start} + i] = total;",
        "}",
        "barrier(CLK_LOCAL_MEM_FENCE);",
    ]
    return ["{", *("    " + line for line in lines), "}"]


def _combine_lines(op: str | UserOp, total: Var, other: Var, expressions: ExpressionRenderer) -> list[str]:
    """Return the lines that combine `total` with the following `other`."""
    if isinstance(op, str):
        return [f"{total.name} = {expressions.expression(Combine(op, (total,), (other,), 0), total)};"]
    both = Var(f"{other.name}_too", total.dtype, 1)
    return [*call_lines(CallFunction((both,), op, (total, other)), expressions), f"{total.name} = {both.name};"]


def _slot(argument: Argument, slot: str) -> str:
    return f"{argument.name} + 2 + 2 * ({slot})"


def _bits(var: Var) -> str:
    if var.dtype == FLOAT64:
        return f"as_ulong({var.name})"
    return f"(ulong)as_uint({var.name})" if var.dtype == FLOAT32 else f"(ulong){var.name}"


def _number(bits: str, dtype: np.dtype) -> str:
    if dtype == FLOAT64:
        return f"as_double({bits})"
    return f"as_float((uint)({bits}))" if dtype == FLOAT32 else f"({scalar_type(dtype)})({bits})"
