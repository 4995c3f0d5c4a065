"""Gradient of attention: its parts of half formats, and what they are made of in float32."""

from flowcompute.elements.nn.attention_gradient.attention_parts import ATTENTION_PART, PART_SIZE, attention_part
from flowcompute.elements.nn.attention_gradient.weighed_parts import (
    as_weighed,
    key_gradient,
    negated_logarithms,
    query_gradient,
    value_gradient,
    vector_padded,
)

__all__ = [
    "ATTENTION_PART",
    "PART_SIZE",
    "as_weighed",
    "attention_part",
    "key_gradient",
    "negated_logarithms",
    "query_gradient",
    "value_gradient",
    "vector_padded",
]
