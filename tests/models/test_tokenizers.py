"""Tokenizers of SentencePiece vocabularies, against the package sentencepiece."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

import flowcompute as fc
from flowcompute.tokens.tokenizer import BYTE, CONTROL, SPACE, UNKNOWN, TextTokenizer

ROOT = Path(__file__).parents[2]
CORPUS = (ROOT / "README.md").read_text() + (ROOT / "docs" / "models.md").read_text()
AWKWARD = [
    "Hello world",
    "  two leading",
    "a",
    "",
    "naïve café",
    "🙂👩\u200d👩",
    "tab\there\n\nnew  lines ",
    SPACE,
    "x=1;y==2",
]


@pytest.fixture(scope="module", params=[True, False], ids=["prefix", "no prefix"])
def pieces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "corpus.txt").write_text(CORPUS)
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"),
        model_prefix=str(folder / "made"),
        vocab_size=900,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=request.param,
        character_coverage=0.99,
        minloglevel=2,
    )
    return request.param, sentencepiece.SentencePieceProcessor(model_file=str(folder / "made.model"))


def metadata_of(pieces: Any, prefix: bool) -> dict[str, Any]:
    count = range(pieces.vocab_size())
    kinds = [
        UNKNOWN if pieces.is_unknown(i) else CONTROL if pieces.is_control(i) else BYTE if pieces.is_byte(i) else 1
        for i in count
    ]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in count],
        "tokenizer.ggml.scores": [pieces.get_score(i) for i in count],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": prefix,
    }


def test_tokens_are_those_of_sentencepiece(pieces: Any) -> None:
    prefix, processor = pieces
    tokenizer = TextTokenizer(metadata_of(processor, prefix), "model.gguf")
    draw, words = random.Random(0), CORPUS.split(" ")
    texts = [*AWKWARD, *(" ".join(draw.sample(words, 8)) for _ in range(100))]
    texts += ["".join(draw.choice("abc \N{GREEK SMALL LETTER THETA}.\n") for _ in range(20)) for _ in range(100)]
    for text in texts:
        tokens = processor.encode(text)
        assert tokenizer.encode(text) == [1, *tokens]
        assert tokenizer.decode([1, *tokens]) == processor.decode(tokens)


def test_a_text_that_goes_on_keeps_its_first_space(pieces: Any) -> None:
    prefix, processor = pieces
    tokenizer = TextTokenizer(metadata_of(processor, prefix), "model.gguf")
    text = " a list of the files, and what they are "
    tokens = tokenizer.encode(text)
    for cut in range(2, len(tokens)):
        assert tokenizer.decode(tokens[:cut]) + tokenizer.decode(tokens[cut:], continued=True) == text


def test_pieces_without_scores_are_refused(pieces: Any) -> None:
    metadata = metadata_of(pieces[1], prefix=True) | {"tokenizer.ggml.scores": [0.0]}
    with pytest.raises(fc.SourceError, match="a number for each token"):
        TextTokenizer(metadata, "model.gguf")


@pytest.mark.parametrize(
    "damage",
    [
        {"tokenizer.ggml.model": "of tomorrow"},
        {"tokenizer.ggml.model": None},
        {"tokenizer.ggml.tokens": []},
        {"tokenizer.ggml.tokens": "abc"},
        {"tokenizer.ggml.tokens": [1, 2]},
        {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": ["never there"]},
        {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": ["alone"]},
        {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": ["a b c"]},
        {"tokenizer.ggml.model": ["gpt2"]},
        {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": ["default"]},
        {"tokenizer.ggml.token_type": 1},
        {"tokenizer.ggml.token_type": np.ones(3, np.int32)},
        {"tokenizer.ggml.token_type": [np.arange(2), np.arange(3)]},
        {"tokenizer.ggml.scores": True},
        {"tokenizer.ggml.add_bos_token": np.array([True, True])},
        {"tokenizer.ggml.add_space_prefix": np.arange(2)},
    ],
)
def test_damaged_vocabularies_are_refused(pieces: Any, damage: dict[str, Any]) -> None:
    with pytest.raises(fc.SourceError):
        TextTokenizer(metadata_of(pieces[1], prefix=True) | damage, "model.gguf")


@pytest.mark.parametrize("merge", ["ab", "a z", "z b", "b a", "a b b", " ab", "ab ab", "a " + "b" * 99])
def test_a_merge_of_what_is_no_token_is_named(merge: str) -> None:
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": ["a", "b", "ab"],
        "tokenizer.ggml.merges": ["a b", merge],
    }
    with pytest.raises(fc.SourceError, match="cannot use a merge") as refused:
        TextTokenizer(metadata, "model.gguf")
    assert refused.value.got == repr(merge[:80])


@pytest.mark.parametrize("scores", ["a", np.nan, np.arange(2)])
def test_scores_that_are_no_numbers_are_refused(pieces: Any, scores: Any) -> None:
    metadata = metadata_of(pieces[1], prefix=True)
    metadata["tokenizer.ggml.scores"] = [scores] * len(metadata["tokenizer.ggml.tokens"])
    with pytest.raises(fc.SourceError, match="a number for each token"):
        TextTokenizer(metadata, "model.gguf")


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_tokens_that_are_no_utf8_are_refused(pieces: Any, model: str) -> None:
    metadata = metadata_of(pieces[1], prefix=True) | {"tokenizer.ggml.model": model}
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"][:-1], "\udcff"]
    with pytest.raises(fc.SourceError, match="UTF-8"):
        TextTokenizer(metadata, "model.gguf")


def test_a_piece_as_long_as_a_book_is_refused(pieces: Any) -> None:
    metadata = metadata_of(pieces[1], prefix=True)
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"][:-1], "a" * 1_000_000]
    with pytest.raises(fc.SourceError, match="at most 512 characters"):
        TextTokenizer(metadata, "model.gguf")
