"""The garbage collector is off while graphs are built and rooms are loaded, and as it was afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.imports import without_collector


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


_LOADING = """
import gc, numpy, sys
import flowcompute as fc
begun = []
gc.callbacks.append(lambda phase, info: begun.append(info) if phase == "start" else None)
fc.models, fc.source, fc.run
gc.callbacks.pop()
assert gc.isenabled()
print(len(begun), len([name for name in sys.modules if name.startswith("flowcompute")]))
"""


def test_loading_the_public_names_collects_next_to_nothing() -> None:
    said = subprocess.run([sys.executable, "-c", _LOADING], capture_output=True, text=True, check=True).stdout
    begun, modules = map(int, said.split())
    # Hundreds of modules make some hundred collections otherwise.
    assert modules > 300
    assert begun < 10
