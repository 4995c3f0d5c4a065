from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from flowcompute.demo import ephemeris as demo_data
from flowcompute.demo.ephemeris import Ephemeris, ellipse, find_data
from flowcompute.errors import DestinationError, SourceError
from flowcompute.files.file_layer import Files

ITEMS = 20
FOLDER = "moonpkg-1.0"
MEMBER = f"{FOLDER}/moonpkg/jpl-moon.npy"


def npy_bytes() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(ITEMS * 39, dtype=np.float64).reshape(ITEMS, 3, 13))
    return file.getvalue()


ARRAY = npy_bytes()


def regular(name: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info, data


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


SETUP = b"import os\nopen(os.environ['SETUP_RAN'], 'w').close()\nraise SystemExit('setup.py was executed')\n"
GOOD = archive_of(
    regular(f"{FOLDER}/PKG-INFO", b"Metadata-Version: 1.1\nName: moonpkg\nVersion: 1.0\n"),
    regular(f"{FOLDER}/setup.py", SETUP),
    regular(f"{FOLDER}/moonpkg/jpl-mars.npy", b"not wanted"),
    regular(MEMBER, ARRAY),
)


def pinned(archive: bytes, array: bytes = ARRAY) -> Ephemeris:
    return Ephemeris(
        package="moonpkg",
        version="1.0",
        items=ITEMS,
        archive_bytes=len(archive),
        archive_sha256=hashlib.sha256(archive).hexdigest(),
        array_bytes=len(array),
        array_sha256=hashlib.sha256(array).hexdigest(),
        years="of tests",
        patience_s=60.0,
    )


class FakePip:
    """Stands in for `subprocess.run`: delivers `archive`, or fails with `stderr`, or takes too long."""

    def __init__(self, archive: bytes | None = None, stderr: str = "", too_long: bool = False) -> None:
        self.archive = archive
        self.stderr = stderr
        self.too_long = too_long
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], *, timeout: float, **options: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        assert options["stdin"] == subprocess.DEVNULL
        if self.too_long:
            raise subprocess.TimeoutExpired(command, timeout)
        if self.archive is None:
            return subprocess.CompletedProcess(command, 0 if not self.stderr else 1, "", self.stderr)
        with open(os.path.join(command[command.index("--dest") + 1], f"{FOLDER}.tar.gz"), "wb") as file:
            file.write(self.archive)
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> FakePip:
    fake = FakePip(GOOD)
    monkeypatch.setattr(demo_data.subprocess, "run", fake)
    return fake


def everything_under(folder) -> list[str]:
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def test_fetches_the_one_array_and_leaves_nothing_else(tmp_path, pip):
    folder = tmp_path / "cache" / "demo"
    data = find_data(str(folder), ephemeris=pinned(GOOD))
    assert (data.path, data.generated) == (str(folder / "moonpkg-moon.npy"), False)
    assert "MOONPKG" in data.description
    assert (folder / "moonpkg-moon.npy").read_bytes() == ARRAY
    assert everything_under(tmp_path) == ["cache/demo/moonpkg-moon.npy"]
    [command] = pip.commands
    assert "moonpkg==1.0" in command
    assert "--no-deps" in command


def test_keeps_it_for_next_time(tmp_path, pip):
    first = find_data(str(tmp_path), ephemeris=pinned(GOOD))
    assert find_data(str(tmp_path), ephemeris=pinned(GOOD)) == first
    assert len(pip.commands) == 1


@pytest.mark.parametrize("damage", [ARRAY[:-1], ARRAY + b"\0", ARRAY[:-1] + b"\x7f", b""])
def test_a_kept_file_that_changed_is_fetched_again(tmp_path, pip, damage):
    assert damage != ARRAY
    kept = tmp_path / "moonpkg-moon.npy"
    kept.write_bytes(damage)
    find_data(str(tmp_path), ephemeris=pinned(GOOD))
    assert kept.read_bytes() == ARRAY
    assert len(pip.commands) == 1


