"""Texts of a file: one a line, or one a line of JSON."""

from __future__ import annotations

import codecs
import json
import os
from typing import Any

from flowcompute.elements import user_site
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import FILES, Files, Fingerprint, shown
from flowcompute.objects import layer_of
from flowcompute.sources import changed, located, probe, source_errors
from flowcompute.tokens.text_reading import LONGEST_BYTES, TextPlace, TextReader, Texts

_READ_BYTES = 1 << 18
"""Bytes that are read from the disk at a time."""
_REQUEST_BYTES = 1 << 22
"""The same from a store, where each read is a request."""
_JSON_LINES = (".jsonl", ".ndjson")
_OTHERS = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".json", ".gz", ".zst", ".bz2", ".xz", ".zip")
"""Endings of files whose lines are no texts."""


class TextFile(Texts):
    r"""Texts of a file in UTF-8, one a line. `fc.models.texts` makes them.

    A line ends with "\n"; a "\r" before that is no part of the text, nor is a byte order mark at the beginning. The
    last line may lack its end. An empty line is an empty text. With `key` each line is an object of JSON, whose entry
    of that name is the text.

    Attributes:
        path: the file, as an absolute path or URL.
        key: name of the entry; None where the lines are the texts.
        fingerprint: the state of the file when this was composed; in any other state it is not read.
        files: the file layer.

    Raises:
        SourceError: if the file cannot be read.
        SpecError: if it is of another format by its name, or JSON without a key.
    """

    path: str
    key: str | None
    fingerprint: Fingerprint
    files: Files

    def __init__(
        self,
        path: str | os.PathLike[str],
        key: str | None = None,
        longest: int = LONGEST_BYTES,
        *,
        files: Files = FILES,
    ) -> None:
        self.site = user_site()
        self.path = located(path, "texts")
        _check_format(self.path, key)
        self.key, self.longest = key, longest
        self.files = layer_of(self.path, files)
        with probe(self.path, element="texts", site=self.site, files=self.files) as (_, self.fingerprint):
            pass
        self._length: int | None = None

    def __repr__(self) -> str:
        return f"<texts of {shown(self.path)}>"

    @property
    def origin(self) -> str:
        """The file's own name."""
        return shown(os.path.basename(self.path))

    @property
    def identity(self) -> tuple[object, ...]:
        """The file in the state in which it was composed, and how texts lie in it."""
        return ("lines", self.files.canonical(self.path), *self.fingerprint, self.key, self.longest)

    @property
    def read_bytes(self) -> int:
        """Bytes that are read at a time."""
        return _READ_BYTES if self.files.local else _REQUEST_BYTES

    def begin(self, place: TextPlace, element: str) -> LineReader:
        """Begin to read at the begin of a line."""
        if not 0 <= place.text <= place.offset <= self.fingerprint.size:
            raise ValueError(f"a file of {self.fingerprint.size} bytes has no text {place.text} at {place.offset}")
        return LineReader(self, place, element)

    def count(self) -> int:
        """Return the number of lines, which are counted at the first call."""
        if self._length is None:
            reader = self.begin(TextPlace(0, 0), "texts")
            try:
                self._length = reader.count_lines()
                reader.check()
            finally:
                reader.close()
        return self._length


