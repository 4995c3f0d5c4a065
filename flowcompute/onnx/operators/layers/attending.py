"""Attention in its forms, and positions that turn vectors."""

from __future__ import annotations

from typing import Any

from flowcompute.onnx.operators.record import REQUIRED, Operator, defined

_HEADS: dict[str, Any] = {"kv_num_heads": None, "q_num_heads": None}

OPERATORS: tuple[Operator, ...] = (
    defined(
        "Attention", 23, is_causal=0, qk_matmul_output_mode=0, scale=None, softcap=0.0, softmax_precision=None,
        left_window_size=-1, right_window_size=-1, **_HEADS,
    ),
    defined("RotaryEmbedding", 23, interleaved=0, num_heads=None, rotary_embedding_dim=0),
    defined(
        "LinearAttention", 27, chunk_size=64, kv_num_heads=REQUIRED, q_num_heads=REQUIRED, scale=0.0,
        update_rule="gated_delta",
    ),
    defined("CausalConvWithState", 27, activation="none"),
    defined(
        "FlexAttention", 1, domain="ai.onnx.preview", prob_mod=None, score_mod=None, scale=None, softmax_precision=None
    ),
)  # fmt: skip