@pytest.mark.parametrize(
    ("delivered", "word"),
    [
        (GOOD[:-20], "size"),
        (b"", "size"),
        (bytes([GOOD[0] ^ 1]) + GOOD[1:], "SHA-256"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "SHA-256"),
    ],
    ids=["cut off", "empty", "first byte", "last byte"],
)
def test_an_archive_that_is_not_the_published_one_is_refused(tmp_path, pip, delivered, word):
    pip.archive = delivered
    with pytest.raises(SourceError, match=word):
        find_data(str(tmp_path), ephemeris=pinned(GOOD))
    assert everything_under(tmp_path) == []


def test_success_without_an_archive_is_refused(tmp_path, pip):
    pip.archive = None
    with pytest.raises(SourceError, match=r"cannot find moonpkg-1\.0\.tar\.gz: pip succeeded and left none"):
        find_data(str(tmp_path), ephemeris=pinned(GOOD))


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = to
    return info, b""


@pytest.mark.parametrize(
    "members",
    [
        (regular("../../escaped.npy", ARRAY),),
        (regular("/tmp/escaped.npy", ARRAY),),
        (regular(f"{FOLDER}/moonpkg/../../../jpl-moon.npy", ARRAY),),
        (link(MEMBER, "/etc/hostname"),),
        (regular(f"{FOLDER}/other", ARRAY), link(MEMBER, f"{FOLDER}/other", tarfile.LNKTYPE)),
        (link(MEMBER, "", tarfile.FIFOTYPE),),
        (regular(MEMBER, ARRAY[:-8]),),
        (regular(MEMBER, ARRAY + bytes(8)),),
        (),
    ],
    ids=["up", "absolute", "up inside", "symlink", "hard link", "pipe", "short", "long", "empty"],
)
def test_hostile_archives_write_nothing_anywhere(tmp_path, pip, members):
    # Pinned as if it had been published so: the unpacking must be safe without help from the checksum.
    pip.archive = archive_of(*members)
    folder = tmp_path / "a" / "b" / "c"
    with pytest.raises(SourceError, match="does not hold"):
        find_data(str(folder), ephemeris=pinned(pip.archive))
    assert everything_under(tmp_path) == []


def test_hostile_neighbours_of_the_array_are_ignored(tmp_path, pip):
    pip.archive = archive_of(regular("../../escaped.npy", b"x"), link(f"{FOLDER}/moonpkg", "/"), regular(MEMBER, ARRAY))
    folder = tmp_path / "a" / "b"
    find_data(str(folder), ephemeris=pinned(pip.archive))
    assert everything_under(tmp_path) == ["a/b/moonpkg-moon.npy"]


def test_an_array_of_the_right_size_and_wrong_contents_is_refused(tmp_path, pip):
    pip.archive = archive_of(regular(MEMBER, ARRAY[:-1] + b"\x7f"))
    with pytest.raises(SourceError, match="not the published array"):
        find_data(str(tmp_path), ephemeris=pinned(pip.archive))
    assert everything_under(tmp_path) == []


