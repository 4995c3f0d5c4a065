"""From what a user gives to texts that are read one after the other, and to the stream of their tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from flowcompute.elements import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.model_files import WeightFile
from flowcompute.strategy import Size, parse_bytes
from flowcompute.tokens.text_file import TextFile
from flowcompute.tokens.text_reading import LONGEST_BYTES, IteratedTexts, Texts
from flowcompute.tokens.token_source import Encoder, FileTokens, IteratedTokens, TokenSource


def tokens_of(texts: Iterable[str], tokenizer: Encoder, file: WeightFile) -> TokenSource:
    """Return the stream of the tokens of texts, which are read while it is.

    Args:
        texts: those of `fc.models.texts`, or an iterable.
        tokenizer: cuts them.
        file: the model that the tokenizer is of.
    """
    if isinstance(texts, TextFile):
        return FileTokens(texts, tokenizer, file, name="tokens")
    iterated = texts if isinstance(texts, IteratedTexts) else IteratedTexts(texts)
    return IteratedTokens(iterated, tokenizer, file, name="tokens")


def texts(source: Any, key: str | None = None, *, longest: Size = LONGEST_BYTES) -> Texts:
    r"""Return texts that are read while their tokens are, for `model.tokens`. `texts.count()` is their number.

    Args:
        source: a file in UTF-8 with a text a line, or an object of JSON a line (.jsonl). "\n" or "\r\n" end a line,
            and an empty line is an empty text. A path or a URL, as for `fc.open`. Or an iterable of texts; one that
            begins anew each time can be resumed.
        key: name of the entry that is the text, of JSON.
        longest: bytes of a line at most; a longer one is refused. The plan counts 288 bytes of memory for each.

    Raises:
        SourceError: if the file cannot be read.
        SpecError: if these are no texts, or an argument makes no sense.
    """
    most = parse_bytes(longest, "longest")
    if isinstance(source, str | os.PathLike):
        return TextFile(source, key, most)
    if key is not None or isinstance(source, bytes) or not isinstance(source, Iterable):
        raise SpecError(
            "cannot take these texts",
            element="texts",
            site=user_site(),
            expected="the path of a file, or an iterable of texts without key=",
            got=short_repr(source) if key is None else f"{short_repr(source)}, key={short_repr(key)}",
        )
    return IteratedTexts(source, most)
