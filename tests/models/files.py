"""Small GGUF files of language models, and what they answer in exact maths."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

BYTES = [one for one in range(256) if chr(one).isprintable() and one not in (32, 0xA0, 0xAD)]
LETTERS = {byte: chr(byte) for byte in BYTES} | {
    byte: chr(256 + i) for i, byte in enumerate(one for one in range(256) if one not in BYTES)
}
"""The character that stands for each byte in vocabularies of GPT-2."""

MERGES = ["t h", "th e", f"{LETTERS[32]} a", f"{LETTERS[32]} the", "a n", "an d", "i n", "in g", "1 2", "e r"]
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
PIECES = [
    "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)),
    "he", "the", f"{SPACE}t", f"{SPACE}the", f"{SPACE}a", "in", "ing", f"{SPACE}s", f"{SPACE}sing", SPACE,
    *string.ascii_letters, *string.digits, *".,:[]/\n",
]  # fmt: skip
"""A vocabulary of SentencePiece."""

CHAT_THAT_BEGINS = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}{{ eos_token }}"
    "{% endfor %}[assistant]"
)

DEFAULTS: dict[str, Any] = {
    "embedding_length": 64,
    "feed_forward_length": 96,
    "block_count": 2,
    "head_count": 4,
    "head_count_kv": 2,
    "context_length": 128,
    "rope_freq_base": 10000.0,
    "eps": 1e-5,
}


def vocabulary(merges: Sequence[str] = MERGES, more: Sequence[str] = ()) -> list[str]:
    """Control tokens, bytes, what merges make and more tokens, without repeats."""
    return list(dict.fromkeys([*CONTROL, *LETTERS.values(), *(one.replace(" ", "") for one in merges), *more]))


def write_model(
    path: Path, *, kind: str = "Q4_0", seed: int = 0, tied: bool = False, pieces: bool = False, **changed: Any
) -> Path:
    """Write a llama with random weights: matrices in one quantized type, embeddings in Q8_0.

    With `pieces` its vocabulary is one of SentencePiece, and its texts and chats begin with a token.
    """
    size = DEFAULTS | changed
    rng = np.random.default_rng(seed)
    control, merges = [*CONTROL, *changed.get("control", ())], changed.get("merges", MERGES)
    tokens = PIECES if pieces else vocabulary(merges, [*changed.get("words", ()), *control])
    writer = gguf.GGUFWriter(str(path), changed.get("architecture", "llama"))
    writer.add_context_length(size["context_length"])
    writer.add_embedding_length(size["embedding_length"])
    writer.add_block_count(size["block_count"])
    writer.add_feed_forward_length(size["feed_forward_length"])
    writer.add_head_count(size["head_count"])
    writer.add_head_count_kv(size["head_count_kv"])
    writer.add_layer_norm_rms_eps(size["eps"])
    writer.add_rope_freq_base(size["rope_freq_base"])
    writer.add_vocab_size(len(tokens))
    if pieces:
        _add_pieces(writer)
    else:
        _add_byte_pairs(writer, tokens, [3 if one in control else 1 for one in tokens], merges)
        writer.add_tokenizer_pre(changed.get("pre", "smollm"))
        if changed.get("begins", False) is not None:
            writer.add_add_bos_token(changed.get("begins", False))
    writer.add_chat_template(changed.get("template", CHAT_THAT_BEGINS if pieces else CHAT))
    wide, inner, layers = size["embedding_length"], size["feed_forward_length"], size["block_count"]
    kv = wide // size["head_count"] * size["head_count_kv"]

    def add(name: str, *shape: int, kind: str = kind, scale: float = 1.0) -> None:
        numbers = (rng.standard_normal(shape) * scale / np.sqrt(shape[-1])).astype(np.float32)
        if kind == "F32":
            writer.add_tensor(name, numbers)
            return
        dtype = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, gguf.quants.quantize(numbers, dtype), raw_dtype=dtype)

    add("token_embd.weight", len(tokens), wide, kind="Q8_0", scale=1.0 if tied else 8.0)
    for i in range(layers):
        shapes = {
            "attn_q": (wide, wide), "attn_k": (kv, wide), "attn_v": (kv, wide), "attn_output": (wide, wide),
            "ffn_gate": (inner, wide), "ffn_up": (inner, wide), "ffn_down": (wide, inner),
        }  # fmt: skip
        for name, shape in shapes.items():
            add(f"blk.{i}.{name}.weight", *shape)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", (1 + rng.standard_normal(wide) / 8).astype(np.float32))
    writer.add_tensor("output_norm.weight", (1 + rng.standard_normal(wide) / 8).astype(np.float32))
    if not tied:
        add("output.weight", len(tokens), wide, kind="Q8_0", scale=4.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_byte_pairs(writer: gguf.GGUFWriter, tokens: list[str], kinds: list[int], merges: Sequence[str]) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _add_pieces(writer: gguf.GGUFWriter) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_token_list(PIECES)
    writer.add_token_scores([-float(i) for i in range(len(PIECES))])
    writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (len(PIECES) - 259)])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)


class Exact:
    """A llama of a GGUF file in float64, by the reader and the quantized types of the package gguf."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(str(path))
        self.meta = {name: field.contents() for name, field in reader.fields.items()}
        self.weights: Mapping[str, np.ndarray] = {
            one.name: np.asarray(gguf.quants.dequantize(one.data, one.tensor_type), np.float64)
            for one in reader.tensors
        }

    def logits(self, tokens: list[int]) -> np.ndarray:
        """Scores of the next token after each one of a text."""
        w, meta, n = self.weights, self.meta, len(tokens)
        heads, kv = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
        x = w["token_embd.weight"][tokens]
        size = x.shape[1] // heads
        angles = np.arange(n)[:, None] * meta["llama.rope.freq_base"] ** (-np.arange(0, size, 2) / size)
        sin, cos = np.sin(angles)[:, None], np.cos(angles)[:, None]

        def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
            return (
                x
                / np.sqrt((x**2).mean(axis=-1, keepdims=True) + meta["llama.attention.layer_norm_rms_epsilon"])
                * weight
            )

        def rope(x: np.ndarray) -> np.ndarray:
            a, b = x[..., 0::2], x[..., 1::2]
            return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)

        for i in range(meta["llama.block_count"]):
            part = {name.split(".")[2]: own for name, own in w.items() if name.startswith(f"blk.{i}.")}
            y = norm(x, part["attn_norm"])
            q = rope((y @ part["attn_q"].T).reshape(n, heads, size))
            k, v = ((y @ part[name].T).reshape(n, kv, size) for name in ("attn_k", "attn_v"))
            k = rope(k)
            k, v = (np.repeat(one, heads // kv, axis=1) for one in (k, v))
            scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size)
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            x = x + np.einsum("hqk,khd->qhd", weights, v).reshape(n, -1) @ part["attn_output"].T
            y = norm(x, part["ffn_norm"])
            gate = y @ part["ffn_gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ part["ffn_up"].T)) @ part["ffn_down"].T
        y = norm(x, w["output_norm.weight"])
        return y @ w["output.weight" if "output.weight" in w else "token_embd.weight"].T

    def losses(self, tokens: list[int]) -> np.ndarray:
        """-log p of each token after those before it; 0 for the first."""
        scores = self.logits(tokens)
        scores = scores - scores.max(axis=-1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        return np.concatenate([[0.0], -log_p[np.arange(len(tokens) - 1), tokens[1:]]])

    def greedy(self, tokens: list[int], count: int) -> list[int]:
        """Tokens that are likeliest, one after the other."""
        known = list(tokens)
        for _ in range(count):
            known.append(int(self.logits(known)[-1].argmax()))
        return known[len(tokens) :]
