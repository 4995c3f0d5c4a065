"""Texts of answers and prompts of chats of models whose texts begin with a token, and with a space of their own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.models.answer import GenerationState
from flowcompute.models.sampling import Sampling
from flowcompute.tokens.tokenizer import TextTokenizer
from tests.models.files import PIECES, SPACE, write_model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "pieces.gguf", pieces=True, block_count=1)


@pytest.fixture
def model(path: Path) -> fc.models.Model:
    return fc.models.load(path)


def written(path: Path, answer: list[int]) -> tuple[list[str], Any]:
    """Return the pieces of an answer that is known, and the answer."""
    scores = np.eye(len(PIECES), dtype=np.float32)[[*answer, 0]]

    def graph(_weights: Any, _metadata: Any, tokens: Any, text: Any = None) -> Any:
        return fc.take(fc.constant(scores), fc.nn.position(tokens, text=text), axis=0)

    with fc.models.load(path, graph=graph).generate([5], len(answer), device="numpy") as said:
        pieces = list(said)
    assert said.tokens == answer
    return pieces, said


def test_an_answer_goes_on_where_its_prompt_ends(path: Path, model: fc.models.Model) -> None:
    prompt, texts = "the sing", (" a list", "a list", "  a")
    for text in texts:
        begun = model.tokenizer.encode(prompt)
        every = [*begun, *(PIECES.index(one) for one in text.replace(" ", SPACE))]
        pieces, said = written(path, every[len(begun) :])
        assert "".join(pieces) == said.text == text
        assert model.tokenizer.decode(every) == prompt + text


@pytest.mark.parametrize("text", ["🙂🙂", "a🙂é🙂 é", "éé", "\x03é"])
def test_characters_of_bytes_are_told_once(path: Path, text: str) -> None:
    answer = [PIECES.index(f"<0x{byte:02X}>") for byte in text.encode()]
    pieces, said = written(path, answer)
    assert pieces == list(text)
    assert said.text == text


def test_pieces_of_any_tokens_are_the_text(path: Path) -> None:
    draw = random.Random(0)
    for _ in range(20):
        pieces, said = written(path, [draw.randrange(3, len(PIECES)) for _ in range(30)])
        assert "".join(pieces) == said.text


def test_a_chat_begins_once(model: fc.models.Model) -> None:
    prompt = model.chat([{"role": "user", "content": "the sing"}])
    assert prompt == "[user] the sing</s>[assistant]"
    assert model.tokenizer.encode(prompt).count(model.tokenizer.begin or 0) == 1


@pytest.mark.parametrize("prompt", [None, b"the", [1.0, 2.0], [True], {1: 2}, 5, ["the"], [-1]])
def test_prompts_that_are_no_tokens_are_refused(model: fc.models.Model, prompt: Any) -> None:
    with pytest.raises(fc.SpecError, match=r"prompt(.|\n)*test_answers\.py"):
        model.generate(prompt)


@pytest.mark.parametrize(
    "options", [{"top_k": -1}, {"top_p": 0}, {"seed": 1.5}, {"stop": ""}, {"stop": ["a", ""]}, {"max_tokens": 0}]
)
def test_options_that_make_no_sense_are_refused_where_they_are_given(model: fc.models.Model, options: Any) -> None:
    for verb in (model.generate, model.conversations(2).begin):
        if verb == model.generate or "seed" in options or "stop" in options:
            with pytest.raises(fc.SpecError, match=r"made at +\S*test_answers\.py"):
                verb("the", **options)


def test_an_empty_prompt_is_refused() -> None:
    metadata = {"model": "gpt2", "tokens": ["a", "b", "ab"], "merges": ["a b"]}
    tokenizer = TextTokenizer({f"tokenizer.ggml.{name}": own for name, own in metadata.items()}, "model.gguf")
    with pytest.raises(fc.SpecError, match=r"at least one token(.|\n)*begin with some text"):
        GenerationState.begin(tokenizer, "model.gguf", "", 5, Sampling(), 8, None, marked=False)


def test_numbers_of_numpy_are_numbers(model: fc.models.Model) -> None:
    def written(*args: Any, **options: Any) -> list[int]:
        with model.generate(*args, **options, device="numpy") as said:
            list(said)
        return said.tokens

    drawn = written([5, 6], 3, temperature=0.5, top_k=4, seed=3)
    options = {"temperature": np.float32(0.5), "top_k": np.int32(4), "seed": np.uint64(3)}
    assert written(np.array([5, 6]), np.int64(3), **options) == drawn


@pytest.mark.parametrize("messages", ["Hello", ["Hello"], {"role": "user", "content": "Hello"}, None])
def test_chats_of_no_messages_are_refused(model: fc.models.Model, messages: Any) -> None:
    with pytest.raises(fc.SpecError, match=r"chat(.|\n)*message"):
        model.chat(messages)


@pytest.mark.parametrize("limits", [{"slots": 0}, {"slots": 1.0}, {"context": 0}, {"context": -5}, {"context": "a"}])
def test_limits_that_make_no_sense_are_refused(path: Path, limits: Any) -> None:
    pairs: Any = fc.source(np.zeros((3, 2), np.int32))
    own = fc.models.load(path, graph=lambda _weights, _metadata, tokens, _text, **_limits: tokens)
    (name,) = limits
    for model in (fc.models.load(path), own):
        with pytest.raises(fc.SpecError, match=f"cannot take {name}="):
            model.logits(pairs, **limits)
