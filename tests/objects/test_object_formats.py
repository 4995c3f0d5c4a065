"""Files of each format behind URLs: the records of a local file, of one state, in bounded memory, or an error."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from safetensors.numpy import save_file

import flowcompute as fc
from flowcompute.elements import Source
from flowcompute.errors import CheckpointError, PlanError, SourceError
from flowcompute.files import FileView
from flowcompute.objects import ObjectFiles, parse_url
from flowcompute.objects._obstore import store_of
from flowcompute.testing import SourceContract
from tests.objects.conftest import SECRET
from tests.objects.object_server import FirstFaults, ObjectServer, Request, serving
from tests.sources.test_contracts import ColumnContract

QUIET: dict[str, Any] = {"progress": False, "device": "numpy"}
N = 20_000
X = np.random.default_rng(5).standard_normal((N, 8), dtype=np.float32)
X.view(np.uint32)[...] &= 0xFFFF0000
_numbers = itertools.count()


def zarr_array(path: Path, x: np.ndarray, **options: Any) -> None:
    zarr.create_array(path, data=x, **{"chunks": (2500, *x.shape[1:]), **options})


def group(path: Path, x: np.ndarray) -> None:
    zarr.open_group(path, mode="w").create_array("a/x", data=x, chunks=(2500, 3))


def hdf5(path: Path, x: np.ndarray, **options: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a/x", data=x, **options)


def parquet(path: Path, x: np.ndarray) -> None:
    pq.write_table(columns(x), path, row_group_size=6000, use_dictionary=False)


def table_folder(path: Path, x: np.ndarray) -> None:
    path.mkdir()
    for i, part in enumerate(np.array_split(x, 3)):
        parquet(path / f"part-{i}.parquet", part)


def arrow(path: Path, x: np.ndarray) -> None:
    table = columns(x)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=6000)


def columns(x: np.ndarray) -> pa.Table:
    return pa.table({"pad": np.arange(len(x)), "x": pa.FixedSizeListArray.from_arrays(x.reshape(-1), x.shape[1])})


def named(path: str) -> Source:
    return fc.open(path)["x"]


MADE: dict[str, tuple[str, Callable[[Path, np.ndarray], None], Callable[[str], Source]]] = {
    "zarr": (".zarr", zarr_array, fc.open),
    "zarr of version 2": (".zarr", lambda path, x: zarr_array(path, x, zarr_format=2), fc.open),
    "zarr in shards": (".zarr", lambda path, x: zarr_array(path, x, shards=(10_000, 8)), fc.open),
    "zarr in a group": (".zarr", group, lambda url: fc.open(url, key="a/x")),
    "safetensors": (".safetensors", lambda path, x: save_file({"pad": x[:9], "x": x}, path), lambda url: fc.open(url, key="x")),
    "hdf5": (".h5", hdf5, fc.open),
    "hdf5 in chunks": (".h5", lambda path, x: hdf5(path, x, chunks=(100, 4), shuffle=True, compression="gzip"), fc.open),
    "parquet": (".parquet", parquet, named),
    "parquet folder": (".parquet", table_folder, named),
    "arrow": (".arrow", arrow, named),
}  # fmt: skip


def files_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Endings of the names of its files behind the path, and their bytes; of a file "" alone."""
    if path.is_file():
        yield "", path.read_bytes()
    for one in sorted(path.rglob("*")):
        if one.is_file():
            yield f"/{one.relative_to(path)}", one.read_bytes()


def put(path: Path, url: str | None = None) -> str:
    """Put a file or a folder into memory:// and return its URL."""
    url = url or f"memory://formats/{next(_numbers)}/{path.name}"
    place = parse_url(url)
    for name, data in files_of(path):
        obstore.put(store_of(place)._store, place.key + name, data)
    return url


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("formats")
    made = {}
    for i, (kind, (suffix, write, _)) in enumerate(MADE.items()):
        made[kind] = folder / f"{i}{suffix}"
        write(made[kind], X)
    return made


# -- contracts -------------------------------------------------------------------------------------------


class ObjectContract(SourceContract):
    dtypes = (np.dtype("f4"), np.dtype("?"), np.dtype("i8"))

    def write(self, path: Path, records: np.ndarray) -> None:
        raise NotImplementedError

    def open(self, url: str) -> Source:
        source: Source = fc.open(url)
        return source

    suffix = ".zarr"

    def make(self, records: np.ndarray, folder: Path) -> Source:
        path = folder / f"{next(_numbers)}{self.suffix}"
        self.write(path, records)
        return self.open(put(path))


