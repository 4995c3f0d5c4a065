"""Small GGUF files with random weights, one for each architecture, that llama.cpp reads too."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PRINTABLE = [chr(code) for code in range(33, 127)]
PAIRS = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
VOCABULARY = [*CONTROL, *PRINTABLE, *PAIRS][:512]
"""Tokens of whole characters, so that llama.cpp shows the scores of each."""

WIDE, INNER, HEADS, KV_HEADS = 64, 96, 4, 2

Shapes = Iterator[tuple[str, tuple[int, ...]]]

ROUTED = {"expert_count": 6, "expert_used_count": 2}

METADATA: Mapping[str, Mapping[str, Any]] = {
    "llama": {"rope.dimension_count": 16},
    "mixtral": {"rope.dimension_count": 16, **ROUTED},
    "qwen2": {"rope.freq_base": 1e6},
    "qwen3": {"rope.freq_base": 1e6, "attention.key_length": 32, "attention.value_length": 32},
    "qwen3moe": {
        "rope.freq_base": 1e6,
        "attention.key_length": 32,
        "attention.value_length": 32,
        **ROUTED,
        "expert_feed_forward_length": 32,
    },
    "phi3": {"rope.dimension_count": 16},
    "gemma3": {
        "block_count": 7,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 8,
        "rope.freq_base": 1e6,
        "final_logit_softcapping": 4.0,
    },
    "mamba": {
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "attention.head_count_kv": 0,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 2 * WIDE,
        "ssm.state_size": 6,
        "ssm.time_step_rank": 5,
    },
    "qwen2moe": {
        "rope.freq_base": 1e6,
        **ROUTED,
        "expert_feed_forward_length": 32,
        "expert_shared_feed_forward_length": 64,
    },
}
"""What files say beside what all of them do, by the name of a kind of file."""


def write_architecture(
    path: Path,
    name: str,
    *,
    kind: str = "F32",
    seed: int = 0,
    metadata: Mapping[str, Any] | None = None,
    tensors: Mapping[str, Any] | None = None,
) -> Path:
    """Write a model of random weights.

    Args:
        path: of the file.
        name: of `METADATA`.
        kind: quantized type of matrices whose rows allow it.
        seed: of the weights.
        metadata: replaces what the file says of itself; None leaves a key out.
        tensors: replaces tensors, or adds some; None leaves one out.
    """
    architecture = "llama" if name == "mixtral" else name
    said: dict[str, Any] = {
        "context_length": 128,
        "embedding_length": WIDE,
        "block_count": 2,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
        "vocab_size": len(VOCABULARY),
        **METADATA[name],
        **(metadata or {}),
    }
    writer = gguf.GGUFWriter(str(path), architecture)
    for key, value in said.items():
        add_value(writer, f"{architecture}.{key}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(VOCABULARY)
    writer.add_token_types([3 if one in CONTROL else 1 for one in VOCABULARY])
    writer.add_token_merges(["a b", "c d"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    rng = np.random.default_rng(seed)
    made = {tensor: random_tensor(rng, tensor, shape) for tensor, shape in shapes_of(name, said)}
    for tensor, numbers in {**made, **(tensors or {})}.items():
        if numbers is None:
            continue
        in_blocks = numbers.ndim > 1 and numbers.shape[-1] % 32 == 0
        if kind != "F32" and in_blocks and "ffn_gate_inp" not in tensor:
            dtype = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(tensor, gguf.quants.quantize(numbers, dtype), raw_dtype=dtype)
        else:
            writer.add_tensor(tensor, numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_value(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    """Add a value of metadata by its type; None for none."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        (writer.add_uint32 if 0 <= value < 1 << 32 else writer.add_int64)(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)


