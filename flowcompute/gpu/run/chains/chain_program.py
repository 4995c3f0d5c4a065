"""Text of a program whose one kernel does what many launches do, phase after phase.

A phase is a launch. Its tiles are the work-groups of that launch. Work-groups of the chain draw tiles of a phase by
ticket until none is left. Then they wait until those that others have drawn are done, and go on with the next phase. A
work-group that is alone does all tiles itself, so a chain ends however work-groups are scheduled.

Kernels are functions here, not inlined: what they load may not move to an earlier phase. Those of single work-items
have the chain below, those of work-groups that of `group_chain`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.gpu.kernel_arguments import argument_types
from flowcompute.gpu.rendered_programs import function_of, program_of
from flowcompute.gpu.run.chains.group_chain import (
    MOST_VALUES,
    OWN_BYTES,
    PARAMETERS,
    arrays_of,
    chain_text,
    function_text,
)
from flowcompute.ir import Kernel

if TYPE_CHECKING:
    from flowcompute.gpu.render import RenderedBody

NAME, ADDRESSES_NAME = "fc_chain", "fc_addresses"

COLUMNS = 6
"""Numbers of a phase: its function, its place among the values, its tiles, `chunk`, the stage of its kernel, and
whether a carry sets `chunk`."""

SPINS, SLEEP_NS = 4000, 20_000
"""Turns of waiting before a thread sleeps, and for how long: what it waits for may want its core. OpenCL C has no way
to sleep, so this is a call of Linux."""

COUNTERS = 32
"""Counters of 32 bits a phase: the first is of tickets, the one in the middle of tiles that are done. They lie in lines
of the cache of their own."""

ASKED = 64
"""Buffers whose addresses are asked for at a time, as many as `MOST_VALUES` at least. Every device takes parameters of
1024 bytes."""

_DEFINED = re.compile(r"\b([A-Za-z_]\w*)\s*\([^()]*\)\s*\{")

_CHAIN = """
static inline void fc_pause(uint turn) {{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#if defined(__linux__)
    if (turn >= {spins}) {{
        long wait[2] = {{0, {sleep_ns}}}, nanosleep = 35;
        __asm__ volatile("syscall" : "+a"(nanosleep) : "D"(wait), "S"(0L) : "rcx", "r11", "memory");
    }}
#endif
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {name}(
    {parameters}) {{
    const uint workers = get_num_groups(0);
    for (long p = 0; p < count; p++) {{
        __global const long *phase = phases + p * {columns};
        __global const ulong *v = values + phase[1];
        volatile __global uint *ticket = counters + p * {counters}, *done = ticket + {counters} / 2;
        const uint tiles = (uint)phase[2], taken = launch * (tiles + workers), ended = (launch + 1) * tiles;
        const long chunk = phase[3] + phase[5] * shift;
        for (;;) {{
            const uint tile = __atomic_fetch_add(ticket, 1u, __ATOMIC_RELAXED) - taken;
            if (tile >= tiles) break;
            switch (phase[0]) {{
{cases}
            }}
            __atomic_fetch_add(done, 1u, __ATOMIC_RELEASE);
        }}
        for (uint turn = 0; __atomic_load_n(done, __ATOMIC_ACQUIRE) != ended; turn++) fc_pause(turn);
    }}
}}
"""


class ChainProgram:
    """The program of a chain: the functions of its kernels, each once.

    Args:
        group: work-items of a work-group: 1, or `GROUP`.
        local_bytes: local memory of a work-group. Single work-items have none, as nobody makes room for arrays.

    Attributes:
        group: as above.
        key: texts of the kernels, in the order of their numbers.
    """

    def __init__(self, group: int = 1, local_bytes: int = 0) -> None:
        self.group, self._room = group, local_bytes - OWN_BYTES
        self._kernels: list[Kernel] = []
        self._functions: list[RenderedBody] = []
        self._numbers: dict[str, int] = {}
        self._helpers: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    @property
    def key(self) -> tuple[str, ...]:
        """The texts of the kernels; equal ones make equal programs."""
        return tuple(self._numbers)

    def number_of(self, kernel: Kernel) -> int | None:
        """Return the number of a kernel's function, which is added first; None where it has no place here.

        Its local arrays have to leave room for those of the chain. Functions that two kernels call by one name have to
        be the same.
        """
        text, _ = program_of(kernel)
        if text in self._numbers:
            return self._numbers[text]
        function = function_of(kernel)
        needed = sum(one.most_bytes for one in function.arrays)
        if (needed and needed > self._room) or len(kernel.arguments) + 2 > MOST_VALUES:
            return None
        if any(other.contract != function.contract for other in self._functions[:1]):
            return None
        owners = {name: helper for helper, body in function.helpers.items() for name in _names(helper, body)}
        differs = any(self._helpers.get(helper, body) != body for helper, body in function.helpers.items())
        if differs or any(self._owners.get(name, helper) != helper for name, helper in owners.items()):
            return None
        # Macros would hold for all that follows.
        if any("#define" in body for body in function.helpers.values()):
            return None
        self._helpers |= function.helpers
        self._owners |= owners
        self._kernels.append(kernel)
        self._functions.append(function)
        return self._numbers.setdefault(text, len(self._numbers))

    def text(self) -> str:
        """Return the program as OpenCL C."""
        functions = self._functions
        cases = [_case(number, kernel, functions[number], self.group) for number, kernel in enumerate(self._kernels)]
        if self.group == 1:
            numbers = {"columns": COLUMNS, "counters": COUNTERS, "spins": SPINS, "sleep_ns": SLEEP_NS}
            chain = _CHAIN.format(name=NAME, parameters=PARAMETERS, cases="\n".join(cases), **numbers)
            bodies = [_function(number, function) for number, function in enumerate(functions)]
        else:
            chain = chain_text(NAME, cases, COLUMNS, COUNTERS)
            bodies = [arrays_of(functions), *(function_text(*each) for each in enumerate(functions))]
        parts = [*self._helpers.values(), *bodies]
        doubles = any("double" in part for part in parts)
        head = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if doubles else []
        head.append(f"#pragma OPENCL FP_CONTRACT {'ON' if functions[0].contract else 'OFF'}")
        return "\n".join([*head, "", *parts]) + chain


def chain_types() -> list[np.dtype | None]:
    """Return the dtype of each scalar parameter of a chain, None for pointers."""
    return [None, None, None, *[np.dtype(np.int64)] * 3, np.dtype(np.uint32)]


def addresses_text() -> str:
    """Return a program that stores the addresses of buffers: `ASKED` buffers, a table, and the place of the first."""
    parameters = "".join(f"__global uchar *b{i}, " for i in range(ASKED))
    stores = "\n".join(f"    table[first + {i}] = (ulong)b{i};" for i in range(ASKED))
    return f"""__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {ADDRESSES_NAME}({parameters}__global ulong *table, const long first) {{
{stores}
}}
"""


def addresses_types() -> list[np.dtype | None]:
    """Return the dtype of each scalar parameter of `addresses_text`, None for pointers."""
    return [*[None] * ASKED, None, np.dtype(np.int64)]


def _names(helper: str, body: str) -> set[str]:
    return {helper, *_DEFINED.findall(body)}


def _function(number: int, function: RenderedBody) -> str:
    parameters = ",\n    ".join([*function.parameters, "const long gid", "const long gsize"])
    lines = "\n".join(function.lines)
    return f"static __attribute__((noinline)) void fc_phase_{number}(\n    {parameters}) {{\n{lines}\n}}\n"


def _case(number: int, kernel: Kernel, function: RenderedBody, group: int) -> str:
    values = []
    types = argument_types(kernel)[: len(kernel.arguments)]
    room, given = ("__global", "v") if group == 1 else ("__local", "given")
    for place, (parameter, dtype) in enumerate(zip(function.parameters, types, strict=False)):
        if dtype is None:
            values.append(f"({parameter[: parameter.index('*') + 1]}){given}[{place}]")
        else:
            kind = parameter.removeprefix("const ").rsplit(" ", 1)[0]
            values.append(f"*({room} const {kind} *)({given} + {place})")
    place = len(kernel.arguments)
    stage = "phase[4]" if group == 1 else "stage"
    values += [f"(long){given}[{place}]", "chunk", f"(long){given}[{place + 1}]", "first", stage, "tile", "tiles"]
    values += [] if group == 1 else [f"&arrays.of_{number}"]
    return f"            case {number}: fc_phase_{number}({', '.join(values)}); break;"
