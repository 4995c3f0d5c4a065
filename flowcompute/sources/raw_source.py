"""Streams from files of plain numbers without a header."""

from __future__ import annotations

import math
import operator
import os

import numpy as np
import numpy.typing as npt

from flowcompute.elements import ItemShape, item_dtype, parse_item_shape, user_site
from flowcompute.errors import SourceError, SpecError, short_repr
from flowcompute.files import FILES, Files, shown
from flowcompute.objects import layer_of
from flowcompute.sources.file_source import StoredSource, located, probe
from flowcompute.sources.layout import Layout
from flowcompute.spec import parse_dtype


class RawSource(StoredSource):
    """Records of one dtype and shape, one after the other from `offset` to the end of a file. `fc.open` makes it.

    Args:
        path: the file.
        dtype: of a number, with its byte order where that is not this machine's: ">f4". None where the item
            type in `shape` says it.
        shape: item shape or item type, () by default.
        offset: bytes before the first record.
        name: what plans and errors call it.
        files: the file layer.

    Raises:
        SourceError: if the file cannot be read or does not hold a whole number of records.
        SpecError: if `dtype`, `shape` or `offset` make no sense.
    """

    format = "raw"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: npt.DTypeLike | None = None,
        shape: ItemShape = (),
        offset: int = 0,
        name: str | None = None,
        files: Files = FILES,
    ) -> None:
        where = located(path, name)
        files = layer_of(where, files)
        said = item_dtype(shape, dtype, name)
        if said is None:
            raise SpecError(
                "cannot open a raw file without a dtype",
                element=name,
                site=user_site(),
                expected="dtype=",
                hint='fc.open(path, dtype="float32", shape=(96,))',
            )
        stored = parse_stored_dtype(said, name)
        item_shape = parse_item_shape(shape, name)
        start = _parse_offset(offset, name)
        item_bytes = math.prod(item_shape) * stored.itemsize
        if not 0 < item_bytes < 1 << 63:
            raise SpecError(
                "cannot count the records of a raw file by their bytes",
                element=name,
                site=user_site(),
                expected="1 to 2**63 - 1 bytes a record",
                got=f"{item_bytes} bytes (shape={item_shape})",
            )
        with probe(where, element=name, site=user_site(), files=files) as (_, fingerprint):
            data_bytes = fingerprint.size - start
        if data_bytes < 0:
            raise SourceError(
                f"cannot read {shown(where)}: it ends before its first record",
                element=name,
                site=user_site(),
                expected=f"at least {start} bytes (offset={start})",
                got=f"{fingerprint.size} bytes",
            )
        length, rest = divmod(data_bytes, item_bytes)
        if rest:
            raise SourceError(
                f"cannot read {shown(where)}: it does not hold a whole number of records",
                element=name,
                site=user_site(),
                expected=f"a multiple of {item_bytes} bytes ({stored.name}, shape={item_shape}) after byte {start}",
                got=f"{data_bytes} bytes, {rest} more than {length} records",
                hint="check dtype=, shape= and offset=; or the file was cut off",
            )
        layout = Layout(stored, item_shape, length, start)
        super().__init__(where, layout, fingerprint, name=name, files=files)

    @property
    def identity(self) -> tuple[object, ...]:
        """The file in the state in which it was composed, and the layout of its records."""
        return (*super().identity, self.layout.dtype.str, self.layout.item_shape, self.layout.offset)


def parse_stored_dtype(dtype: npt.DTypeLike, name: str | None) -> np.dtype:
    """Return the dtype in the requested byte order.

    Raises:
        SpecError: if it is not a supported dtype.
    """
    try:
        native = parse_dtype(dtype)
        stored = native if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)
    except TypeError as error:
        raise SpecError(str(error), element=name, site=user_site()) from None
    return native if stored.isnative else stored


def _parse_offset(offset: int, name: str | None) -> int:
    try:
        parsed = operator.index(offset)
    except TypeError:
        parsed = -1
    if parsed < 0 or isinstance(offset, bool):
        raise SpecError(
            "cannot open a raw file at this offset=",
            element=name,
            site=user_site(),
            expected="a whole number of bytes from the start of the file, 0 or more",
            got=short_repr(offset),
        )
    return parsed
