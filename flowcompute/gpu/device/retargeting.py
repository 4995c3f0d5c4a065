"""Instructions that a device has and its compiler of OpenCL C refuses: the program's binary is PTX text, and is edited.

NVIDIA compiles OpenCL C for `sm_90`, which lacks `wgmma` and other instructions of Hopper. Kernel texts hold them as
comments behind `MARK`. The driver's assembler takes them in a text that names `sm_90a`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flowcompute.gpu.device._cl import build_quietly, cl
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    from flowcompute.gpu import render
else:
    render = LateModule("flowcompute.gpu.render")

_PROBE = """__kernel void probe(__global int *out) {
    asm volatile("%sfence.proxy.async.shared::cta; wgmma.fence.sync.aligned;" ::: "memory");
    out[0] = 1;
}
"""


def retargeted(binary: bytes) -> bytes | None:
    """Return a program's PTX with its comments behind `MARK` as instructions, or None where it is no such text."""
    text, changes = re.subn(rb"(?m)^\.target\s+sm_90\b", b".target sm_90a", binary)
    return text.replace(render.MARK.encode(), b"") if changes == 1 else None


def takes_marked(context: cl.Context, handle: cl.Device) -> bool:
    """Check whether a device's driver assembles such a text, by a program of one line."""
    try:
        program = build_quietly(cl.Program(context, _PROBE % render.MARK), ["-cl-std=CL1.2", "-w"])
        text = retargeted(program.binaries[0])
        if text is None:
            return False
        build_quietly(cl.Program(context, [handle], [text]), [])
    except cl.Error:
        return False
    return True
