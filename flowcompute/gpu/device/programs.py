"""Builds of programs from kernel text: once a process for equal text, and once a machine where binaries can be kept.

Loading one of our binaries costs about 5 ms. PoCL's own cache costs 30 ms and a compilation 50 to 500 ms. PoCL
also loads files of its cache unchecked. Only NVIDIA's driver, which keeps its binaries itself, has no second
cache here.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowcompute.errors import KernelError
from flowcompute.gpu.device._cl import build_quietly, cl
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.program_cache import ProgramStore, working_folder_is_there
from flowcompute.gpu.device.retargeting import retargeted
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    from flowcompute.gpu import render
    from flowcompute.gpu.device import builtin_functions
else:
    render = LateModule("flowcompute.gpu.render")
    builtin_functions = LateModule("flowcompute.gpu.device.builtin_functions")

_CONTEXT_LINES = 3
_CACHED_BY_DRIVER = ("NVIDIA CUDA",)
_HEADER_KNOWN = "PoCL 3.0"
"""Version of a driver whose header of functions may be left out."""
_MAX_PROGRAMS = 256  # programs of a device; PoCL holds files and memory for each
_EXIT_LIMIT_S = 0.5
_EXIT_SHARE = 0.25
"""Share of the seconds that compiling took, which may be spent at exit on keeping what was made: the next process waits
for none of it."""
_EXIT_WHOLE_S = 6.0
"""Seconds at exit that may be as many as compiling took. PoCL takes nearly as long to keep a large kernel as to build
it, and about as long again to launch it first, so that all kernels of a vision transformer are kept at once."""

_LOCK = threading.RLock()
_UNSAVED: dict[str, tuple[cl.Program, int, float]] = {}
"""Programs by key, with the process that compiled them and the seconds that this took."""


def build(device: Device, text: str, options: Sequence[str] = ()) -> cl.Program:
    """Build the program of an OpenCL C text, or return it from the cache.

    Args:
        device: the device to build for.
        text: one or more kernels. Several in one text cost much less than one text each.
        options: compiler options beside those that every program gets.

    Raises:
        KernelError: if the compiler refuses the text. It holds the compiler's message and the lines round the
            first error.
    """
    every = complete_options(device, options)
    key = program_key(device, text, every)
    context = device.context
    with _LOCK:
        program = device.programs.pop(key, None)
        # A device that was given up has a new context. Programs of the old one cannot be used there.
        if program is None or program.get_info(cl.program_info.CONTEXT) != context:
            program = _stored(device, context, key, every) or _compiled(device, context, key, text, every)
        device.programs[key] = program
        if len(device.programs) > _MAX_PROGRAMS:
            oldest = next(iter(device.programs))
            del device.programs[oldest]
            _UNSAVED.pop(oldest, None)
        return program


def is_built(device: Device, text: str) -> bool:
    """Check whether this process has the program of a text, with the options of every program."""
    return program_key(device, text, complete_options(device, ())) in device.programs


def kept_by_driver(device: Device) -> bool:
    """Check whether the driver keeps what it compiles, for this process and for all others."""
    return device.platform in _CACHED_BY_DRIVER


def shared_by_driver(device: Device) -> bool:
    """Check whether other processes find what the driver compiles. A user may forbid it, by a variable of NVIDIA's."""
    return kept_by_driver(device) and os.environ.get("CUDA_CACHE_DISABLE", "0") in ("", "0")


def complete_options(device: Device, options: Sequence[str]) -> tuple[str, ...]:
    """Return a program's options with those of every program: OpenCL C 1.2 and division rounded correctly."""
    every = [*device.build_options, *options]
    if not any(option.startswith("-cl-std=") for option in every):
        every.append("-cl-std=CL1.2")
    if device.capabilities.correct_division:
        every.append("-cl-fp32-correctly-rounded-divide-sqrt")
    # Warnings are for authors of kernel text. PoCL prints a count of them on the user's terminal.
    every.append("-w")
    return tuple(dict.fromkeys(every))


def program_key(device: Device, text: str, options: Sequence[str]) -> str:
    """Return the key that a program is stored under: a hash of text, options, and the kind of device."""
    forced = os.environ.get("PYOPENCL_BUILD_OPTIONS", "")
    parts = (text, *options, forced, device.version, device.capabilities.kind)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()


def _stored(device: Device, context: cl.Context, key: str, options: Sequence[str]) -> cl.Program | None:
    if kept_by_driver(device):
        return None
    store = ProgramStore()
    binary = store.load(key)
    if binary is None:
        return None
    try:
        program = cl.Program(context, [device.handle], [binary])
        build_quietly(program, options)
    except cl.Error:
        # The file is intact, but another release of the driver with the same version text wrote it.
        store.remove(key)
        return None
    return program


