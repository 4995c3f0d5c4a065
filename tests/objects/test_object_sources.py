"""Objects as sources: the same records as from a local file, in ranges, of one state, or an error that names the URL."""

from __future__ import annotations

import io
import itertools
import tracemalloc
from pathlib import Path

import numpy as np
import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements import Source
from flowcompute.objects import _obstore, parse_url
from flowcompute.objects._obstore import store_of
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES
from flowcompute.testing import SourceContract
from tests.objects.conftest import PATIENT, SECRET
from tests.objects.object_server import FirstFaults, ObjectServer, Request, serving

QUIET = {"progress": False, "device": "numpy"}
_numbers = itertools.count()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def put(data: bytes, suffix: str = ".npy") -> str:
    """Put an object into memory:// and return its URL."""
    url = f"memory://bucket/object-{next(_numbers)}{suffix}"
    obstore.put(store_of(parse_url(url))._store, parse_url(url).key, data)
    return url


class TestNpyObject(SourceContract):
    dtypes = tuple(dtype for dtype in SUPPORTED_DTYPES if dtype != BFLOAT16)

    def make(self, records: np.ndarray, folder: Path) -> Source:
        return fc.open(put(npy(records)))


@pytest.mark.slow
class TestFortranObject(SourceContract):
    dtypes = (np.dtype("f4"),)

    def make(self, records: np.ndarray, folder: Path) -> Source:
        return fc.open(put(npy(np.asfortranarray(records))))


class TestRawObject(SourceContract):
    def make(self, records: np.ndarray, folder: Path) -> Source:
        return fc.open(put(records.tobytes(), ".raw"), dtype=records.dtype, shape=records.shape[1:])


@pytest.mark.slow
class TestSeveralObjects(SourceContract):
    dtypes = (np.dtype("i2"),)

    def make(self, records: np.ndarray, folder: Path) -> Source:
        return fc.open([put(npy(records[:7])), put(npy(records[7:8])), put(npy(records[8:]))])