class TestZarrObject(ObjectContract):
    def write(self, path: Path, records: np.ndarray) -> None:
        zarr.create_array(path, data=records, chunks=tuple(max(1, min(3, size)) for size in records.shape))


class TestSafetensorsObject(ObjectContract):
    suffix = ".safetensors"

    def write(self, path: Path, records: np.ndarray) -> None:
        save_file({"x": np.ascontiguousarray(records)}, path)


class TestHdf5Object(ObjectContract):
    suffix = ".h5"

    def write(self, path: Path, records: np.ndarray) -> None:
        hdf5(path, records)


class TestHdf5ChunksObject(ObjectContract):
    suffix = ".h5"

    def write(self, path: Path, records: np.ndarray) -> None:
        chunks = tuple(max(1, min(3, size)) for size in records.shape)
        hdf5(path, records, chunks=chunks, compression="gzip", maxshape=(None, *records.shape[1:]))


class TestParquetObject(ObjectContract):
    suffix = ".parquet"
    open = staticmethod(named)  # type: ignore[assignment]

    def write(self, path: Path, records: np.ndarray) -> None:
        pq.write_table(ColumnContract.table(self, records), path, row_group_size=3)  # type: ignore[arg-type]


class TestArrowObject(ObjectContract):
    suffix = ".arrow"
    open = staticmethod(named)  # type: ignore[assignment]

    def write(self, path: Path, records: np.ndarray) -> None:
        table = ColumnContract.table(self, records)  # type: ignore[arg-type]
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)


# -- servers ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["s3://bucket", "http"])
def place(request: pytest.FixtureRequest, server: ObjectServer) -> str:
    return f"{server.url}/bucket" if request.param == "http" else str(request.param)


def served(server: ObjectServer, place: str, path: Path) -> str:
    """Put a file or a folder on the server and return its URL. Web servers have no arrays: they do not list."""
    if place.startswith("http") and path.is_dir():
        pytest.skip("servers do not list")
    for name, data in files_of(path):
        server.objects[f"/bucket/{path.name}{name}"] = data
    return f"{place}/{path.name}"


@pytest.mark.parametrize("kind", MADE)
def test_each_get_says_which_state_it_wants(
    kind: str, place: str, server: ObjectServer, local: dict[str, Path]
) -> None:
    url = served(server, place, local[kind])
    source = MADE[kind][2](url)
    composed = sum(len(data) for path, data in server.objects.items()) // 2
    gets = [one for one in server.requests if one.method == "GET" and "prefix=" not in one.path]
    assert len(gets) * (1 << 16) <= composed + (1 << 20)  # headers alone
    got = fc.resolve(source * 1, memory="32MiB", **QUIET)
    np.testing.assert_array_equal(got, X, strict=True)
    gets = [one for one in server.requests if one.method == "GET" and "prefix=" not in one.path]
    assert gets
    assert all(one.condition and one.range for one in gets)
    assert all(SECRET not in repr(one) for one in gets)


@pytest.mark.parametrize("kind", MADE)
def test_no_batch_size_changes_a_bit(kind: str, local: dict[str, Path]) -> None:
    source = MADE[kind][2](put(local[kind]))
    want = fc.resolve(MADE[kind][2](str(local[kind])).sum(axis=0), **QUIET)
    for batch in (97, 1 << 20):
        got = fc.resolve(source.sum(axis=0), strategy=fc.Strategy(batch_bytes=32 * batch), **QUIET)
        assert got.tobytes() == want.tobytes()


def chunks_fail(fault: str, most: int) -> Callable[[Request], str | None]:
    """Faults of what lies behind so many bytes of an object, or in a chunk of an array."""

    def fails(request: Request) -> str | None:
        end = 0 if request.range is None else int(request.range.removeprefix("bytes=").partition("-")[2])
        is_chunk = ".zarr/" in request.path and "zarr.json" not in request.path and ".zarray" not in request.path
        return fault if request.method == "GET" and (is_chunk or end > most) else None

    return fails


