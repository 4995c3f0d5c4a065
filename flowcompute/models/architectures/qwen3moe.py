"""Mixtures of Qwen3 (Yang et al., 2025): heads are normalised as in Qwen3, and each token takes a few experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.models.architectures.hyperparameters import Hyperparameters
from flowcompute.models.architectures.layers import (
    Mixture,
    Sizes,
    TextLimits,
    embedded,
    joined_heads,
    normed,
    projected,
    queries_keys_values,
    rotation,
)


def states(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None, **limits: Any) -> Any:
    """Return a vector (embedding_length,) for each token, normalised for the last product."""
    says = Hyperparameters(meta)
    sizes = Sizes.of(says)
    mixture = Mixture.of(says, says.whole("expert_feed_forward_length"), renormalised=True)
    turn = rotation(says, w, sizes.head)
    most = TextLimits.of(limits, sizes.context)
    at = nn.position(tokens, text=text, slots=most.slots)
    x = embedded(w, tokens, sizes.wide)
    for i in range(sizes.layers):
        layer = f"blk.{i}"
        n = normed(x, w, f"{layer}.attn_norm", sizes.eps)
        q, k, v = queries_keys_values(n, w, layer, sizes)
        q, k = (normed(one, w, f"{layer}.attn_{name}_norm", sizes.eps) for one, name in ((q, "q"), (k, "k")))
        q, k = (nn.rope(one, at, pairs="halves", **turn) for one in (q, k))
        seen = nn.self_attention(q, k, v, text=text, context=most.context, slots=most.slots)
        x = x + projected(joined_heads(seen), w, f"{layer}.attn_output", sizes.wide)
        x = x + mixture(normed(x, w, f"{layer}.ffn_norm", sizes.eps), w, layer)
    return normed(x, w, "output_norm", sizes.eps)