def _compiled(device: Device, context: cl.Context, key: str, text: str, options: Sequence[str]) -> cl.Program:
    began_s = time.monotonic()
    known = _HEADER_KNOWN in device.version and "-cl-std=CL1.2" in options
    declared = builtin_functions.with_declarations(text) if known else None
    try:
        program = cl.Program(context, text if declared is None else declared)
        build_quietly(program, options if declared is None else [*options, builtin_functions.HEADER_LEFT_OUT])
        if render.MARK in text:
            program = _retargeted(device, context, program)
    except cl.Error as error:
        info = cl.program_build_info.LOG
        log = program.get_build_info(device.handle, info)  # type: ignore[no-untyped-call]  # pyopencl left it bare
        raise _compile_error(device, text, options, log or str(error)) from error
    if not kept_by_driver(device):
        _save_at_exit()
        _UNSAVED[key] = program, os.getpid(), time.monotonic() - began_s
    return program


def _retargeted(device: Device, context: cl.Context, program: cl.Program) -> cl.Program:
    """Build a program once more, with the instructions that its compiler took for comments."""
    text = retargeted(program.binaries[0])
    if text is None:
        raise KernelError(
            f"cannot compile a kernel on {device.capabilities.name}: its program is no PTX for sm_90",
            got=device.capabilities.kind,
            hint="report it with the kind of the device; another device= does without such kernels",
        )
    made = cl.Program(context, [device.handle], [text])
    build_quietly(made, ())
    return made


@functools.cache
def _save_at_exit() -> None:
    # It is registered after the handler that removes PoCL's working files, and therefore runs before it.
    atexit.register(_save_when_it_ends)


def _save_when_it_ends() -> None:
    """Store programs for as long as an exit may take."""
    spent_s = sum(one_s for _, _, one_s in _UNSAVED.values())
    save_new_programs(max(_EXIT_LIMIT_S, min(spent_s, _EXIT_WHOLE_S), _EXIT_SHARE * spent_s))


def save_new_programs(limit_s: float = float("inf")) -> int:
    """Store the programs that this process compiled, for later processes: first what took longest. It runs at exit too.

    PoCL compiles each kernel once more for this (0.05 to 0.1 s). It is therefore not done while somebody waits
    for a first result. It belongs after a kernel's first launch, whose machine code is then stored as well.

    Args:
        limit_s: begin no further program after so many seconds.

    Returns:
        The number of stored programs.
    """
    start = time.monotonic()
    saved = 0
    with _LOCK:
        if not working_folder_is_there():
            # A binary made without PoCL's working files is incomplete, and crashes PoCL.
            _UNSAVED.clear()
        store = ProgramStore() if _UNSAVED else None
        while _UNSAVED and store is not None and time.monotonic() - start < limit_s:
            key = max(_UNSAVED, key=lambda one: _UNSAVED[one][2])
            program, process, _ = _UNSAVED.pop(key)
            if process != os.getpid() or store.folder is None:
                continue
            try:
                (binary,) = program.binaries
            except cl.Error:  # a driver that gives no binaries
                continue
            if binary:
                store.store(key, binary)
                saved += 1
    return saved


def _compile_error(device: Device, text: str, options: Sequence[str], said: str) -> KernelError:
    log = re.sub(r"[^\s:]*\.cl:(?=\d)", "line ", said)
    # PoCL says "error: file.cl:5:10: ...", NVIDIA "<kernel>:5:10: error: ...", Intel "5:10: error: ...".
    found = re.search(r"error: line (\d+):|(\d+):\d+: (?:fatal )?error", log)
    message = f"cannot compile a kernel on {device.capabilities.name}\n{_indented(log)}"
    if found is not None:
        message += f"\n{_excerpt(text, int(found[1] or found[2]))}"
    return KernelError(
        message,
        got=f"{device.capabilities.kind}, options {' '.join(options)}",
        hint="if you did not write this kernel, report it with its text (plan.kernels)",
    )


def _excerpt(text: str, line: int) -> str:
    """Return the numbered lines round a line."""
    lines = text.splitlines()
    first, last = max(1, line - _CONTEXT_LINES), min(len(lines), line + _CONTEXT_LINES)
    shown = [f"{'>' if n == line else ' '}{n:5} | {lines[n - 1]}" for n in range(first, last + 1)]
    return "\n".join(shown)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines() if line.strip())
