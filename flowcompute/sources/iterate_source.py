"""Streams from Python iterables, plain and asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements import AsyncReader, ItemShape, Reader, Source, item_dtype, parse_item_shape, user_site
from flowcompute.elements.arguments import flag
from flowcompute.elements.policies import ErrorPolicy, OnError, SkipCounter, parse_policy
from flowcompute.errors import DestinationError, SourceError, SpecError
from flowcompute.event_loops import HOME, in_loop
from flowcompute.sources.record_packer import RecordPacker, SkippingPacker
from flowcompute.spec import Spec, Stream, parse_dtype

_SKIP_BYTES = 1 << 20


def iterate(
    iterable: Iterable[Any] | AsyncIterable[Any],
    *,
    shape: ItemShape,
    dtype: npt.DTypeLike | None = None,
    items: bool = False,
    on_error: OnError = "raise",
    dead_letter: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> IterateSource:
    """Make a stream of unknown length from the values that an iterable yields.

    Args:
        iterable: yields batches of shape `(k, *shape)` with any k, also 0, or single items. A generator or
            other iterator is read once. An object whose `iter()` begins anew (a list, an instance with
            `__iter__`) may be read as often as needed. The iterable may use an array again once it is asked for
            the next one. An asynchronous one is read in the asyncio loop that awaits the run (`await
            fc.aresolve(...)`), else in trio.
        shape: item shape or item type.
        dtype: of the stream, unless the item type says it. Yielded arrays must cast to it safely (NumPy's
            `same_kind`), and integers must fit. Python's own numbers are cast where they fit.
        items: whether it yields single items.
        on_error: the reaction to a yielded value other than declared. "raise" fails the run. "skip" drops that
            batch or item, and counts and names it in `run.skipped`. "dead_letter" also writes it to a file. An
            exception of the iterable itself always fails the run.
        dead_letter: path of that file, as for `fc.host`. Its `record` is the index of the yielded batch or
            item, from 0. A value that is not an array of numbers is shown as by `repr`.
        name: what plans and errors call it.

    Raises:
        SpecError: if `iterable` is not iterable, or an argument makes no sense.
    """
    policy = parse_policy(on_error, dead_letter, name or "iterate")
    return IterateSource(iterable, shape=shape, dtype=dtype, items=items, policy=policy, name=name)


class IterateSource(Source):
    """A stream of the values that an iterable yields, made by `iterate`."""

    seekable = False

    iterable: Iterable[Any] | AsyncIterable[Any]
    items: bool
    policy: ErrorPolicy
    _last: list[Any]
    """Last iterator that was returned, which must not be returned again. Only this attribute changes."""

    def __init__(
        self,
        iterable: Iterable[Any] | AsyncIterable[Any],
        *,
        shape: ItemShape,
        dtype: npt.DTypeLike | None = None,
        items: bool = False,
        policy: ErrorPolicy | None = None,
        name: str | None = None,
    ) -> None:
        item_shape = parse_item_shape(shape, name)
        said = item_dtype(shape, dtype, name)
        if said is None:
            raise SpecError(
                "cannot iterate without a dtype",
                element=name,
                site=user_site(),
                expected="dtype=",
                hint='fc.iterate(batches, shape=(4,), dtype="float32")',
            )
        try:
            parsed = parse_dtype(said)
        except TypeError as error:
            raise SpecError(str(error), element=name, site=user_site()) from None
        if not (hasattr(iterable, "__iter__") or hasattr(iterable, "__aiter__") or hasattr(iterable, "__getitem__")):
            called = callable(iterable)
            raise SpecError(
                "cannot iterate over this value",
                element=name,
                site=user_site(),
                expected="an iterable, plain or asynchronous",
                got=type(iterable).__name__,
                hint="call the function: fc.iterate(f(), ...)" if called else None,
            )
        super().__init__(Spec(parsed, item_shape, Stream(None)), name=name)
        # The type is checked, since calling `iter` may start the workers of a data loader.
        rereadable = not (hasattr(iterable, "__next__") or hasattr(iterable, "__anext__"))
        self.freeze_fields(
            iterable=iterable,
            items=flag(name, "items", items),
            policy=policy or ErrorPolicy(),
            rereadable=rereadable,
            _last=[None],
        )

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "iterate"

    @property
    def is_asynchronous(self) -> bool:
        """True if it can be iterated over by `async for` only."""
        return not hasattr(self.iterable, "__iter__") and hasattr(self.iterable, "__aiter__")

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return "an iterable yields arrays of any size"

    def open(self, *, position: int = 0, mapped: bool = True) -> IterateReader | AsyncIterateReader:  # noqa: ARG002
        """Start iterating. The first read drops the records before `position`.

        Raises:
            SourceError: if the iterator was opened before, or its `iter()` fails.
        """
        if position < 0:
            raise SourceError(
                "cannot start reading at this record", element=self.name, site=self.site, got=str(position)
            )
        asynchronous = self.is_asynchronous
        iterator = self._begin(asynchronous)
        loop = HOME.get()
        if asynchronous and loop is not None:
            return LoopIterateReader(self, iterator, position, loop)
        reader = AsyncIterateReader if asynchronous else IterateReader
        return reader(self, iterator, position)

    def _begin(self, asynchronous: bool) -> Any:
        try:
            iterable: Any = self.iterable
            iterator = aiter(iterable) if asynchronous else iter(iterable)
        except Exception as error:
            raise iterable_error(self, error, 0) from error
        if iterator is self._last[0]:
            raise SourceError(
                "cannot read this iterator again: it can be read only once",
                element=self.name or self.label,
                site=self.site,
                expected="an iterable that begins anew each time, like a list or an object with __iter__",
                got=f"the same {type(iterator).__name__} again",
                hint="give fc.iterate such an object, or save the data to a file first",
            )
        self._last[0] = iterator
        return iterator


class IterateReader(Reader):
    """Reader of a plain iterator."""

    def __init__(self, source: IterateSource, iterator: Iterator[Any], position: int) -> None:
        self.element = source.name or source.label
        self.position = 0
        self._source = source
        self._iterator: Iterator[Any] | None = iterator
        self._packer, self.skip_counter = make_packer(source)
        self._skip_to = position

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        while self.position < self._skip_to:
            self._require(self._fill(skip_buffer(self._source, self._skip_to - self.position)))
        return self._fill(out)

    def _fill(self, out: np.ndarray) -> int:
        packer = self._packer
        full = packer.begin(out, self.position)
        if not full and self._iterator is not None:
            take = packer.take
            try:
                for value in self._iterator:
                    if take(value):
                        break
                else:
                    self._iterator = None
            except (SourceError, DestinationError):
                raise
            except Exception as error:
                raise iterable_error(self._source, error, packer.next_record) from error
        count = packer.end()
        self.position += count
        return count

    def _require(self, count: int) -> None:
        if count == 0:
            raise too_short_error(self._source, self._skip_to, self.position)

    def close(self) -> None:
        """Close the generator, if it is one."""
        iterator, self._iterator = self._iterator, None
        close = getattr(iterator, "close", None)
        if close is not None:
            try:
                close()
            except Exception as error:
                raise iterable_error(self._source, error, self.position) from error


class AsyncIterateReader(AsyncReader):
    """Reader of an asynchronous iterator, in the trio task that asks."""

    def __init__(self, source: IterateSource, iterator: AsyncIterator[Any], position: int) -> None:
        self.element = source.name or source.label
        self.position = 0
        self._source = source
        self._iterator: AsyncIterator[Any] | None = iterator
        self._packer, self.skip_counter = make_packer(source)
        self._skip_to = position

    async def read_async(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        while self.position < self._skip_to:
            if await self._fill(skip_buffer(self._source, self._skip_to - self.position)) == 0:
                raise too_short_error(self._source, self._skip_to, self.position)
        return await self._fill(out)

    async def _fill(self, out: np.ndarray) -> int:
        packer = self._packer
        full = packer.begin(out, self.position)
        if not full and self._iterator is not None:
            try:
                async for value in self._iterator:
                    if packer.take(value):
                        break
                else:
                    self._iterator = None
            except (SourceError, DestinationError):
                raise
            except Exception as error:
                raise iterable_error(self._source, error, packer.next_record) from error
        count = packer.end()
        self.position += count
        return count

    def close(self) -> None:
        """Close the asynchronous generator, if it is one, as far as that needs no waiting."""
        iterator, self._iterator = self._iterator, None
        aclose = getattr(iterator, "aclose", None)
        if aclose is None:
            return
        step = aclose()
        try:
            step.send(None)
        except StopIteration:
            return
        except Exception as error:
            raise iterable_error(self._source, error, self.position) from error
        # Its clean-up awaits, and there is no task here to wait in. The generator is therefore ended where it stands.
        with contextlib.suppress(RuntimeError):
            step.close()


class LoopIterateReader(AsyncIterateReader):
    """Reader of an asynchronous iterator in the asyncio loop that awaits the run: each read is a task there."""

    def __init__(
        self, source: IterateSource, iterator: AsyncIterator[Any], position: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(source, iterator, position)
        self._loop = loop

    async def read_async(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        try:
            return await in_loop(self._loop, super().read_async(out))
        except RuntimeError as error:
            raise iterable_error(self._source, error, self.position) from error

    async def aclose(self) -> None:
        """Close the asynchronous generator, if it is one, in its loop."""
        iterator, self._iterator = self._iterator, None
        aclose = getattr(iterator, "aclose", None)
        if aclose is not None:
            try:
                await in_loop(self._loop, aclose())
            except Exception as error:
                raise iterable_error(self._source, error, self.position) from error


def make_packer(source: IterateSource) -> tuple[RecordPacker, SkipCounter | None]:
    """Make the packer of an iterable's values, with a counter where unfit values are dropped."""
    element = source.name or source.label
    if not source.policy.drops:
        return RecordPacker(source.spec, items=source.items, element=element, site=source.site), None
    skip_counter = SkipCounter(element, source.policy)
    return SkippingPacker(source.spec, items=source.items, skip_counter=skip_counter, site=source.site), skip_counter


