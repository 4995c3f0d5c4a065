"""Operators of onnxruntime's own domain, which exported transformers hold."""

from flowcompute.onnx.operators.microsoft import attention_layers, fused_layers, packed_products
from flowcompute.onnx.operators.microsoft.attention_layers import (
    Extended,
    grouped_attention,
    multi_head_attention,
)
from flowcompute.onnx.operators.record import Operator

MICROSOFT: tuple[Operator, ...] = (
    *fused_layers.OPERATORS,
    *attention_layers.OPERATORS,
    *packed_products.OPERATORS,
)

__all__ = ["MICROSOFT", "Extended", "grouped_attention", "multi_head_attention"]
