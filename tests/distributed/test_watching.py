"""Those who watch a run on a cluster see the work of all shards together, and nothing of it is left afterwards."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.here import KilledError, check, dying, run
from tests.observe.test_exporter import read, refuses


def port_in(text: str, before: str) -> int:
    found = re.search(rf"mine: {before}(\d+)", text)
    assert found is not None, text
    return int(found[1])


def test_prometheus_is_served_all_shards_together(
    folder: Path, asked: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[tuple[str, str | None], float]] = []
    ports: list[int] = []

    def client(number: int) -> None:
        if number in (4, 9):
            ports[:] = ports or [port_in(capsys.readouterr().err, "metrics on port ")]
            seen.append(read(ports[0]))

    made = run(folder, client, metrics_port=0, name="mine")
    counts = [page["flowcompute_run_items_total", None] for page in seen]
    assert 0 < counts[0] < counts[1] < made.progress.items
    assert {page["flowcompute_run_expected_items", None] for page in seen} == {made.progress.total_items}
    # The source has been read by ended shards alone.
    assert 0 < seen[0]["flowcompute_items_total", "x"] < made.metrics["x"].items
    assert refuses(ports[0])
    check(folder, made)


def test_the_page_shows_all_shards_together(
    folder: Path, asked: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[str, Any]] = []
    ports: list[int] = []

    def client(number: int) -> None:
        if number == 9:
            told = capsys.readouterr().err
            ports.append(port_in(told, "http://127.0.0.1:"))
            address = re.search(r"http://\S+", told)
            assert address is not None
            with urllib.request.urlopen(f"{address[0]}snapshot", timeout=600) as answer:
                seen.append(json.load(answer)["now"])

    made = run(folder, client, page=0, name="mine")
    (now,) = seen
    assert (now["name"], now["state"], now["total_items"]) == ("mine", "running", made.progress.total_items)
    assert 0 < now["items"] < made.progress.items
    assert "x" in [stage["name"] for stage in now["stages"]]
    assert refuses(ports[0])
    check(folder, made)


def test_shards_are_counted_with_those_that_went_on(folder: Path, asked: list[bytes]) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(6))
    before = len(asked)
    made = run(folder)
    sent = len(asked) - before
    assert (made.shards.count, made.shards.resumed) == (sent + 6, 6)
    assert 0 < made.shards.items < made.progress.items
    again = run(folder)
    assert (again.shards.count, again.shards.resumed, again.shards.items) == (sent + 6, sent + 6, 0)
