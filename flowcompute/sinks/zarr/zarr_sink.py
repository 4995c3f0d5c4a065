"""Results as Zarr arrays of version 3: a folder with a file for each chunk of records, and `zarr.json`.

Chunks hold whole items and are not compressed. So an array's bytes are a function of its records and of `chunk`
alone, and a job that is killed goes on in the middle of a chunk.

Source: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from flowcompute.elements import Element
from flowcompute.errors import SpecError
from flowcompute.files import (
    FILES,
    Draft,
    Files,
    FolderDraft,
    Pieces,
    Sealed,
    Unfinished,
    in_the_way,
    roll_folder_forward,
)
from flowcompute.sinks.file_sink import AnyDraft, StoredSink
from flowcompute.spec import Spec

METADATA = "zarr.json"
OLD_METADATA = ".zarray"
"""The file that makes a folder a Zarr array: of version 3, and of version 2."""

CHUNK_BYTES = 4 << 20
"""Most bytes of a chunk whose number of records nobody has said."""

MOST_CHUNK_BYTES = 1 << 31

TYPES = {
    np.dtype(code): np.dtype(code).name
    for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
}
"""The format's names of types."""


class ZarrSink(StoredSink):
    """A Zarr array. `fc.save` makes it.

    Attributes:
        chunk: records in a chunk; None for as many as have `CHUNK_BYTES`.
        overwrite: whether an array of that name is replaced.
    """

    takes_regions = True
    chunk: int | None
    overwrite: bool

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        chunk: int | None = None,
        overwrite: bool = False,
        name: str | None = None,
        files: Files = FILES,
        durable: bool = True,
    ) -> None:
        super().__init__(path, name=name, files=files, durable=durable)
        self.freeze_fields(chunk=chunk, overwrite=overwrite)

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that the format has the dtype, and the chunks.

        Raises:
            SpecError: if it has not.
        """
        if spec.dtype not in TYPES:
            raise SpecError(
                f"cannot write {spec.dtype.name} to a Zarr array: its version 3 has no such type",
                element=self.name or self.label,
                site=self.site,
                expected=", ".join(TYPES.values()),
                got=spec.dtype.name,
                hint="cast it: x.astype('float32')",
            )
        if self.chunk is not None and self.chunk * spec.item_bytes > MOST_CHUNK_BYTES:
            raise SpecError(
                "cannot write such chunks: each is a file, and is read as a whole",
                element=self.name or self.label,
                site=self.site,
                expected=f"chunk= of at most {max(1, MOST_CHUNK_BYTES // spec.item_bytes)} records of these items",
                got=f"{self.chunk} records",
            )
        super().accept(spec, element)

    def records_of_chunk(self, spec: Spec) -> int:
        """Return the records of a chunk: a function of the items alone, where nobody has said it."""
        return self.chunk or max(1, CHUNK_BYTES // max(1, spec.item_bytes))

    def header(self, spec: Spec, length: int | None) -> bytes:  # noqa: ARG002 - chunks begin with their data
        """Return nothing: the metadata is a file of its own."""
        return b""

    def metadata(self, spec: Spec, length: int | None) -> bytes:
        """Return the text of `zarr.json`. `length` is None for a resident value."""
        shape = spec.shape if length is None else (length, *spec.shape)
        sizes = spec.shape if length is None else (self.records_of_chunk(spec), *spec.shape)
        zero: Any = False if spec.dtype.kind == "b" else 0 if spec.dtype.kind in "iu" else 0.0
        codec: dict[str, Any] = {"name": "bytes"}
        if spec.dtype.itemsize > 1:
            codec["configuration"] = {"endian": sys.byteorder}
        described = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": TYPES[spec.dtype],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(1, size) for size in sizes]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": zero,
            "codecs": [codec],
            "attributes": {},
        }
        return json.dumps(described, indent=2).encode() + b"\n"

    # -- the folder -----------------------------------------------------------------------------------------

    def _pieces(self, spec: Spec) -> Pieces:
        if spec.stream is None:
            return Pieces(max(1, spec.item_bytes), ".".join(["c", *["0"] * len(spec.shape)]), single=True)
        size = max(1, self.records_of_chunk(spec) * spec.item_bytes)
        return Pieces(size, "c.", ".0" * len(spec.shape))

    def draft(
        self,
        spec: Spec,
        *,
        token: str | None = None,
        unfinished: Unfinished | None = None,
        joined: str | None = None,
    ) -> FolderDraft:
        """Begin the folder of a value, continue it, or join it."""
        pieces, replaces = self._pieces(spec), self.overwrite
        return FolderDraft(
            self.files,
            self.target,
            pieces,
            replaces=replaces,
            durable=self.durable,
            token=token,
            unfinished=unfinished,
            joined=joined,
        )

    def complete(self, draft: AnyDraft, spec: Spec, length: int | None, size: int) -> None:
        """Fill up the last chunk, and write the metadata."""
        assert not isinstance(draft, Draft)
        draft.complete(size, {METADATA: self.metadata(spec, length)})

    def roll_forward(self, draft: str, sealed: Sealed) -> Sealed | None:
        """Commit a complete folder that is still there, and return what is found under the target."""
        return roll_folder_forward(
            self.files, self.target, draft, sealed, replaces=self.overwrite, durable=self.durable
        )

    def in_the_way(self) -> tuple[str, str] | None:
        """Return what has the name and is not replaced: all but an array, and arrays without `overwrite`."""
        other = in_the_way(self.files, self.target)
        if other != "a folder":
            try:
                self.files.lstat(self.target)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return other or "a file", "choose another name; a Zarr array is a folder"
        if self.files.is_folder(self.target):
            names = self.files.list_folder(self.target)
            is_array = METADATA in names or OLD_METADATA in names
            if not names or (is_array and self.overwrite):
                return None
            if is_array:
                return "an array", f"fc.save({self.path!r}, overwrite=True) replaces it"
        return "a folder that is no Zarr array", "choose another name, or remove it"
