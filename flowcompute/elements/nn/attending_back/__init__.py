"""Gradient of attention: its parts of half formats, and what they are made of in float32."""

from flowcompute.elements.nn.attending_back.attention_parts import ATTENTION_PART, PART_SIZE, attention_part
from flowcompute.elements.nn.attending_back.weighed_parts import (
    as_weighed,
    of_keys,
    of_queries,
    of_values,
    padded,
    sums_less,
)

__all__ = [
    "ATTENTION_PART",
    "PART_SIZE",
    "as_weighed",
    "attention_part",
    "of_keys",
    "of_queries",
    "of_values",
    "padded",
    "sums_less",
]
