"""Streams from .npy files."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from flowcompute.elements import user_site
from flowcompute.errors import SourceError, SpecError
from flowcompute.files import FILES, Files, Fingerprint, shown
from flowcompute.objects import layer_of
from flowcompute.sources.file_source import StoredSource, located, probe
from flowcompute.sources.layout import Layout
from flowcompute.sources.npy_header import Header, HeaderError, read_header
from flowcompute.spec import BFLOAT16, parse_dtype

_VOID2 = np.dtype("V2")


class NpySource(StoredSource):
    """The array in a .npy file as a stream along its axis 0. `fc.open` makes it.

    C order is mapped or read. Fortran order and the other byte order are always read, Fortran order column by
    column and so more slowly. Only plain numbers are accepted, and only a file of exactly the size that its
    header says. Nothing is ever unpickled.

    Args:
        path: the file.
        dtype: needed for bfloat16 only, which .npy files hold as nameless 2-byte values.
        name: what plans and errors call it.
        files: the file layer.

    Raises:
        SourceError: if the file cannot be read or is not such a file.
        SpecError: if `dtype` differs from the file's.
    """

    format = "npy"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: npt.DTypeLike | None = None,
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
                header = read_header(read, fingerprint.size)
            except HeaderError as error:
                raise SourceError(
                    f"cannot read {shown(where)}: {error.message}",
                    element=name,
                    site=user_site(),
                    expected=error.expected,
                    got=error.got,
                    hint=error.hint,
                ) from None
        layout = _layout(header, where, name, dtype)
        _check_size(layout, where, name, fingerprint)
        super().__init__(where, layout, fingerprint, name=name, files=files)


def _layout(header: Header, path: str, name: str | None, dtype: npt.DTypeLike | None) -> Layout:
    """Return the layout that a header describes.

    Raises:
        SourceError, SpecError: if it describes none that can be read.
    """
    if not header.shape:
        raise SourceError(
            f"cannot stream {shown(path)}: it holds a single number",
            element=name,
            site=user_site(),
            expected="an array of at least one axis",
            got="shape ()",
            hint="fc.constant(np.load(path))",
        )
    stored = _stored_dtype(header.dtype, path, name, dtype)
    return Layout(stored, header.shape[1:], header.shape[0], header.offset, header.fortran)


def _stored_dtype(found: np.dtype, path: str, name: str | None, asked: npt.DTypeLike | None) -> np.dtype:
    try:
        wanted: np.dtype | None = None if asked is None else parse_dtype(asked)
    except TypeError as error:
        raise SpecError(str(error), element=name, site=user_site()) from None
    if found == _VOID2:
        if wanted is not None and wanted == BFLOAT16:
            return wanted
        raise SourceError(
            f"cannot read {shown(path)}: it holds 2-byte values without a dtype (V2)",
            element=name,
            site=user_site(),
            expected="a numeric dtype",
            got="V2, as which NumPy saves bfloat16",
            hint='if they are bfloat16, say so: fc.open(path, dtype="bfloat16")',
        )
    if wanted is not None and wanted != parse_dtype(found):
        raise SpecError(
            f"cannot read {shown(path)} as another dtype than its own",
            element=name,
            site=user_site(),
            expected=found.name,
            got=f"dtype={wanted.name}",
            hint="leave dtype= out and cast: fc.open(path).astype(...)",
        )
    return found


def _check_size(layout: Layout, path: str, name: str | None, fingerprint: Fingerprint) -> None:
    """Compare the size of the file with the size that its header says. Python's integers do not overflow.

    Raises:
        SourceError: if they differ.
    """
    site = user_site()
    if layout.item_bytes == 0 and layout.length:
        raise SourceError(
            f"cannot check the length of {shown(path)}: its items have no bytes",
            element=name,
            site=site,
            expected="items of at least one number",
            got=f"shape {(layout.length, *layout.item_shape)}",
        )
    if layout.item_bytes >= 1 << 63:
        raise SourceError(
            f"cannot read {shown(path)}: its items are larger than any memory",
            element=name,
            site=site,
            expected="items of less than 2**63 bytes",
            got=f"{layout.item_bytes} bytes",
        )
    expected = layout.offset + layout.length * layout.item_bytes
    if fingerprint.size != expected:
        state = "shorter" if fingerprint.size < expected else "longer"
        raise SourceError(
            f"cannot read {shown(path)}: it is {state} than its header says",
            element=name,
            site=site,
            expected=f"{expected} bytes ({layout.dtype.name} of shape {(layout.length, *layout.item_shape)})",
            got=f"{fingerprint.size} bytes",
            hint="it was cut off, or is still being written: copy or write it again"
            if fingerprint.size < expected
            else "there is something after the array: save the array alone",
        )
