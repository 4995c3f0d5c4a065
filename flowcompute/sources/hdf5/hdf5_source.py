"""Datasets of HDF5 files as streams of their records along axis 0.

h5py reads the metadata, of objects through a view of the file layer. The bytes are read by the file layer itself: those
of a contiguous dataset like a raw file's, chunks one by one.
"""

from __future__ import annotations

import math
import os
from typing import NoReturn

import numpy as np

from flowcompute.elements import user_site
from flowcompute.errors import SourceError
from flowcompute.files import Files, FileView, Fingerprint, StoreError, shown
from flowcompute.objects import layer_of
from flowcompute.sources.chunked import ChunkedSource, ChunkError, ChunkGrid, ChunkStore
from flowcompute.sources.file_source import StoredSource, changed, probe, source_errors
from flowcompute.sources.hdf5 import _h5py
from flowcompute.sources.hdf5._h5py import Dataset
from flowcompute.sources.hdf5.filters import undone
from flowcompute.sources.keyed import no_such_key
from flowcompute.sources.layout import Layout

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MOST = 1 << 63
_MOST_CHUNK_BYTES = 1 << 32
_UNWRITTEN_BYTES = 1 << 22
"""Bytes of the chunks that a dataset without any bytes is taken for."""


class Hdf5Source(StoredSource):
    """A dataset whose bytes lie together. `fc.open` makes it.

    Attributes:
        key: its path in the file.
    """

    format = "hdf5"

    key: str

    def __init__(
        self, path: str, dataset: Dataset, fingerprint: Fingerprint, *, name: str | None, files: Files
    ) -> None:
        assert dataset.offset is not None
        layout = Layout(dataset.dtype, dataset.shape[1:], dataset.shape[0], dataset.offset)
        super().__init__(path, layout, fingerprint, name=name, files=files)
        self.freeze_fields(key=dataset.key)

    @property
    def identity(self) -> tuple[object, ...]:
        """The file in the state in which it was composed, and the dataset."""
        return (*super().identity, self.key)