@pytest.mark.parametrize("broken", [b"no gzip at all", GOOD[: len(GOOD) // 2]], ids=["other", "half"])
def test_an_archive_that_cannot_be_read_is_refused(tmp_path, pip, broken):
    pip.archive = broken
    with pytest.raises(SourceError):
        find_data(str(tmp_path), ephemeris=pinned(broken))
    assert everything_under(tmp_path) == []


def test_without_network_generates_and_says_why(tmp_path, pip):
    pip.archive = None
    pip.stderr = "WARNING: retrying\nERROR: no versions\nERROR: No matching distribution found\n\n"
    data = find_data(str(tmp_path), ephemeris=pinned(GOOD))
    assert data.generated
    assert "generated" in data.description
    assert "No matching distribution found" in data.description
    assert everything_under(tmp_path) == ["moonpkg-moon-generated.npy"]
    array = np.load(data.path)
    assert (array.shape, array.dtype, array.flags.c_contiguous) == ((ITEMS, 3, 13), np.float64, True)


@pytest.mark.parametrize("stderr", ["python: No module named pip\n", "   \n"])
def test_without_pip_generates_and_says_something(tmp_path, pip, stderr):
    pip.archive = None
    pip.stderr = stderr
    data = find_data(str(tmp_path), ephemeris=pinned(GOOD))
    assert data.generated
    assert (stderr.strip() or "exit code 1") in data.description


def test_a_download_that_never_ends_is_given_up(tmp_path, pip):
    pip.too_long = True
    data = find_data(str(tmp_path), ephemeris=pinned(GOOD))
    assert data.generated
    assert "60 s" in data.description


def test_what_is_generated_is_deterministic(tmp_path, pip, monkeypatch):
    pip.archive, pip.stderr = None, "ERROR: offline"
    first = Path(find_data(str(tmp_path / "a"), ephemeris=pinned(GOOD)).path).read_bytes()
    monkeypatch.setattr(demo_data, "_CHUNK_ITEMS", 7)
    second = find_data(str(tmp_path / "b"), ephemeris=pinned(GOOD)).path
    np.testing.assert_allclose(np.load(second), np.load(io.BytesIO(first)), rtol=1e-13, atol=1e-6)
    monkeypatch.undo()
    monkeypatch.setattr(demo_data.subprocess, "run", pip)
    assert Path(find_data(str(tmp_path / "c"), ephemeris=pinned(GOOD)).path).read_bytes() == first


def test_the_generated_moon_is_smooth_and_at_the_right_distance():
    items = ellipse(0, 2000)
    points = np.linspace(-1, 1, 21)
    positions = items @ chebyshev.chebvander(points, 12).T
    distance = np.sqrt((positions**2).sum(axis=1))
    assert 356_000 < distance.min() < 364_000
    assert 405_000 < distance.max() < 407_000
    jump = np.abs(positions[1:, :, 0] - positions[:-1, :, -1]).max()
    assert jump < 0.01, "items must join up, in km"


def test_a_full_disk_is_an_error_of_the_family_and_leaves_nothing(tmp_path, pip):
    class Full(Files):
        def write_at(self, handle, data, offset):
            if len(data) > 5000:
                raise OSError(28, "No space left on device")
            super().write_at(handle, data, offset)

    for archive in (GOOD, None):
        pip.archive, pip.stderr = archive, "ERROR: offline"
        with pytest.raises(DestinationError, match="ENOSPC"):
            find_data(str(tmp_path), ephemeris=pinned(GOOD), files=Full())
        assert everything_under(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_an_error_of_the_family(tmp_path, pip):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DestinationError, match="cannot keep demo data"):
        find_data(str(tmp_path / "file" / "demo"), ephemeris=pinned(GOOD))


def test_the_folder_follows_the_environment_when_used(tmp_path, pip, monkeypatch):
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "own"))
    assert find_data(ephemeris=pinned(GOOD)).path == str(tmp_path / "own" / "demo" / "moonpkg-moon.npy")
    monkeypatch.delenv("FLOWCOMPUTE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert demo_data.default_folder() == str(tmp_path / "xdg" / "flowcompute" / "demo")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert demo_data.default_folder() == str(tmp_path / "home" / ".cache" / "flowcompute" / "demo")


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed")
def test_pip_itself_delivers_the_archive_and_runs_nothing_of_it(tmp_path, monkeypatch):
    served = tmp_path / "served"
    served.mkdir()
    (served / f"{FOLDER}.tar.gz").write_bytes(GOOD)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(served))
    monkeypatch.setenv("SETUP_RAN", str(tmp_path / "ran"))
    data = find_data(str(tmp_path / "demo"), ephemeris=pinned(GOOD))
    assert not data.generated, data.description
    assert not (tmp_path / "ran").exists()
    np.testing.assert_array_equal(np.load(data.path), np.arange(ITEMS * 39.0).reshape(ITEMS, 3, 13))
