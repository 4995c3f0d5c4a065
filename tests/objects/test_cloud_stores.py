"""gs:// and az:// through servers on loopback that speak their protocols: ranges, conditions, uploads, listings."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import DestinationError, SourceError
from flowcompute.objects import ObjectPrefix, _obstore
from tests.objects.cloud_servers import AzureServer, CloudServer, GoogleServer
from tests.objects.conftest import PATIENT, SECRET
from tests.objects.object_server import FirstFaults, Request, serving

QUIET: dict[str, Any] = {"progress": False, "device": "numpy", "memory": "40MiB"}
X = np.random.default_rng(3).standard_normal((200_000, 3), dtype=np.float32)
KINDS = {"gs": GoogleServer, "az": AzureServer}


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture(params=KINDS)
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, CloudServer]]:
    """The begin of URLs, and the server that they go to."""
    monkeypatch.setattr(_obstore, "LIMITS", PATIENT)
    monkeypatch.setattr(_obstore, "PART_BYTES", 1 << 20)
    with serving(KINDS[request.param]) as server:
        account = {"gcs_base_url": server.url, "disable_oauth": True, "client_email": "", "private_key": SECRET}
        for name, value in {
            "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps({**account, "private_key_id": ""}),
            "GOOGLE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(SECRET.encode()).decode(),
            "AZURE_STORAGE_ENDPOINT": server.url,
            "AZURE_ALLOW_HTTP": "true",
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        yield f"{request.param}://bucket", server


def test_ranges_of_one_state_are_read(cloud: tuple[str, CloudServer]) -> None:
    place, server = cloud
    server.objects["a folder/x.npy"] = npy(X)
    server.fault = FirstFaults(lambda one: one.range, "503")
    got = fc.run(fc.open(f"{place}/a folder/x.npy").sum(axis=0), **QUIET | {"memory": "4MiB"}).value
    assert got.tobytes() == fc.run(fc.source(X).sum(axis=0), **QUIET).value.tobytes()
    gets = [call for call in server.calls if call.method == "GET"]
    assert len(gets) > 3
    assert {call.condition for call in gets} == {server.etag(server.objects["a folder/x.npy"])}


def test_what_is_replaced_while_it_is_read_is_refused(cloud: tuple[str, CloudServer]) -> None:
    place, server = cloud
    server.objects["x.npy"] = npy(X)
    x = fc.open(f"{place}/x.npy")

    def replace(request: Request) -> None:
        if request.range and len([call for call in server.calls if call.method == "GET"]) > 3:
            server.objects["x.npy"] = npy(-X)

    server.fault = replace
    with pytest.raises(SourceError, match=r"x\.npy: .*changed"):
        fc.run(x.sum(), **QUIET | {"memory": "4MiB"})


def test_a_file_is_uploaded_in_parts_and_read_again(cloud: tuple[str, CloudServer]) -> None:
    place, server = cloud
    seen = []
    faults = FirstFaults(lambda one: one.path if one.method == "PUT" else None, "503")

    def watch(request: Request) -> str | None:
        seen.append("y.npy" in server.objects)
        return faults(request)

    server.fault = watch
    fc.run(fc.source(X) * 2 >> fc.save(f"{place}/y.npy"), **QUIET)
    assert server.objects == {"y.npy": npy(X * 2)}
    assert len({str(call.query) for call in server.calls if call.method == "PUT" and call.query}) >= 3
    assert seen.count(True) == 1, "it is there when the last part is, and looked at once"
    np.testing.assert_array_equal(fc.open(f"{place}/y.npy").resolve(**QUIET), X * 2)


def test_an_array_is_written_resumed_and_listed(cloud: tuple[str, CloudServer], tmp_path: Path) -> None:
    place, server = cloud
    np.save(tmp_path / "x.npy", X)
    job = fc.open(tmp_path / "x.npy") * 2 >> fc.save(f"{place}/in/y.zarr", chunk=16_384)
    with pytest.raises(fc.RunError):
        job.run(checkpoint=tmp_path / "kept", on_batch=lambda run: run.freeze(), **QUIET)
    assert "in/y.zarr/zarr.json" not in server.objects
    fc.thaw(tmp_path / "kept").resolve(**QUIET)
    last = [call for call in server.calls if call.method == "PUT" and call.key == "in/y.zarr/zarr.json"]
    assert [call.condition for call in last] == ["0" if place.startswith("gs") else "*"]
    np.testing.assert_array_equal(fc.open(f"{place}/in/y.zarr").resolve(**QUIET), X * 2)
    assert len(list(ObjectPrefix(f"{place}/in/y.zarr").names())) == len(server.objects) == 14
    with pytest.raises(DestinationError, match=r"y\.zarr"):
        fc.run(fc.source(X) >> fc.save(f"{place}/in/y.zarr", chunk=16_384), **QUIET)


def test_conditional_creation_keeps_the_first(cloud: tuple[str, CloudServer]) -> None:
    place, server = cloud
    prefix = ObjectPrefix(f"{place}/in")
    assert prefix.put_new("a", b"first")
    assert not prefix.put_new("a", b"second")
    assert server.objects == {"in/a": b"first"}


def test_all_are_removed_though_some_are_gone(cloud: tuple[str, CloudServer]) -> None:
    place, server = cloud
    server.objects = {f"in/{i}": b"" for i in range(30)}
    names = [name for i in range(30) for name in (f"gone-{i}", str(i))]
    ObjectPrefix(f"{place}/in").remove(names)
    assert server.objects == {}


def test_refusals_name_the_url_and_no_secret(cloud: tuple[str, CloudServer]) -> None:
    place, server = cloud
    server.objects["x.npy"] = npy(X)
    with pytest.raises(SourceError, match="no such object"):
        fc.open(f"{place}/none.npy")
    for status, said in (("403", "refuses access"), ("500", "status 500")):
        server.fault = lambda request, status=status: status
        for job in (
            lambda: fc.open(f"{place}/x.npy"),
            lambda: fc.run(fc.source(X) >> fc.save(f"{place}/z.npy"), **QUIET),
        ):
            with pytest.raises((SourceError, DestinationError), match=said) as caught:
                job()
            assert SECRET not in str(caught.value)
            assert place in str(caught.value)
