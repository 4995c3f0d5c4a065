"""What is written of a run: JSON lines and a trace, also when things go wrong."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import DestinationError, MetricsWarning, PlanError, RunError
from flowcompute.files.file_layer import FILES
from flowcompute.observe import EventStream, PassBegun, RunView, StageEntered, StageState, trace_file
from flowcompute.observe.trace_file import Trace
from tests.observe.test_exporter import ours, small

DATA = np.arange(4_000, dtype=np.float32).reshape(-1, 4)


class Named:
    name = "a"


SMALL = fc.Strategy(batch_bytes=2_000)


def events(path) -> list[dict]:
    return json.loads(path.read_text())["traceEvents"]


def tracks(path) -> dict[str, list[dict]]:
    names = {e["tid"]: e["args"]["name"] for e in events(path) if e["name"] == "thread_name"}
    spans = [e for e in events(path) if e["ph"] == "X"]
    return {name: [e for e in spans if e["tid"] == number] for number, name in names.items()}


def test_a_trace_has_a_track_for_each_stage_and_for_the_device(tmp_path):
    path = tmp_path / "t.json"
    run = fc.run(fc.tanh(fc.source(DATA, name="x")) >> fc.callback(len, name="out"), strategy=SMALL, progress=False,
                 trace=path, device="cpu")  # fmt: skip
    by_track = tracks(path)
    assert list(by_track) == ["x", "compute", "out", "device queue"]
    launches = by_track["device queue"]
    assert {e["name"] for e in launches} == {"tanh"}
    assert len(launches) == run.launches == run.metrics["tanh"].launches
    assert sum(e["args"]["records"] for e in by_track["out"] if e["name"] == "writing") == len(DATA)
    assert {e["name"] for e in by_track["x"]} >= {"reading"}
    for spans in by_track.values():
        ends = [e["ts"] + e["dur"] for e in spans]
        assert all(e["ts"] >= -1 and e["dur"] >= 0 for e in spans)
        # Spans of one track follow each other.
        assert all(end <= later["ts"] + 0.01 for end, later in zip(ends, spans[1:], strict=False))
        assert max(ends) <= run.seconds * 1e6 + 1
    assert json.loads(path.read_text())["otherData"]["run"]["items"] == len(DATA)


def test_a_failed_run_has_its_trace_too_with_what_it_died_of(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("an older one")

    def fail(run):
        if run.metrics["x"].batches > 2:
            assert path.read_text() == "an older one"
            raise ValueError("enough")

    with pytest.raises(RunError, match="enough"):
        fc.run(fc.source(DATA, name="x") + 1, device="numpy", strategy=SMALL, progress=False, trace=path, on_batch=fail)
    assert tracks(path)["compute"][-1]["name"] == "computing"
    assert [each.name for each in tmp_path.iterdir()] == ["t.json"]


def test_a_trace_is_bounded_and_says_what_it_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "SPANS", 40)
    path = tmp_path / "t.json"
    fc.run(fc.source(DATA, name="x") + 1, device="numpy", strategy=fc.Strategy(batch_bytes=64, depth=2), progress=False,
           trace=path)  # fmt: skip
    assert all(len(spans) <= 10 for spans in tracks(path).values())
    assert json.loads(path.read_text())["otherData"]["lost_spans"]["compute"] > 10
    # The newest are kept.
    assert max(e["args"]["first_record"] for e in tracks(path)["compute"] if "args" in e) >= len(DATA) - 8


def test_wrong_paths_are_told_before_anything_begins(tmp_path):
    job = fc.source(DATA) + 1
    with pytest.raises(DestinationError, match="trace"):
        fc.run(job, progress=False, trace=tmp_path / "none" / "t.json")
    before = ours()
    with pytest.raises(DestinationError, match="metrics_log"):
        fc.run(job, progress=False, metrics_port=0, trace=tmp_path / "t.json", metrics_log=tmp_path)
    assert not list(tmp_path.iterdir())
    assert ours() == before
    with pytest.raises(PlanError, match="trace: cannot use this value"):
        fc.run(job, progress=False, trace=7)


def test_lines_are_added_to_a_file(tmp_path):
    path = tmp_path / "m.jsonl"
    for _ in range(2):
        run = fc.run(fc.tanh(fc.source(DATA, name="x")), device="numpy", progress=False, metrics_log=path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len([line for line in lines if line["done"]]) == 2
    last = lines[-1]
    assert (last["items"], last["total_items"]) == (1_000, 1_000)
    assert last["bytes_read"] == last["stages"]["x"]["bytes_out"] == DATA.nbytes
    assert last["stages"]["tanh"]["launches"] == run.launches
    assert last["bottleneck"] == run.bottleneck
    assert last["checkpoint_age_s"] is None


def test_lines_go_to_an_open_file_which_stays_open():
    text = io.StringIO()
    fc.run(fc.source(DATA).sum(), device="numpy", progress=False, metrics_log=text)
    assert json.loads(text.getvalue().splitlines()[-1])["done"]


def test_what_cannot_be_written_at_the_end_is_a_warning_and_the_results_are_there(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    job = fc.source(DATA).sum()
    with pytest.warns(MetricsWarning, match="No space left"):
        run = fc.run(job, device="numpy", progress=False, metrics_log=Full())
    assert run.value == DATA.sum()
    monkeypatch.setattr(type(FILES), "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.warns(MetricsWarning, match="the trace could not be written"):
        run = fc.run(job, device="numpy", progress=False, trace=tmp_path / "t.json")
    assert run.value == DATA.sum()
    assert not list(tmp_path.iterdir())
    # Who makes errors of warnings has an error, and nobody waits for ever.
    with pytest.raises(MetricsWarning):
        fc.run(job, device="numpy", progress=False, metrics_log=Full())


def test_a_trace_of_many_events_is_written_in_pieces(tmp_path):
    path = tmp_path / "t.json"
    stage = Named()
    view = RunView(snapshot=lambda: small(["a"]), seconds=lambda: 9.0, about=dict, tracks=2)
    trace, stream = Trace(path, view), EventStream()
    stream.subscribe(trace.takes())
    stream.emit(PassBegun((stage,)))
    for i in range(3_000):
        stream.emit(StageEntered(stage, StageState.BUSY, "x" * 50, (i, i + 1), i * 1e-3))
    assert trace.close() is None
    assert [e["args"]["first_record"] for e in tracks(path)["a"]] == list(range(3_000))
    assert tracks(path)["a"][-1]["dur"] == pytest.approx((9.0 - 2.999) * 1e6)
