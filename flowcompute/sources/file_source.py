"""Parts that all sources of one file share: the fingerprint, the layout, and the reader."""

from __future__ import annotations

import contextlib
import copy
import itertools
import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar, NoReturn

import numpy as np

from flowcompute.elements import Reader, Source, user_site
from flowcompute.errors import Site, SourceError, SpecError, short_repr
from flowcompute.files import Files, Fingerprint, PassedPages, explain, is_url, path_text, shown
from flowcompute.objects import UrlError, parse_url
from flowcompute.sources.layout import Layout, first_bad_bool
from flowcompute.spec import BOOL
from flowcompute.thread_pool import ThreadPool

_SETTLED_S = 2.0  # a file changed within this time may still be growing
_OTHERS_WRITE = 0o022
_DROP_BYTES = 1 << 24
"""Bytes of a mapped file that are let go at a time: to do it for each small batch would cost a call for each."""

_KEPT_VIEWS = 4
"""Views whose pages are kept behind the reader: those of batches in flight."""

_KEPT_BYTES = 4 << 20
"""The same for small views, of which more are in flight: of an edge at most as many bytes."""

_MIN_GATHERED = 16
"""Records at places of their own that are worth a thread."""


class StoredSource(Source):
    """Records in one regular file.

    Attributes:
        path: the file, as an absolute path.
        layout: the place of its records.
        fingerprint: the state of the file when this was composed; in any other state it is not read.
        files: the file layer.
    """

    format: ClassVar[str]
    """Name of the format, as `fc.open(format=...)` takes it."""

    path: str
    layout: Layout
    fingerprint: Fingerprint
    files: Files

    def __init__(
        self, path: str | os.PathLike[str], layout: Layout, fingerprint: Fingerprint, *, name: str | None, files: Files
    ) -> None:
        super().__init__(layout.spec, name=name)
        self.freeze_fields(path=located(path, name), layout=layout, fingerprint=fingerprint, files=files)

    @property
    def label(self) -> str:
        """Name of the function that made it."""
        return "open"

    @property
    def origin(self) -> str:
        """The file's own name."""
        return shown(os.path.basename(self.path))

    @property
    def identity(self) -> tuple[object, ...]:
        """The file, in the state in which it was composed."""
        state = self.fingerprint
        kept = (state.inode, state.device, state.size, state.mtime_ns)
        return (self.format, self.files.canonical(self.path), *kept, *((state.etag,) if state.etag else ()))

    def must_read(self, *, mapped: bool = True) -> str | None:
        """Return the reason why the records are read into buffers, or None when the file may be mapped.

        A mapped file that is cut short while it is used kills the process. Files that other users may write to,
        or that were changed in the last two seconds, are therefore read.

        Raises:
            SourceError: if the status of the file cannot be read.
        """
        if self.layout.copy_reason is not None:
            return self.layout.copy_reason
        if not self.files.local:
            return "objects come from a store"
        with source_errors("look at", self.path, element=self.name or self.label, site=self.site):
            status = self.files.stat(self.path)
        return why_not_mapped(self.path, status) or (None if mapped else "files are not to be mapped")

    def flattened(self) -> Source | None:
        """Return a source of the file's numbers in C order, or None where there is none."""
        layout = self.layout
        if layout.is_columns:
            return None
        twin = copy.copy(self)
        flat = replace(layout, item_shape=(), length=layout.length * layout.item_numbers, fortran=False)
        twin.freeze_fields(layout=flat, spec=flat.spec)
        return twin

    def open(self, *, position: int = 0, mapped: bool = True) -> StoredReader:
        """Start reading at record `position`. The reader gives views when `mapped` and `must_read` allow it.

        Raises:
            SourceError: if the file cannot be opened, or is not the one that was composed.
        """
        return StoredReader(self, position, mapped=mapped and self.must_read() is None)


