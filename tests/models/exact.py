"""Language models in float64, straight from their formulas; `exact_logits` reads a file by the package gguf.

Sources are RMSNorm (Zhang and Sennrich, 2019), RoFormer (Su et al., 2021), GLU variants (Shazeer, 2020), grouped
queries (Ainslie et al., 2023), mixtures of experts (Jiang et al., 2024) and the reports of Qwen2, Qwen3, Phi-3 and
Gemma 3. `scripts/nightly` compares each with llama.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

Array = np.ndarray


class Exact:
    """The numbers of a file in float64, and the steps that formulas share."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(str(path))
        fields = {name: field.contents() for name, field in reader.fields.items()}
        self.architecture: str = fields["general.architecture"]
        begin = f"{self.architecture}."
        self.meta: dict[str, Any] = {key.removeprefix(begin): own for key, own in fields.items()}
        self.weights: Mapping[str, Array] = {
            one.name: np.asarray(gguf.quants.dequantize(one.data, one.tensor_type), np.float64)
            for one in reader.tensors
        }
        self.heads = self.meta["attention.head_count"]
        self.kv_heads = self.meta["attention.head_count_kv"]
        self.size = self.meta.get("attention.key_length", self.meta["embedding_length"] // max(self.heads, 1))

    def norm(self, x: Array, name: str) -> Array:
        eps = self.meta["attention.layer_norm_rms_epsilon"]
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * self.weights[f"{name}.weight"]

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def qkv(self, x: Array, layer: str) -> tuple[Array, ...]:
        """Queries, keys and values, (tokens, heads, numbers) each."""
        return tuple(self.linear(x, f"{layer}.attn_{one}").reshape(len(x), -1, self.size) for one in "qkv")

    def feed_forward(self, x: Array, layer: str, act: Callable[[Array], Array], end: str = "") -> Array:
        gated = act(self.linear(x, f"{layer}.ffn_gate{end}")) * self.linear(x, f"{layer}.ffn_up{end}")
        return self.linear(gated, f"{layer}.ffn_down{end}")

    def mixture(self, x: Array, layer: str, *, renormalised: bool) -> Array:
        """Each token's sum over the experts that its router gives the highest probabilities."""
        probabilities = softmax(self.linear(x, f"{layer}.ffn_gate_inp"))
        made = np.zeros_like(x)
        for t, own in enumerate(probabilities):
            best = sorted(range(len(own)), key=lambda e: (-own[e], e))[: self.meta["expert_used_count"]]
            weights = own[best] / (own[best].sum() if renormalised else 1)
            for weight, e in zip(weights, best, strict=True):
                gate, up, down = (self.weights[f"{layer}.ffn_{one}_exps.weight"][e] for one in ("gate", "up", "down"))
                made[t] += weight * (down @ (silu(gate @ x[t]) * (up @ x[t])))
        return made

    def scores(self, x: Array) -> Array:
        table = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return self.norm(x, "output_norm") @ table.T


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def frequencies(base: float, dims: int) -> Array:
    return base ** (-np.arange(0, dims, 2) / dims)


def turned_neighbours(x: Array, frequency: Array) -> Array:
    """Turn numbers 2i and 2i + 1 of (tokens, heads, numbers) by position times frequency i."""
    angles = np.arange(len(x))[:, None, None] * frequency
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)


def turned_halves(x: Array, frequency: Array, scale: float = 1.0) -> Array:
    """Turn numbers i and i + dims / 2; those behind dims stay."""
    half = len(frequency)
    z = (x[..., :half] + 1j * x[..., half : 2 * half]) * np.exp(1j * np.arange(len(x))[:, None, None] * frequency)
    return np.concatenate([z.real * scale, z.imag * scale, x[..., 2 * half :]], axis=-1)


