"""Each architecture against its formulas in float64, on small files; and files that say what no model can be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.models.architecture_files import METADATA, VOCABULARY, write_architecture
from tests.models.exact import exact_logits
from tests.support.slow import compiled_but

FACTORS = {name: (1 + np.arange(8) / k).astype(np.float32) for name, k in (("long", 3), ("short", 5))}
LONG_ROPE = {
    "tensors": {f"rope_factors_{name}.weight": own for name, own in FACTORS.items()},
    "metadata": {"context_length": 256, "rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.19},
}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32}

THREE = {"block_count": 3, "attention.sliding_window_pattern": 2}

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"tensors": {"rope_freqs.weight": FACTORS["long"]}}),
    ("qwen2", {"metadata": YARN}),
    ("qwen2", {"metadata": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}}),
    ("phi3", LONG_ROPE),
    ("phi3", {**LONG_ROPE, "metadata": {**LONG_ROPE["metadata"], "rope.scaling.original_context_length": 256}}),
    ("phi3", {"metadata": {"rope.dimension_count": 12}}),
    ("gemma3", {"metadata": {**THREE, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}}),
    ("gemma3", {"metadata": {**THREE, "rope.freq_base_swa": 500.0, "final_logit_softcapping": None}}),
    ("gemma3", {"metadata": {**THREE, "attention.sliding_window_pattern": [True, False, True]}}),
    ("gemma3", {"metadata": {**THREE, "attention.sliding_window": None}}),
]
"""What files may say beside what those of `METADATA` do. llama.cpp knows all of it."""

OWN_VARIANTS: list[tuple[str, dict[str, Any]]] = [
    # llama.cpp leaves the window of this architecture out.
    ("phi3", {"metadata": {"attention.sliding_window": 8}}),
    # It leaves this key out, too.
    ("qwen2moe", {"metadata": {"expert_weights_norm": True}}),
    ("qwen3moe", {"metadata": {"expert_weights_norm": False}}),
]
"""What llama.cpp computes in another way."""

TOKENS = [int(one) for one in np.random.default_rng(1).integers(3, len(VOCABULARY), 40)]


def stream(tokens: list[int]) -> Any:
    return fc.source(np.asarray(tokens, np.int32))


def scores(path: Path, device: str, **options: Any) -> np.ndarray:
    logits = fc.models.load(path).logits(stream(TOKENS))
    made: np.ndarray = logits.resolve(device=device, progress=False, **options)
    return made


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in METADATA), *VARIANTS, *OWN_VARIANTS])
def test_scores_are_those_of_the_formulas(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    path = write_architecture(tmp_path / "model.gguf", name, **options)
    exact = exact_logits(path, TOKENS)
    assert np.abs(exact).max() > 3
    np.testing.assert_allclose(scores(path, "numpy"), exact, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", compiled_but(["mamba"], ["gemma3", "phi3", "qwen2moe", "mamba"]))
def test_a_device_computes_the_same(tmp_path: Path, name: str) -> None:
    """These have the operations of all; `test_models.py` runs llama. No bit depends on the batch."""
    metadata = {"block_count": 2, "attention.sliding_window_pattern": 2} if name == "gemma3" else {}
    path = write_architecture(tmp_path / "model.gguf", name, kind="Q8_0", metadata=metadata)
    whole, cut = (scores(path, "cpu", strategy=fc.Strategy(batch_bytes=size)) for size in (1 << 24, 1 << 14))
    np.testing.assert_allclose(whole, exact_logits(path, TOKENS), atol=2e-4)
    assert whole.tobytes() == cut.tobytes()


@pytest.mark.parametrize("name", ["gemma3", "phi3", "mamba"])
def test_neither_batches_nor_other_texts_change_a_text(tmp_path: Path, name: str) -> None:
    """Windows of 8 tokens, convolutions and states begin anew with each text."""
    metadata = {"attention.sliding_window": 8, **(THREE if name == "gemma3" else {})}
    path = write_architecture(tmp_path / "model.gguf", name, metadata=metadata)
    texts = [TOKENS[:1], TOKENS[1:20], TOKENS[20:]]
    pairs = np.array([(token, number) for number, text in enumerate(texts) for token in text], np.int32)
    logits = fc.models.load(path).logits(fc.source(pairs))
    every = [
        logits.resolve(device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=size))
        for size in (1 << 20, 1 << 12)
    ]
    assert every[0].tobytes() == every[1].tobytes()
    np.testing.assert_allclose(every[0], np.concatenate([exact_logits(path, text) for text in texts]), atol=2e-4)


@pytest.mark.parametrize("name", ["gemma3", "qwen2moe", "mamba"])
def test_token_by_token_gives_the_bits_of_all_at_once(tmp_path: Path, name: str) -> None:
    model = fc.models.load(
        write_architecture(tmp_path / "model.gguf", name, metadata=THREE if name == "gemma3" else {})
    )
    whole = model.logits(stream(TOKENS[:20])).resolve(device="numpy", progress=False)
    with model.logits(fc.feed(dtype="int32")).flow(device="numpy") as flow:
        parts = []
        for piece in np.split(np.asarray(TOKENS[:20], np.int32), [1, 2, 11]):
            flow.send(piece)
            parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", ["qwen2moe", "mamba"])
def test_the_likeliest_tokens_are_written(tmp_path: Path, name: str) -> None:
    path, known = write_architecture(tmp_path / "model.gguf", name), TOKENS[:3]
    with fc.models.load(path).generate(known, 6, device="numpy") as said:
        list(said)
    assert said.tokens
    for token in said.tokens:
        assert token == exact_logits(path, known)[-1].argmax()
        known = [*known, token]


# -- files that lie ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: write_architecture(folder / f"{name}.gguf", name) for name in METADATA}


def refusal(model: fc.models.Model) -> str:
    with pytest.raises(fc.SourceError) as caught:
        model.logits(stream([1, 2]))
    text = str(caught.value)
    assert model.path in text
    return text


@pytest.mark.parametrize("name", list(METADATA))
def test_a_tensor_that_is_missing_or_of_another_shape_is_named(paths: Mapping[str, Path], name: str) -> None:
    model = fc.models.load(paths[name])
    known = dict(model.weights)
    for tensor, made in known.items():
        optional = tensor == "output.weight" or (tensor.endswith(".bias") and "conv" not in tensor)
        if not optional:
            model.weights = {key: own for key, own in known.items() if key != tensor}  # type: ignore[assignment]
            text = refusal(model)
            assert f"tensor {tensor} is missing" in text
            assert "expected  float32 (" in text
        for wrong in (np.zeros((*made.shape[:-1], made.shape[-1] + 32), "f4"), np.zeros((3, *made.shape), "f4")):
            model.weights = {**known, tensor: fc.constant(wrong)}  # type: ignore[assignment]
            text = refusal(model)
            assert f"with this tensor {tensor}" in text
            assert str(wrong.shape).replace(" ", "") in text.replace(" ", "")
        if "blk.1" in tensor:
            break


KEYS = ["block_count", "context_length", "embedding_length", "attention.head_count"]
LIES: list[tuple[str, Any]] = [
    *((key, value) for key in KEYS for value in (None, 0, 1 << 40, -1, 2.5, "four", [4], True)),
    ("attention.layer_norm_rms_epsilon", None),
    ("attention.layer_norm_rms_epsilon", float("nan")),
    ("attention.layer_norm_rms_epsilon", -1.0),
    ("attention.head_count", 3),
    ("attention.head_count", 7),
    ("attention.head_count_kv", 0),
    ("attention.head_count_kv", 3),
    ("attention.head_count_kv", 8),
    ("attention.key_length", 0),
    ("attention.key_length", 512),
    ("attention.value_length", 8),
    ("rope.dimension_count", 0),
    ("rope.dimension_count", 128),
    ("rope.freq_base", 0.5),
    ("rope.freq_base", float("inf")),
    ("rope.freq_base", "high"),
    ("rope.scaling.type", "of-tomorrow"),
    ("rope.scaling.type", 5),
    ("rope.scaling.factor", -4.0),
    ("rope.scaling.yarn_log_multiplier", 0.1),
]
NOT_OF_MAMBA = ("attention.head", "attention.key", "attention.value", "rope.", "context_length")


@pytest.mark.parametrize("name", list(METADATA))
def test_metadata_that_no_model_can_have_is_named(paths: Mapping[str, Path], name: str) -> None:
    own: list[tuple[str, Any]] = [("feed_forward_length", 0)] if "feed_forward" not in str(METADATA[name]) else []
    if "expert_count" in METADATA[name]:
        own += [("expert_used_count", None), ("expert_used_count", 0), ("expert_used_count", 7)]
        own += [("expert_count", 1 << 40), ("expert_count", 2.5), ("expert_gating_func", 2)]
        own += [("expert_weights_scale", 2.5), ("expert_weights_norm", "yes")]
    own += {
        "gemma3": [
            ("attention.sliding_window", -1),
            ("attention.sliding_window_pattern", [True]),
            ("attention.sliding_window_pattern", 0),
            ("attention.sliding_window_pattern", [1] * 7),
            ("rope.freq_base_swa", 0.0),
            ("final_logit_softcapping", -1.0),
            ("attn_logit_softcapping", 50.0),
        ],
        "phi3": [("attention.sliding_window", 2.5), ("rope.scaling.original_context_length", 0)],
        "mamba": [
            *(
                (f"ssm.{key}", lie)
                for key in ("inner_size", "state_size", "time_step_rank")
                for lie in (None, 0, 1 << 40)
            ),
            ("ssm.conv_kernel", 1 << 20),
            ("ssm.dt_b_c_rms", True),
        ],
    }.get(name, [])
    model = fc.models.load(paths[name])
    known = dict(model.metadata)
    begin = f"{model.architecture}."
    for key, value in [*LIES, *own]:
        if name == "mamba" and key.startswith(NOT_OF_MAMBA):
            continue
        model.metadata = {one: said for one, said in known.items() if one != begin + key}
        if value is not None:
            model.metadata[begin + key] = value
        text = refusal(model)
        assert key in text, text
        assert "expected" in text


def test_operations_that_refuse_what_a_file_says_name_the_file(paths: Mapping[str, Path]) -> None:
    model = fc.models.load(paths["qwen2"])
    model.metadata = {**model.metadata, "qwen2.rope.dimension_count": 7}
    assert "rope: cannot make pairs of an odd number" in refusal(model)