class StoredReader(Reader):
    """Reader of one file, which copies its records or gives views of the mapped file."""

    def __init__(self, source: StoredSource, position: int, *, mapped: bool, element: str | None = None) -> None:
        self.element = element or source.name or source.label
        self.position = position
        self._source = source
        self._files = source.files
        self._layout = source.layout
        self._length = source.layout.length
        self._mapping: mmap.mmap | None = None
        self._bytes: np.ndarray | None = None
        self._dropped = 0
        self._passed: PassedPages | None = None
        self._threads = ThreadPool("flowcompute-reader")
        self._handle = -1
        check_position(position, self._length, element=self.element, site=source.site)
        with self._errors("open"):
            self._handle = self._files.open_read(source.path)
        try:
            self.check()
            if mapped:
                self._map()
                # A view costs one call for the file's status, but bools are checked one by one.
                self.immediate = self._layout.dtype != BOOL
        except BaseException:
            self.close()
            raise

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        items = self.read_at(self.position, out)
        self.position += items
        return items

    @property
    def reads_at_a_time(self) -> int:
        """Number of reads in progress: two where threads share a read, so that idle threads begin the next one."""
        together = self._bytes is None and self._files.readers(self.threads) > 1 and not self._layout.is_columns
        return 2 if together else 1

    def read_at(self, position: int, out: np.ndarray) -> int:
        """Fill `out` with the records from `position`; see `Reader.read_at`."""
        items = min(len(out), self._length - position)
        records = (position, position + items)
        end = self._begin_passing(position, items)
        with self._errors("read", records):
            complete = self._read(position, out[:items])
        # The status is read after the data, so that a change before or during the read is seen.
        self.check()
        if not complete:
            self._fail("it ends before its records do", records)
        self._check_bools(position, out[:items])
        if self._passed is not None:
            # Another thread may still read the part before this one.
            self._passed.let_go(end - max(_KEPT_VIEWS * out.nbytes, _KEPT_BYTES))
        return items

    def _begin_passing(self, position: int, items: int) -> int:
        """Look at what is cached of the records and behind them, where they are not to stay there.

        Returns the byte behind the records. A file in Fortran order has columns everywhere, and is left in the cache.
        """
        layout = self._layout
        end = layout.offset + (position + items) * layout.item_bytes
        if self.uncached and self._files.local and not layout.is_columns:
            if self._passed is None:
                self._passed = PassedPages(self._files, self._handle, self._source.fingerprint.size)
            self._passed.ask(end)
        return end

    def _read(self, begin: int, out: np.ndarray) -> bool:
        """Fill `out`, with a run of records for each thread. Return False when the file ends before that."""
        layout = self._layout
        readers, worth_it = self._files.readers(self.threads), out.nbytes // self._files.least_part_bytes
        parts = 1 if layout.is_columns else min(readers, len(out), max(1, worth_it))
        if parts <= 1:
            return layout.read(self._files, self._handle, begin, out)
        ends = [len(out) * part // parts for part in range(parts + 1)]
        reads = [
            partial(layout.read, self._files, self._handle, begin + start, out[start:stop])
            for start, stop in itertools.pairwise(ends)
        ]
        # All reads must end before this returns, since they write into the caller's memory.
        return all(self._threads.begin(reads, self.reads_at_a_time * parts).wait())

    def gather(self, records: np.ndarray, out: np.ndarray) -> bool:
        """Fill `out` with these records, in the order of the file; see `Reader.gather`."""
        if not len(records):
            return True
        order = np.argsort(records, kind="stable")
        span = (int(records[order[0]]), int(records[order[-1]]) + 1)
        with self._errors("read", span):
            complete = self._gather(records, order, out)
        self.check()
        if not complete:
            self._fail("it ends before its records do", span)
        bad = first_bad_bool(out)
        if bad is not None:
            self._fail_bool(int(records[bad[0]]), bad[1])
        return True

    def _gather(self, records: np.ndarray, order: np.ndarray, out: np.ndarray) -> bool:
        """Fill `out`, with a run of records for each thread. Return False when the file ends before that."""
        layout = self._layout
        mapped = None
        if self._bytes is not None:
            begin, end = layout.offset, layout.offset + self._length * layout.item_bytes
            mapped = self._bytes[begin:end].view(layout.dtype).reshape(self._length, *layout.item_shape)
        pick = partial(layout.gather, self._files, self._handle, mapped, records)
        parts = 1 if mapped is not None else min(self._files.readers(self.threads), max(1, len(order) // _MIN_GATHERED))
        if parts <= 1:
            return pick(order, out)
        ends = [len(order) * part // parts for part in range(parts + 1)]
        reads = [partial(pick, order[start:stop], out) for start, stop in itertools.pairwise(ends)]
        return all(self._threads.begin(reads, parts).wait())

    def view(self, items: int) -> np.ndarray | None:
        """Return the next records in the mapped file; see `Reader.view`."""
        if self._bytes is None:
            return None
        self.check()
        layout = self._layout
        items = min(items, self._length - self.position)
        begin = layout.offset + self.position * layout.item_bytes
        data = self._bytes[begin : begin + items * layout.item_bytes]
        self._begin_passing(self.position, items)
        array = data.view(layout.dtype).reshape(items, *layout.item_shape)
        self._check_bools(self.position, array)
        self.position += items
        self._drop_behind(begin - max((_KEPT_VIEWS - 1) * data.nbytes, _KEPT_BYTES))
        return array

    def _drop_behind(self, end: int) -> None:
        """Let the pages before byte `end` go, so that the process does not seem to grow by the file."""
        if self._mapping is not None and end - self._dropped >= _DROP_BYTES:
            self._files.drop_pages(self._mapping, self._dropped, end)
            self._dropped = end // mmap.PAGESIZE * mmap.PAGESIZE
            if self._passed is not None:
                self._passed.let_go(self._dropped)

    def check(self) -> None:
        """Check that the open file is in the state in which it was composed.

        Raises:
            SourceError: if it has changed.
        """
        with self._errors("look at"):
            now = self._files.fingerprint(self._handle)
        if now != self._source.fingerprint:
            fail_changed(self._source, now, element=self.element)

    def close(self) -> None:
        """Close the file. Views remain valid until their arrays are freed."""
        self._bytes = None
        mapping, self._mapping = self._mapping, None
        passed, self._passed = self._passed, None
        if passed is not None:
            if mapping is not None:
                # The cache keeps pages that are mapped.
                self._files.drop_pages(mapping, self._dropped, len(mapping))
            passed.close()
        if mapping is not None:
            # While a view is held elsewhere the mapping cannot be closed. It is freed with the last view.
            with contextlib.suppress(BufferError):
                mapping.close()
        self._threads.close()
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with self._errors("close"):
                self._files.close(handle)

    def _map(self) -> None:
        size = self._layout.offset + self._length * self._layout.item_bytes
        if size == 0:
            self._bytes = np.empty(0, np.uint8)
            self._bytes.flags.writeable = False
            return
        with self._errors("map"):
            self._mapping = self._files.map_read(self._handle, size)
        self._bytes = np.frombuffer(self._mapping, np.uint8)

    def _check_bools(self, position: int, array: np.ndarray) -> None:
        bad = first_bad_bool(array)
        if bad is not None:
            self._fail_bool(position + bad[0], bad[1])

    def _fail_bool(self, record: int, value: int) -> NoReturn:
        self._fail(
            "it holds a byte that is not a bool",
            (record, record + 1),
            expected="0 or 1",
            got=str(value),
            hint='open it with format="raw" and dtype="uint8", and compare: x != 0',
        )

    def _errors(self, doing: str, records: tuple[int, int] | None = None) -> contextlib.AbstractContextManager[None]:
        source = self._source
        return source_errors(doing, source.path, element=self.element, site=source.site, records=records)

    def _fail(
        self,
        message: str,
        records: tuple[int, int],
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        raise SourceError(
            f"cannot read {shown(self._source.path)}: {message}",
            element=self.element,
            site=self._source.site,
            records=records,
            expected=expected,
            got=got,
            hint=hint,
        )


def why_not_mapped(path: str, status: os.stat_result) -> str | None:
    """Return the reason why a file of this status is better read than mapped; see `StoredSource.must_read`."""
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write to {shown(path)}, and a mapped file that shrinks kills the process"
    if time.time() - status.st_mtime < _SETTLED_S:
        return f"{shown(path)} was changed less than {_SETTLED_S:g} s ago and may still be written"
    return None


def fail_changed(source: StoredSource, now: Fingerprint, element: str | None) -> NoReturn:
    """Refuse a file that is not in the state in which it was composed.

    Raises:
        SourceError: always.
    """
    raise changed(source.path, source.fingerprint, now, element=element, site=source.site)


def changed(path: str, then: Fingerprint, now: Fingerprint, *, element: str | None, site: Site | None) -> SourceError:
    """Return the error of a file that is not in the state in which it was composed."""
    fields = [field for field in Fingerprint._fields if getattr(now, field) != getattr(then, field)]
    return SourceError(
        f"cannot read {shown(path)}: the file changed since it was opened for this job",
        element=element,
        site=site,
        expected=_describe(then, fields),
        got=_describe(now, fields),
        hint="compose the job again, and let nothing write to its input while it runs",
    )


def _describe(fingerprint: Fingerprint, fields: list[str]) -> str:
    units = {"size": " bytes", "mtime_ns": " ns"}
    return ", ".join(f"{field} {getattr(fingerprint, field)}{units.get(field, '')}" for field in fields)


def check_position(position: int, length: int, *, element: str | None, site: Site | None) -> None:
    """Check that reading can start at `position`.

    Raises:
        SourceError: if it cannot.
    """
    if not 0 <= position <= length:
        raise SourceError(
            "cannot start reading at this record",
            element=element,
            site=site,
            expected=f"a record from 0 to {length}",
            got=str(position),
        )


def absolute(path: str | os.PathLike[str], name: str | None) -> str:
    """Return the absolute path, so that a later change of the working folder changes nothing.

    Raises:
        SpecError: if no file can have that path.
    """
    try:
        return os.path.abspath(path_text(path))
    except ValueError:
        raise SpecError(
            "cannot use this as the path of a file",
            element=name,
            site=user_site(),
            expected="a str or os.PathLike",
            got=short_repr(path),
        ) from None


def located(path: str | os.PathLike[str], name: str | None) -> str:
    """Return the absolute path of a file, or the URL of an object.

    Raises:
        SpecError: if there can be neither.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not is_url(text):
        return absolute(path, name)
    try:
        return str(parse_url(text))
    except UrlError as error:
        raise SpecError(
            f"cannot open this URL: {error}", element=name, site=user_site(), expected=error.expected, hint=error.hint
        ) from None


@contextlib.contextmanager
def source_errors(
    doing: str,
    path: str,
    *,
    element: str | None,
    site: Site | None,
    records: tuple[int, int] | None = None,
) -> Iterator[None]:
    """Turn an OSError into a SourceError that names the operation and the file."""
    try:
        yield
    except OSError as error:
        text, hint = explain(error)
        message = f"cannot {doing} {shown(path)}: {text}"
        raise SourceError(message, element=element, site=site, records=records, hint=hint) from error


@contextlib.contextmanager
def probe(path: str, *, element: str | None, site: Site | None, files: Files) -> Iterator[tuple[int, Fingerprint]]:
    """Open a file to read its header. Yield its descriptor and fingerprint, and close it at the end."""
    with source_errors("open", path, element=element, site=site):
        handle = files.open_read(path)
        try:
            yield handle, files.fingerprint(handle)
        finally:
            files.close(handle)
