"""Inline PTX for NVIDIA's tensor cores."""

from flowcompute.gpu.render.ptx.fragments import copying, multiply_helper, of_fragments
from flowcompute.gpu.render.ptx.rings import MARK, end_loop, group_multiply, open_ring, ring_copies, ring_steps

__all__ = [
    "MARK",
    "copying",
    "end_loop",
    "group_multiply",
    "multiply_helper",
    "of_fragments",
    "open_ring",
    "ring_copies",
    "ring_steps",
]
