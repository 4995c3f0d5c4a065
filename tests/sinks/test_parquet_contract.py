"""The contract of destinations for tables. A table takes rows of bytes, so each array is given as its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

import flowcompute as fc
from flowcompute.elements import Destination, Writer
from flowcompute.errors import SpecError
from flowcompute.sinks import ParquetSink
from flowcompute.sinks.saved_arrays import SavedArray
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES, UINT8, Spec
from flowcompute.testing import DestinationContract


class RowsWriter:
    """A writer of arrays, which hands their rows to the writer of a table."""

    def __init__(self, writer: Writer, spec: Spec) -> None:
        self._writer, self._spec = writer, spec
        self.snapshot, self.commit, self.abort = writer.snapshot, writer.commit, writer.abort

    def write(self, array: np.ndarray, start: int) -> None:
        self._writer.write(np.ascontiguousarray(array).reshape(len(array), -1).view(UINT8), start)

    def buffer(self, start: int, stop: int) -> np.ndarray | None:
        rows = self._writer.buffer(start, stop)
        return None if rows is None else rows.view(self._spec.dtype).reshape(stop - start, *self._spec.shape)


class Rows:
    """A table of one column, "x": items of several axes are lists of all their numbers."""

    def __init__(self, sink: ParquetSink) -> None:
        self._sink, self.bound, self.inputs = sink, sink.bound, sink.inputs

    def open(self, spec: Spec) -> RowsWriter:
        numbers = int(np.prod(spec.shape, dtype=int))
        column = SavedArray("x", spec.dtype, (numbers,) if spec.shape else ())
        return RowsWriter(self._sink.with_columns([column]).open(Spec(UINT8, (spec.item_bytes,), spec.stream)), spec)


class TestParquet(DestinationContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, folder: Path) -> Destination:
        return cast("Destination", Rows(cast("ParquetSink", fc.save(folder / "y.parquet", chunk=6))))

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        column = pq.read_table(folder / "y.parquet")["x"].combine_chunks()
        flat = column.flatten() if spec.shape else column
        return np.asarray(flat.to_numpy(zero_copy_only=False), spec.dtype).reshape(len(column), *spec.shape)

    def test_a_resident_value_is_written_whole(self, tmp_path: Path) -> None:  # type: ignore[override]
        """A table has streams alone: the refusal names what to do."""
        with pytest.raises(SpecError, match="a stream"):
            fc.source(np.ones((5, 3), "f4")).sum(axis=0) >> fc.save(tmp_path / "y.parquet")
