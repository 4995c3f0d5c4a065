"""Scaled dot-product attention, tile by tile of its keys."""

from flowcompute.lower.attention.cpu_attention import CPU_ATTENTION
from flowcompute.lower.attention.cpu_stream_attention import CPU_STREAM_ATTENTION
from flowcompute.lower.attention.gradients import ATTENTION_PARTS
from flowcompute.lower.attention.tensor_attention import TENSOR_ATTENTION
from flowcompute.lower.attention.tiled import COPIED_ATTENTION, TILED_ATTENTION, TILED_STREAM_ATTENTION
from flowcompute.lower.attention.warp_group_attention import WARP_GROUP_ATTENTION

__all__ = [
    "ATTENTION_PARTS",
    "COPIED_ATTENTION",
    "CPU_ATTENTION",
    "CPU_STREAM_ATTENTION",
    "TENSOR_ATTENTION",
    "TILED_ATTENTION",
    "TILED_STREAM_ATTENTION",
    "WARP_GROUP_ATTENTION",
]