class Hdf5ChunkedSource(ChunkedSource):
    """A dataset in chunks. `fc.open` makes it.

    Attributes:
        dataset: what it is.
        fingerprint: the state of the file when this was composed; in any other state it is not read.
    """

    format = "hdf5_chunks"
    rooms = 4  # pieces that are decompressed, these joined or put in order, and a chunk whose edge is cut off

    dataset: Dataset
    fingerprint: Fingerprint

    def __init__(
        self, path: str, dataset: Dataset, fingerprint: Fingerprint, *, name: str | None, files: Files
    ) -> None:
        chunk = dataset.chunk
        if chunk is None:
            item_bytes = max(1, math.prod(dataset.shape[1:]) * dataset.dtype.itemsize)
            chunk = (max(1, _UNWRITTEN_BYTES // item_bytes), *(max(1, size) for size in dataset.shape[1:]))
        largest = int(dataset.sizes.max(initial=0))
        grid = ChunkGrid(dataset.shape, chunk)
        super().__init__(path, dataset.dtype.newbyteorder("="), grid, largest, name=name, files=files)
        self.freeze_fields(dataset=dataset, fingerprint=fingerprint)

    @property
    def key(self) -> str:
        """Path of the dataset in the file."""
        return self.dataset.key

    @property
    def called(self) -> str:
        """The dataset and its file, for errors."""
        return f"{self.key!r} in {shown(self.path)}"

    @property
    def held_bytes(self) -> int:
        """Bytes that a reader holds; see `ChunkedSource.held_bytes`. The places of all chunks are among them."""
        dataset = self.dataset
        tables = (dataset.numbers, dataset.places, dataset.sizes, dataset.masks)
        return super().held_bytes + sum(table.nbytes for table in tables)

    @property
    def origin(self) -> str:
        """The file's own name."""
        return shown(os.path.basename(self.path))

    @property
    def identity(self) -> tuple[object, ...]:
        """The dataset, in the state in which it was composed."""
        return (self.format, self.files.canonical(self.path), *self.fingerprint, self.key)

    def open_store(self) -> Hdf5Store:
        """Open the file; see `ChunkedSource.open_store`."""
        store = Hdf5Store(self)
        try:
            store.check()
        except BaseException:
            store.close()
            raise
        return store


class Hdf5Store(ChunkStore):
    """Chunks of a dataset that are decoded."""

    def __init__(self, source: Hdf5ChunkedSource) -> None:
        self._source, self._dataset, self._files = source, source.dataset, source.files
        self._across = (1, *source.grid.across)
        with source_errors("open", source.path, element=source.name or source.label, site=source.site):
            self._handle = source.files.open_read(source.path)

    def read_chunk(self, index: tuple[int, ...], out: np.ndarray) -> None:
        """Fill `out` with a decoded chunk, or with the fill value; see `ChunkStore.read_chunk`."""
        dataset = self._dataset
        number = 0
        for i, count in zip(index, self._across, strict=True):
            number = number * count + i
        at = int(np.searchsorted(dataset.numbers, number))
        if at == len(dataset.numbers) or dataset.numbers[at] != number:
            out[...] = dataset.fill
            return
        data = bytearray(int(dataset.sizes[at]))
        if self._files.read_into(self._handle, memoryview(data), int(dataset.places[at])) != len(data):
            raise ChunkError("the file ends before it does")
        size = out.size * dataset.dtype.itemsize
        made = undone(memoryview(data), dataset.filters, int(dataset.masks[at]), size)
        out[...] = np.frombuffer(made, dataset.dtype).reshape(out.shape)

    def check(self) -> None:
        """Check the file; see `ChunkStore.check`."""
        source = self._source
        element = source.name or source.label
        with source_errors("look at", source.path, element=element, site=source.site):
            now = self._files.fingerprint(self._handle)
        if now != source.fingerprint:
            raise changed(source.path, source.fingerprint, now, element=element, site=source.site)

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)


def open_hdf5(path: str, key: str | None, *, name: str | None, files: Files) -> Hdf5Source | Hdf5ChunkedSource:
    """Open a dataset, the one of its file where no key is given.

    Raises:
        SourceError: if there is none, or it is not read.
    """
    files = layer_of(path, files)
    with probe(path, element=name, site=user_site(), files=files) as (handle, fingerprint):
        head = bytearray(len(_SIGNATURE))
        files.read_into(handle, memoryview(head), 0)
        if bytes(head) != _SIGNATURE:
            kind = "NetCDF-3" if head[:3] == b"CDF" else "no HDF5 file"
            _refuse(path, f"it is {kind}", name, "a file of HDF5 or NetCDF-4")
        _h5py.require()
        try:
            dataset = _h5py.describe(path if files.local else FileView(files, handle, raises=False), key)
        except _h5py.NoDatasetError as error:
            no_such_key(path, key, error.keys, name)
        except _h5py.UnreadableError as error:
            _refuse(path, str(error) if key is None else f"{key!r}: {error}", name)
        except StoreError:
            raise
        except OSError as error:
            _refuse(path, f"it is damaged: {str(error)[:200]}", name)
        now = files.look(path) if files.local else files.fingerprint(handle)
    if now != fingerprint:
        raise changed(path, fingerprint, now, element=name, site=user_site())
    _check(path, dataset, fingerprint.size, name)
    if dataset.offset is not None and 0 not in dataset.shape:
        return Hdf5Source(path, dataset, fingerprint, name=name, files=files)
    return Hdf5ChunkedSource(path, dataset, fingerprint, name=name, files=files)


def _check(path: str, dataset: Dataset, size: int, name: str | None) -> None:
    """Compare sizes and places with each other and with the file."""
    if not dataset.shape:
        _refuse(path, f"{dataset.key!r} has no axis of records", name, "a dataset of at least one axis")
    nbytes = math.prod(dataset.shape) * int(dataset.dtype.itemsize)
    if nbytes >= _MOST or any(length >= _MOST for length in dataset.shape):
        _refuse(path, f"{dataset.key!r} has 2**63 bytes or more", name)
    if dataset.chunk is not None and math.prod(dataset.chunk) * dataset.dtype.itemsize > _MOST_CHUNK_BYTES:
        _refuse(path, f"a chunk of {dataset.key!r} has more than {_MOST_CHUNK_BYTES:,} bytes", name)
    ends = dataset.places + dataset.sizes
    last = int(ends.max(initial=0)) if dataset.offset is None else dataset.offset + nbytes
    if last > size or (dataset.places < 0).any() or (dataset.sizes < 0).any():
        _refuse(path, f"it ends before {dataset.key!r} does", name, f"at least {last} bytes", f"{size} bytes")


def _refuse(path: str, text: str, name: str | None, expected: str | None = None, got: str | None = None) -> NoReturn:
    raise SourceError(f"cannot open {shown(path)}: {text}", element=name, site=user_site(), expected=expected, got=got)