def random_tensor(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights that keep the size of what goes through them, and make scores that differ."""
    numbers = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        return (1 + numbers / 8).astype(np.float32)
    if name.endswith(".bias"):
        return (numbers / 2).astype(np.float32)
    if name.endswith("ssm_a"):
        return -np.exp(numbers / 2).astype(np.float32)
    scale = {"token_embd.weight": 1.0, "output.weight": 4.0}.get(name, 3.0 if "gate_inp" in name else 1.5)
    return (numbers * scale / np.sqrt(shape[-1])).astype(np.float32)


def shapes_of(name: str, said: Mapping[str, Any]) -> Shapes:
    """Give the names and shapes of tensors that files of a kind have."""
    q = HEADS * said.get("attention.key_length", WIDE // HEADS)
    kv = KV_HEADS * said.get("attention.key_length", WIDE // HEADS)
    head = q // HEADS
    yield "token_embd.weight", (len(VOCABULARY), WIDE)
    yield "output_norm.weight", (WIDE,)
    if name == "mamba":
        yield from _state_space(said)
        return
    if name not in ("gemma3", "qwen3", "qwen3moe"):
        yield "output.weight", (len(VOCABULARY), WIDE)
    for i in range(said["block_count"]):
        block = f"blk.{i}."
        yield f"{block}attn_norm.weight", (WIDE,)
        yield f"{block}ffn_norm.weight", (WIDE,)
        yield f"{block}attn_output.weight", (WIDE, q)
        if name == "phi3":
            yield f"{block}attn_qkv.weight", (q + 2 * kv, WIDE)
            yield f"{block}ffn_up.weight", (2 * INNER, WIDE)
            yield f"{block}ffn_down.weight", (WIDE, INNER)
            continue
        for part, rows in (("q", q), ("k", kv), ("v", kv)):
            yield f"{block}attn_{part}.weight", (rows, WIDE)
            if name in ("qwen2", "qwen2moe"):
                yield f"{block}attn_{part}.bias", (rows,)
            if name in ("qwen3", "qwen3moe", "gemma3") and part != "v":
                yield f"{block}attn_{part}_norm.weight", (head,)
        if name == "gemma3":
            yield f"{block}post_attention_norm.weight", (WIDE,)
            yield f"{block}post_ffw_norm.weight", (WIDE,)
        experts = said.get("expert_count")
        if not experts:
            yield from _feed_forward(f"{block}ffn_", "", (), INNER)
            continue
        yield f"{block}ffn_gate_inp.weight", (experts, WIDE)
        inner = said.get("expert_feed_forward_length", INNER)
        yield from _feed_forward(f"{block}ffn_", "_exps", (experts,), inner)
        if name == "qwen2moe":
            yield f"{block}ffn_gate_inp_shexp.weight", (WIDE,)
            yield from _feed_forward(f"{block}ffn_", "_shexp", (), said["expert_shared_feed_forward_length"])


def _state_space(said: Mapping[str, Any]) -> Shapes:
    inner, states, rank = (said[f"ssm.{one}"] for one in ("inner_size", "state_size", "time_step_rank"))
    for i in range(said["block_count"]):
        block = f"blk.{i}."
        yield f"{block}attn_norm.weight", (WIDE,)
        yield f"{block}ssm_in.weight", (2 * inner, WIDE)
        yield f"{block}ssm_conv1d.weight", (inner, said["ssm.conv_kernel"])
        yield f"{block}ssm_conv1d.bias", (inner,)
        yield f"{block}ssm_x.weight", (rank + 2 * states, inner)
        yield f"{block}ssm_dt.weight", (inner, rank)
        yield f"{block}ssm_dt.bias", (inner,)
        yield f"{block}ssm_a", (inner, states)
        yield f"{block}ssm_d", (inner,)
        yield f"{block}ssm_out.weight", (WIDE, inner)


def _feed_forward(begin: str, end: str, lead: tuple[int, ...], inner: int) -> Shapes:
    yield f"{begin}gate{end}.weight", (*lead, inner, WIDE)
    yield f"{begin}up{end}.weight", (*lead, inner, WIDE)
    yield f"{begin}down{end}.weight", (*lead, WIDE, inner)
