"""The memory plan: below the budget or refused, with the number that would do."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements import Element
from flowcompute.errors import PlanError
from flowcompute.planner.plan import Plan


def zeros(*shape: int) -> Element:
    """A stream that takes no memory of its own, whatever its length."""
    return fc.source(np.broadcast_to(np.float32(0), shape))


JOBS: dict[str, Callable[[], list[Element]]] = {
    "map to nowhere": lambda: [fc.exp(zeros(10**7, 96)) >> fc.discard()],
    "map into memory": lambda: [zeros(10**5) + 1],
    "fold of numbers": lambda: [zeros(10**8).sum(), zeros(10**8).argmax()],
    "fold of columns": lambda: [zeros(10**7, 300).var(axis=0)],
    "resident matrix": lambda: [zeros(10**6, 64) @ fc.constant(np.zeros((64, 500), np.float32)) >> fc.discard()],
    "between kernels": lambda: [fc.exp(zeros(10**6, 64) @ fc.constant(np.zeros((64, 16), np.float32))) >> fc.discard()],
    "host function": lambda: [fc.host(np.sqrt, zeros(10**6, 5)) >> fc.discard()],
    "unknown length": lambda: [fc.iterate([np.zeros((4, 9))], shape=9, dtype="f8").mean(axis=0)],
    "tiny": lambda: [zeros(3) * 2],
    "no records": lambda: [zeros(0, 4) * 2],
    "items of nothing": lambda: [zeros(7, 0) + 1, zeros(7, 0).sum(axis=0)],
}


@given(st.sampled_from(list(JOBS)), st.integers(1, 1 << 34), st.sampled_from([None, 1, 3]), st.sampled_from([None, 1, 10**5, 1 << 30]))
def test_a_plan_stays_below_its_budget_or_is_refused(job: str, memory: int, depth: int | None, batch_bytes: int | None) -> None:
    strategy = fc.Strategy(depth=depth, batch_bytes=batch_bytes)
    for device in ("cpu", "numpy"):
        try:
            plan = fc.plan(*JOBS[job](), memory=memory, device=device, strategy=strategy)
        except PlanError as error:
            check_refusal(job, error, memory, device, strategy)
            continue
        assert 0 <= plan.memory.host_bytes <= memory == plan.memory.budget_bytes
        assert plan.memory.host_bytes == sum(size for _, size in plan.memory.items)
        assert plan.memory.device_bytes == 0
        assert plan.batch_items >= 1
        assert plan.depth == (depth or plan.depth)


def check_refusal(job: str, error: PlanError, memory: int, device: str, strategy: fc.Strategy) -> None:
    """It names what is large, and the budget that it asks for is enough."""
    assert error.element
    assert "memory budget" in error.message
    assert error.hint
    asked = re.search(r"at least (\d+) bytes", error.expected or "")
    if asked is None:
        assert "result takes" in error.message
        assert "fc.save" in error.hint
        return
    wanted = int(asked[1])
    assert wanted > memory
    with pytest.raises(PlanError):
        fc.plan(*JOBS[job](), memory=min(wanted - 1, memory), device=device, strategy=strategy)
    if "stays resident" not in error.message:
        fc.plan(*JOBS[job](), memory=wanted, device=device, strategy=strategy)


def test_a_larger_budget_is_used_until_it_helps_no_more() -> None:
    sizes = [fc.plan(*JOBS["between kernels"](), memory=memory, device="cpu").batch_items for memory in (10**6, 10**7, 10**9, 10**11)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2]
    assert sizes[2] == sizes[3]


def test_depth_falls_to_one_before_a_job_is_refused() -> None:
    def plan(memory: int, depth: int | None = None) -> Plan:
        x = fc.iterate([np.zeros((1, 10**6))], shape=10**6, dtype="f4")
        return fc.plan(fc.exp(x) >> fc.discard(), memory=memory, device="cpu", strategy=fc.Strategy(depth=depth))

    assert plan(1 << 30).depth == 2
    narrow = plan(9_000_000)
    assert narrow.depth == 1
    assert "two batches on each edge do not fit" in str(narrow)
    with pytest.raises(PlanError, match="too small for one batch"):
        plan(9_000_000, depth=2)


def test_folds_of_numbers_take_whole_blocks() -> None:
    for batch_bytes in (1, 5000, 10**5, 10**6 + 4):
        plan = fc.plan(zeros(10**6).sum(), device="cpu", strategy=fc.Strategy(batch_bytes=batch_bytes))
        assert plan.batch_items % 1024 == 0


def test_a_batch_is_no_longer_than_its_stream() -> None:
    assert fc.plan(zeros(5) + 1, device="cpu").batch_items == 5
    assert fc.plan(zeros(0) + 1, device="cpu").batch_items == 1


def test_a_result_above_the_budget_is_refused_with_a_way_out() -> None:
    with pytest.raises(PlanError) as caught:
        fc.plan(zeros(10**6, 10) * 2, memory="1MiB", device="cpu")
    text = str(caught.value)
    assert "its result takes 40000000 bytes, more than the memory budget of 1048576" in text
    assert "float32(1000000, 10)" in text
    assert "fc.save(path)" in text
    assert fc.plan((zeros(10**6, 10) * 2) >> fc.discard(), memory="1MiB", device="cpu").memory.host_bytes <= 1 << 20


def test_a_resident_value_above_the_budget_is_named() -> None:
    with pytest.raises(PlanError, match="what stays resident") as caught:
        weights = fc.constant(np.zeros((1000, 1000)), name="weights")
        fc.plan(fc.source(np.zeros((9, 1000))) @ weights >> fc.discard(), memory=10**6, device="numpy")
    assert caught.value.element == "weights"


def test_sizes_of_every_edge_are_listed() -> None:
    plan = fc.plan(*JOBS["between kernels"](), device="cpu", strategy=fc.Strategy(input="read"))
    what = [line for line, _ in plan.memory.items]
    assert any("between kernels" in line for line in what)
    assert any("read" in line for line in what)
    assert any("constant" in line for line in what)
    for line, size in plan.memory.items:
        assert line in str(plan) or size == 0
