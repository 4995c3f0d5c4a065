"""Shards as bytes: another process gives the same bits, and bytes that are damaged are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed import ShardedJob, ShardMessages, ShardStart, ShardState, answer
from tests.distributed.test_shards import bits, numbers, planned, statistics

CHILD = """
import sys
from flowcompute.distributed import answer
sys.stdout.buffer.write(answer(sys.stdin.buffer.read()))
"""


def answered_by_a_child(request: bytes) -> bytes:
    return subprocess.run([sys.executable, "-c", CHILD], input=request, capture_output=True, check=True).stdout


@pytest.mark.parametrize("alone", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["here", "elsewhere"])
def test_another_process_gives_the_same_bits(tmp_path: Path, alone: bool) -> None:
    np.save(tmp_path / "x.npy", numbers(9000))
    elements = statistics(fc.open(tmp_path / "x.npy"))
    job = planned(*elements)
    messages = ShardMessages(job)

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        requests = [messages.request(index, one) for one in starts]
        first = answer(requests[0]) if alone else answered_by_a_child(requests[0])
        return messages.states([first, *map(answer, requests[1:])])

    made = ShardedJob(job, 2).run(run_shards)
    assert bits(made) == bits(fc.run(*elements, device="numpy", progress=False).values)


def test_a_source_replaced_between_shards_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, numbers(5000))
    messages = ShardMessages(planned(fc.open(path, name="x").sum(axis=0)))
    (first,) = messages.states([answer(messages.request(0, ShardStart((0, 1024))))])
    assert first.stop == 1024
    np.save(path, numbers(5000, seed=1))
    with pytest.raises(fc.RunError, match="a shard failed on its worker") as caught:
        messages.states([answer(messages.request(0, ShardStart((0, 1024))))])
    assert "x.npy" in str(caught.value)


def test_another_kind_of_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = ShardMessages(planned(fc.source(numbers(5001)).sum(axis=0)))
    monkeypatch.setattr("flowcompute.distributed.shard_message.ORDER_VERSION", 99)
    with pytest.raises(fc.RunError, match="plans the job in another way"):
        messages.states([answer(messages.request(0, ShardStart((0, 1024))))])


def test_messages_of_something_else_are_refused() -> None:
    with pytest.raises(fc.CheckpointError, match="what a client asks for"):
        answer(pack({"records": [0, 1]}))
    for fields in ({"records": [0]}, {"records": [0, 1], "folds": 3}, {}):
        with pytest.raises(fc.CheckpointError, match="the answer of a worker"):
            ShardMessages.states([pack(fields)])


@pytest.mark.parametrize(
    "change",
    [
        {"pass": 7},
        {"pass": -1},
        {"pass": "x"},
        {"job": "x"},
        {"mixed": []},
        {"run": 1},
        {"kept": [1, b"", 0.0]},
        "plan",
    ],
)
def test_requests_that_make_no_sense_are_refused(change: Any) -> None:
    messages = ShardMessages(planned(fc.source(numbers(1025)).sum(axis=0)))
    fields = unpack(messages.request(0, ShardStart((0, 1024))))
    del fields["sha256"]
    if change == "plan":
        job = unpack(fields["job"])
        change = {"job": pack({name: job[name] for name in job.keys() - {"plan", "sha256"}})}
    with pytest.raises(fc.FlowError, match=r"cannot read (what|the job that) a client asks for"):
        ShardMessages.states([answer(pack({**fields, **change}))])


@given(data=st.data())
def test_damaged_messages_are_refused(data: st.DataObject) -> None:
    fields = {"text": "x" * 9, "arrays": [np.arange(5.0), np.zeros((0, 2), np.int8)], "nothing": None}
    sound = pack(fields)
    found = unpack(sound)
    assert found["text"] == fields["text"]
    assert found["arrays"][0].tobytes() == np.arange(5.0).tobytes()
    assert found["arrays"][1].shape == (0, 2)
    at = data.draw(st.integers(0, len(sound) - 1))
    changed = bytearray(sound)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (bytes(changed), sound[:at], sound + b"\0"):
        with pytest.raises(fc.CheckpointError):
            unpack(damaged)
