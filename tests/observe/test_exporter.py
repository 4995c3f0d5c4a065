"""What Prometheus is served, by whom, and how long."""

from __future__ import annotations

import socket
import threading
import urllib.request

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import flowcompute as fc
from flowcompute.errors import PlanError, RunError
from flowcompute.metrics import Checkpoints, Metrics, NodeMetrics, Progress, Snapshot
from flowcompute.observe.collector import MOST_ELEMENTS, RunCollector
from flowcompute.observe.exporter import Exporter, parse_port

DATA = np.arange(4_000, dtype=np.float32).reshape(-1, 4)


def read(port: int) -> dict[tuple[str, str | None], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=600) as page:
        text = page.read().decode()
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, sample.labels.get("element")): sample.value for sample in samples}


def small(names: list[str]) -> Snapshot:
    rows = {name: NodeMetrics(name, "region", 3, 2, 8, 4, 0.5, 0.25, 0.0, launches=2) for name in names}
    progress = Progress(3, None, 8, 1.0, False)
    return Snapshot(Metrics(rows, {}), progress, Checkpoints(), None, 2, 4, 100)


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("flowcompute", "Thread"))]


def refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_run_is_served_while_it_lasts_and_not_after():
    seen, ports = [], []

    def watch(run):
        if not seen:
            ports.append(run.metrics_port)
            seen.append((read(run.metrics_port), run.metrics["x"].batches))

    before = ours()
    x = fc.source(DATA, name="x")
    run = fc.run(fc.tanh(x), device="numpy", strategy=fc.Strategy(batch_bytes=2_000), progress=False, metrics_port=0,
                 on_batch=watch)  # fmt: skip
    (page, _), (port,) = seen[0], ports
    assert page["flowcompute_items_total", "tanh"] == page["flowcompute_run_items_total", None] > 0
    assert page["flowcompute_run_expected_items", None] == 1_000
    assert page["flowcompute_out_bytes_total", "x"] >= page["flowcompute_in_bytes_total", "tanh"]
    assert page["flowcompute_launches_total", "tanh"] == page["flowcompute_batches_total", "tanh"] == 1
    assert ("flowcompute_credits", "x") in page
    assert ("flowcompute_run_checkpoint_age_seconds", None) not in page
    assert run.metrics_port is None
    assert refuses(port)
    assert ours() == before


@pytest.mark.parametrize("way", ["fails", "stops"])
def test_a_run_that_does_not_complete_leaves_no_thread_and_no_socket(way):
    before, ports = ours(), []

    def end(run):
        ports.append(run.metrics_port)
        if way == "fails":
            raise ValueError("enough")
        run.stop()

    job = fc.source(DATA) + 1
    with pytest.raises(RunError):
        fc.run(job, device="numpy", strategy=fc.Strategy(batch_bytes=2_000), progress=False, metrics_port=0,
               on_batch=end)  # fmt: skip
    assert refuses(ports[0])
    assert ours() == before


def test_clients_that_say_nothing_hold_up_nobody():
    exporter = Exporter(0, lambda: small(["a"]))
    with socket.create_connection(("127.0.0.1", exporter.port)) as silent:
        assert read(exporter.port)["flowcompute_items_total", "a"] == 3
        exporter.close()
        assert silent.recv(1) == b""
    assert not [name for name in ours() if name == "flowcompute-metrics" or "process_request" in name]


def test_a_port_that_somebody_has_is_told_before_anything_begins(tmp_path):
    target, trace = tmp_path / "y.npy", tmp_path / "t.json"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"127.0.0.1:{port}") as caught:
            fc.run(fc.source(DATA) >> fc.save(str(target)), progress=False, metrics_port=port, trace=trace)
    assert "metrics_port=0" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_ports_as_they_may_be_given():
    assert parse_port(0) == ("127.0.0.1", 0)
    assert parse_port(9464) == ("127.0.0.1", 9464)
    assert parse_port("0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert parse_port("[::1]:80") == ("::1", 80)
    for wrong in (-1, 65536, True, 1.5, "9464", ":80", "host:", "host:x", "host:99999"):
        with pytest.raises(PlanError, match="metrics_port: cannot use this value"):
            parse_port(wrong)


def test_every_number_is_served_under_its_name():
    row = NodeMetrics("a", "region", 1, 2, 3, 4, 5.0, 6.0, 7.0, 8, 9.0, 10.0, 11, 12, 13)
    progress, kept = Progress(14, 28, 15, 16.0, False, 17), Checkpoints(18, 19, age_s=20.0)
    exporter = Exporter(0, lambda: Snapshot(Metrics({"a": row}, {}), progress, kept, "a", 21, 22, 23))
    try:
        page = read(exporter.port)
    finally:
        exporter.close()
    names = ("items_total", "batches_total", "in_bytes_total", "out_bytes_total", "wait_in_seconds_total",
             "busy_seconds_total", "wait_out_seconds_total", "launches_total", "device_seconds_total",
             "compile_seconds_total", "queued_batches", "credits", "peak_bytes")  # fmt: skip
    of_run = {"items_total": 14, "read_bytes_total": 15, "seconds": 16, "skipped_total": 17, "checkpoints_total": 18,
              "checkpoint_age_seconds": 20, "written_bytes_total": 22, "peak_bytes": 23, "expected_items": 28,
              "remaining_seconds": 16}  # fmt: skip
    wanted = {(f"flowcompute_{name}", "a"): float(number) for number, name in enumerate(names, 1)}
    wanted |= {(f"flowcompute_run_{name}", None): float(number) for name, number in of_run.items()}
    wanted["flowcompute_run_bottleneck", "a"] = 1.0
    assert page == wanted


def test_labels_are_few_and_quoted():
    families = list(RunCollector(lambda: small([f'e{i}"\n\\' for i in range(MOST_ELEMENTS + 9)])).collect())
    assert max(len(family.samples) for family in families) == MOST_ELEMENTS
    exporter = Exporter(0, lambda: small(['quo"te\n\\']))
    try:
        assert read(exporter.port)["flowcompute_items_total", 'quo"te\n\\'] == 3
    finally:
        exporter.close()
