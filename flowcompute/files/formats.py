"""Formats of files by their extensions."""

from __future__ import annotations

import os

FORMATS = {".npy": "npy", ".raw": "raw", ".bin": "raw", ".dat": "raw", ".zarr": "zarr"}
"""The format that an extension stands for, for reading and writing alike."""

WEIGHTS_FORMATS = {".safetensors": "safetensors"}
"""Formats of several arrays by name, which are written here and read by `fc.weights`."""

FOREIGN_FORMATS = frozenset(
    (".csv", ".feather", ".h5", ".hdf5", ".json", ".mat", ".nc", ".npz", ".parquet", ".pickle", ".pkl", ".tsv", ".txt")
)
"""Extensions of formats that are not read or written: what to do instead is told."""


def format_of(path: str) -> str | None:
    """Return the format that the extension of a path stands for: "npy", "raw" or "safetensors", or None."""
    extension = os.path.splitext(path)[1].lower()
    return FORMATS.get(extension) or WEIGHTS_FORMATS.get(extension)
