"""What a region does for a record, counted by hand, and how near that comes to what a device can do."""

from __future__ import annotations

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.elements.nn.dot_product_attention import visible_keys
from flowcompute.errors import PlanError
from flowcompute.gpu.device import limits as measuring
from flowcompute.gpu.device.discovery import select_device
from flowcompute.jobs import job_of
from flowcompute.metrics import NodeMetrics
from flowcompute.schedule.explain.roofline_table import rooflines
from flowcompute.schedule.launch_log import LaunchLog
from flowcompute.schedule.steps import RegionStep
from flowcompute.schedule.work_estimate import operations_of, work_of
from flowcompute.strategy.roofline import Limits, Roofline, load_limits, save_limits
from tests.gpu.tensor_devices import plan_on_paper

EXP = 20


def stream(*item, dtype="float32"):
    return fc.source(np.ones((6, *item), dtype))


def counted(root, device="cpu"):
    """Work of the only region of a job."""
    plan = fc.plan(root, device=device)
    (step,) = (step for step in plan.passes[0].steps if isinstance(step, RegionStep))
    return work_of(plan.graph, step)


def operations(root):
    plan = fc.plan(root, device="numpy")
    return sum(operations_of(plan.graph, node) for node in plan.graph.nodes if node.spec.is_stream or node.inputs)


@pytest.mark.parametrize(
    ("make", "bytes_in", "bytes_out", "count", "unit"),
    [
        (lambda: stream(8) * 2.5 + 1, 32, 32, 16, "float32"),
        (lambda: fc.exp(stream(8)), 32, 32, 8 * EXP, "float32"),
        (lambda: stream(8).astype("float64") * 3, 32, 64, 8, "float64"),
        (lambda: stream(8, dtype="int16") + 1, 16, 16, 8, "integer"),
        (lambda: (stream(8) * 3).sum(axis=1), 32, 4, 16, "float32"),
        (lambda: stream(8).var(axis=0), 32, 0, 32, "float32"),
        (lambda: fc.vecdot(stream(8), stream(8)), 64, 4, 16, "float32"),
        (lambda: stream(8)[:, 2:4] + stream(8)[:, :2], 16, 8, 2, "float32"),
        (lambda: stream(8) @ np.ones((8, 5), "f4"), 32, 20, 2 * 5 * 8, "float32"),
        (lambda: fc.cumulative_sum(stream(8), axis=0) * 2, 32, 32, 16, "float32"),
    ],
)
def test_bytes_and_operations_of_a_record(make, bytes_in, bytes_out, count, unit):
    work = counted(make())
    assert (work.bytes_in, work.bytes_out, work.operations, work.unit) == (bytes_in, bytes_out, count, unit)


def test_windows_bring_their_new_records_only():
    work = counted(fc.window(stream(), size=5).mean(axis=1))
    assert work.bytes_in == 4
    assert 5 <= work.operations <= 20


def test_a_convolution_multiplies_each_weight_at_each_place():
    weights = np.ones((4, 3, 3, 3), "f4")
    made = fc.nn.conv2d(stream(3, 10, 12), weights)
    assert made.shape[1:] == (4, 8, 10)
    assert operations(made) == 2 * (4 * 8 * 10) * (3 * 3 * 3)


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 3)])
def test_attention_counts_the_keys_that_are_seen(causal, window):
    q, k, v = stream(2, 5, 8), stream(2, 9, 8), stream(2, 9, 6)
    pairs = 2 * int(visible_keys(5, 9, causal=causal, window=window).sum())
    assert operations(fc.nn.attention(q, k, v, causal=causal, window=window)) == pairs * (2 * 8 + 2 * 6 + EXP + 4)


def test_products_by_tensor_cores_are_held_against_tensor_cores():
    x = fc.source(np.ones((64, 64, 64), np.float16))
    plan = plan_on_paper(x @ np.ones((64, 64), np.float16))
    work = work_of(plan.graph, next(step for step in plan.steps if isinstance(step, RegionStep)))
    assert (work.operations, work.unit) == (2 * 64**3, "tensor")


LIMITS = Limits(1e9, {"float32": 1e10}, 7)


def row(name, items, device_s, busy_s):
    return NodeMetrics(name, "region", items, 1, 32 * items, 32 * items, 0.0, busy_s, 0.0, device_s=device_s)


def test_a_roofline_says_what_holds_a_region_up_and_by_how_much():
    plan = fc.plan(stream(8) * 2.5, fc.exp(fc.exp(fc.exp(stream(8)))), device="numpy")
    names = [step.name for step in plan.steps]
    rows = {names[0]: row(names[0], 1000, 128e-6, 1.0), names[1]: row(names[1], 1000, 0.0, 96e-6)}
    first, second = rooflines(plan, rows, [LIMITS])
    assert (first.bytes, first.operations, first.bound) == (64_000, 8_000, "memory")
    assert first.share == pytest.approx(0.5)
    # Nobody timed the second on a device.
    assert (second.operations, second.bound) == (480_000, "memory")
    assert second.seconds == 96e-6
    assert second.share == pytest.approx(64 / 96)
    slow = second.under(Limits(1e9, {"float32": 1e9}, 7))
    assert (slow.bound, slow.share) == ("arithmetic", pytest.approx(5.0))
    assert "500 MB/s, 62.5 Mop/s, 0.125 operations a byte (float32), 50% of what memory allows" in str(first)
    assert "allows" not in str(rooflines(plan, rows, [None])[0])
    assert rooflines(plan, {}, [LIMITS]) == ()


