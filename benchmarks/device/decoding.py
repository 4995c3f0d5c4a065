"""Tokens of random weights, one by one on one device: `python -m benchmarks.device.decoding [--device gpu]`.

Each model is a llama whose layers share the bytes of one, as a GGUF file made in a temporary folder. `--shape 8b` has
the matrices of an 8B model, `smollm2` those of SmolLM2-135M; both have a small vocabulary. Printed are milliseconds a
token, launches, microseconds a launch, and the rate at which weights are read, beside the device's own copy. Behind
these stands what each kernel of the plan costs beside its own time on the device.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import gguf
import numpy as np

import flowcompute as fc
from flowcompute.gpu.run.chains import BoundLaunches
from flowcompute.gpu.worker.launcher import LocalLauncher

SHAPES = {
    "smollm2": {"layers": 30, "wide": 576, "inner": 1536, "heads": 9, "kv_heads": 3},
    "8b": {"layers": 32, "wide": 4096, "inner": 14336, "heads": 32, "kv_heads": 8},
}
CONTEXT = 512
PROMPT = [5, 9, 33, 70, 101]


def random_blocks(rng: np.random.Generator, kind: str, rows: int, columns: int) -> np.ndarray:
    """Return uint8 (rows, bytes) of Q8_0 or Q4_0: random quants, and a scale that keeps sums near 1."""
    size, width = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    raw = rng.integers(0, 256, (rows, columns // size, width), dtype=np.uint8)
    scale = (0.3 if kind == "Q4_0" else 0.02) / columns**0.5
    scales = scale * rng.uniform(0.5, 1.5, (rows, columns // size, 1))
    raw[..., :2] = scales.astype("<f2").view(np.uint8)
    return raw.reshape(rows, -1)


def write(path: Path, shape: dict[str, int], kind: str) -> int:
    """Write the file; returns the bytes that a token reads."""
    rng = np.random.default_rng(0)
    wide, inner, layers = shape["wide"], shape["inner"], shape["layers"]
    kv = wide // shape["heads"] * shape["kv_heads"]
    tokens = [chr(i) if chr(i).isprintable() and i != 32 else chr(256 + i) for i in range(256)]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(wide)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    dtype = gguf.GGMLQuantizationType[kind]
    shapes = {
        "attn_q": (wide, wide), "attn_k": (kv, wide), "attn_v": (kv, wide), "attn_output": (wide, wide),
        "ffn_gate": (inner, wide), "ffn_up": (inner, wide), "ffn_down": (wide, inner),
    }  # fmt: skip
    parts = {name: random_blocks(rng, kind, *size) for name, size in shapes.items()}
    norm = np.ones(wide, np.float32)
    table = random_blocks(rng, kind, len(tokens), wide)
    writer.add_tensor("token_embd.weight", table, raw_dtype=dtype)
    for i in range(layers):
        for name, raw in parts.items():
            writer.add_tensor(f"blk.{i}.{name}.weight", raw, raw_dtype=dtype)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", norm)
    writer.add_tensor("output_norm.weight", norm)
    writer.add_tensor("output.weight", table, raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return layers * sum(raw.nbytes for raw in parts.values()) + table.nbytes


def launches_of(flow: fc.Flow) -> int:
    """Return how many kernels a flow has launched."""
    return sum(each.launches for each in flow.metrics.values())


def device_seconds(step: Callable[[], object]) -> float:
    """Return the seconds of all launches of a step on the device, each of which is waited for."""
    launch, spent = LocalLauncher.launch, list[float]()

    def one_by_one(bound: BoundLaunches, *given: Any) -> None:
        for one in bound.launches:
            one.again(*given)

    def timed(launcher: LocalLauncher, *arguments: Any, **options: Any) -> Callable[[], float] | None:
        seconds = launch(launcher, *arguments, **options | {"timed": True, "deferred": False})
        if seconds is not None:
            spent.append(seconds())
        return seconds

    with mock.patch.object(LocalLauncher, "launch", timed), mock.patch.object(BoundLaunches, "again", one_by_one):
        step()
    return sum(spent)


def seconds_a_token(path: Path, device: str, count: int) -> tuple[list[float], int, float, int]:
    """Return the seconds of each of `count` tokens after warming up.

    Behind them stand the launches of a token, the seconds of these on the device, and the kernels of the plan.
    """
    model = fc.models.load(str(path))
    feed = fc.feed(dtype="int32")
    seconds = []
    with fc.argmax(model.logits(feed), axis=1).flow(device=device, memory="32GiB") as flow:

        def step(batch: list[int]) -> int:
            flow.send(np.asarray(batch, np.int32))
            return int(flow.receive()[-1])

        token = step(PROMPT)
        for _ in range(8):
            token = step([token])
        launched = launches_of(flow)
        for _ in range(count):
            began = time.perf_counter()
            token = step([token])
            seconds.append(time.perf_counter() - began)
        launches = (launches_of(flow) - launched) // count
        on_device = statistics.median(device_seconds(lambda: step([token])) for _ in range(5))
        return seconds, launches, on_device, len(flow.plan.kernels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--kinds", nargs="+", choices=("Q8_0", "Q4_0"), default=["Q8_0", "Q4_0"])
    parser.add_argument("--layers", type=int, help="in place of the shape's own")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--copy", type=float, help="GB/s of the device's own copy, from benchmarks.device.vectors")
    options = parser.parse_args()
    for name in options.shapes:
        shape = SHAPES[name] | ({"layers": options.layers} if options.layers else {})
        for kind in options.kinds:
            with tempfile.TemporaryDirectory() as folder:
                size = write(Path(folder) / "model.gguf", shape, kind)
                seconds, launches, on_device, kernels = seconds_a_token(
                    Path(folder) / "model.gguf", options.device, options.tokens
                )
            middle, low, high = statistics.median(seconds), min(seconds), max(seconds)
            rate = size / middle / 1e9
            share = f", {rate / options.copy:.2f} of the copy" if options.copy else ""
            print(
                f"{name} {kind}, {shape['layers']} layers, {size / 1e6:.0f} MB: {middle * 1e3:.2f} ms a token "
                f"({low * 1e3:.2f} to {high * 1e3:.2f}), {launches} launches, {middle / launches * 1e6:.1f} us each, "
                f"{rate:.0f} GB/s{share}; {on_device * 1e3:.2f} ms on the device, beside which each of {kernels} "
                f"kernels costs {(middle - on_device) / kernels * 1e6:.1f} us"
            )


if __name__ == "__main__":
    main()
