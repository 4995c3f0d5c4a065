"""Zarr arrays as streams of their records along axis 0."""

from __future__ import annotations

import os
from typing import NamedTuple, NoReturn

import numpy as np

from flowcompute.elements import user_site
from flowcompute.errors import Site, SourceError
from flowcompute.files import Files, Fingerprint, ForeignJsonError, shown
from flowcompute.objects import ObjectFiles, layer_of
from flowcompute.sources.chunked import ChunkedSource, ChunkError, ChunkGrid, ChunkStore
from flowcompute.sources.file_source import changed, source_errors
from flowcompute.sources.zarr.chunk_files import ChunkFiles, Listing, list_chunks
from flowcompute.sources.zarr.chunk_objects import STATE_BYTES, ChunkObjects
from flowcompute.sources.zarr.metadata import SHOWN_KEYS, ZarrArray, read_metadata


class ZarrState(NamedTuple):
    """The state of an array when it was composed: of its metadata's file, and of the files of its chunks."""

    metadata: Fingerprint
    chunks: Listing


class ZarrSource(ChunkedSource):
    """A Zarr array. `fc.open` makes it.

    Attributes:
        path: its folder, as an absolute path; of an array in a group, with its key.
        metadata: path of the file of its metadata.
        array: what it is.
        state: in any other state it is not read.
    """

    format = "zarr"

    metadata: str
    array: ZarrArray
    state: ZarrState

    def __init__(
        self, folder: str, metadata: str, array: ZarrArray, state: ZarrState, *, name: str | None, files: Files
    ) -> None:
        sharding = array.sharding
        index = 0 if sharding is None else sharding.count(array.chunk) * 16
        encoded = state.chunks.largest + index
        if sharding is not None:
            # Of a shard one chunk is read at a time. An encoder adds little to what it cannot compress.
            encoded = index + min(encoded, 2 * int(np.prod(array.chunk)) * array.dtype.itemsize + 4096)
        grid = ChunkGrid(array.shape, array.chunk)
        super().__init__(folder, array.dtype.newbyteorder("="), grid, encoded, name=name, files=files)
        self.freeze_fields(metadata=metadata, array=array, state=state)

    @property
    def held_bytes(self) -> int:
        """Bytes that a reader holds; see `ChunkedSource.held_bytes`. The states of all objects are among them."""
        return super().held_bytes + (0 if self.files.local else STATE_BYTES * self.state.chunks.files)

    @property
    def origin(self) -> str:
        """The folder's own name."""
        return shown(os.path.basename(self.path))

    @property
    def identity(self) -> tuple[object, ...]:
        """The array, in the state in which it was composed."""
        return (self.format, self.files.canonical(self.path), *self.state.metadata, *self.state.chunks)

    def open_store(self) -> ZarrStore:
        """Open the array; see `ChunkedSource.open_store`."""
        with source_errors("look at", self.path, element=self.name or self.label, site=self.site):
            if isinstance(self.files, ObjectFiles):
                objects = ChunkObjects(self.files, self.path, self.array, self.state.chunks)
                store = ZarrStore(self, objects)
                store.compare(objects.found)
            else:
                store = ZarrStore(self, ChunkFiles(self.files, self.path, self.array, self.state.chunks))
                store.check()
        return store


class ZarrStore(ChunkStore):
    """Chunks of a Zarr array that are decoded."""

    def __init__(self, source: ZarrSource, chunks: ChunkFiles) -> None:
        self._source, self._array, self._chunks = source, source.array, chunks
        self._bytes = int(np.prod(source.array.chunk)) * source.array.dtype.itemsize

    def read_chunk(self, index: tuple[int, ...], out: np.ndarray) -> None:
        """Fill `out` with a decoded chunk, or with the fill value; see `ChunkStore.read_chunk`."""
        data = self._chunks.read(index)
        if data is None:
            out[...] = self._array.fill
            return
        if len(data) > self._source.encoded_bytes:
            raise ChunkError(f"it has {len(data):,} bytes, many more than its {self._bytes:,} decoded ones")
        made = self._array.codecs.decode(data, self._bytes)
        out[...] = np.frombuffer(made, self._array.dtype).reshape(self._array.chunk)

    def check(self) -> None:
        """Check metadata and files; see `ChunkStore.check`."""
        source = self._source
        with source_errors("look at", source.path, element=source.name or source.label, site=source.site):
            self.compare(list_chunks(source.files, source.path))

    def compare(self, chunks: Listing) -> None:
        """Compare the metadata's file, and what files there are now, with what was composed.

        Raises:
            OSError: as the system does.
            SourceError: if they differ.
        """
        source = self._source
        now = source.files.look(source.metadata)
        if now != source.state.metadata:
            raise changed(
                source.metadata, source.state.metadata, now, element=source.name or source.label, site=source.site
            )
        if chunks != source.state.chunks:
            then = source.state.chunks
            raise SourceError(
                f"cannot read {shown(source.path)}: its chunks changed since it was opened for this job",
                element=source.name or source.label,
                site=source.site,
                expected=f"{then.files} files, last changed at {then.newest_ns} ns",
                got=f"{chunks.files} files, last changed at {chunks.newest_ns} ns",
                hint="compose the job again, and let nothing write to its input while it runs",
            )

    def close(self) -> None:
        """Do nothing: files are open while they are read."""


def open_zarr(path: str, key: str | None, *, name: str | None, files: Files) -> ZarrSource:
    """Open an array, of a group that of a key.

    Raises:
        SourceError: if there is none, or it is not read.
    """
    site = user_site()
    files = layer_of(path, files)
    folder = path
    for part in () if key is None else _parts(key, path, name, site):
        folder = os.path.join(folder, part)
        with source_errors("look for", folder, element=name, site=site):
            if files.local and not files.is_folder(folder):
                _refuse(folder, "it is a link, or no folder", name, site)
    try:
        with source_errors("open", folder, element=name, site=site):
            made = read_metadata(files, folder)
        if isinstance(made, list):
            listed = ", ".join(map(shown, made[:SHOWN_KEYS])) + (", ..." if len(made) > SHOWN_KEYS else "")
            _refuse(folder, "it is a group", name, site, f"key= of an array; in it are {listed or 'none'}")
        array, metadata = made
        if not array.shape:
            _refuse(folder, "it has no axis of records", name, site, "an array of at least one axis")
        array.codecs.require()
        if array.sharding is not None:
            array.sharding.index.require()
        metadata = os.path.join(folder, metadata)
        with source_errors("look at", folder, element=name, site=site):
            state = ZarrState(files.look(metadata), list_chunks(files, folder))
    except ForeignJsonError as error:
        _refuse(folder, str(error), name, site)
    return ZarrSource(folder, metadata, array, state, name=name, files=files)


def _parts(key: str, path: str, name: str | None, site: Site | None) -> list[str]:
    parts = key.strip("/").split("/")
    if any(part in ("", ".", "..") or "\0" in part or os.sep in part for part in parts):
        _refuse(path, f"no array has the key {key[:80]!r}", name, site, "names of groups and an array, a/b/c")
    return parts


def _refuse(path: str, text: str, name: str | None, site: Site | None, expected: str | None = None) -> NoReturn:
    raise SourceError(f"cannot open {shown(path)}: {text}", element=name, site=site, expected=expected)