def test_what_was_never_measured_has_no_limit():
    one = Roofline("a", 100.0, 100.0, "tensor", 1.0).under(LIMITS)
    assert (one.operations_s, one.bound) == (None, "memory")


def test_the_first_launch_is_no_sample_of_the_others():
    log = LaunchLog()
    for number in range(40):
        timed = log.is_timed("a")
        log.launched("a", 0.0, (9.0 if number == 0 else 0.5) if timed else None)
    assert log.steps["a"].estimate_s == pytest.approx(20.0)
    log.launched("b", 0.0, 3.0)
    assert log.steps["b"].estimate_s == 3.0


def test_deferred_launches_are_timed_less_often():
    log, timed = LaunchLog(), []
    again = log.repeated(["a"])
    for number in range(300):
        if log.is_timed("a", deferred=True):
            timed.append(number)
            log.launched("a", 0.0, 0.5)
        else:
            assert log.launched_again(again)
    assert timed == [0, 1, 256]
    assert log.steps["a"].estimate_s == pytest.approx(150.0)


def test_launches_that_are_repeated_together_count_for_each_step():
    log = LaunchLog()
    both, one, other = log.repeated(["a", "b"]), log.repeated(["b"]), log.repeated(["c"])
    assert not log.launched_again(both), "the first two launches are timed"
    for name in ("a", "a", "b", "b", "c", "c"):
        log.launched(name, 0.0, 1.0)
    assert all(log.launched_again(each) for each in (both, one, other))
    assert [log.steps[name].launches for name in "abc"] == [3, 4, 3]
    while log.steps["b"].launches < 256:
        assert log.launched_again(one)
    # Launches of any count bring the next timed one nearer.
    assert not log.launched_again(both)
    assert log.steps["a"].launches == 3
    log.launched("b", 0.0, 1.0)
    assert log.launched_again(both)
    assert log.repeated(["a", "b"]) is both
    assert LaunchLog(print).launched_again(LaunchLog(print).repeated(["a"])) is False


def test_seconds_of_launches_may_come_later():
    log = LaunchLog()
    for _ in range(4):
        log.launched("a", 0.0, None)
    for seconds in (9.0, 0.5):
        log.timed("a", seconds)
    assert (log.steps["a"].launches, log.steps["a"].timed) == (4, 2)
    assert log.steps["a"].estimate_s == pytest.approx(2.0)
    assert not log.asks_ends
    assert LaunchLog(print).asks_ends


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A measurement that takes no time, kept in an empty cache. The driver starts before."""
    device = select_device("cpu", needs_float64=False)
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(measuring, "COPY_BYTES", {"cpu": 1 << 16, "gpu": 1 << 16})
    monkeypatch.setattr(measuring, "_CHAINS", 1)
    monkeypatch.setattr(measuring, "_TURNS", {"cpu": 4, "gpu": 4})
    return device


def test_limits_are_measured_once_kept_and_explained(small, capsys):
    kind = small.capabilities.kind
    plan = fc.plan(stream(8) * 2.5, device="cpu")
    assert "flowcompute devices --measure" in plan.explain()
    assert main(["devices", "--measure"]) == 0
    limits = load_limits(kind)
    assert limits is not None
    assert set(limits.operations_per_s) == {"float32", "float64", "integer"}
    assert str(limits) in capsys.readouterr().out.replace("\n", " ").replace("  ", " ")
    assert f"{8:,} operations (float32): at most " in plan.explain()
    beside = fc.plan((stream(8) * 2).on("numpy"), stream(8) * 2.5, device="cpu").explain()
    assert "at most " in beside
    assert "were not measured" not in beside
    run = fc.run(stream(8) * 2.5, device="cpu", progress=False)
    (one,) = run.tuning.rooflines
    assert (one.region, one.bytes, one.operations) == ("multiply", 6 * 64, 48)
    assert one.bytes_s == pytest.approx(6 * 64 / limits.bytes_per_s)
    assert one.share > 0
    assert str(one) in str(run.tuning)


def test_a_measurement_stays_within_the_memory_it_is_given(small):
    backend = job_of(fc.plan(stream(8) * 2.5, device="cpu")).backend
    needed = 2 * (1 << 16)
    assert backend.measure(needed - 1) is None
    assert backend.measure(needed) is not None
    assert job_of(fc.plan(stream(8), device="numpy")).backend.measure(1 << 40) is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"kind": "k"}', '{"kind": "k", "limits": {"bytes_per_s": 0, "operations_per_s": {}, "when": 1}}'],
)
def test_limits_that_cannot_be_read_are_missing(small, tmp_path, text):
    assert save_limits("k", LIMITS)
    assert load_limits("k") == LIMITS
    assert load_limits("another") is None
    (path,) = (tmp_path / "cache" / "devices").iterdir()
    path.write_text(text)
    assert load_limits("k") is None
    with pytest.raises(PlanError, match="limits of a device"):
        Limits.from_plain({"bytes_per_s": 1, "operations_per_s": {"gpu": 1}, "when": 1})
