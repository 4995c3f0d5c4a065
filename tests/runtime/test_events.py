"""What is told of skipped records and of the end: the same to each consumer, and to those who ask."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.policies.policy import ErrorPolicy
from flowcompute.elements.policies.skip_counter import SkipCounter
from flowcompute.metrics import Skipped
from flowcompute.observe import EventStream, RecordsSkipped, RunEnded
from flowcompute.runtime.events import SkipTotals, flow_record

DATA = np.arange(40, dtype=np.float64)


def refuse_multiples(batch: np.ndarray) -> np.ndarray:
    if (batch % 7 == 0).any():
        raise ValueError("a multiple of 7")
    return batch


class Told(EventStream):
    """A stream whose events are kept."""

    made: ClassVar[list[Told]] = []

    def __init__(self) -> None:
        super().__init__()
        self.skipped: list[RecordsSkipped] = []
        self.ended: list[RunEnded] = []
        self.subscribe({RecordsSkipped: self.skipped.append, RunEnded: self.ended.append})
        self.made.append(self)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Told]:
    monkeypatch.setattr(Told, "made", [])
    monkeypatch.setattr("flowcompute.runtime.run.run_strategy.EventStream", Told)
    monkeypatch.setattr(flow_record, "EventStream", Told)
    return Told.made


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
def test_of_readings_of_one_element_that_which_dropped_most_counts(turns: list[tuple[int, bool]]) -> None:
    policies = [ErrorPolicy("skip"), ErrorPolicy("skip")]
    counters = [SkipCounter("made", policies[reading // 2]) for reading in range(4)]
    totals = SkipTotals(EventStream())
    for counter in counters:
        totals.watch(counter)
    assert totals.by_policy() == dict.fromkeys(policies, Skipped())
    for reading, restored in turns:
        if restored:
            kept = counters[reading].snapshot()
            counters[reading].restore({"count": 0, "first": []})
            counters[reading].restore(kept)
        counters[reading].add(reading, ValueError("no"), ())
    for number, policy in enumerate(policies):
        most = max(counters[2 * number : 2 * number + 2], key=lambda one: one.skipped.count)
        assert totals.by_policy()[policy].count == most.skipped.count
    assert totals.count == sum(one.count for one in totals.by_policy().values())


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_each_skipped_record_of_a_run_is_an_event(told: list[Told], device: str) -> None:
    checked = fc.host(refuse_multiples, fc.source(DATA), on_error="skip", name="checked")
    run = fc.start(checked, device=device, progress=False).wait()
    (stream,) = told
    assert [one.skipped.count for one in stream.skipped] == list(range(7))
    assert stream.skipped[-1].skipped == run.skipped["checked"]
    assert run.progress.skipped == 6
    assert [(one.error, one.at_s) for one in stream.ended] == [(None, run.seconds)]


def test_the_end_of_a_run_that_fails_is_told_with_its_error(told: list[Told]) -> None:
    run = fc.start(fc.host(refuse_multiples, fc.source(DATA)), device="numpy", progress=False)
    with pytest.raises(fc.RunError) as caught:
        run.wait()
    (stream,) = told
    assert [one.error for one in stream.ended] == [caught.value]
    assert run.progress.done


def test_flows_tell_the_same(told: list[Told]) -> None:
    x = fc.feed(dtype="float64", name="x")
    with fc.open_flow(fc.host(refuse_multiples, x, on_error="skip", name="checked"), device="numpy") as flow:
        flow.send(DATA[:20])
        assert flow.skipped["checked"].count == 3
        flow.send(DATA[20:])
    (stream,) = told
    assert [one.skipped.count for one in stream.skipped] == list(range(7))
    assert stream.skipped[-1].skipped == flow.skipped["checked"]
    assert [one.error for one in stream.ended] == [None]
