"""Phi-3 (Abdin et al., 2024): one matrix for queries, keys and values, one for gate and up, and long contexts.

A file may have two sets of rope factors (LongRoPE, Ding et al., 2024). Those for long contexts are taken if its context
is longer than that of the first training. llama.cpp chooses so, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.models.architectures.hyperparameters import Hyperparameters
from flowcompute.models.architectures.layers import (
    Sizes,
    TextLimits,
    embedded,
    joined_heads,
    normed,
    projected,
    rotation,
    split_heads,
)


def states(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None, **limits: Any) -> Any:
    """Return a vector (embedding_length,) for each token, normalised for the last product."""
    says = Hyperparameters(meta)
    sizes, inner = Sizes.of(says), says.whole("feed_forward_length")
    original = says.whole("rope.scaling.original_context_length", sizes.context)
    factors = f"rope_factors_{'long' if sizes.context > original else 'short'}.weight"
    turn = rotation(says, w, sizes.head, factors)
    # A window that is as long as the context hides nothing; 0 stands for none.
    window = says.whole("attention.sliding_window", 0, least=0)
    seen_at_most = window if 0 < window < sizes.context else None
    of_queries, of_keys = sizes.heads * sizes.head, sizes.kv_heads * sizes.head
    most = TextLimits.of(limits, sizes.context)
    at = nn.position(tokens, text=text, slots=most.slots)
    x = embedded(w, tokens, sizes.wide)
    for i in range(sizes.layers):
        layer = f"blk.{i}"
        n = normed(x, w, f"{layer}.attn_norm", sizes.eps)
        qkv = projected(n, w, f"{layer}.attn_qkv", of_queries + 2 * of_keys)
        q = split_heads(qkv[:, :of_queries], sizes.heads)
        k = split_heads(qkv[:, of_queries : of_queries + of_keys], sizes.kv_heads)
        v = split_heads(qkv[:, of_queries + of_keys :], sizes.kv_heads)
        q, k = (nn.rope(one, at, pairs="halves", **turn) for one in (q, k))
        seen = nn.self_attention(q, k, v, text=text, window=seen_at_most, context=most.context, slots=most.slots)
        x = x + projected(joined_heads(seen), w, f"{layer}.attn_output", sizes.wide)
        n = normed(x, w, f"{layer}.ffn_norm", sizes.eps)
        gate_up = projected(n, w, f"{layer}.ffn_up", 2 * inner)
        x = x + projected(nn.silu(gate_up[:, :inner]) * gate_up[:, inner:], w, f"{layer}.ffn_down", sizes.wide)
    return normed(x, w, "output_norm", sizes.eps)
