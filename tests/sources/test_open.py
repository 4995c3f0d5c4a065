"""`fc.open`: which source an argument means, and what is said when it means none."""

import os
from pathlib import Path

import numpy as np
import pytest

from flowcompute.errors import SourceError, SpecError
from flowcompute.sources.file_source import StoredSource
from flowcompute.sources.npy_source import NpySource
from flowcompute.sources.open_source import open as fc_open
from flowcompute.sources.raw_source import RawSource
from flowcompute.sources.several import SeveralSource
from flowcompute.spec import Stream

HERE = os.path.basename(__file__)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in (1, 2, 10):
        np.save(tmp_path / f"x{k}.npy", np.full(2, k, np.float32))
    np.zeros(6, np.float32).tofile(tmp_path / "x.raw")
    return tmp_path


@pytest.mark.parametrize("path", ["x1.npy", Path("x1.npy")])
def test_relative_paths_are_settled_when_composed(
    folder: Path, path: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    source = fc_open(path)
    assert isinstance(source, NpySource)
    assert source.path == str(folder / "x1.npy")
    monkeypatch.chdir("/")
    source.open().close()


@pytest.mark.parametrize("name", ["y.raw", "y.bin", "y.dat", "y.RAW"])
def test_raw_files_by_extension(folder: Path, name: str) -> None:
    (folder / "x.raw").rename(folder / name)
    source = fc_open(folder / name, dtype="f4", shape=(3,))
    assert isinstance(source, RawSource)
    assert source.shape == (2, 3)


def test_the_format_may_be_said(folder: Path) -> None:
    (folder / "x1.npy").rename(folder / "y")
    assert isinstance(fc_open(folder / "y", format="npy"), NpySource)
    source = fc_open(folder / "y", format="raw", dtype="<f4", offset=128, name="y")
    assert isinstance(source, RawSource)
    assert source.spec.stream == Stream(2)
    assert source.name == "y"


def test_patterns_and_lists_give_several(folder: Path) -> None:
    source = fc_open(os.path.join(folder, "x*.npy"))
    assert isinstance(source, SeveralSource)
    assert [os.path.basename(part.path) for part in source.sources] == ["x1.npy", "x10.npy", "x2.npy"]
    listed = fc_open([folder / "x2.npy", str(folder / "x1.npy"), folder / "x2.npy"])
    assert isinstance(listed, SeveralSource)
    assert [os.path.basename(part.path) for part in listed.sources] == ["x2.npy", "x1.npy", "x2.npy"]
    assert isinstance(fc_open(folder.glob("x?.npy")), SeveralSource)
    assert isinstance(fc_open(folder / "x*.raw", dtype="f4"), RawSource)
    assert isinstance(fc_open([folder / "x1.npy"]), NpySource)


def test_patterns_may_span_folders(folder: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "x1.npy").rename(folder / "a" / "b" / "z.npy")
    (folder / "x2.npy").rename(folder / "z.npy")
    source = fc_open(os.path.join(folder, "**", "z.npy"))
    assert isinstance(source, SeveralSource)
    assert len(source.sources) == 2


def test_a_file_may_have_the_name_of_a_pattern(folder: Path) -> None:
    (folder / "x1.npy").rename(folder / "x[1].npy")
    source = fc_open(folder / "x[1].npy")
    assert isinstance(source, StoredSource)
    assert source.path.endswith("x[1].npy")


def test_missing_files_are_named_in_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for path in ("none.npy", "no/such/none.npy", "x1.npy/none.npy"):
        with pytest.raises(SourceError) as caught:
            fc_open(path)
        for word in (str(folder / path), HERE, "ENO"):
            assert word in str(caught.value)


@pytest.mark.parametrize("path", ["z*.npy", "no/such/*.npy", "[z].npy"])
def test_a_pattern_without_a_match_is_an_error(folder: Path, path: str) -> None:
    with pytest.raises(SourceError, match="no file matches") as caught:
        fc_open(folder / path)
    assert str(folder / path) in str(caught.value)
    with pytest.raises(SourceError, match="empty list"):
        fc_open([])


def test_one_bad_file_of_several_is_named(folder: Path) -> None:
    os.truncate(folder / "x10.npy", 130)
    with pytest.raises(SourceError, match=r"x10\.npy"):
        fc_open(folder / "x*.npy")


@pytest.mark.parametrize("path", ["x.table", "x", "x.npy.gz"])
def test_unknown_formats_are_refused(folder: Path, path: str) -> None:
    (folder / path).touch()
    with pytest.raises(SpecError, match="format=") as caught:
        fc_open(folder / path)
    assert HERE in str(caught.value)
    with pytest.raises(SpecError, match="csv"):
        fc_open(folder / path, format="csv")  # type: ignore[arg-type]


def test_a_folder_is_refused_with_a_pattern_as_hint(folder: Path) -> None:
    with pytest.raises(SourceError, match=r"\*\.npy"):
        fc_open(folder)
    (folder / "y.npy").mkdir()
    with pytest.raises(SourceError, match="folder"):
        fc_open(folder / "y.npy")


def test_arguments_that_contradict_the_format_are_refused(folder: Path) -> None:
    for arguments in ({"shape": (2,)}, {"offset": 128}, {"shape": ()}):
        with pytest.raises(SpecError, match="raw"):
            fc_open(folder / "x1.npy", **arguments)
    with pytest.raises(SpecError, match="dtype="):
        fc_open(folder / "x.raw")


@pytest.mark.parametrize("path", [None, 3, b"x.npy", ["x.npy", 3], "", "\0", [""], object()])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(SpecError) as caught:
        fc_open(path)  # type: ignore[arg-type]
    assert HERE in str(caught.value)


def test_names_with_control_characters_are_escaped(folder: Path) -> None:
    path = folder / "a\x1b[2J.npy"
    for make in (lambda: None, lambda: path.write_bytes(b"x")):
        make()
        with pytest.raises(SourceError) as caught:
            fc_open(path)
        assert "\x1b" not in str(caught.value)
