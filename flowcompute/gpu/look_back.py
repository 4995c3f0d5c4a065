"""How tiles of a scan hand on what comes before them, in OpenCL C.

Tiles are taken by ticket, so whoever has one knows that all earlier ones have been begun by
work-groups that run or are done; waiting for those ends wherever a work-group that has begun goes
on (T. Sorensen, A. F. Donaldson et al., "Portable inter-workgroup barrier synchronisation for
GPUs", 2016). A slot of a tile and column holds its own sum until the sum up to its end is known
(D. Merrill and M. Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016).
Theirs adds whatever it finds; here what follows the latest known sum is added in order, so that
timing changes no bit. Each 64-bit word carries half of a number and a flag with the number of the
launch, so words need no fences, and no clearing between launches.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flowcompute.gpu.expressions import Expressions
from flowcompute.gpu.types import scalar_type
from flowcompute.planner.kernel import Argument, Combine, HandingOn, Stmt, Var
from flowcompute.planner.kernel_scan import Await, LookBack, Publish, Ticket
from flowcompute.spec import FLOAT32, FLOAT64

_TAKE = """static inline long fc_take(volatile __global ulong *words, long last) {
    const long ticket = atomic_inc((volatile __global uint *)words);
    if (ticket == last) *(volatile __global uint *)words = 0;
    return ticket;
}
"""
_PUBLISH = """static inline void fc_publish(volatile __global ulong *slot, ulong bits, ulong flag) {
    slot[0] = bits << 32 | flag;
    slot[1] = (bits & 0xffffffff00000000UL) | flag;
}
"""
_POLL = """static inline int fc_poll(volatile __global ulong *slot, uint launch, ulong *bits) {
    const ulong low = slot[0], high = slot[1];
    *bits = low >> 32 | (high & 0xffffffff00000000UL);
    return (uint)low == (uint)high && (uint)low >> 1 == launch ? 1 + ((int)low & 1) : 0;
}
"""
_AWAIT = """static inline ulong fc_await(volatile __global ulong *slot, uint launch) {
    ulong bits;
    while (fc_poll(slot, launch, &bits) != 2) {}
    return bits;
}
"""


def local_ticket(statements: Iterable[Stmt]) -> list[str]:
    """The declaration of what a work-group shares when it takes tickets."""
    return ["__local long taken;"] if any(isinstance(one, Ticket) for one in statements) else []


def handed_on(statement: HandingOn, expressions: Expressions) -> list[str]:
    """The lines of a statement, and in `expressions.helpers` the functions that they call."""
    helpers = expressions.helpers
    match statement:
        case Ticket():
            helpers.setdefault("fc_take", _TAKE)
            return _ticket(statement, expressions.cpu)
        case Publish(argument, slot, var, prefix):
            helpers.setdefault("fc_publish", _PUBLISH)
            flag = f"(ulong)chunk << 1 | {int(prefix)}"
            return [f"fc_publish({_slot(argument, slot)}, {_bits(var)}, {flag});"]
        case Await(var, argument, slot):
            helpers.setdefault("fc_poll", _POLL)
            helpers.setdefault("fc_await", _AWAIT)
            known = _number(f"fc_await({_slot(argument, slot)}, (uint)chunk)", var.dtype)
            return [f"const {scalar_type(var.dtype)} {var.name} = {known};"]
        case LookBack():
            helpers.setdefault("fc_poll", _POLL)
            return _look_back(statement, expressions)
    raise AssertionError(statement)


def _ticket(ticket: Ticket, cpu: bool) -> list[str]:
    """Take the next ticket; the one who takes the last puts the counter back."""
    taken = f"fc_take({ticket.argument.name}, blocks + gsize - 1)"
    declared = "long " if ticket.new else ""
    if cpu:
        return [f"{declared}{ticket.name} = {taken};"]
    return [
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"if (lid == 0) taken = {taken};",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"{declared}{ticket.name} = taken;",
    ]


def _look_back(look: LookBack, expressions: Expressions) -> list[str]:
    """What comes before a tile, of all columns: a work-group looks at `window` tiles before it at once."""
    kind, group, window = scalar_type(look.dtype), look.together, look.window
    total, other = Var("total", look.dtype, 1), Var("other", look.dtype, 1)
    step = expressions.expression(Combine(look.op, (total,), (other,), 0), total)
    slot = f"{look.argument.name} + 2 + 2 * ((tile - 1 - back) * {look.columns} + from + column)"
    entries = window * group
    return [
        f"for (long from = 0, tile = {look.tile}; from < {look.columns}; from += {group}) {{",
        "    int waiting = 1;",
        "    while (waiting) {",
        f"        for (int i = lid; i < {group}; i += {look.work_group}) marks[i] = marks[{group} + i] = {window};",
        f"        if (lid == 0) marks[{2 * group}] = 0;",
        "        barrier(CLK_LOCAL_MEM_FENCE);",
        f"        for (int entry = lid; entry < {entries}; entry += {look.work_group}) {{",
        f"            const int back = entry / {group}, column = entry % {group};",
        "            ulong bits = 0;",
        "            int known = 0;",
        f"            if (back < tile && from + column < {look.columns}) known = fc_poll({slot}, (uint)chunk, &bits);",
        f"            ahead[entry] = {_number('bits', look.dtype)};",
        "            if (known == 2) atomic_min(&marks[column], back);",
        f"            if (known == 0) atomic_min(&marks[{group} + column], back);",
        "        }",
        "        barrier(CLK_LOCAL_MEM_FENCE);",
        f"        for (int i = lid; i < {group} && from + i < {look.columns}; i += {look.work_group})",
        f"            if (marks[i] >= marks[{group} + i]) marks[{2 * group}] = 1;",
        "        barrier(CLK_LOCAL_MEM_FENCE);",
        f"        waiting = marks[{2 * group}];",
        "        barrier(CLK_LOCAL_MEM_FENCE);",
        "    }",
        f"    for (int i = lid; i < {group} && from + i < {look.columns}; i += {look.work_group}) {{",
        "        int back = marks[i];",
        f"        {kind} total = ahead[back * {group} + i];",
        "        while (back-- > 0) {",
        f"            const {kind} other = ahead[back * {group} + i];",
        f"            total = {step};",
        "        }",
        f"        {look.into}[from + i] = total;",
        "    }",
        "    barrier(CLK_LOCAL_MEM_FENCE);",
        "}",
    ]


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
