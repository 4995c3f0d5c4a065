"""The garbage collector is off while graphs are built, and as it was afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.graph import without_collector


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    yield
    gc.enable()


def test_it_is_off_inside_and_on_afterwards() -> None:
    assert without_collector(gc.isenabled)() is False
    assert gc.isenabled()


def test_it_is_on_after_an_error() -> None:
    with pytest.raises(PlanError):
        fc.source(np.ones((4, 4))).plan(device="numpy", memory=1)
    assert gc.isenabled()


def test_a_user_who_turned_it_off_finds_it_off() -> None:
    gc.disable()
    x = fc.source(np.ones((4, 4))) * 2
    assert x.hash
    assert str(x)
    assert x.plan(device="numpy")
    assert not gc.isenabled()


def test_planning_many_operations_collects_no_more_than_planning_a_few() -> None:
    x = fc.source(np.ones((4, 4)))
    for i in range(3000):
        x = x + i
    begun = []
    gc.callbacks.append(lambda phase, info: begun.append(info) if phase == "start" else None)
    try:
        assert x.hash
        assert x.plan(device="numpy")
    finally:
        gc.callbacks.pop()
    # What waits is collected after each of the two; 3,000 operations make some hundred collections otherwise.
    assert len(begun) < 10
