"""Results in safetensors files: arrays by name behind a header of JSON.

Source: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, user_site
from flowcompute.elements.creation import packed
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import FILES, Files, shown
from flowcompute.sinks.file_sink import StoredSink
from flowcompute.sinks.saved_arrays import SavedArray, name_of, named_values
from flowcompute.spec import BFLOAT16, UINT8, Spec

TYPES: dict[np.dtype, str] = {
    BFLOAT16: "BF16",
    **{
        np.dtype(dtype): name
        for name, dtype in (
            ("BOOL", "?"), ("U8", "u1"), ("I8", "i1"), ("U16", "u2"), ("I16", "i2"), ("U32", "u4"), ("I32", "i4"),
            ("U64", "u8"), ("I64", "i8"), ("F16", "f2"), ("F32", "f4"), ("F64", "f8"),
        )
    },
}  # fmt: skip
"""The format's names of types."""

UNNAMED = "data"
"""The array of a value without a name."""

METADATA = "__metadata__"
"""The one name that the format keeps for itself."""

_ALIGNMENT = 64
_MOST_DIGITS = 19
_MOST_HEADER_BYTES = 100_000_000
"""As of the format's own library."""

_MOST_NAME = 1 << 12


class SafetensorsSink(StoredSink):
    """Arrays in a safetensors file. `fc.save` makes it.

    It takes one value, which bears its own name, or several resident values by their names: a mapping, or a list of
    elements that have names. Several are written as one value, their bytes.

    Attributes:
        tensor: name of the one value.
        tensors: the several, in the order of the file; None for one.
        is_named: whether `key=` has said the name.
    """

    takes_named = True
    takes_regions = True
    tensor: str
    tensors: tuple[SavedArray, ...] | None
    is_named: bool

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
        if key is not None:
            self._check_name(key)
        self.freeze_fields(tensor=UNNAMED if key is None else key, tensors=None, is_named=key is not None)

    def bind(self, element: Any) -> Destination:
        """Return a copy of this destination with a value as its input, or with several by name.

        Raises:
            SpecError: if one of several has no name or a stream, or two have the same name.
        """
        if isinstance(element, Element):
            named = self if self.is_named else self.with_tensor(name_of(element) or UNNAMED)
            return named.bound_to(element)
        if self.is_named:
            raise self._refused("several values under one key=", "one value", "several")
        values = self._named(element)
        # Numbers of the widest dtype come first, so that each array lies at a multiple of its own width.
        names = sorted(values, key=lambda name: -values[name].dtype.itemsize)
        tensors = tuple(SavedArray(name, values[name].dtype, values[name].spec.shape) for name in names)
        return self.with_tensors(tensors).bound_to(packed([values[name] for name in names]))

    def bound_to(self, element: Element) -> Destination:
        """Return a copy of this destination with the value that is written as its input."""
        return super().bind(element)

    def with_tensor(self, name: str) -> SafetensorsSink:
        """Return a copy of this destination that writes one value under a name."""
        self._check_name(name)
        twin = self._copy()
        twin.freeze_fields(tensor=name, tensors=None)
        return twin

    def with_tensors(self, tensors: Sequence[SavedArray]) -> SafetensorsSink:
        """Return a copy of this destination that writes bytes as these arrays."""
        for one in tensors:
            self._check_name(one.name)
        twin = self._copy()
        twin.freeze_fields(tensors=tuple(tensors))
        return twin

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that the header is not longer than the format allows, and that the bytes are those of the arrays.

        Raises:
            SpecError: if they are not.
        """
        if self.tensors is not None:
            size = sum(one.size_bytes for one in self.tensors)
            if spec != Spec(UINT8, (size,)):
                raise self._refused("its arrays", f"the bytes of all of them: uint8({size},)", str(spec))
        length = len(self.header(spec, 0 if spec.is_stream else None))
        if length > _MOST_HEADER_BYTES:
            called = element.name or element.label
            raise self._refused(called, f"a header of at most {_MOST_HEADER_BYTES} bytes", f"{length} bytes")

    def header(self, spec: Spec, length: int | None) -> bytes:
        """Return the header, padded so that the data begin at a multiple of 64 bytes."""
        shape = spec.shape if length is None else (length, *spec.shape)
        tensors = self.tensors or (SavedArray(self.tensor, spec.dtype, shape),)
        described, begin = {}, 0
        for one in tensors:
            end = begin + one.size_bytes
            described[one.name] = {
                "dtype": TYPES[one.dtype], "shape": list(one.shape), "data_offsets": [begin, end]
            }  # fmt: skip
            begin = end
        text = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
        # As many bytes for any length: the header is written when the length is known, before the data it is not.
        spare = 0 if length is None else 2 * _MOST_DIGITS - len(str(length)) - len(str(begin))
        room = len(text) + spare
        room += -(8 + room) % _ALIGNMENT
        return room.to_bytes(8, "little") + text.ljust(room)

    def _named(self, given: Any) -> dict[str, Element]:
        """Return resident values by name."""
        values = named_values(given, self.label, self._check_name, self._refused)
        for name, value in values.items():
            if value.spec.is_stream:
                raise self._refused(f"{name!r} beside others", "resident values", str(value.spec),
                                    "save a stream to a file of its own")  # fmt: skip
        return values

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME or not name.isprintable() or name == METADATA:
            raise self._refused(
                "a value under this name", f"printable text of at most {_MOST_NAME} characters", short_repr(name),
                'give names: {"w": w} >> fc.save("w.safetensors")',
            )  # fmt: skip

    def _refused(self, what: str, expected: str, got: str, hint: str | None = None) -> SpecError:
        return SpecError(
            f"cannot write {what} to {shown(self.path)}",
            element=self.name or self.label,
            site=user_site() or self.site,
            expected=expected,
            got=got,
            hint=hint,
        )
