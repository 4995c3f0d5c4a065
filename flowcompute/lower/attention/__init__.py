"""Scaled dot-product attention, tile by tile of its keys."""

from flowcompute.lower.attention.cpu_attention import AttentionLowering
from flowcompute.lower.attention.tensor_attention import lower_tensor_attention
from flowcompute.lower.attention.tiled_attention import TiledAttentionLowering

__all__ = ["AttentionLowering", "TiledAttentionLowering", "lower_tensor_attention"]
