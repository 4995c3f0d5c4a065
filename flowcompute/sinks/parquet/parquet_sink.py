"""Results as Parquet tables: a folder of parts, cut at multiples of `chunk` records.

Parts are made of records and of `chunk` alone. The records of the part that is open are kept beside the parts, so
that a job that is killed goes on in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from flowcompute.elements import Destination, Element, StagingArea, State
from flowcompute.elements.creation import packed_rows
from flowcompute.errors import SpecError, short_repr
from flowcompute.files import Draft, EncodedParts, PartsDraft, Unfinished, shown
from flowcompute.sinks.file_sink import AnyDraft, StoredWriter
from flowcompute.sinks.folder_sink import FolderSink
from flowcompute.sinks.parquet import _pyarrow_writer
from flowcompute.sinks.saved_arrays import SavedArray, name_of, named_values
from flowcompute.spec import UINT8, Spec

UNNAMED = "data"
"""The column of a stream without a name."""

SUFFIX = ".parquet"

_MOST_NAME = 1 << 12
_MOST_LIST = 1 << 20
_PART = re.compile(r"part-[0-9]{10}\.parquet")
_DTYPES = tuple(np.dtype(code) for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"))


class ParquetSink(FolderSink):
    """A table in a folder of Parquet files. `fc.save` makes it.

    It takes streams by their names, or one stream. They are written as one stream of rows.

    Attributes:
        columns: of the table, in its order; empty before it has its input.
    """

    takes_named = True
    takes_numbers = False
    takes_regions = True
    what, kind = "a Parquet table", "Parquet table"
    chunk_bytes = 64 << 20
    most_chunk_bytes = 1 << 40
    columns: tuple[SavedArray, ...] = ()

    @property
    def encoder(self) -> str:  # type: ignore[override]
        """Version of pyarrow."""
        return _pyarrow_writer.version()

    def bind(self, element: Any) -> Destination:
        """Return a copy of this destination with streams as its columns: a mapping of names, or one stream.

        Raises:
            SpecError: if pyarrow is missing, a name is none, a value is no stream, or lengths differ.
        """
        if isinstance(element, Element):
            element = {name_of(element) or UNNAMED: element}
        values = named_values(element, self.label, self._check_name, self._refused)
        for name, value in values.items():
            self._check_column(name, value)
        columns = [SavedArray(name, value.dtype, value.spec.shape) for name, value in values.items()]
        return self.with_columns(columns).bound_to(packed_rows(list(values.values())))

    def bound_to(self, element: Element) -> Destination:
        """Return a copy of this destination with the stream of rows as its input."""
        return super().bind(element)

    def with_columns(self, columns: Sequence[SavedArray]) -> ParquetSink:
        """Return a copy of this destination that writes rows as these columns."""
        problem = _pyarrow_writer.problem()
        if problem is not None:
            raise SpecError(
                f"cannot write {shown(self.path)}: a package is missing",
                element=self.name or self.label,
                site=self.site,
                expected="pyarrow",
                got=str(problem),
                hint='pip install "flowcompute[parquet]"',
            )
        for one in columns:
            self._check_name(one.name)
        twin = self._copy()
        twin.freeze_fields(columns=tuple(columns))
        return twin

    def accept(self, spec: Spec, element: Element) -> None:
        """Check that rows are those of the columns.

        Raises:
            SpecError: if they are not, or a file would be too large.
        """
        size = sum(one.size_bytes for one in self.columns)
        if not spec.is_stream or (spec.dtype, spec.shape) != (UINT8, (size,)) or not size:
            raise self._refused("these rows", f"rows of {size} bytes", str(spec))
        super().accept(spec, element)

    def held_bytes(self, spec: Spec) -> int:
        """Return the bytes of the rows that are encoded together."""
        return _pyarrow_writer.held_bytes(spec.item_bytes, self.records_of_chunk(spec))

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME or not name.isprintable():
            raise self._refused(
                "a column under this name", f"printable text of at most {_MOST_NAME} characters", short_repr(name),
                'give names: fc.table({"a": x}) >> fc.save("y.parquet")',
            )  # fmt: skip

    def _check_column(self, name: str, value: Element) -> None:
        spec = value.spec
        if not spec.is_stream:
            raise self._refused(f"column {name!r}", "a stream", str(spec), "save a resident value as .npy")
        if len(spec.shape) > 1 or not all(0 < size <= _MOST_LIST for size in spec.shape):
            raise self._refused(
                f"column {name!r}", f"numbers, or lists of 1 to {_MOST_LIST} numbers", str(spec),
                "give each part of an item a column of its own, or reshape it",
            )  # fmt: skip
        if spec.dtype not in _DTYPES:
            wanted = ", ".join(dtype.name for dtype in _DTYPES)
            raise self._refused(f"column {name!r}", wanted, spec.dtype.name, "cast it: x.astype('float32')")

    def _refused(self, what: str, expected: str, got: str, hint: str | None = None) -> SpecError:
        return SpecError(
            f"cannot write {what} to {shown(self.path)}",
            element=self.name or self.label,
            site=self.site,
            expected=expected,
            got=got,
            hint=hint,
        )

    # -- the folder -----------------------------------------------------------------------------------------

    def draft(
        self,
        spec: Spec,
        *,
        token: str | None = None,
        unfinished: Unfinished | None = None,
        joined: str | None = None,
    ) -> PartsDraft:
        """Begin the folder of a table, continue it, or join it."""
        rows = self.records_of_chunk(spec)
        parts = EncodedParts(rows * spec.item_bytes, SUFFIX, partial(_encode, self.columns, rows))
        return PartsDraft(
            self.files,
            self.target,
            parts,
            replaces=self.overwrite,
            durable=self.durable,
            token=token,
            unfinished=unfinished,
            joined=joined,
        )

    def complete(self, draft: AnyDraft, spec: Spec, length: int | None, size: int) -> None:  # noqa: ARG002
        """Encode the parts that are still rows: the last, and those that several processes have written."""
        assert not isinstance(draft, Draft)
        draft.complete(size, {})

    def is_own(self, names: Collection[str]) -> bool:
        """Check whether there are parts alone."""
        return all(_PART.fullmatch(name) for name in names)

    def _writer(
        self, spec: Spec, *, token: str | None = None, state: State | None = None, joined: str | None = None
    ) -> ParquetWriter:
        return ParquetWriter(self, spec, token=token, state=state, joined=joined)


class ParquetWriter(StoredWriter):
    """Writer of parts. What it says of itself counts the bytes of the open part, which are kept as they are."""

    _kept = 0  # bytes of the rows that the last checkpoint counts

    def _reopen_draft(self, sink: Any, state: State) -> None:
        size = int(state["written"]) * self._spec.item_bytes
        super()._reopen_draft(sink, {**state, "bytes": size})
        self._parts().pin(size)
        self._kept = size

    def snapshot(self) -> State:
        """Return the records written, the bytes of the open part, and the path of the temporary folder."""
        self._parts().pin(self._bytes)
        part = self._sink.records_of_chunk(self._spec) * self._spec.item_bytes  # type: ignore[attr-defined]
        return {**super().snapshot(), "bytes": self._bytes % part}

    def persist(self, state: State, place: StagingArea) -> State:
        """Make parts and open records durable; see `Writer.persist`."""
        kept = super().persist(state, place)
        # The checkpoint of before this one counts until this one is there.
        self._parts().unpin(self._kept)
        self._kept = int(state["written"]) * self._spec.item_bytes
        return kept

    def _parts(self) -> PartsDraft:
        draft = self._open_draft()
        assert isinstance(draft, PartsDraft)
        return draft


def _encode(columns: Sequence[SavedArray], rows: int, read_into: Any, size: int, write: Any) -> None:
    _pyarrow_writer.encode(columns, read_into, size, write, rows)
