"""Deep and wide graphs: work grows with their size, and nothing depends on the depth of Python's stack."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job import describe_job, differences, rebuild_job
from flowcompute.elements.element import Element
from flowcompute.graph.graph import build_graph
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.support.work import lines_run

DATA = np.arange(24, dtype=np.float32).reshape(6, 2, 2) / 64


def additions(x: Any, n: int) -> Any:
    for i in range(n):
        x = x + i % 7 / 64
    return x


def flips(x: Any, n: int) -> Any:
    for i in range(n):
        x = x[:, ::-1] if i % 3 else x[:, :, ::-1]
    return x


def transposes(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x.mT if isinstance(x, Element) else x.swapaxes(1, 2)
    return x


def views_of_sums(x: Any, n: int) -> Any:
    row = np.array([1, -1], np.float32)
    for i in range(n // 2):
        x = x[:, ::-1] + (row if i % 2 else -row)
    return x


def views_and_values(x: Any, n: int) -> Any:
    for _ in range(n // 2):
        x = (x + x[:, ::-1]) / 2
    return x


def sections(x: Any, n: int) -> Any:
    """Sections of a concatenation are cut as records arrive, those of the source where it is read."""
    for _ in range(n // 2):
        x = x[0:6] * 1
    return x


def row_sums(x: Any, n: int) -> Any:
    for _ in range(n // 3):
        x = x - x.sum(axis=2, keepdims=True) / 2
    return x


def diamonds(x: Any, n: int) -> Any:
    for _ in range(n // 2):
        x = (x + x) / 2
    return x


def one_read_by_many(x: Any, n: int) -> Any:
    parts = [x * (i % 5) for i in range(n // 2)]
    while len(parts) > 1:
        parts = [sum(parts[i : i + 2][1:], parts[i]) for i in range(0, len(parts), 2)]
    return parts[0]


def selections(x: Any, n: int) -> Any:
    x = x[x[:, 0, 0] > 0.1]
    return additions(x, n).sum(axis=0)


BUILDERS: tuple[Callable[[Any, int], Any], ...] = (
    additions,
    flips,
    transposes,
    views_of_sums,
    views_and_values,
    sections,
    row_sums,
    diamonds,
    one_read_by_many,
    selections,
)


@contextmanager
def small_stack(frames: int) -> Iterator[None]:
    """Leave this many frames of Python's stack."""
    frame: FrameType | None = sys._getframe()
    used = 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(used + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def plan_on(device: str) -> Callable[[Element], object]:
    def planned(root: Element) -> object:
        # Equal graphs are planned once.
        PLANS.clear()
        KERNELS.clear()
        return str(root.plan(device=device))

    return planned


def keep_and_rebuild(root: Element) -> None:
    arrays: list[np.ndarray] = []

    def put(array: np.ndarray) -> int:
        arrays.append(array)
        return len(arrays) - 1

    data = describe_job(build_graph([fc.to_array().bind(root)]), put)
    assert not differences(data, data)
    rebuild_job(data, arrays.__getitem__)


STAGES: dict[str, Callable[[Element], object]] = {
    "hash": lambda root: root.hash,
    "text": str,
    "reference": plan_on("numpy"),
    "kernels": plan_on("cpu"),
    "checkpoint": keep_and_rebuild,
}


@pytest.mark.parametrize(
    ("builder", "stage"),
    [
        *(
            pytest.param(builder, stage, marks=() if builder in (additions, views_and_values) else pytest.mark.slow)
            for builder in BUILDERS
            for stage in STAGES
            if stage != "kernels" or builder in (additions, flips, row_sums)
        ),
    ],
)
def test_three_times_the_operations_are_three_times_the_work(builder: Callable[[Any, int], Any], stage: str) -> None:
    small, large = (builder(fc.source(DATA), n) for n in (200, 600))
    STAGES[stage](small)
    few, many = (lines_run(lambda root=root: STAGES[stage](root)) for root in (small, large))  # type: ignore[misc]
    assert many < 3.6 * few


@pytest.mark.parametrize("builder", BUILDERS)
def test_composing_is_linear(builder: Callable[[Any, int], Any]) -> None:
    x = fc.source(DATA)
    few, many = (lines_run(lambda n=n: builder(x, n)) for n in (240, 720))  # type: ignore[misc]
    assert many < 3.3 * few


@pytest.mark.parametrize("builder", BUILDERS)
def test_depth_needs_no_stack(builder: Callable[[Any, int], Any]) -> None:
    root = builder(fc.source(DATA), 600)
    with small_stack(150):
        for name, stage in STAGES.items():
            if name != "kernels" or builder is not views_and_values:
                stage(root)
        plan = root.plan(device="numpy")
        assert plan.explain()
        assert plan.dot()
        assert plan.svg()
        result = root.resolve(device="numpy", tune=False, progress=False)
        del root, plan
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, builder(DATA, 600), rtol=1e-4)


def test_deep_jobs_are_frozen_and_thawed(tmp_path: Path) -> None:
    root = views_and_values(additions(fc.source(DATA), 600), 200)
    with small_stack(150):
        first = root.resolve(device="numpy", checkpoint=str(tmp_path / "kept"), tune=False, progress=False)
        again = fc.thaw(tmp_path / "kept").resolve(device="numpy", tune=False, progress=False)
    assert first.tobytes() == again.tobytes()


def test_kernels_of_long_chains_have_the_bits_of_the_reference() -> None:
    root = row_sums(additions(fc.source(DATA), 350), 60)
    with small_stack(200):
        found = root.resolve(device="cpu", tune=False, progress=False)
    assert found.tobytes() == root.resolve(device="numpy", tune=False, progress=False).tobytes()


def test_long_chains_are_cut_with_a_reason() -> None:
    plan = additions(fc.source(DATA), 1000).plan(device="cpu")
    sizes = [len(step.region.nodes) for step in plan.steps if isinstance(step, RegionStep)]
    assert sizes == [300, 300, 300, 100]
    cuts = [str(reason) for reason in plan.reasons if reason.kind == "cut"]
    assert cuts == [f"cut at add_{i}: the kernel would hold more than 300 operations" for i in (301, 601, 901)]


def test_reductions_in_a_row_are_cut_with_a_reason() -> None:
    x = fc.source(DATA)
    for _ in range(40):
        x = x - x.sum(axis=2, keepdims=True)
    plan = x.plan(device="cpu")
    assert len(plan.kernels) == 3
    cuts = [str(reason) for reason in plan.reasons if "in a row" in reason.text]
    assert cuts == [f"cut at sum_{i}: the kernel would hold more than 16 reductions in a row" for i in (17, 33)]


def test_a_product_computes_no_long_chain_as_it_loads() -> None:
    weights = np.ones((2, 2), np.float32)
    few, many = ((additions(fc.source(DATA), n) @ weights).plan(device="cpu") for n in (20, 400))
    assert len(few.kernels) == 1
    assert any("is stored: the kernel would hold more than 300 operations" in one.text for one in many.reasons)


def test_of_many_regions_each_tells_once_that_it_would_be_too_large() -> None:
    x = fc.source(np.ones((8, 4, 4), np.float32))
    plan = fc.plan(*[(x * i).sum(axis=0) for i in range(200)], device="numpy")
    told = [reason.element for reason in plan.reasons if "too large" in reason.text]
    assert told
    assert len(told) == len(set(told))


def test_a_deep_copy_of_an_element_is_the_element() -> None:
    root = additions(fc.source(DATA), 3000)
    assert copy.deepcopy(root) is root
    assert copy.deepcopy([root, {"a": root}])[1]["a"] is root
