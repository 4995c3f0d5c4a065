"""Formats of files by their extensions."""

from __future__ import annotations

import os

FORMATS = {".npy": "npy", ".raw": "raw", ".bin": "raw", ".dat": "raw", ".zarr": "zarr",
           ".h5": "hdf5", ".hdf5": "hdf5", ".nc": "hdf5", ".safetensors": "safetensors",
           ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}  # fmt: skip
"""The format that an extension stands for, for reading and writing alike."""

FOREIGN_FORMATS = frozenset((".csv", ".json", ".mat", ".npz", ".pickle", ".pkl", ".tsv", ".txt"))
"""Extensions of formats that are not read or written: what to do instead is told."""


def format_of(path: str) -> str | None:
    """Return the format that the extension of a path stands for, or None."""
    return FORMATS.get(os.path.splitext(path)[1].lower())
