"""Expressions that cut texts into words, before their bytes are joined to tokens, by the name that a file gives them.

They are those of llama.cpp (`src/llama-vocab.cpp`), which chooses them by `tokenizer.ggml.pre`. Those of `tekken` and
`gpt-4o` take a letter beyond ASCII as a small one and as a capital, as there. The vocabularies were made by
expressions that tell these apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class WordCuts(NamedTuple):
    """Rules by which texts are cut into words.

    Attributes:
        expressions: each is matched in the pieces that those before it leave; what it matches is a piece of its own.
        keeps_words: whether a word that is a token is not made of others.
        begins: whether a text begins with a token where the file does not say.
    """

    expressions: tuple[str, ...]
    keeps_words: bool = False
    begins: bool = False


_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LONG_SPACES = "|".join(rf"\s{{{count}}}(?!\S)" for count in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
_EAST_ASIAN = r"[\x{800}-\x{9fa5}\x{ac00}-\x{d7ff}&&\S]+"
_CHINESE = r"[\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+"
_PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
_SENTENCES = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+"
_CASED = (
    r"[[\p{Lu}\p{Ll}\p{Lt}]&&[^\x{560}-\x{588}\x{10c7}-\x{10ff}\x{1c80}-\x{1c8f}\x{2d00}-\x{2d2d}\x{a790}-\x{a7fa}"
    r"\x{ab30}-\x{ab68}\x{10570}-\x{105bf}\x{10d40}-\x{10d9f}\x{16e40}-\x{1dfff}]]+"
)
"""Letters of alphabets with capitals, but for those that were no part of Unicode when DeepSeek listed them."""


def _by_letters(
    numbers: str,
    letters: str = r"[^\r\n\p{L}\p{N}]?\p{L}+",
    symbols: str = rf"{_SYMBOLS}[\r\n]*",
    spaces: str = _SPACES,
) -> str:
    return f"{_CONTRACTION}|{letters}|{numbers}|{symbols}|{spaces}"


def _by_capitals(numbers: str, contraction: str) -> str:
    """Return an expression that begins a word at a capital behind a small letter, too."""
    capital, small = r"(?:(?=\p{L})[^a-z])", r"(?:(?=\p{L})[^A-Z])"
    letters = rf"[^\r\n\p{{L}}\p{{N}}]?(?:{capital}*{small}+|{capital}+{small}*){contraction}"
    return rf"{letters}|{numbers}|{_SYMBOLS}[\r\n/]*|{_SPACES}"


_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+|{_SYMBOLS}|\s+(?!\S)|\s+"
_LLAMA3 = _by_letters(r"\p{N}{1,3}")
_QWEN2 = _by_letters(r"\p{N}")
_QWEN35 = _by_letters(r"\p{N}", r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*")
_DEEPSEEK3 = (
    rf"{_PUNCTUATION}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_EXAONE = _by_letters(
    r"\p{N}",
    r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
    rf"{_SYMBOLS}[\r\n/]?",
    r"\s*[\r\n]|\s+(?!\S)|\s+",
)

_NAMES: Mapping[WordCuts, str] = {
    WordCuts((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9]{3}")): "default",
    WordCuts((_GPT2,)): "gpt-2 phi-2 mpt olmo jais gigachat a.x-4.0 mellum exaone4 trillion granite-docling",
    WordCuts((r"\p{N}", _GPT2)): "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
    WordCuts((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9]{3}")): "falcon",
    WordCuts((_LLAMA3,)): "dbrx smaug-bpe chatglm-bpe",
    WordCuts((_LLAMA3,), keeps_words=True): "glm4",
    WordCuts((_LLAMA3,), keeps_words=True, begins=True): (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2"
    ),
    WordCuts((r"\p{N}{1,3}", _by_letters(r"\p{N}+")), keeps_words=True): "minicpm5",
    WordCuts((_by_letters(r"\p{N}{1,3}", spaces=rf"\s*[\r\n]+|{_LONG_SPACES}|\s"),)): "jais-2",
    WordCuts((_QWEN2,)): (
        "qwen2 deepseek-r1-qwen stablelm2 hunyuan kormo megrez bailingmoe bailingmoe2 llada-moe grok-2 solar-open"
    ),
    WordCuts((_QWEN35,)): "qwen35",
    WordCuts((r"[^\n]+|\n+", _QWEN2)): "laguna",
    WordCuts((_by_letters(r"\p{N}", symbols=r" ?[^\s\p{L}\p{N}\r\n]+"),)): "seed-coder",
    WordCuts((_EXAONE,)): "exaone-moe",
    WordCuts((_by_capitals(r"\p{N}", ""),), keeps_words=True, begins=True): "tekken",
    WordCuts((_by_capitals(r"\p{N}{1,3}", f"{_CONTRACTION}?"),)): "gpt-4o llama4 kanana2 talkie minimax-m2",
    WordCuts(
        (
            r"[\r\n]",
            rf"\s?{_CASED}",
            r"\s?[[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]&&\S]+",
            r"\s+$",
            _EAST_ASIAN,
            r"\p{N}+",
        )
    ): "deepseek-llm",
    WordCuts((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}")): "deepseek-coder",
    WordCuts((r"\p{N}{1,3}", _CHINESE, _DEEPSEEK3)): "deepseek-v3 hunyuan-dense joyai-llm",
    WordCuts((_SENTENCES,)): "bloom poro-chat gpt3-finnish",
    WordCuts((_SENTENCES, r"\p{N}")): "viking",
    WordCuts((r"\p{N}+", r"\d{1,3}(?=(?:\d{3})*(?!\d))")): "superbpe",
    WordCuts(
        (
            "<sentinel:[0-9]+>",
            "IMGIMG[A-I]{1,4}Z",
            r"[\t\n]|    |  ",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
        begins=True,
    ): "chameleon",
}

WORDS: Mapping[str, WordCuts] = {name: cuts for cuts, names in _NAMES.items() for name in names.split()}
"""Rules of cutting texts into words, by `tokenizer.ggml.pre`."""
