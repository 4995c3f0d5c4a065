"""Chunks of HDF5 files of which h5py does not tell everything, and chunks with more than they should have."""

from __future__ import annotations

import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SourceError

X = np.arange(40, dtype="f4").reshape(20, 2)


def test_shuffled_chunks_are_read_only_where_none_is_cut(tmp_path: Path) -> None:
    """HDF5 may leave chunks at an edge unfiltered, with the mask of filtered ones."""
    for rows, cut in ((5, False), (7, True)):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("x", data=X, chunks=(rows, 2), shuffle=True)
        if cut:
            with pytest.raises(SourceError, match="'x': its chunks are shuffled alone"):
                fc.open(tmp_path / "x.h5", key="x")
        else:
            np.testing.assert_array_equal(fc.open(tmp_path / "x.h5", key="x").resolve(progress=False), X)


@pytest.mark.parametrize(
    ("mask", "data", "text"),
    [(0, zlib.compress(X.tobytes()) + b"x", "bytes behind its compressed ones"), (2, X.tobytes(), "its mask leaves")],
)
def test_chunks_with_more_than_they_should_have_are_refused(tmp_path: Path, mask: int, data: bytes, text: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", X.shape, "f4", chunks=X.shape, compression="gzip")
        dataset.id.write_direct_chunk((0, 0), data, mask)
    with pytest.raises(SourceError, match=rf"chunk \(0, 0\) of 'x' in(.|\n)*{text}") as caught:
        fc.open(tmp_path / "x.h5", key="x").resolve(progress=False)
    assert caught.value.records == (0, 20)


def test_what_a_reader_holds_has_the_places_of_all_chunks(tmp_path: Path) -> None:
    held = []
    for count in (100, 1100):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("x", data=np.zeros(count, "u1"), chunks=(1,), compression="gzip")
        held.append(fc.open(tmp_path / "x.h5", key="x").held_bytes)  # type: ignore[union-attr]
    assert held[1] - held[0] == 1000 * 32
