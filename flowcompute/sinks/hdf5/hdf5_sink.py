"""Results as HDF5 files: one contiguous dataset, behind a header of our own."""

from __future__ import annotations

import os
import sys

import numpy as np

from flowcompute.elements import Element
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import FILES, Files
from flowcompute.sinks.file_sink import StoredSink
from flowcompute.sinks.hdf5.hdf5_header import header
from flowcompute.spec import Spec

UNNAMED = "data"
"""Key of a dataset that nobody has named."""
_MOST_KEY = 1 << 10
_DTYPES = tuple(np.dtype(code) for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"))


class Hdf5Sink(StoredSink):
    """A dataset in an HDF5 file. `fc.save` makes it.

    Attributes:
        key: path of the dataset in the file.
    """

    takes_regions = True
    key: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        name: str | None = None,
        files: Files = FILES,
        durable: bool = True,
    ) -> None:
        super().__init__(path, name=name, files=files, durable=durable)
        key = UNNAMED if key is None else key
        parts = key.split("/") if isinstance(key, str) else []
        if (
            not parts
            or any(part in ("", ".", "..") or not part.isprintable() for part in parts)
            or len(key) > _MOST_KEY
        ):
            raise SpecError(
                "cannot use this as the key of a dataset",
                element=name,
                site=self.site,
                expected=f'names of groups and a dataset, "a/b/x", of at most {_MOST_KEY} characters',
                got=short_repr(key),
            )
        self.freeze_fields(key=key)

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that the format has the dtype.

        Raises:
            SpecError: if it does not.
        """
        if spec.dtype not in _DTYPES or sys.byteorder != "little":
            raise SpecError(
                f"cannot write {spec.dtype.name} to an HDF5 file",
                element=self.name or self.label,
                site=self.site,
                expected=", ".join(dtype.name for dtype in _DTYPES) + ", on a machine of little-endian order",
                got=spec.dtype.name,
                hint="cast it: x.astype('float32')",
            )
        super().accept(spec, element)

    def header(self, spec: Spec, length: int | None) -> bytes:
        """Return the bytes before the data, as many for any length."""
        shape = spec.shape if length is None else (length, *spec.shape)
        return header(self.key, spec.dtype, shape)
