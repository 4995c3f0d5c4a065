"""Tokens of texts as a stream, made while the texts are read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.errors import FlowError, SourceError
from flowcompute.model_files import WeightFile
from flowcompute.spec import Spec, Stream
from flowcompute.tokens.text_file import TextFile
from flowcompute.tokens.text_reading import IteratedTexts, TextPlace, Texts

BYTES_A_BYTE = 288
"""Bytes of memory for a byte of the text that is turned into tokens. The package tokenizers takes 120 to 266, most of
them where each byte is a token. Pairs of numbers take 20."""

_NOTED = 1024
"""Tokens and texts from one place that is noted to the next, at least."""

_MOST_NOTED = 64
"""Most places that are kept. The further back they are, the further apart."""


class Encoder(Protocol):
    """Maker of tokens from texts."""

    def encode(self, text: str) -> Sequence[int]:
        """Return the tokens of a text."""
        ...


class NotedPlace(NamedTuple):
    """The first record of a text, and where that text is.

    Attributes:
        record: index of the first token.
        place: before the text.
    """

    record: int
    place: TextPlace

    @property
    def passed(self) -> int:
        """Tokens and texts before it. Texts may have no tokens."""
        return self.record + self.place.text


class TokenSource(Source):
    """A stream of pairs (token, number of its text), int32.

    Its length is not known before all texts were read. A checkpoint keeps where the text begins that it was in.

    Attributes:
        texts: what is read.
        tokenizer: of the model.
        file: of the model.
    """

    seekable = False

    texts: Texts
    tokenizer: Encoder
    file: WeightFile

    def __init__(self, texts: Texts, tokenizer: Encoder, file: WeightFile, *, name: str | None = None) -> None:
        super().__init__(Spec(np.dtype(np.int32), (2,), Stream(None)), name=name)
        self.freeze_fields(texts=texts, tokenizer=tokenizer, file=file, rereadable=texts.rereadable)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "tokens"

    @property
    def origin(self) -> str:
        """Name of the file of the texts, if there is one."""
        return self.texts.origin

    @property
    def identity(self) -> tuple[object, ...]:
        """The texts, and the file that says how they are cut."""
        return ("tokens", self.texts.identity, self.file.identity)

    @property
    def held_bytes(self) -> int:
        """Bytes that one text takes, and what is read of the file at a time."""
        return BYTES_A_BYTE * self.texts.longest + 2 * self.texts.read_bytes

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return "texts are turned into tokens"

    def open(self, *, position: int = 0, mapped: bool = True) -> TokenReader:  # noqa: ARG002
        """Start reading. The first read makes the tokens before `position`, and drops them."""
        return TokenReader(self, NotedPlace(0, TextPlace(0, 0)), position)

    def reopen(self, place: dict[str, Any], *, position: int, mapped: bool = True) -> TokenReader:  # noqa: ARG002
        """Go on in the text of the record; see `Source.reopen`."""
        record, text, offset = (place[name] for name in ("record", "text", "offset"))
        if any(type(one) is not int or one < 0 for one in (record, text, offset)) or record > position:
            raise ValueError(f"record {position} does not lie behind {record!r}, text {text!r}")
        return TokenReader(self, NotedPlace(record, TextPlace(text, offset)), position)


class FileTokens(TokenSource):
    """Tokens of the texts of a file. Checkpoints keep its path and state."""

    texts: TextFile


class IteratedTokens(TokenSource):
    """Tokens of the texts of an iterable, which is given again where a checkpoint goes on without its program."""

    texts: IteratedTexts

    @property
    def iterable(self) -> Iterable[str]:
        """The iterable that yields the texts."""
        return self.texts.iterable


class TokenReader(Reader):
    """Reader of tokens. It keeps the rest of one text."""

    def __init__(self, source: TokenSource, noted: NotedPlace, position: int) -> None:
        self.element = source.name or source.label
        if position < 0:
            raise SourceError(
                "cannot start reading at this record", element=self.element, site=source.site, got=str(position)
            )
        self.position = position
        self._source = source
        self._texts = source.texts.begin(noted.place, self.element)
        self._noted = [noted]
        self._rest = np.empty((0, 2), np.int32)
        self._made = noted.record
        """Record behind those that were made."""

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        done = 0
        while done < len(out):
            if not len(self._rest) and not self._next():
                break
            count = min(len(self._rest), len(out) - done)
            out[done : done + count] = self._rest[:count]
            self._rest = self._rest[count:]
            done += count
        self.position += done
        return done

    def _next(self) -> bool:
        """Make the tokens of the next text; False where there is none.

        Raises:
            SourceError: if it cannot be read, or the texts end before the record to start at.
        """
        before = self._texts.place
        try:
            text = self._texts.read_text()
        except SourceError as error:
            error.records = (self._made, self._made + 1)
            raise
        if text is None:
            if self._made < self.position:
                raise SourceError(
                    "cannot start reading: the texts end before the record to start at",
                    element=self.element,
                    site=self._source.site,
                    expected=f"at least {self.position} tokens",
                    got=str(self._made),
                    hint="give the same texts as when the job was frozen",
                )
            return False
        self._note(NotedPlace(self._made, before))
        try:
            tokens = np.asarray(self._source.tokenizer.encode(text), np.int32)
        except FlowError as error:
            raise SourceError(
                f"cannot turn text {before.text} into tokens",
                element=self.element,
                site=self._source.site,
                records=(self._made, self._made + 1),
                expected=error.expected,
                got=error.got,
            ) from error
        pairs = np.empty((len(tokens), 2), np.int32)
        pairs[:, 0], pairs[:, 1] = tokens, before.text
        self._rest = pairs[max(0, self.position - self._made) :]
        self._made += len(pairs)
        return True

    def _note(self, noted: NotedPlace) -> None:
        """Keep a place to go on from, some way behind the last one."""
        if noted.passed - self._noted[-1].passed < _NOTED:
            return
        self._noted.append(noted)
        if len(self._noted) > _MOST_NOTED:
            # Nobody says how much of what was read counts. The gap that is left is small beside the way back to it.
            passed = [one.passed for one in self._noted]
            ways = range(1, len(passed) - 1)
            del self._noted[min(ways, key=lambda i: (passed[i + 1] - passed[i - 1]) / (passed[-1] - passed[i]))]

    def place_of(self, position: int) -> dict[str, Any]:
        """Return the begin of a text at or before a record; see `Reader.place_of`."""
        # Another thread may add one meanwhile.
        noted = [*self._noted]
        record, place = noted[max(0, bisect_right(noted, position, key=lambda one: one.record) - 1)]
        return {"record": record, "text": place.text, "offset": place.offset}

    def check(self) -> None:
        """Check that the texts have not changed; see `Reader.check`."""
        self._texts.check()

    def close(self) -> None:
        """Close the texts."""
        self._rest = self._rest[:0]
        self._texts.close()
