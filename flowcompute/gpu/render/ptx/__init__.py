"""Inline PTX for NVIDIA's tensor cores."""

from flowcompute.gpu.render.ptx.aligned_vectors import LANES, load_packed, store_packed, takes_packed
from flowcompute.gpu.render.ptx.fragments import copying, multiply_helper, of_fragments, rounding_helper
from flowcompute.gpu.render.ptx.group_products import group_multiply, overlapped_multiply
from flowcompute.gpu.render.ptx.rings import (
    MARK,
    await_stage,
    begin_copies,
    end_loop,
    fill_stages,
    free_stage,
    group_barrier,
    open_ring,
    pass_steps,
    pass_turn,
    registers_of,
    ring_copies,
    stage_prepared,
    take_turn,
)

__all__ = [
    "LANES",
    "MARK",
    "await_stage",
    "begin_copies",
    "copying",
    "end_loop",
    "fill_stages",
    "free_stage",
    "group_barrier",
    "group_multiply",
    "load_packed",
    "multiply_helper",
    "of_fragments",
    "open_ring",
    "overlapped_multiply",
    "pass_steps",
    "pass_turn",
    "registers_of",
    "ring_copies",
    "rounding_helper",
    "stage_prepared",
    "store_packed",
    "take_turn",
    "takes_packed",
]
