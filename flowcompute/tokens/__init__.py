"""Texts as tokens: tokenizers of GGUF files."""

from flowcompute.tokens.tokenizer import MOST_TOKENS, TextTokenizer

__all__ = ["MOST_TOKENS", "TextTokenizer"]
