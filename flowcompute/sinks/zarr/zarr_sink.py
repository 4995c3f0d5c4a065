"""Results as Zarr arrays of version 3: a folder with a file for each chunk of records, and `zarr.json`.

Chunks hold whole items and are not compressed. So an array's bytes are a function of its records and of `chunk`
alone, and a job that is killed goes on in the middle of a chunk.

Source: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from flowcompute.elements import Element
from flowcompute.errors import SpecError
from flowcompute.files import Draft, FolderDraft, Pieces, Unfinished
from flowcompute.sinks.file_sink import AnyDraft
from flowcompute.sinks.folder_sink import FolderSink
from flowcompute.spec import Spec

METADATA = "zarr.json"
OLD_METADATA = ".zarray"
"""The file that makes a folder a Zarr array: of version 3, and of version 2."""

TYPES = {
    np.dtype(code): np.dtype(code).name
    for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
}
"""The format's names of types."""


class ZarrSink(FolderSink):
    """A Zarr array. `fc.save` makes it."""

    takes_regions = True
    what, kind = "a Zarr array", "Zarr array"
    chunk_bytes = 4 << 20
    most_chunk_bytes = 1 << 31

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that the format has the dtype.

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
        super().accept(spec, element)

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

    def is_own(self, names: Collection[str]) -> bool:
        """Check whether there is an array's metadata."""
        return METADATA in names or OLD_METADATA in names
