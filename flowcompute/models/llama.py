"""Llama (Touvron et al., 2023), with rotary embeddings of neighbouring pairs as GGUF files of it have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.elements.axes import take
from flowcompute.models.layers import head, joined_heads, normed, projected, split_heads


def states(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None) -> Any:
    """Return a vector (embedding_length,) for each token, normalised for the last product."""
    heads, kv_heads = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
    eps, base = meta["llama.attention.layer_norm_rms_epsilon"], meta.get("llama.rope.freq_base", 10000.0)
    at = nn.position(tokens, text=text)
    x = take(w["token_embd.weight"], tokens, axis=0)
    for i in range(meta["llama.block_count"]):
        layer = f"blk.{i}"
        n = normed(x, w[f"{layer}.attn_norm.weight"], eps)
        q = split_heads(projected(n, w, f"{layer}.attn_q"), heads)
        k, v = (split_heads(projected(n, w, f"{layer}.attn_{name}"), kv_heads) for name in "kv")
        q, k = (nn.rope(one, at, base=base, pairs="neighbours") for one in (q, k))
        seen = nn.self_attention(q, k, v, text=text, context=meta["llama.context_length"])
        x = x + projected(joined_heads(seen), w, f"{layer}.attn_output")
        n = normed(x, w[f"{layer}.ffn_norm.weight"], eps)
        gate, up = (projected(n, w, f"{layer}.ffn_{name}") for name in ("gate", "up"))
        x = x + projected(nn.silu(gate) * up, w, f"{layer}.ffn_down")
    return normed(x, w["output_norm.weight"], eps)


def graph(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None) -> Any:
    """Return a score for each token of the vocabulary as the next one."""
    return head(states(w, meta, tokens, text), w)
