"""Several files as one stream."""

import os
from pathlib import Path

import numpy as np
import pytest

from flowcompute.errors import SourceError
from flowcompute.sources.npy_source import NpySource
from flowcompute.sources.open_source import open as fc_open
from flowcompute.sources.several import SeveralSource
from flowcompute.spec import Stream
from tests.support.faulty_files import FaultyFiles


def write(folder: Path, *lengths: int) -> tuple[list[Path], np.ndarray]:
    whole = np.arange(sum(lengths) * 2, dtype=np.float32).reshape(-1, 2)
    paths, start = [], 0
    for k, length in enumerate(lengths):
        paths.append(folder / f"part{k}.npy")
        np.save(paths[-1], whole[start : start + length])
        start += length
    return paths, whole


@pytest.mark.parametrize("lengths", [(3, 4), (0, 3), (3, 0), (0, 0), (1, 0, 0, 5, 2), (1,) * 9])
@pytest.mark.parametrize("batch", [1, 3, 100])
def test_the_files_are_read_one_after_the_other(tmp_path: Path, lengths: tuple[int, ...], batch: int) -> None:
    paths, whole = write(tmp_path, *lengths)
    files = FaultyFiles()
    element = fc_open(paths, files=files)
    assert element.spec.stream == Stream(len(whole))
    reader = element.open()
    pieces = []
    for start in range(0, len(whole), batch):
        out = np.empty((batch, 2), np.float32)
        count = reader.read(out)
        assert count == min(batch, len(whole) - start)
        assert len(files.handles) <= 1
        pieces.append(out[:count])
    assert reader.read(np.empty((batch, 2), np.float32)) == 0
    reader.check()
    reader.close()
    assert not files.handles
    np.testing.assert_array_equal(np.concatenate([whole[:0], *pieces]), whole)


def test_views_are_not_given_and_the_reason_is(tmp_path: Path) -> None:
    element = fc_open(write(tmp_path, 3, 4)[0])
    assert "2 files" in str(element.must_read())
    reader = element.open(mapped=True)
    assert reader.view(2) is None
    reader.close()


@pytest.mark.parametrize("other", [np.zeros((3, 2)), np.zeros((3, 3), np.float32), np.zeros(3, np.float32)])
def test_files_that_differ_are_both_named(tmp_path: Path, other: np.ndarray) -> None:
    paths, _ = write(tmp_path, 3, 4)
    np.save(tmp_path / "x.npy", other)
    with pytest.raises(SourceError) as caught:
        fc_open([*paths, tmp_path / "x.npy"])
    assert str(paths[0]) in str(caught.value)
    assert str(tmp_path / "x.npy") in str(caught.value)


def test_byte_orders_and_formats_may_differ(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3, dtype=">f4"))
    np.save(tmp_path / "b.npy", np.arange(3, 6, dtype="<f4"))
    reader = fc_open([tmp_path / "a.npy", tmp_path / "b.npy"]).open()
    out = np.empty(6, np.float32)
    assert reader.read(out) == 6
    reader.close()
    np.testing.assert_array_equal(out, np.arange(6))


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_a_change_in_any_of_the_files_is_seen(tmp_path: Path, changed: int) -> None:
    paths, _ = write(tmp_path, 2, 2, 2)
    reader = fc_open(paths).open()
    reader.read(np.empty((3, 2), np.float32))
    reader.check()
    os.utime(paths[changed], (5, 5))
    with pytest.raises(SourceError, match="changed") as caught:
        reader.check()
    assert str(paths[changed]) in str(caught.value)
    if changed > 0:
        with pytest.raises(SourceError, match="changed"):
            reader.read(np.empty((3, 2), np.float32))
    reader.close()


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    paths, _ = write(tmp_path, 2, 2)
    reader = fc_open(paths, name="parts").open()
    os.unlink(paths[1])
    for act in (reader.check, lambda: reader.read(np.empty((4, 2), np.float32))):
        with pytest.raises(SourceError, match="No such file") as caught:
            act()
        assert str(paths[1]) in str(caught.value)
        assert caught.value.element == "parts"
    reader.close()


def test_errors_while_reading_carry_the_elements_name_in_the_plan(tmp_path: Path) -> None:
    paths, _ = write(tmp_path, 2, 2)
    reader = SeveralSource([NpySource(path) for path in paths]).open()
    reader.element = "open_2"
    os.truncate(paths[1], 100)
    with pytest.raises(SourceError) as caught:
        reader.read(np.empty((4, 2), np.float32))
    assert caught.value.element == "open_2"
    reader.close()
