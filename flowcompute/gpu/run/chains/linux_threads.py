"""OpenCL C of chains on CPUs that asks Linux for what the language does not have: to sleep, and to leave a core.

PoCL wakes its threads for each launch. Linux often puts two of them on one core, beside the thread that launches, and
moves one only a slice of time later. Meanwhile another core idles. So the work-groups of a chain tell each other their
cores. The first to arrive yields, and one that finds another on its core moves to a core that none has told.
"""

from __future__ import annotations

SPINS, SLEEP_NS = 4000, 20_000
"""Turns of waiting before a thread sleeps, and for how long: what it waits for may want its core."""

YIELDING_PHASES = 4
"""First phases behind which a thread yields as long as another has not arrived."""

_CORES = 1024
"""Cores of a mask of Linux; on machines with more of them threads stay where they are."""

_TEXT = """
#if defined(__x86_64__) && defined(__linux__)
static inline long fc_linux(long number, long first, long second, long third) {{
    __asm__ volatile("syscall" : "+a"(number) : "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
    return number;
}}
static inline void fc_sleep(void) {{
    const long wait[2] = {{0, {sleep_ns}}};
    fc_linux(35, (long)wait, 0, 0);
}}
static inline void fc_yield(void) {{ fc_linux(24, 0, 0, 0); }}

// `told` has a count of those that have arrived, and then the core of each work-group, marked with its launch.
// Linux has at most 8192 cores.
static __attribute__((noinline)) void fc_arrive(volatile __global uint *told, uint launch) {{
    volatile __global uint *cores = told + 1;
    const uint workers = get_num_groups(0), own = get_group_id(0), mark = (launch + 1) << 13;
    uint core = 0, shared = 0;
    fc_linux(309, (long)&core, 0, 0);
    cores[own] = mark | core;
    if (__atomic_fetch_add(told, 1u, __ATOMIC_ACQ_REL) == launch * workers) {{
        fc_yield();
        return;
    }}
    for (uint other = 0; other < workers; other++) shared |= other != own && cores[other] == (mark | core);
    if (!shared) return;
    ulong allowed[{cores} / 64], left[{cores} / 64], any = 0;
    const long bytes = fc_linux(204, 0, sizeof(allowed), (long)allowed);
    if (bytes <= 0) return;
    for (long i = 0; i < bytes / 8; i++) left[i] = allowed[i];
    for (uint other = 0; other < workers; other++) {{
        const uint taken = cores[other] - mark;
        if (taken < bytes * 8) left[taken / 64] &= ~(1ul << taken % 64);
    }}
    for (long i = 0; i < bytes / 8; i++) any |= left[i];
    // A thread moves with the first call, and stays there with the second one.
    if (any && !fc_linux(203, 0, bytes, (long)left)) fc_linux(203, 0, bytes, (long)allowed);
}}
// Another work-group may follow on this thread, and need not leave it.
static inline void fc_leave(volatile __global uint *told) {{ told[1 + get_group_id(0)] = 0; }}
#else
static inline void fc_sleep(void) {{}}
static inline void fc_leave(volatile __global uint *told) {{}}
static inline void fc_yield(void) {{}}
static inline void fc_arrive(volatile __global uint *told, uint launch) {{}}
#endif

static inline void fc_pause(uint turn) {{
#if defined(__x86_64__)
    __builtin_ia32_pause();
    if (turn >= {spins}) fc_sleep();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}}
"""


def threads_text() -> str:
    """Return functions that chains call: `fc_arrive`, `fc_yield`, `fc_pause` and `fc_leave`."""
    return _TEXT.format(sleep_ns=SLEEP_NS, spins=SPINS, cores=_CORES)


def told_items(workers: int) -> int:
    """Return how many numbers of 32 bits `fc_arrive` needs for so many work-groups."""
    return 1 + workers