class LineReader(TextReader):
    """Reader of the lines of a file."""

    def __init__(self, texts: TextFile, place: TextPlace, element: str) -> None:
        self.place = place
        self._texts, self._files, self._element = texts, texts.files, element
        self._buffer = bytearray()
        self._used = 0
        self._ended = False
        with source_errors("open", texts.path, element=element, site=texts.site):
            self._handle = self._files.open_read(texts.path)
        try:
            self.check()
            while len(self._buffer) < len(codecs.BOM_UTF8) and not self._ended:
                self._read_more()
            # The last line may lack its end.
            inside = 0 < place.offset < texts.fingerprint.size
            if inside and self._byte_before(place.offset) != b"\n":
                raise ValueError(f"no line begins at byte {place.offset}")
            if not place.offset and self._buffer.startswith(codecs.BOM_UTF8):
                self._used = len(codecs.BOM_UTF8)
                self.place = TextPlace(0, self._used)
        except BaseException:
            self.close()
            raise

    def read_text(self) -> str | None:
        """See `TextReader.read_text`."""
        found = self._read_line()
        if found is None:
            return None
        line, end = found
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise self._failed(
                "it is not UTF-8",
                expected="UTF-8",
                got=f"{line[error.start : error.start + 4]!r} at byte {error.start} of the line",
                hint="write the file again in UTF-8, as iconv does",
            ) from None
        if self._texts.key is not None:
            text = self._entry(text, self._texts.key)
        self.place = TextPlace(self.place.text + 1, end)
        return text

    def _read_line(self) -> tuple[bytes, int] | None:
        """Return the next line without its end, and the offset behind it; None where there is none.

        Raises:
            SourceError: if it is too long.
        """
        longest, begin = self._texts.longest, self._used
        while (end := self._buffer.find(b"\n", begin)) < 0 and not self._ended:
            begin = len(self._buffer)
            if begin - self._used > longest + len(b"\r\n"):
                break
            begin -= self._drop_used()
            self._read_more()
        stop = len(self._buffer) if end < 0 else end
        if end < 0 and self._used == stop:
            return None
        line = bytes(self._buffer[self._used : min(stop, self._used + longest + len(b"\r\n"))])
        if end >= 0:
            line = line.removesuffix(b"\r")
        if len(line) > longest:
            raise self._texts.too_long(self._element, self._told(), f"more than {longest:,}")
        following = stop if end < 0 else end + 1
        offset = self.place.offset + following - self._used
        self._used = following
        return line, offset

    def _drop_used(self) -> int:
        """Leave what was returned out of the buffer, and return how many bytes these were."""
        used, self._used = self._used, 0
        del self._buffer[:used]
        return used

    def _read_more(self) -> None:
        """Read what follows into the buffer. The status is read after the data, so that a change is seen."""
        texts = self._texts
        block = bytearray(texts.read_bytes)
        offset = self.place.offset - self._used + len(self._buffer)
        with source_errors("read", texts.path, element=self._element, site=texts.site):
            count = self._files.read_into(self._handle, memoryview(block), offset)
        self.check()
        self._ended = count < len(block)
        self._buffer += block[:count]

    def _byte_before(self, offset: int) -> bytes:
        byte = bytearray(1)
        with source_errors("read", self._texts.path, element=self._element, site=self._texts.site):
            self._files.read_into(self._handle, memoryview(byte), offset - 1)
        return bytes(byte)

    def count_lines(self) -> int:
        """Return the lines from here to the end of the file."""
        found, last = 0, bytearray(b"\n")
        while True:
            if len(self._buffer) > self._used:
                found += self._buffer.count(b"\n", self._used)
                last = self._buffer[-1:]
            self.place = TextPlace(0, self.place.offset + len(self._buffer) - self._used)
            self._buffer.clear()
            self._used = 0
            if self._ended:
                return found + (last != b"\n")
            self._read_more()

    def _entry(self, line: str, key: str) -> str:
        """Return the text of a line of JSON."""
        try:
            said: Any = json.loads(line)
        except (ValueError, RecursionError, MemoryError) as error:
            raise self._failed(
                "it is not JSON", expected=f"an object with the entry {key!r}", got=str(error)[:200]
            ) from error
        text = said.get(key) if isinstance(said, dict) else None
        if not isinstance(text, str):
            got = ", ".join(map(repr, said))[:200] if isinstance(said, dict) and key not in said else short_repr(said)
            raise self._failed("it has no such text", expected=f"an object whose entry {key!r} is a text", got=got)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            got = f"{text[error.start]!r} at character {error.start}"
            raise self._failed("UTF-8 cannot say its text", expected="whole characters", got=got) from None
        return text

    def _told(self) -> str:
        return f"line {self.place.text + 1} of {shown(self._texts.path)}"

    def _failed(self, why: str, *, expected: str, got: str, hint: str | None = None) -> SourceError:
        return SourceError(
            f"cannot take {self._told()}: {why}",
            element=self._element,
            site=self._texts.site,
            expected=expected,
            got=got,
            hint=hint or "correct the line, or leave it out",
        )

    def check(self) -> None:
        """Check that the open file is in the state in which it was composed.

        Raises:
            SourceError: if it has changed.
        """
        texts = self._texts
        with source_errors("look at", texts.path, element=self._element, site=texts.site):
            now = self._files.fingerprint(self._handle)
        if now != texts.fingerprint:
            raise changed(texts.path, texts.fingerprint, now, element=self._element, site=texts.site)

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)


def _check_format(path: str, key: object) -> None:
    """Refuse files whose lines are no texts, and a key that is none."""
    ending = os.path.splitext(path)[1].lower()
    if key is not None and not isinstance(key, str):
        raise SpecError(
            "cannot use this key=",
            element="texts",
            site=user_site(),
            expected="the name of an entry",
            got=short_repr(key),
        )
    if ending in _JSON_LINES and key is None:
        raise SpecError(
            f"cannot tell where the texts of {shown(path)} are",
            element="texts",
            site=user_site(),
            expected="the name of an entry of each line",
            hint='fc.models.texts(path, key="text")',
        )
    if ending in _OTHERS:
        raise SpecError(
            f"cannot read texts of {shown(path)}",
            element="texts",
            site=user_site(),
            expected="a file with a text a line, or an object of JSON a line (.jsonl)",
            got=ending,
            hint="give an iterable that reads it: fc.models.texts(object_with_iter)",
        )