@pytest.mark.slow
class TestServers:
    """s3:// through an endpoint, and http://."""

    @pytest.fixture(params=["s3://bucket", "http"])
    def place(self, request: pytest.FixtureRequest, server: ObjectServer) -> str:
        return f"{server.url}/bucket" if request.param == "http" else request.param

    def test_only_the_header_is_read_when_composing(self, place: str, server: ObjectServer) -> None:
        server.objects["/bucket/x.npy"] = npy(np.zeros((100_000, 4), "f4"))
        assert fc.open(f"{place}/x.npy").shape == (100_000, 4)
        asked = [one.range.removeprefix("bytes=").split("-") for one in server.requests if one.range]
        assert 0 < sum(int(end) - int(begin) + 1 for begin, end in asked) < 1000
        assert all(one.range for one in server.requests if one.method == "GET")

    @pytest.mark.parametrize("records", [0, 1, 3, 100_003])
    def test_gives_the_bits_of_a_local_file(
        self, records: int, place: str, server: ObjectServer, tmp_path: Path
    ) -> None:
        data = np.random.default_rng(records).standard_normal((records, 5), dtype=np.float32)
        np.save(tmp_path / "x.npy", data)
        server.objects["/bucket/a folder/x.npy" if "s3" in place else "/bucket/a%20folder/x.npy"] = npy(data)
        if "s3" in place:
            server.objects["/bucket/a%20folder/x.npy"] = npy(data)
        url = f"{place}/a folder/x.npy" if "s3" in place else f"{place}/a%20folder/x.npy"
        got = fc.resolve(fc.open(url) * 2, memory="4MiB", **QUIET)
        want = fc.resolve(fc.open(tmp_path / "x.npy") * 2, memory="4MiB", **QUIET)
        assert got.tobytes() == want.tobytes()

    def test_each_get_says_which_state_it_wants(self, place: str, server: ObjectServer) -> None:
        server.objects["/bucket/x.npy"] = npy(np.zeros((300_000, 4), "f4"))
        fc.resolve(fc.open(f"{place}/x.npy").sum(), memory="4MiB", **QUIET)
        gets = [one for one in server.requests if one.method == "GET"]
        assert len(gets) > 3
        assert {one.condition for one in gets} == {gets[0].condition}
        assert gets[0].condition is not None

    def test_a_server_without_etags_is_asked_by_time(self, place: str, server: ObjectServer) -> None:
        data = np.arange(1000, dtype=np.int32)
        server.objects["/bucket/x.npy"] = npy(data)
        server.fault = lambda request: "no etag"
        assert (fc.resolve(fc.open(f"{place}/x.npy") + 0, **QUIET) == data).all()
        assert {one.condition for one in server.requests if one.method == "GET"} == {"Mon, 23 Nov 2026 10:00:00 GMT"}

    def test_retries_what_passes(self, place: str, server: ObjectServer) -> None:
        data = np.arange(300_000, dtype=np.int32)
        server.objects["/bucket/x.npy"] = npy(data)
        # What is asked for again after "short" ends where it did.
        server.fault = faults = FirstFaults(
            lambda one: one.range and one.range.partition("-")[2], "500", "short", "503"
        )
        assert (fc.resolve(fc.open(f"{place}/x.npy") + 0, memory="4MiB", **QUIET) == data).all()
        assert set(faults.told.values()) == {"500", "short", "503"}

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            ("500", "status 500"),
            ("503", "status 503"),
            ("403", "refuses access"),
            ("silent", "timed out"),
            ("short", "ended early"),
            ("other range", "Content-Range"),
            ("no ranges", "does not give parts"),
            ("absurd length", "ended early"),
        ],
    )
    def test_names_what_fails_in_the_middle(
        self, fault: str, said: str, place: str, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if fault == "silent":
            monkeypatch.setattr(_obstore, "LIMITS", PATIENT._replace(silence_s=0.5, request_s=2))
        server.objects["/bucket/x.npy"] = npy(np.zeros((300_000, 4), "f4"))
        x = fc.open(f"{place}/x.npy")

        def fails(request: Request) -> str | None:
            # What is asked for again begins where the answer ended.
            begin = 0 if request.range is None else int(request.range.removeprefix("bytes=").partition("-")[0])
            return fault if begin >= 2_000_000 else None

        server.fault = fails
        with pytest.raises(fc.SourceError, match=said) as caught:
            fc.resolve(x.sum(), memory="4MiB", **QUIET)
        assert f"{place}/x.npy" in str(caught.value)
        assert SECRET not in str(caught.value)
        assert caught.value.records is not None

    def test_an_object_that_is_replaced_is_not_mixed(self, place: str, server: ObjectServer) -> None:
        data = np.zeros((300_000, 4), "f4")
        server.objects["/bucket/x.npy"] = npy(data)
        x = fc.open(f"{place}/x.npy")

        def replace(run: object) -> None:
            server.objects["/bucket/x.npy"] = npy(data + 1)

        with pytest.raises(fc.SourceError, match="changed"):
            fc.run(x.sum(), memory="4MiB", on_batch=replace, **QUIET)

    def test_so_where_the_server_knows_no_conditions(self, place: str, server: ObjectServer) -> None:
        server.objects["/bucket/x.npy"] = npy(np.zeros((1000, 4), "f4"))
        server.fault = lambda request: "no conditions"
        x = fc.open(f"{place}/x.npy")
        server.objects["/bucket/x.npy"] = npy(np.ones((1000, 4), "f4"))
        with pytest.raises(fc.SourceError, match="changed"):
            fc.resolve(x.sum(), **QUIET)

    def test_a_server_that_tells_no_state_is_refused(self, place: str, server: ObjectServer) -> None:
        server.objects["/bucket/x.npy"] = npy(np.zeros(10))
        server.fault = lambda request: "nothing known"
        with pytest.raises(fc.SourceError, match="neither a strong ETag nor when it changed"):
            fc.open(f"{place}/x.npy")

    def test_what_is_missing_is_named(self, place: str, server: ObjectServer) -> None:
        with pytest.raises(fc.SourceError, match="no such object") as caught:
            fc.open(f"{place}/none.npy")
        assert f"{place}/none.npy" in str(caught.value)

    def test_an_absurd_size_takes_no_memory(self, place: str, server: ObjectServer) -> None:
        server.objects["/bucket/x.raw"] = bytes(1 << 16)
        server.fault = lambda request: "absurd length"
        tracemalloc.start()
        with pytest.raises(fc.SourceError):
            fc.resolve(fc.open(f"{place}/x.raw", dtype="f4").sum(), memory="4MiB", **QUIET)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
        tracemalloc.stop()


class TestRedirects:
    def test_another_host_is_refused_before_it_is_asked(self, server: ObjectServer) -> None:
        server.objects["/x.npy"] = npy(np.zeros(10))
        server.fault = lambda request: "redirect"
        with serving() as other:
            other.objects["/x.npy"] = npy(np.ones(10))
            server.elsewhere = other.url
            with pytest.raises(fc.SourceError, match="another host"):
                fc.open(f"{server.url}/x.npy")
            assert other.requests == []

    def test_so_are_circles(self, server: ObjectServer) -> None:
        server.fault = lambda request: "circle"
        with pytest.raises(fc.SourceError, match="circles"):
            fc.open(f"{server.url}/x.npy")

    def test_the_same_host_may_say_where(self, server: ObjectServer) -> None:
        server.objects["/there/x.npy"] = npy(np.arange(10.0))
        server.elsewhere = "/there"
        server.fault = lambda request: None if request.path.startswith("/there") else "redirect"
        assert fc.resolve(fc.open(f"{server.url}/x.npy").sum(), **QUIET) == 45

    def test_a_server_without_ranges_is_refused_at_once(self, server: ObjectServer) -> None:
        server.objects["/x.raw"] = bytes(100)
        server.fault = lambda request: "no ranges"
        with pytest.raises(fc.SourceError, match="does not give parts"):
            fc.open(f"{server.url}/x.raw", dtype="f4")


class TestPlans:
    def test_the_plan_counts_what_requests_hold(self) -> None:
        x = fc.open(put(npy(np.zeros((1000, 4), "f4"))))
        plan = (x * 2).plan()
        assert any("requests" in name and size == 1 << 20 for name, size in plan.memory.items)

    def test_reading_is_said_to_be_from_a_store(self) -> None:
        assert fc.open(put(npy(np.zeros(10)))).must_read() == "objects come from a store"

    @pytest.mark.parametrize("batch", [1, 7, 1000])
    def test_no_batch_size_changes_a_bit(self, batch: int) -> None:
        data = np.random.default_rng(1).standard_normal((1000, 3)).astype("f4")
        x = fc.open(put(npy(data)))
        strategy = fc.Strategy(batch_bytes=batch * 12)
        got = fc.resolve((x[3:] - x[:-3]).sum(axis=0), strategy=strategy, **QUIET)
        want = fc.resolve((fc.source(data)[3:] - fc.source(data)[:-3]).sum(axis=0), **QUIET)
        assert got.tobytes() == want.tobytes()


HIDDEN = "hunter2"


class TestUrls:
    @pytest.mark.parametrize(
        "url",
        [
            f"s3://key:{HIDDEN}@bucket/x.npy",
            f"s3://key:a/{HIDDEN}@bucket/x.npy",
            f"http://user:{HIDDEN}@host/x.npy",
            f"s3://bucket/x.npy?X-Amz-Signature={HIDDEN}",
            f"https://host/x.npy#{HIDDEN}",
            f"gs://bucket/?sig={HIDDEN}",
            "file:///x.npy",
            "ftp://host/x.npy",
            "s3://bucket",
            "s3://bucket/",
            "s3:///x.npy",
            "s3://bucket/a//x.npy",
            "s3://bucket/../x.npy",
            "s3://bucket/./x.npy",
            "s3://bucket/\n.npy",
            "s3://" + "a" * 5000 + "/x.npy",
        ],
    )
    @pytest.mark.parametrize("verb", [fc.open, fc.save])
    def test_what_names_no_object_or_a_secret_is_refused(self, verb: object, url: str) -> None:
        with pytest.raises(fc.SpecError) as caught:
            verb(url)  # type: ignore[operator]
        assert HIDDEN not in str(caught.value)

    def test_local_places_take_no_urls(self, tmp_path: Path) -> None:
        x = fc.source(np.zeros(10))
        url = f"s3://key:{HIDDEN}@bucket/kept"
        for refused in (
            lambda: fc.resolve(x + 1, checkpoint=url, **QUIET),
            lambda: fc.thaw(url),
            lambda: fc.spool(x, folder=url),
            lambda: fc.weights("s3://bucket/w.safetensors"),
            lambda: fc.resolve(x + 1, metrics_log=url, **QUIET),
        ):
            with pytest.raises(fc.FlowError) as caught:
                refused()
            assert HIDDEN not in str(caught.value)
            assert "URL" in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    @given(st.text(max_size=60))
    def test_any_text_is_a_url_or_refused(self, text: str) -> None:
        try:
            url = parse_url("s3://" + text)
        except ValueError:
            return
        assert str(url) == "s3://" + text
        assert "@" not in url.place
        assert not {"?", "#"} & set(text)
