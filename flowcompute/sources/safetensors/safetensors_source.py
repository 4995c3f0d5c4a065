"""An array of a safetensors file as a stream of its records along axis 0."""

from __future__ import annotations

import os

from flowcompute.elements import user_site
from flowcompute.errors import SourceError
from flowcompute.files import FILES, Files, shown
from flowcompute.objects import layer_of
from flowcompute.sources.file_source import StoredSource, located, probe
from flowcompute.sources.keyed import no_such_key
from flowcompute.sources.layout import Layout
from flowcompute.sources.safetensors.header import DTYPES, read_safetensors
from flowcompute.sources.safetensors.tensors import WeightsHeaderError


class SafetensorsSource(StoredSource):
    """An array of a safetensors file. `fc.open` makes it.

    Args:
        path: the file.
        key: name of the array; may be left out of a file with one.
        name: what plans and errors call it.
        files: the file layer.

    Raises:
        SourceError: if the file cannot be read, is none such, or has no array of that name and at least one axis.
    """

    format = "safetensors"

    key: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        name: str | None = None,
        files: Files = FILES,
    ) -> None:
        where = located(path, name)
        files = layer_of(where, files)
        with probe(where, element=name, site=user_site(), files=files) as (handle, fingerprint):

            def read(offset: int, count: int) -> bytes:
                data = bytearray(count)
                return bytes(data[: files.read_into(handle, memoryview(data), offset)])

            try:
                header = read_safetensors(read, fingerprint.size)
            except WeightsHeaderError as error:
                raise error.of_file(shown(where), user_site()) from error
        tensors = {one.name: one for one in header.tensors}
        if key is None and len(tensors) == 1:
            (key,) = tensors
        if key is None or key not in tensors:
            no_such_key(where, key, list(tensors), name)
        tensor = tensors[key]
        if tensor.type not in DTYPES or not tensor.shape:
            raise SourceError(
                f"cannot open {key!r} of {shown(where)} as a stream",
                element=name,
                site=user_site(),
                expected=f"an array of at least one axis, of {', '.join(DTYPES)}",
                got=f"{tensor.type} of shape {tensor.shape}",
                hint="fc.weights(path) has the arrays as resident values",
            )
        layout = Layout(DTYPES[tensor.type], tensor.shape[1:], tensor.shape[0], tensor.offset)
        super().__init__(where, layout, fingerprint, name=name, files=files)
        self.freeze_fields(key=key)

    @property
    def identity(self) -> tuple[object, ...]:
        """The file in the state in which it was composed, and the array."""
        return (*super().identity, self.key)
