"""Tokens by each way in which texts are cut into words: those of llama.cpp.

`word_cuts.json` has merges, and the tokens of `GOLDEN` by each name. The test with the marker `peer` asks llama.cpp for
these and more; `python -m tests.models.test_word_cuts` writes the file so.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import flowcompute as fc
from flowcompute.tokens.word_cuts import WORDS
from tests.models.files import LETTERS, write_model
from tests.models.test_against_llama_cpp import asked_of, peer_of

KEPT = Path(__file__).with_suffix("").with_name("word_cuts.json")

WORD = "Zebra"
GOLDEN = (
    WORD + " it's we'LL THEY'RE don't 'S\n",
    "1234567 12 3,456.78 0x1F \u00b2\u00b3 \u0661\u0662\u0663\r\n\r\n  \r x",
    "na\u00efve \u00c9COLE \u00c9cole \u00e9Cole fooBar HTTPServer",
    "\u65e5\u672c\u8a9e \u4e2d\u6587\u3002\ud55c\uad6d \u0915\u093e\u0930\u094d\u092f \u0e44\u0e17\u0e22 e\u0301a\u0308b",
    "a+b==c; x[1]=`y`~z | $5 <tag> path//\n/ !?\u2026. \u2028s\u3000w",
    "   \t \n  a\t\tb   ",
)
MORE = (
    *("Hello world", " Hello  World\n\n new\tline  ", "1234567890 12 ", "  ", " ", "\n", "", "end   ", "\ta\tb"),
    *("\U0001f642\U0001f469\u200d\U0001f469 ok", "_under_score __init__", "\u00abquoted\u00bb \u2013 dash\u2014dash"),
    *("x\n\n\ny \n z", "Ab'cD 'll'LL", "A1B2c3D4 1a2b", "\u00b5m \u212b \u2103 \u2163 \u01c5 \u02b0 \u0561\u10d0"),
    *("\u0430\u0431\u0432 \u0410\u0411\u0412 \u0391\u03b2\u03b3", "don\u2019t", "1,000,000.00", "\u00a0nbsp"),
    *("    def f(x):\n        return x**2  # ok", "IMGIMGABZ <sentinel:1>", "\U0001f44d\U0001f3fd 5\ufe0f\u20e3"),
)


def texts() -> list[str]:
    """All texts, and random ones of their words."""
    draw, known = random.Random(0), [*GOLDEN, *MORE]
    words = [*sorted({word for one in known for word in one.split(" ")}), " ", "  ", "\r\n", "'s", " 12", "345", "//\n"]
    return [*known, *("".join(draw.choice(words) + draw.choice(["", " ", ""]) for _ in range(6)) for _ in range(150))]


def learned_merges() -> list[str]:
    """Return merges of what stands side by side most often, whatever it is, so that tokens tell where words end.

    None of them makes the word that is a token of its own.
    """
    said = [[LETTERS[byte] for byte in part.encode()] for one in texts() for part in one.split(WORD)]
    made: list[str] = []
    while True:
        pairs = Counter(pair for one in said for pair in zip(one, one[1:], strict=False))
        ((pair, count),) = pairs.most_common(1)
        if count < 2:
            return made
        made.append(" ".join(pair))
        said = [list(_joined(one, pair)) for one in said]


def _joined(said: Sequence[str], pair: tuple[str, str]) -> Iterator[str]:
    i = 0
    while i < len(said):
        step = 2 if tuple(said[i : i + 2]) == pair else 1
        yield "".join(said[i : i + step])
        i += step


def kept() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(KEPT.read_text())
    return made


def model_of(folder: Path, name: str) -> Path:
    """Write a model that says neither how texts begin, nor how one of its words is made of others."""
    return write_model(
        folder / "model.gguf",
        block_count=1,
        kind="F32",
        pre=name,
        merges=kept()["merges"],
        words=[WORD],
        begins=None,
    )


def test_all_names_are_tested_and_told() -> None:
    assert kept()["tokens"].keys() == WORDS.keys()
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    assert [name for name in WORDS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", WORDS)
def test_tokens_are_those_that_llama_cpp_gave(tmp_path: Path, name: str) -> None:
    tokenizer = fc.models.load(model_of(tmp_path, name)).tokenizer
    by_name = kept()["tokens"]
    # Names whose texts have the same tokens are kept once.
    expected = by_name[name] if isinstance(by_name[name], list) else by_name[by_name[name]]
    for text, tokens in zip(GOLDEN, expected, strict=True):
        assert tokenizer.encode(text) == tokens
        assert tokenizer.decode(tokens) == text


def peer_tokens(folder: Path, name: str, asked: Sequence[str]) -> list[list[int]]:
    """Return the tokens of llama.cpp."""
    server = peer_of(model_of(folder, name))
    options = {"add_special": True, "parse_special": True}
    return [asked_of(server, "tokenize", content=text, **options)["tokens"] for text in asked]


@pytest.mark.peer
@pytest.mark.parametrize("name", WORDS)
def test_tokens_are_those_of_llama_cpp(tmp_path: Path, name: str) -> None:
    tokenizer = fc.models.load(model_of(tmp_path, name)).tokenizer
    assert [tokenizer.encode(text) for text in texts()] == peer_tokens(tmp_path, name, texts())


def main() -> None:
    """Write `word_cuts.json` by llama.cpp."""
    merges, made = learned_merges(), dict[str, object]()
    _write(merges, made)
    for name in WORDS:
        with tempfile.TemporaryDirectory() as folder:
            tokens = peer_tokens(Path(folder), name, GOLDEN)
        made[name] = next((other for other, own in made.items() if own == tokens), tokens)
    _write(merges, made)


def _write(merges: Sequence[str], tokens: Mapping[str, object]) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(own, separators=(',', ':'))}" for name, own in tokens.items())
    KEPT.write_text(f'{{"merges": {json.dumps(merges)},\n"tokens": {{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    sys.exit(main())
