"""Texts that are read one after the other, from any place on: what all kinds of them share, and iterables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from flowcompute.elements import user_site
from flowcompute.errors import Site, SourceError, SpecError, short_repr

LONGEST_BYTES = 1 << 16
"""Bytes of a text at most, unless somebody asks for more: four times what most models remember."""

_MOST_BYTES = 4
"""Bytes of a character in UTF-8 at most."""


class TextPlace(NamedTuple):
    """A place between two texts.

    Attributes:
        text: number of the text behind it.
        offset: bytes of the file before it; 0 where there is no file.
    """

    text: int
    offset: int


class TextReader(ABC):
    """Reader of texts, one after the other.

    Attributes:
        place: before the text that comes next.
    """

    place: TextPlace

    @abstractmethod
    def read_text(self) -> str | None:
        """Return the next text, or None behind the last one.

        Raises:
            SourceError: if it cannot be read, or is none. The error names it.
        """

    def check(self) -> None:  # noqa: B027 - most texts cannot change
        """Raise SourceError if what is read has changed since it was composed."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; calling it twice is harmless."""


class Texts(ABC):
    """Texts in their order, which need not be in memory. `fc.models.texts` makes them.

    `for text in texts` yields them.

    Attributes:
        longest: bytes of one of them at most.
        site: the user's line that made them.
    """

    longest: int
    site: Site | None

    @property
    def rereadable(self) -> bool:
        """True where they can be read again."""
        return True

    @property
    def origin(self) -> str:
        """Name of the file, if there is one."""
        return ""

    @property
    def read_bytes(self) -> int:
        """Bytes that are read at a time."""
        return 0

    @property
    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Identity of what is read: texts of equal identity are equal."""

    @abstractmethod
    def begin(self, place: TextPlace, element: str) -> TextReader:
        """Begin to read at a place.

        Args:
            place: where a reader of these texts was; of a checkpoint that anybody may have written.
            element: what errors call it.

        Raises:
            SourceError: if they cannot be read.
            ValueError: if there is no such place.
        """

    @abstractmethod
    def count(self) -> int:
        """Return the number of texts. No text is looked at for that, but a file is read once.

        Raises:
            SourceError: if they cannot be read.
            SpecError: if nobody knows it.
        """

    def __iter__(self) -> Iterator[str]:
        reader = self.begin(TextPlace(0, 0), "texts")
        try:
            while (text := reader.read_text()) is not None:
                yield text
            reader.check()
        finally:
            reader.close()

    def too_long(self, element: str, where: str, got: str) -> SourceError:
        """Return the error of a text that is longer than was said."""
        return SourceError(
            f"cannot take {where}: it is too long",
            element=element,
            site=self.site,
            expected=f"at most {self.longest:,} bytes",
            got=got,
            hint='leave it out, or say longest="1MiB" to fc.models.texts; the plan counts 288 bytes of memory for each',
        )


class IteratedTexts(Texts):
    """Texts of an iterable.

    Attributes:
        iterable: yields them, anew each time unless it is an iterator.
    """

    def __init__(self, iterable: Iterable[str], longest: int = LONGEST_BYTES) -> None:
        self.iterable, self.longest, self.site = iterable, longest, user_site()
        self._begun: list[Any] = [None]

    def __repr__(self) -> str:
        return f"<texts of {type(self.iterable).__name__}>"

    @property
    def rereadable(self) -> bool:
        """True where `iter()` begins anew."""
        # The type is asked, since `iter` may start the workers of a data loader.
        return not hasattr(self.iterable, "__next__")

    @property
    def identity(self) -> tuple[object, ...]:
        """The iterable itself."""
        return ("iterated", id(self.iterable), self.longest)

    def begin(self, place: TextPlace, element: str) -> IteratedReader:
        """Begin to iterate. Texts before the place are drawn, and nothing is done with them."""
        if place.offset or place.text < 0:
            raise ValueError(f"texts of an iterable do not begin at {tuple(place)}")
        return IteratedReader(self, place.text, element)

    def iterator(self, element: str) -> Iterator[Any]:
        """Begin to iterate.

        Raises:
            SourceError: if it was begun before and goes on, or fails.
        """
        try:
            iterator = iter(self.iterable)
        except Exception as error:
            raise self.failed(element, error, 0) from error
        if iterator is self._begun[0]:
            raise SourceError(
                "cannot read these texts again: the iterator can be read only once",
                element=element,
                site=self.site,
                expected="an iterable that begins anew each time, like a list or an object with __iter__",
                got=f"the same {type(iterator).__name__} again",
                hint="give such an object, or a file: fc.models.texts(path)",
            )
        self._begun[0] = iterator
        return iterator

    def failed(self, element: str, error: Exception, number: int) -> SourceError:
        """Return the error for an exception of the user's iterable."""
        return SourceError(
            f"cannot read text {number}: the iterable raised {type(error).__name__}: {error}",
            element=element,
            site=self.site,
            hint="see the exception above, which is the cause",
        )

    def count(self) -> int:
        """Return the length of the iterable."""
        try:
            return len(self.iterable)  # type: ignore[arg-type]
        except TypeError:
            raise SpecError(
                "cannot count these texts",
                element="texts",
                site=user_site(),
                expected="an iterable with a length, or a file",
                got=type(self.iterable).__name__,
                hint="count them yourself",
            ) from None


class IteratedReader(TextReader):
    """Reader of an iterable."""

    def __init__(self, texts: IteratedTexts, number: int, element: str) -> None:
        self.place = TextPlace(number, 0)
        self._texts, self._element = texts, element
        self._to_drop = number
        self._iterator: Iterator[Any] | None = texts.iterator(element)

    def read_text(self) -> str | None:
        """See `TextReader.read_text`."""
        first = self.place.text
        while self._to_drop:
            if self._next(first - self._to_drop) is None:
                raise SourceError(
                    "cannot go on: the iterable ended before the text to go on with",
                    element=self._element,
                    site=self._texts.site,
                    expected=f"at least {first} texts",
                    got=str(first - self._to_drop),
                    hint="iterate over the same texts as when the job was frozen",
                )
            self._to_drop -= 1
        text = self._next(first)
        if text is not None:
            self.place = TextPlace(first + 1, 0)
        return text

    def _next(self, number: int) -> str | None:
        """Draw a text; None behind the last one."""
        try:
            # None behind the end is told from a None that it yields.
            text = next(self._iterator, self) if self._iterator is not None else self
        except Exception as error:
            raise self._texts.failed(self._element, error, number) from error
        if text is self:
            self._iterator = None
            return None
        if not isinstance(text, str):
            raise SourceError(
                f"cannot take text {number}",
                element=self._element,
                site=self._texts.site,
                expected="a str",
                got=short_repr(text),
            )
        longest = self._texts.longest
        if len(text) > longest or (_MOST_BYTES * len(text) > longest < len(text.encode(errors="surrogatepass"))):
            raise self._texts.too_long(self._element, f"text {number}", f"{len(text):,} characters")
        return text

    def close(self) -> None:
        """Close the generator, if it is one."""
        iterator, self._iterator = self._iterator, None
        close = getattr(iterator, "close", None)
        if close is not None:
            try:
                close()
            except Exception as error:
                raise self._texts.failed(self._element, error, self.place.text) from error
