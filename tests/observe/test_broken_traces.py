"""Traces and kept strategies that somebody has changed: a page or SourceError, and no ordinary run ever fails."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.errors import SourceError
from flowcompute.observe import report_page as report
from flowcompute.observe.report_page import write_report
from flowcompute.strategy import StrategyStore
from tests.checkpoint.test_job_hostile import places
from tests.properties.cases import cases

EVIL = "<img src=x onerror=alert(1)>"
JUNK: tuple[Any, ...] = (None, True, -1, 0, 10**400, -(10**30), 1e308, float("nan"), float("inf"), "", EVIL, "\ud800",
                         [], {}, [1], {"a": 1}, [[]] * 3)  # fmt: skip


def job() -> fc.Element:
    return fc.tanh(fc.source(np.arange(4_000, dtype=np.float32).reshape(-1, 4), name="a")).sum(axis=1)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("trace") / "t.json"
    fc.run(job(), device="numpy", strategy=fc.Strategy(batch_bytes=4_000), progress=False, trace=path)
    content: dict[str, Any] = json.loads(path.read_text())
    about = content["otherData"]
    about["svg"] = "<svg/>"
    about["tuning"]["tried"] = [
        {"where": "run", "knobs": "depth=4", "gain": -3.5, "noise": None, "pairs": 1, "outcome": "not better"},
        {"where": "k0", "knobs": "unroll=2", "gain": 0.25, "noise": 0.02, "pairs": 9, "outcome": "kept"},
    ]
    about["limits"] = {"bytes_per_s": 1e9, "operations_per_s": {"float32": 1e11}, "when": 1}
    about["run"]["stages"]["sum"]["device_s"] = 0.5
    content["traceEvents"] = [*content["traceEvents"][:6], *content["traceEvents"][-6:]]
    return content


def report_of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The page of a trace, None where it is refused."""
    monkeypatch.setattr(report, "plotly_script", lambda: "")
    (folder / "t.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    (folder / "t.html").unlink(missing_ok=True)
    try:
        write_report(folder / "t.json", folder / "t.html")
    except SourceError as error:
        assert "no trace of flowcompute" in str(error)
        assert len(str(error)) < 2000
        assert not (folder / "t.html").exists()
        return None
    return (folder / "t.html").read_text()


def test_the_trace_itself_has_a_page(trace: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = report_of(json.dumps(trace), tmp_path, monkeypatch)
    assert page is not None
    for figure in ("timeline", "stages", "speed", "roofline", "trials"):
        assert f'id="{figure}"' in page


@cases(200)
@given(st.data())
def test_a_changed_trace_has_a_page_or_is_refused(
    trace: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = copy.deepcopy(trace)
    for _ in range(data.draw(st.integers(1, 2))):
        found = list(places(content))
        *way, key = found[data.draw(st.integers(0, len(found) - 1))]
        holder: Any = content
        for one in way:
            holder = holder[one]
        how = data.draw(st.sampled_from(["junk", "junk", "remove", "rename"]))
        if how == "junk":
            holder[key] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        elif how == "rename" and isinstance(holder, dict):
            holder[EVIL] = holder.pop(key)
        else:
            del holder[key]
    with pytest.MonkeyPatch.context() as patch:
        page = report_of(json.dumps(content), tmp_path_factory.getbasetemp(), patch)
    assert page is None or EVIL not in page


@pytest.mark.parametrize(
    "text",
    [
        '{"otherData": {"svg": "", "run": {"stages": {}}}}',
        "[" * 200_000,
        '{"otherData": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "1" * 20_000,
        "\ud800",
        "null",
    ],
    ids=range(6),
)
def test_what_is_no_trace_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_of(text, tmp_path, monkeypatch) is None
    assert main(["report", str(tmp_path / "t.json")]) == 2
    assert "no trace of flowcompute" in capsys.readouterr().err


# -- kept strategies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "9" * 5000 + "}", "{}", "\0", ""], ids=range(5))
def test_no_kept_file_fails_a_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path))
    fc.run(job(), device="numpy", progress=False, tune="quick")
    files = list((tmp_path / "strategies").iterdir())
    assert files
    for path in files:
        path.write_text(text)
    fc.run(job(), device="numpy", progress=False)
    assert main(["strategies", "show"]) == 0
    assert capsys.readouterr().out.startswith("0 in ")


@cases(60)
@given(st.data())
def test_no_number_in_a_kept_file_fails_a_run(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    cache = tmp_path_factory.getbasetemp() / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLOWCOMPUTE_CACHE", str(cache))
        base = cache / "base.json"
        if not base.exists():
            fc.run(job(), device="numpy", progress=False, tune="quick")
            path = next((cache / "strategies").glob("job-*"))
            base.write_text(json.dumps({"name": path.name, "content": json.loads(path.read_text())}))
        kept = json.loads(base.read_text())
        content = kept["content"]
        found = list(places(content))
        *way, key = found[data.draw(st.integers(0, len(found) - 1))]
        holder: Any = content
        for one in way:
            holder = holder[one]
        holder[key] = copy.deepcopy(data.draw(st.sampled_from([*JUNK, 2**40, 2**62])))
        (cache / "strategies" / kept["name"]).write_text(json.dumps(content))
        fc.plan(job(), device="numpy").explain()
        assert main(["strategies", "show", "--trials"]) == 0
        assert StrategyStore().every() is not None