@pytest.mark.parametrize("fault", ["500", "503", "403", "short", "other range", "absurd length"])
@pytest.mark.parametrize("kind", MADE)
def test_what_fails_in_the_middle_is_named(kind: str, fault: str, server: ObjectServer, local: dict[str, Path]) -> None:
    url = served(server, "s3://bucket", local[kind])
    source = MADE[kind][2](url)
    server.fault = chunks_fail(fault, 1 << 16)
    with pytest.raises(SourceError) as caught:
        fc.resolve(source.sum(), memory="32MiB", **QUIET)
    text = str(caught.value)
    said = {"500": "status 500", "503": "status 503", "403": "refuses access", "other range": "Content-Range"}
    assert said.get(fault, "ended early") in text
    assert url.rpartition("/")[2] in text
    assert SECRET not in text
    assert "damaged" not in text


@pytest.mark.parametrize("kind", MADE)
def test_what_fails_while_it_is_opened_is_told(kind: str, server: ObjectServer, local: dict[str, Path]) -> None:
    """Each request of opening fails once, so that no library swallows an error or takes it for damage."""
    url = served(server, "s3://bucket", local[kind])
    opener = MADE[kind][2]
    opener(url)
    count = len(server.requests)
    for at in range(count):
        numbers = itertools.count()
        server.fault = lambda request, at=at, numbers=numbers: "403" if next(numbers) == at else None  # type: ignore[misc]
        with pytest.raises(SourceError, match=r"refuses access|cannot") as caught:
            opener(url)
        assert SECRET not in str(caught.value)
        assert "damaged" not in str(caught.value)
        server.fault = lambda request: None
        opener(url)


@pytest.mark.parametrize("kind", MADE)
def test_what_passes_is_tried_again(kind: str, server: ObjectServer, local: dict[str, Path]) -> None:
    url = served(server, "s3://bucket", local[kind])
    # What is asked for again after "short" would begin elsewhere.
    server.fault = FirstFaults(lambda one: (one.path, one.range) if one.method == "GET" else None, "500", "503", None)
    np.testing.assert_array_equal(fc.resolve(MADE[kind][2](url) * 1, **QUIET), X)


@pytest.mark.parametrize("kind", MADE)
def test_what_changes_in_mid_run_is_not_mixed(kind: str, server: ObjectServer, local: dict[str, Path]) -> None:
    url = served(server, "s3://bucket", local[kind])
    source = MADE[kind][2](url)
    last = max(path for path in server.objects if not path.endswith(("json", "zarray", "zattrs")))
    data = server.objects[last]

    def replace(run: object) -> None:
        server.objects[last] = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]

    with pytest.raises(SourceError, match="changed"):
        fc.run(source.sum(), strategy=fc.Strategy(batch_bytes=32 * 500), on_batch=replace, **QUIET)


@pytest.mark.parametrize("kind", MADE)
def test_what_changed_before_the_run_is_refused(kind: str, server: ObjectServer, local: dict[str, Path]) -> None:
    url = served(server, "s3://bucket", local[kind])
    source = MADE[kind][2](url)
    last = max(path for path in server.objects if not path.endswith(("json", "zarray", "zattrs")))
    server.objects[last] = server.objects[last][::-1]
    with pytest.raises(SourceError, match="changed"):
        fc.resolve(source.sum(), **QUIET)


@pytest.mark.parametrize("kind", [kind for kind in MADE if "zarr" not in kind and "folder" not in kind])
def test_another_host_is_refused_before_it_is_asked(kind: str, server: ObjectServer, local: dict[str, Path]) -> None:
    server.fault = lambda request: "redirect"
    with serving() as other:
        server.elsewhere = other.url
        url = served(server, f"{server.url}/bucket", local[kind])
        with pytest.raises(SourceError, match="another host"):
            MADE[kind][2](url)
        assert other.requests == []


# -- arrays in stores ------------------------------------------------------------------------------------


def test_web_servers_have_no_arrays(server: ObjectServer, local: dict[str, Path]) -> None:
    for name, data in files_of(local["zarr"]):
        server.objects[f"/x.zarr{name}"] = data
    with pytest.raises(SourceError, match="does not list") as caught:
        fc.open(f"{server.url}/x.zarr")
    assert "AWS_ENDPOINT_URL" in str(caught.value)


