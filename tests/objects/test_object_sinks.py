"""Objects as destinations: the bytes of local files, nothing visible before the end, and going on after any failure."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load

import flowcompute as fc
from flowcompute.elements import Destination
from flowcompute.errors import CheckpointError, DestinationError, SpecError
from flowcompute.files import StoreError
from flowcompute.objects import parse_url
from flowcompute.objects._obstore import ObjectStore, store_of
from flowcompute.sinks import draft_target
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES, Spec
from flowcompute.testing import DestinationContract

X = np.random.default_rng(7).standard_normal((5003, 3)).astype("f4")
QUIET: dict[str, Any] = {"progress": False}
_numbers = itertools.count()


def place(suffix: str) -> str:
    return f"memory://sinks/{next(_numbers)}/y{suffix}"


def raw_store(url: str) -> Any:
    return store_of(parse_url(url))._store


def objects(url: str) -> dict[str, bytes]:
    """All objects at a URL or below it, by what follows in their keys."""
    key = parse_url(url).key
    keys = [one["path"] for batch in obstore.list(raw_store(url), os.path.dirname(key)) for one in batch]
    return {name.removeprefix(key): bytes(obstore.get(raw_store(url), name).bytes()) for name in keys}


def files(folder: Path) -> dict[str, bytes]:
    return {f"/{path.name}": path.read_bytes() for path in folder.iterdir()}


class TestNpyUpload(DestinationContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, folder: Path) -> Destination:
        return fc.save(f"memory://contract/{folder.name}/{id(folder)}/y.npy")

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        (folder / "got.npy").write_bytes(objects(value)[""])
        made = np.load(folder / "got.npy")
        (folder / "got.npy").unlink()
        return made


class TestZarrObjects(DestinationContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, folder: Path) -> Destination:
        return fc.save(place(".zarr"), chunk=3)

    def load(self, value: Any, spec: Spec, folder: Path) -> np.ndarray:
        (folder / "got.zarr").mkdir()
        for name, data in objects(value).items():
            (folder / f"got.zarr{name}").write_bytes(data)
        made = np.asarray(
            fc.open(folder / "got.zarr").resolve(progress=False) if spec.is_stream else read_whole(folder)
        )
        for path in (folder / "got.zarr").iterdir():
            path.unlink()
        (folder / "got.zarr").rmdir()
        return made


def read_whole(folder: Path) -> Any:
    import zarr  # noqa: PLC0415 - it takes long to load

    return zarr.open_array(folder / "got.zarr", mode="r")[...]


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(0, 40),
    chunk=st.integers(1, 50),
    batch=st.sampled_from([1, 60, 1 << 20]),
    width=st.integers(0, 3),
)
def test_an_array_has_the_bytes_of_a_local_one(
    tmp_path_factory: pytest.TempPathFactory, length: int, chunk: int, batch: int, width: int
) -> None:
    folder, url = tmp_path_factory.mktemp("o"), place(".zarr")
    x = fc.source(X[:length, :width] if width else X[:length, 0])
    strategy = fc.Strategy(batch_bytes=batch)
    fc.run(x >> fc.save(folder / "y.zarr", chunk=chunk), **QUIET)
    assert fc.run(x >> fc.save(url, chunk=chunk), strategy=strategy, **QUIET).value == url
    assert objects(url) == files(folder / "y.zarr")


def test_a_resident_value_is_an_array(tmp_path: Path) -> None:
    url = place(".zarr")
    total = fc.source(X).sum(axis=0)
    fc.run(total >> fc.save(url), total >> fc.save(tmp_path / "y.zarr"), **QUIET)
    assert objects(url) == files(tmp_path / "y.zarr")


def test_files_of_each_format_are_uploaded(tmp_path: Path) -> None:
    x = fc.source(X)
    fc.run(x * 2 >> fc.save(tmp_path / "y.npy"), **QUIET)
    local = (tmp_path / "y.npy").read_bytes()
    urls = {suffix: place(suffix) for suffix in (".npy", ".raw", ".h5", ".safetensors")}
    keyed = {".h5": {"key": "a/x"}, ".safetensors": {"key": "x"}}
    fc.run(*(x * 2 >> fc.save(url, **keyed.get(suffix, {})) for suffix, url in urls.items()), **QUIET)  # type: ignore[arg-type]
    assert objects(urls[".npy"]) == {"": local}
    assert objects(urls[".raw"]) == {"": (X * 2).tobytes()}
    np.testing.assert_array_equal(load(objects(urls[".safetensors"])[""])["x"], X * 2)
    (tmp_path / "y.h5").write_bytes(objects(urls[".h5"])[""])
    with h5py.File(tmp_path / "y.h5") as file:
        np.testing.assert_array_equal(file["a/x"][...], X * 2)
    named = place(".safetensors")
    fc.run({"a": x.sum(axis=0), "b": fc.constant(np.int8(3))} >> fc.save(named), **QUIET)
    assert set(load(objects(named)[""])) == {"a", "b"}
    fc.run(x * 3 >> fc.save(urls[".npy"]), **QUIET)  # an object is replaced, as a file is
    assert objects(urls[".npy"])[""] != local
    assert not any(os.path.lexists(draft_target(url)) for url in urls.values())


def test_a_selection_is_written(tmp_path: Path) -> None:
    x, one, two = fc.source(X), place(".zarr"), place(".npy")
    kept = x[x[:, 0] > 0]
    fc.run(
        kept >> fc.save(one, chunk=70), kept >> fc.save(two), kept >> fc.save(tmp_path / "y.zarr", chunk=70), **QUIET
    )
    assert objects(one) == files(tmp_path / "y.zarr")
    assert objects(two)[""].endswith(X[X[:, 0] > 0].tobytes())


# -- checkpoints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".zarr", ".npy"])
@pytest.mark.parametrize("stops", [(300, 1900), (1000, 1000, 4000), (1, 2, 4100)], ids=str)
def test_a_job_that_is_frozen_goes_on(tmp_path: Path, suffix: str, stops: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", X)
    job, url, options = fc.open(tmp_path / "x.npy") * 2, place(suffix), {"chunk": 1000} if suffix == ".zarr" else {}
    fc.run(job >> fc.save(tmp_path / f"whole{suffix}", **options), **QUIET)
    kept: dict[str, Any] = {"checkpoint": tmp_path / "kept", "strategy": fc.Strategy(batch_bytes=12 * 97)}
    for stop in stops:

        def at(run: fc.Run, stop: int = stop) -> None:
            if run.progress.items >= stop:
                run.freeze()

        with pytest.raises(fc.RunError):
            (job >> fc.save(url, **options)).run(on_batch=at, **kept, **QUIET)
        assert not {"", "/zarr.json"} & objects(url).keys()
    fc.thaw(tmp_path / "kept").resolve(**QUIET)
    whole = tmp_path / f"whole{suffix}"
    assert objects(url) == (files(whole) if suffix == ".zarr" else {"": whole.read_bytes()})


def frozen(folder: Path, url: str) -> Path:
    np.save(folder / "x.npy", X)
    with pytest.raises(fc.RunError):
        (fc.open(folder / "x.npy") * 2 >> fc.save(url)).run(
            checkpoint=folder / "kept",
            on_batch=lambda run: run.freeze(),
            strategy=fc.Strategy(batch_bytes=999),
            **QUIET,
        )
    return folder / "kept"


def test_what_nothing_proves_to_be_the_jobs_own_is_not_gone_on_with(tmp_path: Path) -> None:
    url = place(".zarr")
    kept = frozen(tmp_path, url)
    (mark,) = [name for name in objects(url) if name.startswith("/.flowcompute-")]
    obstore.delete(raw_store(url), [parse_url(url).key + mark])
    with pytest.raises(CheckpointError, match="nothing shows that this job has begun it"):
        fc.thaw(kept).resolve(**QUIET)


def test_a_job_of_somebody_else_replaces_no_object(tmp_path: Path) -> None:
    """A description without a generation: whoever made it chose the URL."""
    url = place(".npy")
    obstore.put(raw_store(url), parse_url(url).key, b"mine")
    sink = fc.source(X) >> fc.save(url)
    foreign = sink._copy()  # type: ignore[attr-defined]
    foreign.freeze_fields(allow=())
    with pytest.raises(CheckpointError, match="cannot replace"):
        foreign.open(foreign.spec)
    assert objects(url) == {"": b"mine"}
    foreign.freeze_fields(allow=(url,))
    foreign.open(foreign.spec).abort()
    array = place(".zarr")
    obstore.put(raw_store(array), parse_url(array).key + "/c.0.0", b"mine")
    other = (fc.source(X) >> fc.save(array))._copy()  # type: ignore[attr-defined]
    other.freeze_fields(allow=("memory://sinks/elsewhere",))
    with pytest.raises(CheckpointError, match="there are objects"):
        other.open(other.spec)
    assert objects(array) == {"/c.0.0": b"mine"}


# -- failures --------------------------------------------------------------------------------------------

OPERATIONS = ("look", "put", "upload", "keys", "remove")


def failing(monkeypatch: pytest.MonkeyPatch, at: int | None) -> list[str]:
    """Let the operation of this number fail, and return the list that all are noted in."""
    log: list[str] = []

    def wrapped(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def one(self: ObjectStore, *arguments: Any, **options: Any) -> Any:
            log.append(name)
            if len(log) - 1 == at:
                raise StoreError("the store answered with status 503", "try again")
            return call(self, *arguments, **options)

        return one

    for name in OPERATIONS:
        monkeypatch.setattr(ObjectStore, name, wrapped(name, getattr(ObjectStore, name)))
    return log


@pytest.mark.parametrize("suffix", [".zarr", ".npy"])
def test_a_fault_at_any_operation_leaves_nothing(monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    options = {"chunk": 1200} if suffix == ".zarr" else {}

    def run(url: str) -> None:
        fc.run(fc.source(X) >> fc.save(url, name="result", **options), **QUIET)

    with monkeypatch.context() as patch:
        steps = failing(patch, None)
        run(place(suffix))
    assert steps
    for k, step in enumerate(steps):
        url = place(suffix)
        with monkeypatch.context() as patch:
            failing(patch, k)
            with pytest.raises(DestinationError) as caught:
                run(url)
        for word in ("result", url, "503"):
            assert word in str(caught.value), (k, step)
        # What stands when leftovers are looked for is complete.
        found = objects(url)
        assert not found or ({"/zarr.json", ""} & found.keys() and k >= len(steps) - 3), (k, step, found.keys())
        assert not os.path.lexists(draft_target(url))


@pytest.mark.parametrize("suffix", [".zarr", ".npy"])
def test_a_job_whose_last_step_failed_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    np.save(tmp_path / "x.npy", X)
    url = place(suffix)
    job = fc.open(tmp_path / "x.npy") + 1 >> fc.save(url)
    with monkeypatch.context() as patch:
        name = "upload" if suffix == ".npy" else "put"
        call = getattr(ObjectStore, name)

        def refuse(self: ObjectStore, place: Any, data: Any, **options: Any) -> Any:
            if suffix == ".npy" or options.get("new"):
                raise StoreError("the store is away", "try again")
            return call(self, place, data, **options)

        patch.setattr(ObjectStore, name, refuse)
        with pytest.raises(DestinationError, match="the store is away"):
            job.run(checkpoint=tmp_path / "kept", **QUIET)
    assert not {"", "/zarr.json"} & objects(url).keys()
    assert fc.thaw(tmp_path / "kept").resolve(**QUIET) == url
    fc.run(fc.open(tmp_path / "x.npy") + 1 >> fc.save(tmp_path / f"y{suffix}"), **QUIET)
    whole = tmp_path / f"y{suffix}"
    assert objects(url) == (files(whole) if suffix == ".zarr" else {"": whole.read_bytes()})
    assert fc.thaw(tmp_path / "kept").resolve(**QUIET) == url  # once more: it is there


def test_an_array_is_never_replaced() -> None:
    url = place(".zarr")
    fc.run(fc.source(X) >> fc.save(url, chunk=900), **QUIET)
    before = objects(url)
    with pytest.raises(DestinationError, match="there is an array"):
        fc.run(fc.source(X) * 2 >> fc.save(url), **QUIET)
    assert objects(url) == before


def test_somebody_who_was_faster_wins() -> None:
    url = place(".zarr")

    def at(_: fc.Run) -> None:
        obstore.put(raw_store(url), parse_url(url).key + "/zarr.json", b"theirs")

    with pytest.raises(DestinationError, match="there is an array by now"):
        fc.run(fc.source(X) >> fc.save(url), on_batch=at, **QUIET)
    assert objects(url)["/zarr.json"] == b"theirs"


def test_chunks_that_a_killed_job_left_are_removed(tmp_path: Path) -> None:
    url = place(".zarr")
    for name in ("c.0.0", "c.99.0", ".flowcompute-0123"):
        obstore.put(raw_store(url), f"{parse_url(url).key}/{name}", b"left")
    obstore.put(raw_store(url), f"{parse_url(url).key}/readme.txt", b"mine")
    fc.run(fc.source(X) >> fc.save(url), fc.source(X) >> fc.save(tmp_path / "y.zarr"), **QUIET)
    assert objects(url) == {**files(tmp_path / "y.zarr"), "/readme.txt": b"mine"}


def test_what_is_no_place_for_a_result_is_refused_when_composed() -> None:
    x = fc.source(X)
    for url in ("https://example.org/y.npy", "s3:///y.npy", "s3://key:very-secret@bucket/y.npy", "ftp://a/y.npy"):
        with pytest.raises(SpecError) as caught:
            fc.save(url)
        assert "very-secret" not in str(caught.value)
    for options in ({"overwrite": True}, {"key": "a"}):
        with pytest.raises(SpecError, match="cannot use these options"):
            fc.save("memory://bucket/y.zarr", **options)  # type: ignore[arg-type]
    for name in ("y.parquet", "y.csv", "y"):
        with pytest.raises(SpecError, match="not written"):
            fc.save(f"memory://bucket/{name}")
    with pytest.raises(SpecError, match="bfloat16"):
        x.astype("bfloat16") >> fc.save("memory://bucket/y.zarr")
    with pytest.raises(fc.PlanError, match="same file"):
        fc.plan(x >> fc.save("memory://bucket/y.zarr"), x >> fc.save("memory://bucket/y.zarr"))


def test_the_plan_counts_chunks_and_parts() -> None:
    items = dict(fc.plan(fc.source(X) >> fc.save("memory://bucket/y.zarr", chunk=1000)).memory.items)
    assert items["save (chunks)"] == 3 * 12_000
    items = dict(fc.plan(fc.source(X) >> fc.save("memory://bucket/y.npy")).memory.items)
    assert items["save (chunks)"] == 32 << 20
