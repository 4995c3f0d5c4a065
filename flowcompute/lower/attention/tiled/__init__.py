"""Attention on GPUs by work-groups with tiles of keys and values in local memory."""

from flowcompute.lower.attention.tiled.copied_attention import COPIED_ATTENTION
from flowcompute.lower.attention.tiled.tiled_attention import TILED_ATTENTION
from flowcompute.lower.attention.tiled.tiled_stream_attention import TILED_STREAM_ATTENTION

__all__ = ["COPIED_ATTENTION", "TILED_ATTENTION", "TILED_STREAM_ATTENTION"]
