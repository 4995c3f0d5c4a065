"""`fc.save`: results in files, by their extension or by `format=`."""

from __future__ import annotations

import os
from typing import Literal

from flowcompute.elements import user_site
from flowcompute.elements.arguments import one_of
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import FILES, FOREIGN_FORMATS, FORMATS, WEIGHTS_FORMATS, Files, format_of, shown
from flowcompute.sinks.file_sink import StoredSink, file_path
from flowcompute.sinks.npy_sink import NpySink
from flowcompute.sinks.raw_sink import RawSink
from flowcompute.sinks.safetensors_sink import SafetensorsSink

WRITTEN = {*FORMATS.values(), *WEIGHTS_FORMATS.values()}


def save(
    path: str | os.PathLike[str],
    *,
    format: Literal["npy", "raw", "safetensors"] | None = None,
    name: str | None = None,
    durable: bool = True,
    files: Files = FILES,
) -> StoredSink:
    """Write the result to a file. The value of the root is the path.

    The file is written under a temporary name beside `path`. It gets its name when it is complete and durable,
    so that there is never half a file under that name. A file that is replaced keeps its permission bits. Where
    `path` is a symbolic link, the link itself is replaced, not its target.

    Args:
        path: the file; its folder must exist when the job runs.
        format: "npy", "raw" or "safetensors"; by default that of the extension (.npy; .raw, .bin or .dat;
            .safetensors). A safetensors file takes several resident values, too: `{"w": w, "b": b} >> fc.save(path)`,
            a list of elements with names, or what is trained. `fc.weights` reads it.
        name: what plans and errors call it.
        durable: whether the file gets its name only when the disk has it. With False the run ends sooner, and a
            power cut soon after may leave a file without its content.
        files: the file layer.

    Raises:
        SpecError: if the format is not known, or no file can have this path.
    """
    text = file_path(path, name)
    chosen = format_of(text) if format is None else one_of(name, "format", format, sorted(WRITTEN))
    if chosen == "npy":
        return NpySink(path, name=name, files=files, durable=durable)
    if chosen == "raw":
        return RawSink(path, name=name, files=files, durable=durable)
    if chosen == "safetensors":
        return SafetensorsSink(path, name=name, files=files, durable=durable)
    extension = os.path.splitext(text)[1]
    if extension.lower() in FOREIGN_FORMATS:
        raise SpecError(
            f"cannot save to {shown(text)}: {extension} files are not written",
            element=name,
            site=user_site(),
            expected=", ".join((*FORMATS, *WEIGHTS_FORMATS)),
            got=extension,
            hint="save as .npy, or resolve the result and write its array by what writes such files",
        )
    raise SpecError(
        f"cannot tell the format of {shown(text)}",
        element=name,
        site=user_site(),
        expected=", ".join((*FORMATS, *WEIGHTS_FORMATS)),
        got=short_repr(extension),
        hint='say which: format="npy", "raw" or "safetensors"',
    )
