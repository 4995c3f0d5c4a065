"""The page of a run: who may read it, what it tells, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import sys
import threading
import urllib.parse
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError, RunError
from flowcompute.metrics import Checkpoints, Metrics, Progress, Snapshot
from flowcompute.observe import RunView, TrialFailed, TrialMeasured
from flowcompute.observe.page import LivePage
from flowcompute.observe.page.page_server import MOST_LISTENERS

DATA = np.random.default_rng(3).standard_normal((2_000, 8), dtype=np.float32)
EVIL = "<img src=x onerror=alert(1)>"


def job() -> Any:
    return fc.tanh(fc.source(DATA, name=EVIL)) * 2


class Held:
    """A run with a page that waits after its first batch until it is let go."""

    def __init__(self, root: Any = None, **options: Any) -> None:
        self.clients: list[Any] = []
        self.gate, self.came = threading.Event(), threading.Event()
        self.run = (job() if root is None else root).start(
            page=0,
            progress=False,
            device="numpy",
            strategy=fc.Strategy(batch_bytes=2_000),
            on_batch=self._wait,
            **options,
        )
        assert self.run.page is not None
        self.parts = urllib.parse.urlsplit(self.run.page)
        assert self.came.wait(60)

    def _wait(self, run: fc.Run) -> None:
        self.came.set()
        self.gate.wait(60)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *error: object) -> None:
        self.gate.set()
        self.run.join(600)
        for one in self.clients:
            one.close()

    def ask(self, path: str = "", method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        client = http.client.HTTPConnection(self.parts.netloc, timeout=600)
        try:
            client.request(method, path if path.startswith("/") else self.parts.path + path, headers=headers)
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            client.close()

    def listen(self) -> http.client.HTTPResponse:
        client = http.client.HTTPConnection(self.parts.netloc, timeout=600)
        client.request("GET", f"{self.parts.path}events")
        answer = client.getresponse()
        self.clients += [answer, client]
        return answer


def is_gone(held: Held) -> bool:
    with socket.socket() as other:
        closed = other.connect_ex(("127.0.0.1", held.parts.port or 0)) != 0
    return closed and not [one for one in threading.enumerate() if "page" in one.name]


def events(answer: http.client.HTTPResponse) -> list[tuple[str, Any]]:
    found = [text.split("\n", 1) for text in answer.read().decode().split("\n\n") if text]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in found]


def test_the_page_shows_the_run_and_goes_with_it() -> None:
    with Held(name="mine") as held:
        status, headers, body = held.ask()
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "unsafe-inline" not in headers["Content-Security-Policy"]
        assert b"<script>" not in body
        assert [held.ask(name)[0] for name in ("live.js", "live.css")] == [200, 200]
        shown = json.loads(held.ask("snapshot")[2])
    now = shown["now"]
    assert (now["name"], now["state"], now["total_items"]) == ("mine", "running", len(DATA))
    assert 0 < now["items"] < len(DATA)
    assert EVIL in [stage["name"] for stage in now["stages"]]
    assert shown["graph"].startswith("<svg")
    assert "<img" not in shown["graph"]
    assert "style=" not in shown["graph"]
    assert held.run.page is None
    assert is_gone(held)
    np.testing.assert_array_equal(held.run.value, job().resolve(progress=False, device="numpy"))


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        ("/", "GET", {}, 403),
        ("/wrong/", "GET", {}, 403),
        ("/%ff%fe/events", "GET", {}, 403),
        ("../../etc/passwd", "GET", {}, 404),
        ("live_page.py", "GET", {}, 404),
        ("%2e%2e/live_page.py", "GET", {}, 404),
        ("", "HEAD", {}, 405),
        ("", "POST", {}, 405),
        ("", "OPTIONS", {}, 405),
        ("", "GET", {"Host": "evil.example"}, 421),
        ("", "GET", {"Host": "127.0.0.1"}, 421),
        ("", "GET", {"Host": "127.0.0.1:1"}, 421),
    ],
)
def test_whoever_is_not_meant_is_refused(path: str, method: str, headers: dict[str, str], status: int) -> None:
    with Held() as held:
        assert held.ask(path, method, **headers)[0] == status


@pytest.mark.parametrize(("fails", "state"), [(False, "done"), (True, "failed")])
def test_the_last_event_says_how_it_ended(fails: bool, state: str) -> None:
    breaks = threading.Event()

    def late(batch: np.ndarray) -> np.ndarray:
        if breaks.is_set():
            raise ValueError(EVIL)
        return batch

    with Held(fc.host(late, fc.source(DATA))) as held:
        answer = held.listen()
        if fails:
            breaks.set()
        held.gate.set()
        told = events(answer)
    name, last = told[-1]
    assert (name, last["state"], last["over"]) == ("now", state, True)
    assert (EVIL in last["error"]) == fails
    assert last["done"]
    assert is_gone(held)


def test_listeners_are_bounded_and_who_never_reads_holds_nobody_up() -> None:
    with Held() as held:
        clients = [held.listen() for _ in range(MOST_LISTENERS)]
        assert {one.status for one in clients} == {200}
        assert held.ask("events")[0] == 503
        assert held.ask("snapshot")[0] == 200
    assert not held.run.is_running
    assert is_gone(held)


def test_a_port_that_is_taken_is_named_before_anything_runs(tmp_path: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"127.0.0.1:{port}"):
            fc.run(job() >> fc.save(tmp_path / "y.npy"), page=port, progress=False, device="numpy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", [-1, 65_536, True, "8080", 1.0])
def test_what_is_no_port_is_refused(port: Any) -> None:
    with pytest.raises(PlanError, match="page: cannot use this value"):
        fc.run(job(), page=port, progress=False, device="numpy")


def test_a_page_needs_metrics() -> None:
    with pytest.raises(PlanError, match="cannot use page= without metrics"):
        fc.run(job(), page=0, metrics=False, progress=False, device="numpy")


def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(RunError, match=r"(?s)page: .*flowcompute\[page\]"):
        fc.run(job(), page=0, progress=False, device="numpy")


def test_two_runs_have_a_page_each() -> None:
    with Held() as one, Held() as other:
        assert one.parts.netloc != other.parts.netloc
        assert other.ask(one.parts.path)[0] == 403
        assert one.ask("snapshot")[0] == other.ask("snapshot")[0] == 200
    assert is_gone(one)
    assert is_gone(other)


def test_a_stopped_run_says_so() -> None:
    with Held() as held:
        answer = held.listen()
        held.run.stop()
        held.gate.set()
        last = events(answer)[-1][1]
    assert last["state"] == "failed"
    assert "stopped" in last["error"]
    assert is_gone(held)


def test_a_run_in_asyncio_has_one() -> None:
    addresses: list[str | None] = []

    async def inside() -> Any:
        note: Callable[[fc.Run], None] = lambda run: addresses.append(run.page)  # noqa: E731
        run = await fc.arun(job(), page=0, progress=False, device="numpy", on_batch=note)
        return run.value

    np.testing.assert_array_equal(asyncio.run(inside()), job().resolve(progress=False, device="numpy"))
    assert addresses[0] is not None
    assert not [one for one in threading.enumerate() if "page" in one.name]


def test_a_training_tells_its_losses() -> None:
    w = fc.parameter(np.zeros(8, np.float32), name="w")
    loss = ((fc.source(DATA) @ w - 1) ** 2).mean()
    trained = fc.train.fit(loss, fc.train.sgd(0.01), batch=100)
    with Held(trained["w"]) as held:
        answer = held.listen()
        held.gate.set()
        told = dict(events(answer))
    assert len(told["losses"]) == 1
    assert told["losses"][0]["steps"][-1] == 20


def test_a_large_graph_is_left_out() -> None:
    x: Any = fc.source(DATA[:4])
    for number in range(1_200):
        x = fc.tanh(x) if number % 2 else x + number
    with Held(x) as held:
        assert json.loads(held.ask("snapshot")[2])["graph"] == ""


def test_an_element_draws_itself_with_escaped_names() -> None:
    page = job()._repr_html_()
    assert "<svg" in page
    assert "<img" not in page


def test_trials_are_listed_and_numbers_that_json_lacks_are_none() -> None:
    numbers = Snapshot(Metrics({}, {}), Progress(3, None, 8, 1.0, False), Checkpoints(), None, 2, 4, 100)
    page = LivePage(0, RunView(lambda: numbers, float, dict, 1))
    search: Any = None
    page.takes()[TrialMeasured](TrialMeasured("run", search, (("depth", 3),), 0.5, 0.0))
    page.takes()[TrialMeasured](TrialMeasured("run", search, (("depth", 4),), float("nan"), 0.0))
    page.takes()[TrialFailed](TrialFailed("k0", search, (("depth", 5),), EVIL))
    told = json.loads(page.messages()["now"])["trials"]
    page.close()
    assert [(one["ratio"], one["problem"]) for one in told] == [(0.5, ""), (None, ""), (None, EVIL)]
    assert "depth" in told[0]["tried"]
