"""Mamba (Gu and Dao, 2023): a convolution and a state-space model along the stream in place of attention.

What a text leaves behind is its last inputs of the convolution and one state a channel. So it costs the same memory
for texts of any length.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.elements.functions import kernel
from flowcompute.elements.math import exp, where
from flowcompute.elements.streams import linear_recurrence, scan
from flowcompute.models.architectures.hyperparameters import Hyperparameters
from flowcompute.models.architectures.layers import MOST_LAYERS, TextLimits, embedded, normed, projected, tensor

MOST_TAPS = 16
"""Most tokens that a convolution sees."""


def states(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None, **limits: Any) -> Any:
    """Return a vector (embedding_length,) for each token, normalised for the last product."""
    says = Hyperparameters(meta)
    wide, layers = says.whole("embedding_length"), says.whole("block_count", most=MOST_LAYERS)
    inner, taps = says.whole("ssm.inner_size"), says.whole("ssm.conv_kernel", most=MOST_TAPS)
    count, rank = says.whole("ssm.state_size"), says.whole("ssm.time_step_rank")
    eps = says.real("attention.layer_norm_rms_epsilon")
    says.refuse("ssm.dt_b_c_rms")
    TextLimits.of(limits).require_one_slot("mamba remembers one text at a time")
    is_first = nn.position(tokens, text=text) == 0
    x = embedded(w, tokens, wide)
    for i in range(layers):
        layer = f"blk.{i}"
        both = projected(normed(x, w, f"{layer}.attn_norm", eps), w, f"{layer}.ssm_in", 2 * inner)
        u, gate = both[:, :inner], both[:, inner:]
        convolved = _convolved(u, tensor(w, f"{layer}.ssm_conv1d.weight", inner, taps), is_first)
        u = nn.silu(convolved + tensor(w, f"{layer}.ssm_conv1d.bias", inner))
        every = projected(u, w, f"{layer}.ssm_x", rank + 2 * count)
        step = nn.softplus(projected(every[:, :rank], w, f"{layer}.ssm_dt", inner))
        b, c = every[:, rank : rank + count], every[:, rank + count :]
        fading = exp(step[:, :, None] * tensor(w, f"{layer}.ssm_a", inner, count))
        state = linear_recurrence(
            where(is_first[:, None, None], 0.0, fading), (step * u)[:, :, None] * b[:, None, :], axis=0
        )
        seen = (state * c[:, None, :]).sum(axis=-1) + tensor(w, f"{layer}.ssm_d", inner) * u
        x = x + projected(seen * nn.silu(gate), w, f"{layer}.ssm_out", wide)
    return normed(x, w, "output_norm", eps)


def _shifted(last: Any, before: Any, x: Any, is_first: Any) -> Any:  # noqa: ARG001 - the second carry is the result
    """Return an item for the next record, and the one before this record in its text."""
    return x, (0.0 if is_first else last)


_step = functools.cache(lambda: kernel(_shifted))


def _convolved(x: Any, weight: Any, is_first: Any) -> Any:
    """Convolve each channel with its last numbers of a text; the last column of the weight (channels, taps) is now."""
    taps = weight.shape[1]
    made = x * weight[:, taps - 1]
    for tap in range(taps - 2, -1, -1):
        _, x = scan(_step(), x, is_first[:, None], init=(0.0, 0.0))
        made = made + x * weight[:, tap]
    return made
