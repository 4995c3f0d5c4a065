"""`fc.open`: files as streams, by their extension or by `format=`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy.typing as npt

from flowcompute.elements import ItemShape, user_site
from flowcompute.elements.arguments import one_of, several
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import FILES, FOREIGN_FORMATS, FORMATS, Files, format_of, is_pattern, is_url, shown
from flowcompute.sources.chunked import ChunkedSource
from flowcompute.sources.columnar import FileTable, open_table
from flowcompute.sources.file_source import StoredSource, located, source_errors
from flowcompute.sources.hdf5 import open_hdf5
from flowcompute.sources.keyed import parse_key
from flowcompute.sources.npy_source import NpySource
from flowcompute.sources.raw_source import RawSource
from flowcompute.sources.safetensors import SafetensorsSource
from flowcompute.sources.several import SeveralSource
from flowcompute.sources.zarr import is_zarr, open_zarr

Path = str | os.PathLike[str]
TABLES = ("parquet", "arrow")
"""Formats of columns."""


def open(
    path: Path | Iterable[Path],
    *,
    format: Literal["npy", "raw", "zarr", "hdf5", "safetensors", "parquet", "arrow"] | None = None,
    key: str | None = None,
    dtype: npt.DTypeLike | None = None,
    shape: ItemShape | None = None,
    offset: int = 0,
    fill: Any = None,
    name: str | None = None,
    files: Files = FILES,
) -> Any:
    """Open a file, or several files one after the other, as a stream of their records.

    Only headers are read here. Their contents are checked against the size of the file.

    Args:
        path: a file, or a list of files in the order wanted. A pattern such as "day-*.npy" (`**` spans folders) stands
            for all files that match, in lexical order. A URL stands for one object: "s3://bucket/x.npy", and so with
            gs://, az://, http://, https:// and memory://, where `flowcompute[objects]` is installed.
        format: "npy", "raw", "zarr", "hdf5", "safetensors", "parquet" or "arrow"; by default that of the extension
            (.npy; .raw, .bin or .dat; .zarr; .h5, .hdf5 or .nc; .safetensors; .parquet; .arrow or .feather). A folder
            that is a Zarr array or group needs none. Of Parquet and Arrow files, or a folder of them whose name ends
            so, the result is an `fc.Table`, whose columns are streams.
        key: name of an array where there are several: of a dataset of HDF5 or NetCDF-4, a tensor of safetensors, or an
            array in a Zarr group, such as "images/train".
        dtype: of a number. Raw files need it, with its byte order where that is not this machine's (">f4"),
            unless the item type in `shape` says it. A .npy file needs it only where its 2-byte values are
            "bfloat16".
        shape: item shape or item type (`fc.Vector(4, "float32")`), of raw files only; `()` by default.
        offset: bytes before the first record, of raw files only.
        fill: number that stands for nulls of columns, or a mapping from columns to such numbers; without it they are
            refused.
        name: what plans and errors call it.
        files: the file layer.

    Raises:
        SourceError: if a file is missing, cannot be read, or has other contents than its format needs.
        SpecError: if the arguments make no sense together.
    """

    def one(file: Path) -> StoredSource | ChunkedSource | FileTable:
        said = {"format": format, "key": key, "dtype": dtype, "shape": shape, "offset": offset, "fill": fill}
        return _open_one(file, **said, name=name, files=files)

    if isinstance(path, (str, os.PathLike, bytes)):
        # The name of a file or an object may hold the characters of a pattern.
        where = located(path, name)
        if not is_pattern(where) or is_url(where) or os.path.lexists(where):
            return one(where)
        paths: list[Path] = list(_matching(where, name, files))
        got = f"no file matches {shown(where)}"
    else:
        paths = _listed(path, name)
        got = "an empty list"
    if not paths:
        raise SourceError(
            "cannot open a stream without files", element=name, site=user_site(), expected="at least one file", got=got
        )
    opened = [one(file) for file in paths]
    if len(opened) == 1:
        return opened[0]
    tables = [part for part in opened if isinstance(part, FileTable)]
    if len(tables) == len(opened):
        return tables[0].joined(tables[1:])
    parts = [part for part in opened if isinstance(part, StoredSource)]
    if len(parts) < len(opened):
        raise SourceError(
            "cannot open tables and arrays, or several arrays in chunks, as one stream",
            element=name,
            site=user_site(),
            expected="one array, or several files of records",
            hint="open each, and join them: fc.concat([fc.open(a), fc.open(b)])",
        )
    return SeveralSource(parts, name=name)


def _open_one(
    path: Path,
    *,
    format: str | None,
    key: str | None,
    dtype: npt.DTypeLike | None,
    shape: ItemShape | None,
    offset: int,
    fill: Any,
    name: str | None,
    files: Files,
) -> StoredSource | ChunkedSource | FileTable:
    where = located(path, name)
    key = parse_key(key, name)
    chosen = format_of(where) if format is None else one_of(name, "format", format, sorted(set(FORMATS.values())))
    remote = is_url(where)
    is_folder = not remote and os.path.isdir(where)
    if (remote and chosen == "zarr") or (
        is_folder and (chosen == "zarr" or (format is None and is_zarr(_names(where, name, files))))
    ):
        if dtype is not None or shape is not None or offset != 0:
            raise SpecError(
                "cannot use dtype=, shape= or offset= for a Zarr array: its metadata says them",
                element=name,
                site=user_site(),
                hint="leave them out",
            )
        return open_zarr(where, key, name=name, files=files)
    if format is None and is_folder and chosen not in TABLES:
        raise SourceError(
            f"cannot open {shown(where)}: it is a folder",
            element=name,
            site=user_site(),
            expected="a file, a pattern or a list of files",
            hint=f"fc.open({os.path.join(os.fspath(path), '*.npy')!r})",
        )
    if fill is not None and chosen not in TABLES:
        raise SpecError(
            f"cannot use fill= for {shown(where)}: it has no nulls",
            element=name,
            site=user_site(),
            expected="a Parquet or Arrow file",
            hint="leave it out",
        )
    if chosen not in (None, "raw") and (shape is not None or offset != 0):
        raise SpecError(
            f"cannot use shape= or offset= for a {chosen} file: it says them itself",
            element=name,
            site=user_site(),
            hint='leave them out, or say format="raw"',
        )
    if chosen in ("hdf5", "safetensors", *TABLES):
        if dtype is not None:
            raise SpecError(
                f"cannot use dtype= for a {chosen} file: it says it itself",
                element=name,
                site=user_site(),
                hint="leave it out, and cast: x.astype(dtype)",
            )
        if chosen in TABLES:
            if key is not None:
                raise SpecError(
                    f"cannot use key= for {shown(where)}",
                    element=name,
                    site=user_site(),
                    hint=f"its columns are streams: fc.open(path)[{key!r}]",
                )
            return open_table(where, chosen, fill=fill, name=name, files=files)
        if chosen == "hdf5":
            return open_hdf5(where, key, name=name, files=files)
        return SafetensorsSource(where, key=key, name=name, files=files)
    if key is not None:
        raise SpecError(
            f"cannot use key= for {shown(where)}: it has one array",
            element=name,
            site=user_site(),
            expected="a file of several arrays, of which key= names one",
            hint="leave it out",
        )
    if chosen == "zarr":
        with source_errors("open", where, element=name, site=user_site()):
            files.stat(where)
        raise SourceError(
            f"cannot open {shown(where)}: it is no folder",
            element=name,
            site=user_site(),
            expected="a Zarr array, which is a folder",
        )
    if chosen == "npy":
        return NpySource(where, dtype=dtype, name=name, files=files)
    if chosen == "raw":
        return RawSource(
            where, dtype=dtype, shape=() if shape is None else shape, offset=offset, name=name, files=files
        )
    extension = os.path.splitext(where)[1]
    if extension.lower() in FOREIGN_FORMATS:
        raise SpecError(
            f"cannot open {shown(where)}: {extension} files are not read",
            element=name,
            site=user_site(),
            expected=", ".join(FORMATS),
            got=extension,
            hint=FOREIGN_FORMATS[extension.lower()],
        )
    raise SpecError(
        f"cannot tell the format of {shown(where)}",
        element=name,
        site=user_site(),
        expected=", ".join(FORMATS),
        got=short_repr(extension),
        hint='say which: format="npy" or format="raw", or another that is listed',
    )


def _names(folder: str, name: str | None, files: Files) -> list[str]:
    with source_errors("look into", folder, element=name, site=user_site()):
        return files.list_folder(folder)


def _matching(pattern: str, name: str | None, files: Files) -> list[str]:
    with source_errors("look for", pattern, element=name, site=user_site()):
        return files.matching(pattern)


def _listed(paths: object, name: str | None) -> list[Path]:
    if isinstance(paths, Iterable):
        listed = several(name, "path", paths, "a path, or a list of paths")
        if all(isinstance(path, (str, os.PathLike)) for path in listed):
            return listed
    raise SpecError(
        "cannot open this: it is neither a path nor a list of paths",
        element=name,
        site=user_site(),
        expected="a str, an os.PathLike, or a list of them",
        got=type(paths).__name__,
    )
