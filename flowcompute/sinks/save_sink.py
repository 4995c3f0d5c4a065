"""`fc.save`: results in files, by their extension or by `format=`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

from flowcompute.elements import Destination, user_site
from flowcompute.elements.arguments import flag, one_of, whole
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import (
    FILES,
    FOREIGN_FORMATS,
    FORMATS,
    Files,
    StoreError,
    format_of,
    is_url,
    shown,
    without_secrets,
)
from flowcompute.objects import UrlError
from flowcompute.sinks.file_sink import StoredSink, file_path
from flowcompute.sinks.hdf5 import Hdf5Sink
from flowcompute.sinks.npy_sink import NpySink
from flowcompute.sinks.objects import UploadSink, ZarrObjectsSink, draft_target
from flowcompute.sinks.parquet import ParquetSink
from flowcompute.sinks.raw_sink import RawSink
from flowcompute.sinks.safetensors_sink import SafetensorsSink
from flowcompute.sinks.zarr import ZarrSink

MOST_RECORDS = 1 << 40
WRITTEN = {*FORMATS.values()} - {"arrow"}
READ_ONLY = (".nc", ".arrow", ".feather")
KEYED = ("hdf5", "safetensors")
SINGLE: dict[str, Callable[..., StoredSink]] = {
    "npy": NpySink,
    "raw": RawSink,
    "safetensors": SafetensorsSink,
    "hdf5": Hdf5Sink,
}
FOLDERS = {"zarr": ZarrSink, "parquet": ParquetSink}


def save(
    path: str | os.PathLike[str],
    *,
    format: Literal["npy", "raw", "safetensors", "hdf5", "zarr", "parquet"] | None = None,
    key: str | None = None,
    chunk: int | None = None,
    overwrite: bool = False,
    name: str | None = None,
    durable: bool = True,
    files: Files = FILES,
) -> Destination:
    """Write the result to a file. The value of the root is the path.

    The file is written under a temporary name beside `path`. It gets its name when it is complete and durable,
    so that there is never half a file under that name. A file that is replaced keeps its permission bits. Where
    `path` is a symbolic link, the link itself is replaced, not its target.

    Args:
        path: the file; its folder must exist when the job runs. A URL stands for an object, "s3://bucket/y.npy", or
            for a Zarr array of objects, "s3://bucket/y.zarr"; and so with gs://, az:// and memory://, where
            `flowcompute[objects]` is installed.
        format: "npy", "raw", "safetensors", "hdf5", "zarr" or "parquet"; by default that of the extension (.npy;
            .raw, .bin or .dat; .safetensors; .h5 or .hdf5; .zarr; .parquet). A safetensors file takes several
            resident values, too: a mapping of names, `{"w": w, "b": b} >> fc.save(path)`, a list of elements with
            names, or what is trained. `fc.weights` reads it. A Parquet table takes streams as its columns:
            `fc.table({"a": x, "b": y}) >> fc.save(path)`. It is a folder of files.
        key: name of the array in a safetensors file, or path of the dataset in an HDF5 file, such as "a/b/x"; by
            default the name of the value, or "data".
        chunk: records in a chunk of a Zarr array, by default as many as have 4 MiB; or in a file of a Parquet table,
            by default as many as have 64 MiB.
        overwrite: whether an array or a table of that name that is a folder is replaced, in one moment. Files of other
            formats always are.
        name: what plans and errors call it.
        durable: whether the file gets its name only when the disk has it. With False the run ends sooner, and a
            power cut soon after may leave a file without its content.
        files: the file layer.

    Raises:
        SpecError: if the format is not known or has no chunks, or no file can have this path.
    """
    if is_url(path):
        said: dict[str, Any] = {"format": format, "key": key, "chunk": chunk, "overwrite": overwrite}
        return _save_object(str(path), **said, name=name, durable=durable, files=files)
    text = file_path(path, name)
    chosen = format_of(text) if format is None else one_of(name, "format", format, sorted(WRITTEN))
    if os.path.splitext(text)[1].lower() in READ_ONLY and format is None:
        raise SpecError(
            f"cannot save to {shown(text)}: such files are read, and not written",
            element=name,
            site=user_site(),
            expected=", ".join(one for one in FORMATS if one not in READ_ONLY),
            hint="save as .h5, which programs for NetCDF-4 read too, or each column as .npy",
        )
    if key is not None and chosen is not None and chosen not in KEYED:
        raise SpecError(
            f"cannot use key= for a {chosen} file: it has one array",
            element=name,
            site=user_site(),
            expected="no key=, or a format of several arrays: .h5, .safetensors",
            hint="leave it out",
        )
    if chosen in FOLDERS:
        records = None if chunk is None else whole(name, "chunk", chunk, least=1, most=MOST_RECORDS)
        replaces = flag(name, "overwrite", overwrite)
        return FOLDERS[chosen](path, chunk=records, overwrite=replaces, name=name, files=files, durable=durable)
    if chosen is not None and (chunk is not None or overwrite):
        raise SpecError(
            f"cannot use chunk= or overwrite= for a {chosen} file",
            element=name,
            site=user_site(),
            expected="neither, or a format of folders: .zarr, .parquet",
            hint="leave them out: such a file has no chunks, and replaces an older one",
        )
    if chosen == "npy":
        return NpySink(path, name=name, files=files, durable=durable)
    if chosen == "raw":
        return RawSink(path, name=name, files=files, durable=durable)
    if chosen == "safetensors":
        return SafetensorsSink(path, key=key, name=name, files=files, durable=durable)
    if chosen == "hdf5":
        return Hdf5Sink(path, key=key, name=name, files=files, durable=durable)
    extension = os.path.splitext(text)[1]
    if extension.lower() in FOREIGN_FORMATS:
        raise SpecError(
            f"cannot save to {shown(text)}: {extension} files are not written",
            element=name,
            site=user_site(),
            expected=", ".join(one for one in FORMATS if one not in READ_ONLY),
            got=extension,
            hint="save as .npy, or resolve the result and write its array by what writes such files",
        )
    raise SpecError(
        f"cannot tell the format of {shown(text)}",
        element=name,
        site=user_site(),
        expected=", ".join(one for one in FORMATS if one not in READ_ONLY),
        got=short_repr(extension),
        hint='say which: format="npy", "raw", "safetensors", "hdf5", "zarr" or "parquet"',
    )


def _save_object(
    url: str,
    *,
    format: str | None,
    key: str | None,
    chunk: int | None,
    overwrite: bool,
    name: str | None,
    durable: bool,
    files: Files,
) -> Destination:
    """Return a destination in an object store."""
    chosen = format_of(url) if format is None else one_of(name, "format", format, sorted(WRITTEN))
    said = without_secrets(url)
    if chosen not in ("zarr", *SINGLE):
        raise SpecError(
            f"cannot save to {said}: objects of this format are not written",
            element=name,
            site=user_site(),
            expected=".npy, .raw, .h5, .safetensors, .zarr",
            got=chosen or short_repr(os.path.splitext(said)[1]),
            hint="save to a local file, and copy it",
        )
    if overwrite or (chunk is not None and chosen != "zarr") or (key is not None and chosen not in KEYED):
        raise SpecError(
            f"cannot use these options for {said}",
            element=name,
            site=user_site(),
            expected="chunk= of a Zarr array, key= of .h5 or .safetensors; an array in a store is never replaced",
            hint="leave out what does not apply; remove an old array by the store's own tools",
        )
    try:
        if chosen == "zarr":
            records = None if chunk is None else whole(name, "chunk", chunk, least=1, most=MOST_RECORDS)
            return ZarrObjectsSink(url, chunk=records, name=name)
        keyed = {"key": key} if chosen in KEYED else {}
        return UploadSink(
            url, SINGLE[chosen](draft_target(url), name=name, files=files, durable=durable, **keyed), name=name
        )
    except UrlError as error:
        raise SpecError(
            f"cannot save here: {error}", element=name, site=user_site(), expected=error.expected, hint=error.hint
        ) from error
    except StoreError as error:
        raise SpecError(f"cannot save to {said}: {error}", element=name, site=user_site(), hint=error.advice) from error
