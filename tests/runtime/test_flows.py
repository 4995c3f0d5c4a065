"""Persistent flows: the values of one run, however the records are sent; state that begins anew; failures; closing."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError, RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.programs import build
from tests.gpu.shapes import gpu_shaped
from tests.properties.cases import cases
from tests.runtime.feeding import X, assert_no_threads, failing, feed, numbers

DEVICES = ["numpy", "cpu"]


# -- values -------------------------------------------------------------------------------------


def everything(x: Any) -> tuple[fc.Element, ...]:
    """Streams of every kind of clock, and folds on the host and in kernels, with what follows them."""
    column = x[:, 0]
    return (
        fc.sqrt(fc.vecdot(x, x)),
        x[:, ::-1] + fc.window(x, 3, pad="edge").mean(axis=1),
        fc.cut(column, 4, tail="pad", fill=1),
        fc.cut(column, 4, tail="emit").sum(axis=1),
        fc.cumulative_sum(x[x[:, 1] > 0], axis=0),
        fc.ema(column[2:], 0.25),
        fc.repeat(fc.window(column, 4, 3), 2, axis=0),
        x.sum(axis=0) * 2 + x.max(axis=0),
        x.var(axis=0),
        fc.exp(column.mean(axis=0)),
        x[x[:, 1] > 0].sum(axis=0),
        x.T @ x,
        fc.last(x),
        fc.histogram(column, [-3, 0, 3])[0],
    )


FOLDS = 7
"""How many of `everything` are folds; they come last."""

WHOLE = {device: fc.resolve(*everything(fc.source(X)), device=device, progress=False) for device in DEVICES}
FLOWS: dict[tuple[str, str], Any] = {
    (device, mode): fc.open_flow(*everything(feed()), device=device, mode=mode)  # type: ignore[arg-type]
    for device in DEVICES
    for mode in ("reset", "cumulative")
}


def assert_same(values: Any, wanted: Any) -> None:
    for value, one in zip(values, wanted, strict=True):
        assert (np.asarray(value).dtype, np.shape(value)) == (np.asarray(one).dtype, np.shape(one))
        # Numbers that a flow folds on the host may be folded by a kernel elsewhere, in the same order.
        np.testing.assert_array_equal(value, one)


@pytest.mark.parametrize("device", DEVICES)
@cases(40)
@given(data=st.data())
def test_sends_of_any_size_give_what_one_run_gives(device: str, data: st.DataObject) -> None:
    with FLOWS[device, "reset"] as flow:
        for _ in range(2):
            ends = sorted(data.draw(st.lists(st.integers(0, len(X)), max_size=6), label="ends"))
            parts: list[Any] = []
            for first, last in zip([0, *ends], [*ends, len(X)], strict=True):
                # What was sent is the sender's again.
                records = X[first:last].copy()
                flow.send(records)
                records[:] = 99
                if data.draw(st.booleans(), label="receive"):
                    parts.append(flow.receive())
            values = flow.resolve()
            # What was not received comes at the end: a send's result is received before those of later ones.
            streams = [np.concatenate([*(part[i] for part in parts), values[i]]) for i in range(len(values) - FOLDS)]
            assert_same((*streams, *values[-FOLDS:]), WHOLE[device])


@pytest.mark.parametrize("device", DEVICES)
def test_cumulative_folds_are_of_all_that_came(device: str) -> None:
    with FLOWS[device, "cumulative"] as flow:
        for stop in (1, 2, 30, 60):
            flow.send(X[{1: 0, 2: 1, 30: 2, 60: 30}[stop] : stop])
            values = flow.resolve()
            wanted = fc.resolve(*everything(fc.source(X[:stop])), device=device, progress=False)
            # A cut whose last run is not whole has not ended, nor has a window at the end of the stream.
            assert_same(values[-FOLDS:], wanted[-FOLDS:])


def test_reset_folds_are_of_what_came_since() -> None:
    with FLOWS["cpu", "reset"] as flow:
        for start in (0, 20, 40):
            flow.send(X[start : start + 5])
            flow.send(X[start + 5 : start + 20])
            wanted = fc.resolve(*everything(fc.source(X[start : start + 20])), device="cpu", progress=False)
            assert_same(flow.resolve(), wanted)


def test_folds_are_uploaded_again_where_memory_is_the_devices_own() -> None:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        opener = fc.open_flow(feed().sum(axis=0) * 2, mode="cumulative")
    with opener as flow:
        for count in (1, 2, 3):
            flow.send(np.ones((4, 3), np.float32))
            np.testing.assert_array_equal(flow.resolve(), [8 * count] * 3)


def test_there_is_one_receive_for_each_send() -> None:
    x = feed()
    with fc.open_flow(x[x[:, 0] > 0], fc.cut(x, 2)).__enter__() as flow:
        sends = [X[:0], X[:3], X[3:3], X[3:4], -abs(X[:2])]
        for sent in sends:
            flow.send(sent)
        received = [flow.receive() for _ in sends]
        for sent, (chosen, _) in zip(sends, received, strict=True):
            np.testing.assert_array_equal(chosen, sent[sent[:, 0] > 0])
        assert [len(runs) for _, runs in received] == [0, 1, 0, 1, 1]
        with pytest.raises(RunError, match="nothing to receive"):
            flow.receive()


def test_what_is_received_is_the_receivers() -> None:
    x = feed()
    with fc.open_flow(x, x * 2, device="cpu") as flow:
        sent = X[:4].copy()
        flow.send(sent)
        same, twice = flow.receive()
        sent[:] = 0
        flow.send(X[4:8])
        flow.receive()
        np.testing.assert_array_equal(same, X[:4])
        np.testing.assert_array_equal(twice, X[:4] * 2)
        same[:] = twice[:] = 5


def test_sends_larger_than_a_batch_are_computed_in_batches() -> None:
    element = feed() * 2
    with element.flow(strategy=fc.Strategy(batch_bytes=24), device="numpy") as flow:
        assert flow.plan.passes[0].batch_items < 10
        flow.send(X)
        np.testing.assert_array_equal(flow.receive(), X * 2)


# -- several feeds ------------------------------------------------------------------------------


def test_several_feeds_are_sent_by_name() -> None:
    left, right = fc.feed(dtype="float32", name="left"), fc.feed(dtype="float32", name="right")
    with fc.open_flow(left[1:] * right, right.sum(axis=0), mode="reset") as flow:
        flow.send(left=numbers(1, 2, 3), right=numbers(4, 5))
        flow.send(right=numbers(), left=numbers(4))
        np.testing.assert_array_equal(flow.receive()[:], numbers(8, 15))
        assert len(flow.receive()) == 0
        with pytest.raises(RunError, match="one array for each feed") as caught:
            flow.send(numbers(1))
        assert "left" in str(caught.value)
        with pytest.raises(RunError, match="one array for each feed"):
            flow.send(left=numbers(1))
        flow.send(right=numbers(6), left=numbers())
        product, total = flow.resolve()
        np.testing.assert_array_equal(product, numbers(24))
        assert total == 15


def test_feeds_that_meet_are_sent_equally_many_records() -> None:
    left, right = fc.feed(dtype="float32", name="left"), fc.feed(dtype="float32", name="right")
    with (left + right).flow() as flow:
        with pytest.raises(RunError, match="unequal numbers of records") as caught:
            flow.send(left=numbers(1, 2), right=numbers(1))
        assert "left: 2" in str(caught.value)
        assert "right: 1" in str(caught.value)
        flow.send(left=numbers(1), right=numbers(2))
        assert flow.receive() == 3


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (np.zeros(3, np.float32), "records of this shape"),
        (np.zeros((2, 4), np.float32), "records of this shape"),
        (np.zeros((2, 3), np.complex128), "numbers of this dtype"),
        ([[1, 2, 3], [4]], "to an array"),
        ("text", "records of this shape"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(sent: Any, said: str) -> None:
    with feed().sum(axis=0).flow(device="numpy") as flow:
        flow.send(X[:2])
        with pytest.raises(RunError, match=said) as caught:
            flow.send(sent)
        assert caught.value.element == "feed"
        np.testing.assert_array_equal(flow.resolve(), X[:2].sum(axis=0))


# -- what a flow refuses ------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any, Path], Any], str]] = {
    "two passes": (lambda x, _: x - x.mean(axis=0), r"read only once(.|\n)*fc.constant\(value\)"),
    "two passes of what is kept": (lambda x, _: (y := fc.spool(x)) - y.mean(axis=0), "sees each record once"),
    "a file": (lambda x, _: x + fc.source(X), "this source is not"),
    "no feed": (lambda x, _: fc.constant(X) * 2, "without a feed"),
    "a destination": (lambda x, folder: x >> fc.save(folder / "y.npy"), "not to a destination"),
    "end to end": (lambda x, _: fc.concat([x, fc.feed((3,), "float32")]), "cannot join streams end to end in a flow"),
    "end to end with itself": (lambda x, _: fc.concat([x, x]), "read only once"),
    "what meets no feed": (lambda x, _: fc.range(5), "meets no feed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_element(name: str, tmp_path: Path) -> None:
    x = feed()
    build, said = REFUSED[name]
    with pytest.raises(PlanError, match=said) as caught:
        fc.open_flow(*[build(x, tmp_path)] + ([x.sum(axis=0)] if name != "no feed" else []), device="numpy")
    assert caught.value.element
    assert list(tmp_path.iterdir()) == []


def test_a_mode_is_reset_or_cumulative() -> None:
    with pytest.raises(PlanError, match="'reset' or 'cumulative'"):
        feed().flow(mode="sometimes")  # type: ignore[arg-type]


def test_a_feed_has_nothing_to_run_on() -> None:
    with pytest.raises(PlanError, match="no data of its own"):
        feed().sum(axis=0).resolve()


# -- prepared once ------------------------------------------------------------------------------


def test_nothing_is_planned_or_compiled_after_opening() -> None:
    x = feed()
    opener = fc.open_flow(fc.tanh(x).sum(axis=1), fc.window(x, 3).sum(axis=1), x.sum(axis=0) * 2, device="cpu")
    with (
        mock.patch("flowcompute.gpu.worker.launcher.build", wraps=build) as built,
        mock.patch("flowcompute.jobs.job_planner.make_plan") as plan,
        opener as flow,
    ):
        compiled = built.call_count
        assert compiled
        for size in (1, 7, 0, 30):
            flow.send(X[:size])
            flow.receive()
            flow.resolve()
        assert built.call_count == compiled
        assert not plan.called


# -- failures -----------------------------------------------------------------------------------


def test_a_flow_that_failed_half_way_gives_no_wrong_values() -> None:
    x = fc.feed(dtype="float32")
    with fc.open_flow(x * 1, x.sum(axis=0), failing(x).sum(axis=0), device="numpy") as flow:
        flow.send(numbers(1, 2))
        with pytest.raises(RunError, match="seven"):
            flow.send(numbers(7))
        for use in (flow.resolve, lambda: flow.send(numbers(1))):
            with pytest.raises(RunError, match="the flow has failed") as caught:
                use()
            assert "seven" in str(caught.value.got)
            assert isinstance(caught.value.__cause__, RunError)
        # What came out before is right.
        np.testing.assert_array_equal(flow.receive(), numbers(1, 2))
    assert_no_threads()


@pytest.mark.parametrize(
    ("build", "few", "said"),
    [
        (lambda x: fc.cut(x, 2).sum(axis=1), numbers(1, 2, 3), "whole run"),
        (lambda x: x[x > 0].max(axis=0), numbers(-1), "of an empty stream"),
        (lambda x: x + x[1:], numbers(1, 2), "different lengths"),
    ],
)
def test_in_reset_mode_all_begins_anew_also_where_there_is_no_value(
    build: Callable[[Any], Any], few: np.ndarray, said: str
) -> None:
    x = fc.feed(dtype="float32")
    with fc.open_flow(build(x), x.sum(axis=0), device="numpy") as flow:
        for _ in range(2):
            flow.send(few)
            with pytest.raises(RunError, match=said):
                flow.resolve()
        if said == "whole run":
            flow.send(numbers(3, 4))
            runs, total = flow.resolve()
            np.testing.assert_array_equal(runs, [7])
            assert total == 7


def test_a_cumulative_flow_without_a_value_may_have_one_later() -> None:
    x = fc.feed(dtype="float32")
    with x.max(axis=0).flow(mode="cumulative", device="numpy") as flow:
        with pytest.raises(RunError, match="cannot take the max of an empty stream"):
            flow.resolve()
        flow.send(numbers(3, 1))
        assert flow.resolve() == 3


def test_results_that_nobody_receives_are_held_to_the_budget() -> None:
    x = fc.feed(dtype="float64")
    with (x * 2).flow(memory=1 << 16, device="numpy", strategy=fc.Strategy(batch_bytes=512)) as flow:
        flow.send(np.zeros(1000))
        flow.receive()
        with pytest.raises(RunError, match="outgrow the memory budget") as caught:
            deque((flow.send(np.zeros(1000)) for _ in range(100)), maxlen=0)
        assert "receive()" in str(caught.value.hint)


# -- closing ------------------------------------------------------------------------------------


def test_a_closed_flow_is_closed_however_often() -> None:
    opener = feed().sum(axis=0).flow()
    with opener as flow:
        flow.send(X)
        flow.close()
        flow.close()
        for use in (lambda: flow.send(X), flow.receive, flow.resolve):
            with pytest.raises(RunError, match="the flow is closed"):
                use()
    with pytest.raises(RunError, match="the flow is closed"):
        flow.resolve()
    assert_no_threads()


def test_an_opener_opens_again_and_inside() -> None:
    opener = feed().sum(axis=0).flow(device="numpy")
    with opener as outer:
        outer.send(X)
        with opener as inner:
            inner.send(X[:1])
            np.testing.assert_array_equal(inner.resolve(), X[0])
        np.testing.assert_array_equal(outer.resolve(), X.sum(axis=0))
    for flow in (inner, outer):
        with pytest.raises(RunError, match="the flow is closed"):
            flow.resolve()


def test_threads_take_turns() -> None:
    with feed().sum(axis=0).flow(mode="cumulative") as flow:

        def send() -> None:
            for _ in range(50):
                flow.send(np.ones((2, 3), np.float32))

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(flow.resolve(), [400, 400, 400])


def test_a_flow_that_is_not_open_says_how_to_open_it():
    opener = (fc.feed(shape=(2,), dtype="float32") * 2).flow(device="numpy")
    with pytest.raises(
        AttributeError, match=r"cannot take 'send' of a flow that is not open; do with element.flow\(\)"
    ):
        opener.send(np.ones((1, 2), np.float32))
    assert not hasattr(opener, "receive")
    with pytest.raises(AttributeError, match="'FlowOpener' object has no attribute 'sent_on'"):
        opener.sent_on  # noqa: B018
