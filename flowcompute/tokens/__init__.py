"""Texts as tokens: tokenizers of GGUF files, texts of files and iterables, and the stream of their tokens."""

from flowcompute.tokens.given_texts import texts, tokens_of
from flowcompute.tokens.text_file import TextFile
from flowcompute.tokens.text_reading import IteratedTexts
from flowcompute.tokens.token_source import FileTokens, IteratedTokens
from flowcompute.tokens.tokenizer import MOST_TOKENS, TextTokenizer

__all__ = [
    "MOST_TOKENS",
    "FileTokens",
    "IteratedTexts",
    "IteratedTokens",
    "TextFile",
    "TextTokenizer",
    "texts",
    "tokens_of",
]
