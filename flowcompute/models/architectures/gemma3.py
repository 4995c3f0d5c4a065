"""Gemma 3 (Gemma Team, 2025): norms before and after each part, and five layers of near sight to one of far sight.

GGUF files have the weights of norms with their 1 added. Layers of near sight see `sliding_window` tokens, themselves
included, and have a rotary embedding of their own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.models.architectures.hyperparameters import Hyperparameters
from flowcompute.models.architectures.layers import (
    Sizes,
    TextLimits,
    embedded,
    gated,
    joined_heads,
    normed,
    projected,
    queries_keys_values,
    rotation,
)

PERIOD = 6
"""Every so many layers one sees all of the text, where the file does not say which."""

LARGEST = 62
"""Layers of the model of 27 billion weights, whose queries are scaled by another size than that of its heads."""


def states(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None, **limits: Any) -> Any:
    """Return a vector (embedding_length,) for each token, normalised for the last product."""
    says = Hyperparameters(meta)
    sizes, inner = Sizes.of(says), says.whole("feed_forward_length")
    says.refuse("attn_logit_softcapping")
    scaled_by = sizes.wide // sizes.heads if sizes.layers == LARGEST else sizes.head
    far = rotation(says, w, sizes.head)
    near = {"base": says.real("rope.freq_base_swa", 10000.0, least=1.0), "dims": far["dims"]}
    window = says.whole("attention.sliding_window", 0, least=0)
    near_layers = says.flags("attention.sliding_window_pattern", sizes.layers, PERIOD)
    act = functools.partial(nn.gelu, approximate="tanh")
    most = TextLimits.of(limits, sizes.context)
    at = nn.position(tokens, text=text, slots=most.slots)
    x = embedded(w, tokens, sizes.wide) * math.sqrt(sizes.wide)
    for i in range(sizes.layers):
        layer, is_near = f"blk.{i}", window > 0 and near_layers[i]
        n = normed(x, w, f"{layer}.attn_norm", sizes.eps)
        q, k, v = queries_keys_values(n, w, layer, sizes)
        q, k = (normed(one, w, f"{layer}.attn_{name}_norm", sizes.eps) for one, name in ((q, "q"), (k, "k")))
        q, k = (nn.rope(one, at, pairs="halves", **(near if is_near else far)) for one in (q, k))
        seen = nn.self_attention(
            q,
            k,
            v,
            text=text,
            window=window if is_near else None,
            context=most.context,
            slots=most.slots,
            scale=scaled_by**-0.5,
        )
        made = projected(joined_heads(seen), w, f"{layer}.attn_output", sizes.wide)
        x = x + normed(made, w, f"{layer}.post_attention_norm", sizes.eps)
        made = gated(normed(x, w, f"{layer}.ffn_norm", sizes.eps), w, layer, inner, act)
        x = x + normed(made, w, f"{layer}.post_ffw_norm", sizes.eps)
    return normed(x, w, "output_norm", sizes.eps)