def test_chunks_that_are_not_there_have_the_fill_value(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x.zarr", shape=(100, 7), chunks=(9, 3), dtype="f4", fill_value=2.5)
    array[13:14] = 1
    want = np.asarray(array[...])
    np.testing.assert_array_equal(fc.resolve(fc.open(put(tmp_path / "x.zarr")) * 1, **QUIET), want)


def test_listings_may_leave_the_quotes_of_etags_out(server: ObjectServer, local: dict[str, Path]) -> None:
    url = served(server, "s3://bucket", local["zarr"])
    server.fault = lambda request: "bare etags"  # as Azure's are
    np.testing.assert_array_equal(fc.resolve(fc.open(url) * 1, **QUIET), X)
    assert all(one.condition and one.condition[0] == one.condition[-1] == '"' for one in server.requests if one.range)


def test_groups_tell_their_keys(tmp_path: Path, local: dict[str, Path]) -> None:
    url = put(local["zarr in a group"])
    with pytest.raises(SourceError, match="it is a group") as caught:
        fc.open(url)
    assert "in it are a" in str(caught.value)
    for key in ("a", "b", "a/y", "../x", "a//x"):
        with pytest.raises(SourceError):
            fc.open(url, key=key)
    with pytest.raises(SourceError, match=r"neither zarr\.json"):
        fc.open("memory://formats/none.zarr")


def test_an_object_that_is_no_chunk_changes_nothing(local: dict[str, Path], tmp_path: Path) -> None:
    url = put(local["zarr"])
    store, key = store_of(parse_url(url))._store, parse_url(url).key
    for name in ("c/9/0", "c/0/0/0", "c/-1/0", "c/01/0", "d/0/0", "c/" + "9" * 300 + "/0", "note.txt"):
        obstore.put(store, f"{key}/{name}", b"nothing")
    np.testing.assert_array_equal(fc.resolve(fc.open(url) * 1, **QUIET), X)


def test_the_plan_counts_what_readers_hold(local: dict[str, Path]) -> None:
    for kind, (_, _, opener) in MADE.items():
        near, far = opener(str(local[kind])), opener(put(local[kind]))
        assert any("requests" in name for name, _ in (far.sum() * 1).plan().memory.items)
        if kind.startswith("zarr"):
            assert far.held_bytes > near.held_bytes
        if kind.startswith("parquet"):
            with pytest.raises(PlanError):
                fc.resolve(far.sum(), memory="4MiB", **QUIET)


def test_a_killed_job_goes_on(local: dict[str, Path], tmp_path: Path) -> None:
    for kind, (_, _, opener) in MADE.items():
        url, kept = put(local[kind]), tmp_path / kind
        job = opener(url) * 2 >> fc.save(tmp_path / "y.npy")
        with pytest.raises(fc.RunError):
            job.run(
                checkpoint=kept,
                strategy=fc.Strategy(batch_bytes=32 * 700),
                on_batch=lambda run: run.freeze() if run.progress.items >= 7000 else None,
                **QUIET,
            )
        assert SECRET not in b"".join(path.read_bytes() for path in kept.rglob("*") if path.is_file()).decode("latin1")
        fc.thaw(kept).resolve(**QUIET)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X * 2)


def test_another_array_is_not_gone_on_with(local: dict[str, Path], tmp_path: Path) -> None:
    url, kept = put(local["zarr"]), tmp_path / "kept"
    with pytest.raises(fc.RunError):
        (fc.open(url) * 2 >> fc.save(tmp_path / "y.npy")).run(
            checkpoint=kept, strategy=fc.Strategy(batch_bytes=999), on_batch=lambda run: run.freeze(), **QUIET
        )
    zarr_array(tmp_path / "x.zarr", X + 1)
    put(tmp_path / "x.zarr", url)
    with pytest.raises(CheckpointError, match="not as it was"):
        fc.thaw(kept).resolve(**QUIET)


# -- views -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 300_000])
def test_a_view_gives_the_bytes_of_its_file(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    url = f"memory://formats/view-{size}.raw"
    obstore.put(store_of(parse_url(url))._store, parse_url(url).key, data)
    files = ObjectFiles()
    handle = files.open_read(url)
    view = FileView(files, handle)
    rng = np.random.default_rng(1)
    for _ in range(200):
        begin, count = int(rng.integers(0, size + 9)), int(rng.choice([0, 1, 9, 70_000, 200_000]))
        view.seek(begin)
        assert bytes(view.read(count)) == data[begin : begin + count]
        assert view.tell() == min(begin + count, max(begin, size))
    view.seek(-min(size, 3), os.SEEK_END)
    assert bytes(view.read()) == data[size - min(size, 3) :]
    view.close()
    files.close(handle)
