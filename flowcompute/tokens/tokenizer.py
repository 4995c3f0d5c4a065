"""Tokenizers of GGUF files, made from the metadata that the file holds."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from itertools import compress, count
from typing import Any

import numpy as np

from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.tokens._tokenizers import Package
from flowcompute.tokens.word_cuts import WORDS

MOST_TOKENS = 1 << 24
"""Most tokens of a vocabulary."""

LONGEST_PIECE = 512
"""Most characters of a piece of SentencePiece, ten times those of the longest ones known."""

UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6
"""Kinds of tokens in `tokenizer.ggml.token_type`."""

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""Character for a space in vocabularies of SentencePiece."""

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
"""A piece of SentencePiece that is a byte."""


class TextTokenizer:
    """Turns texts into numbers of tokens, and back.

    Args:
        metadata: of a GGUF file.
        path: of the file, for errors.

    Attributes:
        begin: the token that a text begins with; None for none.
        ends: tokens that end an answer.
        special: pieces of control tokens, such as those of chats.
        named: pieces by the names that templates of chats know them by, such as "bos_token".

    Raises:
        SourceError: if the file has no tokenizer, or one of a kind that is not known.
    """

    def __init__(self, metadata: Mapping[str, Any], path: str) -> None:
        self._path = path
        self._package = Package()
        self._tokens = self._texts(metadata, "tokens")
        kind = metadata.get("tokenizer.ggml.model")
        makers = {"gpt2": self._byte_pairs, "llama": self._sentence_pieces}
        if not isinstance(kind, str) or kind not in makers:
            known = ", ".join(sorted(makers))
            raise self._refusal(
                "cannot make a tokenizer of this kind", f"tokenizer.ggml.model: {known}", short_repr(kind)
            )
        self._said: dict[int, bytes] = {}
        self._is_spaced = False
        self._has_pieces = self._begins = kind == "llama"
        self._kinds: list[int] = self._numbers(metadata, "token_type") or [1] * len(self._tokens)
        self._made = makers[kind](metadata)
        kinds = map((CONTROL, USER_DEFINED).__contains__, self._kinds)
        special = list(compress(self._tokens, kinds))
        self.special = frozenset(special)
        self._made.add_tokens([self._package.base.AddedToken(one, special=True, normalized=False) for one in special])
        self.begin = self._token(metadata, "bos") if self._flag(metadata, "add_bos_token", self._begins) else None
        by_name = {name: self._token(metadata, key) for name, key in _NAMED.items()}
        self.named = {name: self._tokens[token] for name, token in by_name.items() if token is not None}
        found = (self._token(metadata, name) for name in ("eos", "eot", "eom"))
        # Chats end by tokens that files do not always name.
        found_by_name = compress(count(), map((_ENDS & self.special).__contains__, self._tokens))
        self.ends = frozenset(one for one in (*found, *found_by_name) if one is not None)

    def __len__(self) -> int:
        return len(self._tokens)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Control tokens in it are taken as such.

        Raises:
            SpecError: if it is no text, or one that UTF-8 cannot say.
        """
        if not isinstance(text, str):
            raise SpecError("cannot turn this into tokens", expected="a text", got=type(text).__name__)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            got = f"{text[error.start]!r} at character {error.start}"
            raise SpecError("cannot turn this into tokens", expected="a text that UTF-8 can say", got=got) from None
        ids: list[int] = self._made.encode(text, add_special_tokens=False).ids
        return ids if self.begin is None else [self.begin, *ids]

    def decode(self, tokens: Sequence[int], *, continued: bool = False) -> str:
        """Return the text of tokens, control tokens included.

        Args:
            tokens: numbers.
            continued: whether they go on with a text. Then a first space and a token that texts begin with are theirs.

        Raises:
            SpecError: if a number is not that of a token.
        """
        ids = [int(one) for one in tokens]
        if ids and not 0 <= min(ids) <= max(ids) < len(self._tokens):
            wrong = next(one for one in ids if not 0 <= one < len(self._tokens))
            raise SpecError("cannot decode this token", expected=f"0 to {len(self._tokens) - 1}", got=str(wrong))
        if not continued and ids and ids[0] == self.begin:
            ids = ids[1:]
        if not self._has_pieces:
            text: str = self._made.decode(ids, skip_special_tokens=False)
            return text
        text = b"".join(map(self._bytes_of, ids)).decode(errors="replace")
        return text[1:] if self._is_spaced and not continued and text.startswith(" ") else text

    def _bytes_of(self, token: int) -> bytes:
        """Return what a piece of SentencePiece says.

        The package decodes all neighbouring bytes or none of them, so another byte would take back characters.
        """
        said = self._said.get(token)
        if said is None:
            piece = self._tokens[token]
            byte = _BYTE.fullmatch(piece)
            said = self._said[token] = bytes([int(byte[1], 16)]) if byte else piece.replace(SPACE, " ").encode()
        return said

    def piece(self, token: int) -> str:
        """Return a token as the vocabulary has it."""
        return self._tokens[token]

    # -- kinds --------------------------------------------------------------------------------------------

    def _byte_pairs(self, metadata: Mapping[str, Any]) -> Any:
        """Make byte pair encoding on bytes (GPT-2)."""
        pre = metadata.get("tokenizer.ggml.pre", "default")
        if not isinstance(pre, str) or pre not in WORDS:
            known = ", ".join(WORDS)
            raise self._refusal("cannot cut texts into words", f"tokenizer.ggml.pre: {known}", short_repr(pre))
        models, pre_tokenizers = self._package.models, self._package.pre_tokenizers
        vocabulary = dict(zip(self._tokens, count()))
        texts = self._texts(metadata, "merges")
        merges = [tuple(one.split(" ", 1)) for one in texts]
        cuts = WORDS[pre]
        self._begins = cuts.begins
        # The package refuses merges of what is no token, but it panics at a sum that is longer than each token.
        if _longest(texts) - len(" ") > _longest(self._tokens):
            self._check_merges(merges, vocabulary)
        try:
            model = models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False, ignore_merges=cuts.keeps_words)
        except Exception:
            self._check_merges(merges, vocabulary)
            raise
        made = self._package.base.Tokenizer(model)
        splits = [pre_tokenizers.Split(self._package.base.Regex(one), "isolated") for one in cuts.expressions]
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        made.decoder = self._package.decoders.ByteLevel()
        return made

    def _check_merges(self, merges: Sequence[tuple[str, ...]], vocabulary: Mapping[str, int]) -> None:
        """Refuse the first merge that is not two tokens whose sum is one.

        Raises:
            SourceError: if there is one.
        """
        for one in merges:
            if len(one) != 2 or not vocabulary.keys() >= {*one, "".join(one)}:
                got = repr(" ".join(one)[:80])
                raise self._refusal("cannot use a merge", "two tokens whose sum is one", got) from None

    def _sentence_pieces(self, metadata: Mapping[str, Any]) -> Any:
        """Make byte pair encoding on characters by the scores of pieces (SentencePiece)."""
        scores = self._numbers(metadata, "scores")
        if not scores:
            raise self._refusal("cannot rank pieces", "a score for each token", "no tokenizer.ggml.scores")
        if len(longest := max(self._tokens, key=len)) > LONGEST_PIECE:
            # Each place in a piece may be where two others meet.
            expected = f"at most {LONGEST_PIECE} characters"
            raise self._refusal("cannot cut this piece", expected, f"{len(longest)}: {short_repr(longest[:80])}")
        vocabulary = {one: i for i, one in enumerate(self._tokens)}
        normalizers = self._package.normalizers
        unknown = self._token(metadata, "unknown")
        made = self._package.base.Tokenizer(
            self._package.models.BPE(
                vocab=vocabulary,
                merges=_merges(self._tokens, self._kinds, scores, vocabulary),
                unk_token=None if unknown is None else self._tokens[unknown],
                fuse_unk=True,
                byte_fallback=True,
            )
        )
        prefix = self._flag(metadata, "add_space_prefix", True)
        begin = [normalizers.Prepend(SPACE)] if prefix else []
        made.normalizer = normalizers.Sequence([*begin, normalizers.Replace(" ", SPACE)])
        self._is_spaced = prefix
        return made

    # -- metadata -----------------------------------------------------------------------------------------

    def _texts(self, metadata: Mapping[str, Any], name: str) -> list[str]:
        texts = metadata.get(f"tokenizer.ggml.{name}")
        if not isinstance(texts, Sequence) or isinstance(texts, str) or not 0 < len(texts) <= MOST_TOKENS:
            got = "nothing" if texts is None else short_repr(texts)
            raise self._refusal("cannot make a tokenizer", f"tokenizer.ggml.{name}, a list of texts", got)
        if not all(isinstance(one, str) for one in texts):
            raise self._refusal("cannot make a tokenizer", f"texts in tokenizer.ggml.{name}", "other values")
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            expected = f"UTF-8 in tokenizer.ggml.{name}"
            raise self._refusal("cannot make a tokenizer", expected, "other bytes") from None
        return list(texts)

    def _numbers(self, metadata: Mapping[str, Any], name: str) -> list[Any]:
        """Return a number for each token; none where the file has none."""
        key = f"tokenizer.ggml.{name}"
        if key not in metadata:
            return []
        found: np.ndarray = np.zeros(())
        with contextlib.suppress(ValueError):
            # Lists of unequal lists are no array.
            found = np.asarray(metadata[key])
        if found.shape != (len(self._tokens),) or found.dtype.kind not in "iuf" or np.isnan(found).any():
            expected = f"a number for each token, {len(self._tokens)}"
            raise self._refusal(f"cannot make a tokenizer with this {key}", expected, short_repr(metadata[key]))
        numbers: list[Any] = found.tolist()
        return numbers

    def _flag(self, metadata: Mapping[str, Any], name: str, default: bool) -> bool:
        key = f"tokenizer.ggml.{name}"
        flag = metadata.get(key, default)
        if not isinstance(flag, bool):
            raise self._refusal(f"cannot make a tokenizer with this {key}", "true or false", short_repr(flag))
        return flag

    def _token(self, metadata: Mapping[str, Any], name: str) -> int | None:
        token = metadata.get(f"tokenizer.ggml.{name}_token_id")
        return token if type(token) is int and 0 <= token < len(self._tokens) else None

    def _refusal(self, message: str, expected: str, got: str) -> SourceError:
        return SourceError(message, element=self._path, expected=expected, got=got)


_NAMED = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
"""Names of tokens in templates of chats, with those in files."""

_ENDS = frozenset(
    (
        *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>"),
        *("<eos>", "</s>"),
    )
)
"""Tokens that end an answer in the vocabularies of known models."""


def _longest(texts: Sequence[str]) -> int:
    """Return the bytes of the longest text in UTF-8."""
    return max(map(len, map(str.encode, texts)))


def _merges(
    tokens: Sequence[str], kinds: Sequence[int], scores: Sequence[float], vocabulary: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Return the pairs of pieces that make a piece, the piece of the highest score first."""
    found: list[tuple[float, int, int, str, str]] = []
    for token, (piece, kind) in enumerate(zip(tokens, kinds, strict=True)):
        if kind in (UNKNOWN, CONTROL, USER_DEFINED, BYTE):
            continue
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                found.append((-scores[token], vocabulary[left], vocabulary[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]