def attended(q: Array, k: Array, v: Array, scale: float, window: int | None = None) -> Array:
    """Causal attention; a token sees `window` tokens, itself included."""
    n, heads = q.shape[:2]
    k, v = (np.repeat(one, heads // one.shape[1], axis=1) for one in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    back = np.arange(n)[:, None] - np.arange(n)
    scores = np.where((back >= 0) & (back < (window or n)), scores, -np.inf)
    return np.einsum("hqk,khd->qhd", softmax(scores), v).reshape(n, -1)


def llama(m: Exact, tokens: Sequence[int]) -> Array:
    factors = m.weights.get("rope_freqs.weight", 1.0)
    frequency = frequencies(m.meta["rope.freq_base"], m.size) / factors
    x = m.weights["token_embd.weight"][list(tokens)]
    for i in range(m.meta["block_count"]):
        layer = f"blk.{i}"
        q, k, v = m.qkv(m.norm(x, f"{layer}.attn_norm"), layer)
        q, k = (turned_neighbours(one, frequency) for one in (q, k))
        x = x + m.linear(attended(q, k, v, m.size**-0.5), f"{layer}.attn_output")
        y = m.norm(x, f"{layer}.ffn_norm")
        mixes = "expert_count" in m.meta
        x = x + (m.mixture(y, layer, renormalised=True) if mixes else m.feed_forward(y, layer, silu))
    return m.scores(x)


def scaled(m: Exact, frequency: Array) -> tuple[Array, float]:
    """The frequencies of YaRN (Peng et al., 2023, section 3.2) and its factor of queries and keys."""
    if m.meta.get("rope.scaling.type") != "yarn":
        return frequency / m.meta.get("rope.scaling.factor", 1.0), 1.0
    factor, context = m.meta["rope.scaling.factor"], m.meta["rope.scaling.original_context_length"]
    base, dims = m.meta["rope.freq_base"], 2 * len(frequency)
    low, high = (dims * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32.0, 1.0))
    low, high = max(0, math.floor(low)), min(dims - 1, math.ceil(high))
    ramp = 1 - np.clip((np.arange(dims // 2) - low) / max(0.001, high - low), 0, 1)
    return frequency / factor * (1 - ramp) + frequency * ramp, 1 + 0.1 * math.log(factor)


def qwen2(m: Exact, tokens: Sequence[int]) -> Array:
    frequency, scale = scaled(m, frequencies(m.meta["rope.freq_base"], m.size))
    x = m.weights["token_embd.weight"][list(tokens)]
    for i in range(m.meta["block_count"]):
        layer = f"blk.{i}"
        q, k, v = m.qkv(m.norm(x, f"{layer}.attn_norm"), layer)
        q, k = (turned_halves(one, frequency, scale) for one in (q, k))
        x = x + m.linear(attended(q, k, v, m.size**-0.5), f"{layer}.attn_output")
        y = m.norm(x, f"{layer}.ffn_norm")
        if m.architecture == "qwen2":
            x = x + m.feed_forward(y, layer, silu)
            continue
        shared = 1 / (1 + np.exp(-(y @ m.weights[f"{layer}.ffn_gate_inp_shexp.weight"])))
        renormalised = m.meta.get("expert_weights_norm", False)
        x = x + m.mixture(y, layer, renormalised=renormalised)
        x = x + shared[:, None] * m.feed_forward(y, layer, silu, "_shexp")
    return m.scores(x)


def qwen3(m: Exact, tokens: Sequence[int]) -> Array:
    frequency = frequencies(m.meta["rope.freq_base"], m.size)
    x = m.weights["token_embd.weight"][list(tokens)]
    for i in range(m.meta["block_count"]):
        layer = f"blk.{i}"
        q, k, v = m.qkv(m.norm(x, f"{layer}.attn_norm"), layer)
        q, k = m.norm(q, f"{layer}.attn_q_norm"), m.norm(k, f"{layer}.attn_k_norm")
        q, k = (turned_halves(one, frequency) for one in (q, k))
        x = x + m.linear(attended(q, k, v, m.size**-0.5), f"{layer}.attn_output")
        y, mixes = m.norm(x, f"{layer}.ffn_norm"), m.architecture == "qwen3moe"
        renormalised = m.meta.get("expert_weights_norm", True)
        x = x + (m.mixture(y, layer, renormalised=renormalised) if mixes else m.feed_forward(y, layer, silu))
    return m.scores(x)


def phi3(m: Exact, tokens: Sequence[int]) -> Array:
    frequency = frequencies(m.meta["rope.freq_base"], m.meta["rope.dimension_count"])
    context, scale = m.meta["context_length"], m.meta.get("rope.scaling.attn_factor", 1.0)
    if "rope_factors_long.weight" in m.weights:
        far = context > m.meta["rope.scaling.original_context_length"]
        frequency = frequency / m.weights[f"rope_factors_{'long' if far else 'short'}.weight"]
    x = m.weights["token_embd.weight"][list(tokens)]
    rows = np.cumsum([m.heads * m.size, m.kv_heads * m.size])
    for i in range(m.meta["block_count"]):
        layer = f"blk.{i}"
        fused = m.linear(m.norm(x, f"{layer}.attn_norm"), f"{layer}.attn_qkv")
        q, k, v = (one.reshape(len(x), -1, m.size) for one in np.split(fused, rows, axis=1))
        q, k = (turned_halves(one, frequency, scale) for one in (q, k))
        seen = attended(q, k, v, m.size**-0.5, m.meta.get("attention.sliding_window"))
        x = x + m.linear(seen, f"{layer}.attn_output")
        gate, up = np.split(m.linear(m.norm(x, f"{layer}.ffn_norm"), f"{layer}.ffn_up"), 2, axis=1)
        x = x + m.linear(silu(gate) * up, f"{layer}.ffn_down")
    return m.scores(x)


def gemma3(m: Exact, tokens: Sequence[int]) -> Array:
    far = frequencies(m.meta["rope.freq_base"], m.size) / m.meta.get("rope.scaling.factor", 1.0)
    near = frequencies(m.meta.get("rope.freq_base_swa", 10000.0), m.size)
    window, pattern = m.meta.get("attention.sliding_window"), m.meta.get("attention.sliding_window_pattern", 6)
    x = m.weights["token_embd.weight"][list(tokens)] * math.sqrt(m.meta["embedding_length"])
    for i in range(m.meta["block_count"]):
        sees_near = pattern[i] if isinstance(pattern, list) else (i + 1) % pattern != 0
        layer, is_near = f"blk.{i}", sees_near and window is not None
        q, k, v = m.qkv(m.norm(x, f"{layer}.attn_norm"), layer)
        q, k = m.norm(q, f"{layer}.attn_q_norm"), m.norm(k, f"{layer}.attn_k_norm")
        q, k = (turned_halves(one, near if is_near else far) for one in (q, k))
        seen = attended(q, k, v, m.size**-0.5, window if is_near else None)
        x = x + m.norm(m.linear(seen, f"{layer}.attn_output"), f"{layer}.post_attention_norm")
        made = m.feed_forward(m.norm(x, f"{layer}.ffn_norm"), layer, gelu)
        x = x + m.norm(made, f"{layer}.post_ffw_norm")
    cap = m.meta.get("final_logit_softcapping")
    return m.scores(x) if cap is None else np.tanh(m.scores(x) / cap) * cap


def mamba(m: Exact, tokens: Sequence[int]) -> Array:
    """Mamba (Gu and Dao, 2023, section 3): a convolution, a state that fades as its input says, and a gate."""
    states, rank = m.meta["ssm.state_size"], m.meta["ssm.time_step_rank"]
    x = m.weights["token_embd.weight"][list(tokens)]
    for i in range(m.meta["block_count"]):
        layer = f"blk.{i}"
        u, gate = np.split(m.linear(m.norm(x, f"{layer}.attn_norm"), f"{layer}.ssm_in"), 2, axis=1)
        taps = m.weights[f"{layer}.ssm_conv1d.weight"]
        before = np.concatenate([np.zeros((taps.shape[1] - 1, u.shape[1])), u])
        u = sum(before[k : k + len(u)] * taps[:, k] for k in range(taps.shape[1]))
        u = silu(u + m.weights[f"{layer}.ssm_conv1d.bias"])
        step, b, c = np.split(m.linear(u, f"{layer}.ssm_x"), [rank, rank + states], axis=1)
        step = np.log1p(np.exp(m.linear(step, f"{layer}.ssm_dt")))
        a, state, seen = m.weights[f"{layer}.ssm_a"], 0.0, np.empty_like(u)
        for t in range(len(u)):
            state = np.exp(step[t, :, None] * a) * state + (step[t] * u[t])[:, None] * b[t]
            seen[t] = (state * c[t]).sum(axis=-1)
        y = (seen + m.weights[f"{layer}.ssm_d"] * u) * silu(gate)
        x = x + m.linear(y, f"{layer}.ssm_out")
    return m.scores(x)


FORMULAS: Mapping[str, Callable[[Exact, Sequence[int]], Array]] = {
    "llama": llama, "qwen2": qwen2, "qwen3": qwen3, "phi3": phi3, "gemma3": gemma3, "qwen2moe": qwen2,
    "qwen3moe": qwen3, "mamba": mamba,
}  # fmt: skip


def exact_logits(path: Path, tokens: Sequence[int]) -> Array:
    """Scores of the next token after each one of a text, (tokens, vocabulary)."""
    model = Exact(path)
    return FORMULAS[model.architecture](model, tokens)