def skip_buffer(source: IterateSource, items: int) -> np.ndarray:
    """Return memory to read up to `items` unwanted records into."""
    spec = source.spec
    return np.empty((min(items, max(_SKIP_BYTES // max(spec.item_bytes, 1), 1)), *spec.shape), spec.dtype)


def too_short_error(source: IterateSource, position: int, length: int) -> SourceError:
    """Return the error for a stream that ended before the record to start at."""
    return SourceError(
        "cannot start reading: the iterable ended before the record to start at",
        element=source.name or source.label,
        site=source.site,
        expected=f"at least {position} records",
        got=str(length),
        hint="iterate over the same data as when the job was frozen",
    )


def iterable_error(source: IterateSource, error: Exception, record: int) -> SourceError:
    """Return the error for an exception raised in the user's iterable."""
    hint = "see the exception above, which is the cause"
    if isinstance(error, RuntimeError) and "no running event loop" in str(error):
        hint = "it awaits asyncio: have its run awaited there, as await fc.aresolve(...)"
    elif isinstance(error, RuntimeError) and "async context" in str(error):
        hint = "it awaits trio: have it run from trio or from plain code"
    return SourceError(
        f"cannot read the iterable: it raised {type(error).__name__}: {error}",
        element=source.name or source.label,
        site=source.site,
        records=(record, record + 1),
        hint=hint,
    )
