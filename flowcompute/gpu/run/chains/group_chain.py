"""Text of chains on GPUs, whose kernels have work-groups of many work-items.

It does as the text for single work-items. Functions share one room in local memory. What a phase is given is brought to
local memory before the wait. A work-group draws its first tile of the next phase with the last one of the phase before,
so that both are one wait. One that got no tile of a phase need not wait for the phase before: whoever waits for a phase
waits for all that came before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowcompute.gpu.render import RenderedBody


GROUP = 128
"""Work-items of a work-group: as many as products of few rows have, and attention of few records."""

GROUPS_PER_UNIT = 4
"""Work-groups for each compute unit. More of them wait until others end, and find nothing to do."""

MOST_VALUES = 64
"""Values that a phase is given at most; so many stand behind the last one of a table."""

OWN_BYTES = 1 << 10
"""Local memory that a chain takes beside the arrays of a function, at most: what a phase is given, and tickets."""

_HEAD = """
#ifdef __NV_CL_C_VERSION
#define FC_OWN __attribute__((noinline))
// A load that acquires would empty the first cache each time.
static inline void fc_await(volatile __global uint *done, uint ended) {
    uint tiles;
    do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(tiles) : "l"(done) : "memory");
    while (tiles != ended);
    asm volatile("fence.acq_rel.gpu;" : : : "memory");
}
static inline void fc_end(volatile __global uint *done) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(done) : "memory");
}
#else
#define FC_OWN inline
static inline void fc_await(volatile __global uint *done, uint ended) {
    while (*done != ended) {}
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}
static inline void fc_end(volatile __global uint *done) {
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(done);
}
#endif
"""

PARAMETERS = """__global const long *phases,
    __global const ulong *values,
    volatile __global uint *counters,
    const long count,
    const long first,
    const long shift,
    const uint launch"""
"""Parameters of all chains; `chain_types` has their dtypes."""

_CHAIN = """
__kernel __attribute__((reqd_work_group_size({group}, 1, 1)))
void {name}(
    {parameters}) {{
    __local union fc_arrays arrays;
    __local ulong given[{given}];
    __local uint drawn[2];
    const uint workers = get_num_groups(0), lid = get_local_id(0);
    uint next = 0, held = 0;
    for (long p = 0; p < count; p++) {{
        __global const long *phase = phases + p * {columns};
        volatile __global uint *ticket = counters + p * {counters}, *done = ticket + {counters} / 2;
        const uint tiles = (uint)phase[2], taken = launch * (tiles + workers);
        const long function = phase[0], chunk = phase[3] + phase[5] * shift, stage = phase[4];
        uint tile = next;
        if (!held) {{
            if (lid == 0) drawn[0] = atomic_inc(ticket) - taken;
            barrier(CLK_LOCAL_MEM_FENCE);
            tile = drawn[0];
            barrier(CLK_LOCAL_MEM_FENCE);
        }}
        held = 0;
        if (tile >= tiles) continue;
        if (lid < {given}) given[lid] = values[phase[1] + lid];
        if (p > 0) {{
            const uint ended = (launch + 1) * (uint)phase[2 - {columns}];
            if (lid == 0) fc_await(done - {counters}, ended);
        }}
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        do {{
            switch (function) {{
{cases}
            }}
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            // Sub-groups of their own do these at the same time.
            if (lid == 0) fc_end(done);
            if (lid == {group} / 4) drawn[0] = atomic_inc(ticket) - taken;
            if (lid == {group} / 2 && !held && p + 1 < count)
                drawn[1] = atomic_inc(ticket + {counters}) - launch * ((uint)phase[2 + {columns}] + workers);
            barrier(CLK_LOCAL_MEM_FENCE);
            tile = drawn[0];
            next = drawn[1];
            held = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
        }} while (tile < tiles);
    }}
}}
"""


def arrays_of(functions: Sequence[RenderedBody]) -> str:
    """Return the declarations of the functions' local arrays, and of the room that these share."""
    made = []
    for number, function in enumerate(functions):
        lines = "\n".join(f"    {array.declared}" for array in function.arrays)
        made.append(f"struct fc_arrays_{number} {{\n{lines or '    uint none;'}\n}};\n")
    shared = "\n".join(f"    struct fc_arrays_{number} of_{number};" for number in range(len(functions)))
    return _HEAD + "".join(made) + f"union fc_arrays {{\n{shared}\n}};\n"


def function_text(number: int, function: RenderedBody) -> str:
    """Return a kernel's function, which is given where its local arrays lie.

    What it reads may be what others have made in this launch, so no pointer is `restrict`.
    """
    own = [f"__local struct fc_arrays_{number} *own"]
    parameters = [one.replace("*restrict ", "*") for one in function.parameters]
    parameters = [*parameters, "const long gid", "const long gsize", *own]
    arrays = "".join(f"    __local {one.kind} *{one.name} = own->{one.name};\n" for one in function.arrays)
    ids = f"lid = get_local_id(0), wid = gid * {GROUP} + lid, wsize = gsize * {GROUP}"
    head, lines = ",\n    ".join(parameters), "\n".join(function.lines)
    return f"static FC_OWN void fc_phase_{number}(\n    {head}) {{\n{arrays}    const long {ids};\n{lines}\n}}\n"


def chain_text(name: str, cases: Sequence[str], columns: int, counters: int) -> str:
    """Return the kernel; `cases` call the functions."""
    numbers = {"columns": columns, "counters": counters, "group": GROUP, "given": MOST_VALUES}
    return _CHAIN.format(name=name, parameters=PARAMETERS, cases="\n".join(cases), **numbers)
