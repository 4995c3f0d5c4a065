"""Paths as users give them: patterns, URLs, and formats by their extensions."""

from __future__ import annotations

import glob
import os
import re

FORMATS = {".npy": "npy", ".raw": "raw", ".bin": "raw", ".dat": "raw", ".zarr": "zarr",
           ".h5": "hdf5", ".hdf5": "hdf5", ".nc": "hdf5", ".safetensors": "safetensors",
           ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}  # fmt: skip
"""The format that an extension stands for, for reading and writing alike."""

_ARRAYS = "save each array of it as .npy, by np.save(path, array)"
_TEXTS = (
    "read it in batches: fc.iterate((one.to_numpy() for one in pandas.read_csv(path, chunksize=100_000)), "
    'shape=(columns,), dtype="float64")'
)
_PICTURES = 'fc.iterate((np.asarray(Image.open(one)) for one in paths), shape=(H, W, 3), dtype="uint8", items=True)'
FOREIGN_FORMATS = {
    **dict.fromkeys((".mat", ".npz", ".pickle", ".pkl"), _ARRAYS),
    **dict.fromkeys((".csv", ".json", ".jsonl", ".tsv", ".txt"), _TEXTS),
    **dict.fromkeys((".jpeg", ".jpg", ".png", ".tif", ".tiff"), _PICTURES),
    ".gguf": "fc.models.load(path) is a language model, fc.weights(path) its weights",
    ".onnx": "fc.onnx.load(path) is a model as a function",
}
"""Ways to data in formats that are neither read nor written, by their extensions."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NOT_IN_URLS = re.compile(r"(?<=://).*@|[?#].*", re.DOTALL)


def is_pattern(path: str) -> bool:
    """Check whether a path holds glob characters."""
    return glob.has_magic(path)


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as the text that the system will be given.

    Raises:
        ValueError: if no file can have it: it is not text, is empty, cannot be encoded, or is a URL.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"cannot use a value of type {type(path).__name__} as a path")
    text = os.fspath(path)
    if not isinstance(text, str) or not text or b"\0" in os.fsencode(text):
        raise ValueError(f"cannot use {text!r} as a path")
    if is_url(text):
        raise ValueError(
            f"cannot use {without_secrets(text)!r} as a path: it is a URL, and this place takes local paths"
        )
    return text


def is_url(path: object) -> bool:
    """Check whether a path names an object in a store or on a server: it begins with a scheme, as "s3://" is."""
    return isinstance(path, str) and _URL.match(path) is not None


def without_secrets(url: str) -> str:
    """Return a URL as messages may show it: without a user, a password, a query and a fragment."""
    return _NOT_IN_URLS.sub("", url)


def format_of(path: str) -> str | None:
    """Return the format that the extension of a path stands for, or None."""
    return FORMATS.get(os.path.splitext(path)[1].lower())
