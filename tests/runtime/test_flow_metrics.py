"""Numbers of flows: what was sent, computed and received, and to whom that is told while a flow is open."""

from __future__ import annotations

import io
import json
import socket
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError, RunError
from flowcompute.observe.report_page import page_of
from tests.observe.test_exporter import ours, read, refuses

DATA = np.arange(80, dtype=np.float32).reshape(20, 4)


def graph():
    x = fc.feed(shape=(4,), dtype="float32", name="readings")
    return x, [fc.exp(x * 0.125).sum(axis=1) >> fc.to_array(name="energy"), x.sum(axis=0) >> fc.to_array(name="total")]


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_rows_count_what_was_sent_computed_and_received(device):
    _, roots = graph()
    with fc.open_flow(*roots, device=device) as flow:
        assert flow.bottleneck is None
        for part in (DATA[:3], DATA[3:], DATA[:0]):
            flow.send(part)
        flow.receive()
        now = flow.metrics
        assert (now["readings"].items, now["readings"].batches, now["readings"].bytes_out) == (20, 3, DATA.nbytes)
        assert (now["energy"].items, now["energy"].batches, now["energy"].bytes_in) == (3, 1, 12)
        assert now["energy"].queued == 2
        assert now["energy"].peak_bytes == 80
        assert (now["exp"].items, now["exp"].bytes_in, now["exp"].bytes_out) == (20, DATA.nbytes, 80)
        assert now["exp"].busy_s > 0
        flow.resolve()
        after = flow.metrics
        assert (after["energy"].items, after["total"].items, after["energy"].queued) == (20, 1, 0)
        assert [batch.items for batch in after["readings"].recent] == [3, 17, 0]
        assert sum(batch.bytes_out for batch in after["readings"].recent) == DATA.nbytes
        if device == "cpu":
            # Nothing is launched for no records.
            assert after["exp"].launches == 2
            assert after["exp"].device_s > 0
            assert after["exp"].compile_s > 0
        assert (flow.progress.items, flow.progress.total_items, flow.progress.done) == (20, None, False)
    assert flow.progress.done
    assert flow.metrics["readings"].items == 20
    assert flow.progress.seconds == flow.progress.seconds


def test_the_feed_is_waited_for_where_nobody_sends_and_a_region_where_it_works():
    _, roots = graph()
    with fc.open_flow(*roots, device="numpy") as flow:
        flow.send(DATA)
        record = flow._core.record
        record._busy_s = 0.0
        assert flow.bottleneck == "readings"
        record._busy_s = 1e9
        assert flow.bottleneck in {row.name for row in flow.metrics.values() if row.kind == "region"}
        assert flow.metrics["readings"].wait_in_s == 0.0


def test_a_send_that_fails_is_not_counted_and_ends_in_the_trace(tmp_path):
    def fail(batch):
        raise ValueError("no")

    x = fc.feed(shape=(4,), dtype="float32", name="readings")
    with pytest.raises(RunError), fc.open_flow(fc.host(fail, x), device="numpy", trace=tmp_path / "t.json") as flow:
        flow.send(DATA)
    assert flow.progress.items == 0
    spans = [event for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in spans] == ["failing"]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_opening_makes_nothing_that_is_only_asked_for_later(device):
    feed = fc.feed(dtype="int32")
    late = AssertionError("made before it was asked for")
    with (
        mock.patch("flowcompute.schedule.plan.places_of", side_effect=late),
        mock.patch("flowcompute.gpu.run.opencl_runner.device_buffer_assignment", side_effect=late),
    ):
        flow = (feed + 1).flow(device=device).__enter__()
        flow.send([1, 2])
    assert flow.receive().tolist() == [2, 3]
    assert all("test_flow_metrics.py:" in row.place for row in flow.metrics.values())
    flow.close()


def test_an_open_flow_is_served_logged_and_traced(tmp_path):
    before, (_, roots), lines = ours(), graph(), io.StringIO()
    trace = tmp_path / "t.json"
    opener = fc.open_flow(*roots, device="cpu", metrics_port=0, metrics_log=lines, trace=trace)
    with opener as flow:
        flow.send(DATA)
        port = flow.metrics_port
        page = read(port)
        assert page["flowcompute_items_total", "readings"] == page["flowcompute_run_items_total", None] == 20
        assert page["flowcompute_queued_batches", "energy"] == 1
        assert ("flowcompute_run_expected_items", None) not in page
    assert flow.metrics_port is None
    assert refuses(port)
    assert ours() == before
    last = json.loads(lines.getvalue().splitlines()[-1])
    assert (last["items"], last["done"], last["stages"]["readings"]["bytes_out"]) == (20, True, DATA.nbytes)
    content = json.loads(trace.read_text())
    names = {e["tid"]: e["args"]["name"] for e in content["traceEvents"] if e["name"] == "thread_name"}
    spans = {
        name: [e["name"] for e in content["traceEvents"] if e["ph"] == "X" and e["tid"] == tid]
        for tid, name in names.items()
    }
    assert spans["compute"] == ["computing"]
    assert spans["device queue"]
    assert "readings" in page_of(content, "flow", "")


def test_a_flow_that_cannot_be_served_is_not_opened(tmp_path):
    _, roots = graph()
    before = ours()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        opener = fc.open_flow(*roots, device="numpy", metrics_port=taken.getsockname()[1], trace=tmp_path / "t.json")
        with pytest.raises(RunError, match="metrics_port"), opener:
            pass
    assert not list(tmp_path.iterdir())
    assert ours() == before


def test_without_metrics_only_what_passed_is_counted():
    _, roots = graph()
    with fc.open_flow(*roots, device="cpu", metrics=False) as flow:
        flow.send(DATA)
        energy = flow.receive()
        row = flow.metrics["exp"]
        assert (row.items, row.launches, row.compile_s) == (20, 0, 0.0)
        assert flow.metrics["readings"].recent == ()
    with fc.open_flow(*roots, device="cpu") as flow:
        flow.send(DATA)
        assert flow.receive().tobytes() == energy.tobytes()
    with pytest.raises(PlanError, match="without metrics"):
        fc.open_flow(*roots, metrics=False, metrics_port=0)


async def test_a_flow_in_trio_has_the_same_numbers():
    _, roots = graph()
    async with fc.open_flow(*roots, device="numpy", metrics_port=0) as flow:
        await flow.send(DATA)
        await flow.receive()
        assert flow.metrics["readings"].items == flow.metrics["energy"].items == 20
        assert flow.metrics_port
    assert flow.metrics_port is None
