"""Tokens of language models one by one on discrete GPUs: few launches, and the bits of all tokens at once."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu import OpenCLBackend
from tests.gpu.shapes import gpu_shaped
from tests.models.architecture_files import VOCABULARY, write_architecture

TOKENS = np.random.default_rng(1).integers(3, len(VOCABULARY), 16).astype(np.int32)


@pytest.mark.parametrize(
    "name",
    [
        "llama",
        *(pytest.param(name, marks=pytest.mark.compiles) for name in ("gemma3", "qwen3", "phi3")),
    ],
)
def test_token_by_token_gives_the_bits_of_all_at_once(tmp_path: Path, name: str) -> None:
    model = fc.models.load(write_architecture(tmp_path / "model.gguf", name, kind="Q8_0"))
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        whole = model.logits(fc.source(TOKENS)).resolve(device="gpu", progress=False)
        with model.logits(fc.feed(dtype="int32")).flow(device="gpu") as flow:
            parts = []
            for piece in np.split(TOKENS, [1, 2, 3, 4, 12]):
                flow.send(piece)
                parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_a_layer_of_llama_takes_five_launches(tmp_path: Path) -> None:
    kernels = []
    for layers in (2, 3):
        path = write_architecture(tmp_path / "model.gguf", "llama", kind="Q8_0", metadata={"block_count": layers})
        with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
            plan = fc.plan(fc.models.load(path).logits(fc.feed(dtype="int32")), device="gpu")
        kernels.append([step.kernel for step in plan.steps if getattr(step, "kernel", None) is not None])
    few, more = kernels
    assert len(more) - len(few) == 5
    assert all(len(kernel.phases(1)) == 1 for kernel in more)
