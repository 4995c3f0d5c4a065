"""The garbage collector is off while graphs are built and rooms are loaded, and as it was afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli import main
from flowcompute.errors import PlanError
from flowcompute.imports import skip_last_collection, without_collector
from tests.models.files import write_model


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


_SETTLED = """
import gc, numpy, weakref
import flowcompute as fc
class Ring: pass
ring = Ring()
ring.itself, gone = ring, weakref.ref(ring)
del ring
if FROZEN:
    gc.freeze()
frozen = gc.get_freeze_count()
fc.source
young = len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1))
assert FROZEN or gone() is not None
gc.collect()
print(young, len(gc.get_objects()), gc.get_freeze_count() - frozen, int(gone() is None))
"""


def settled(*, frozen: bool) -> list[int]:
    """Return counts of a process that loads public names: young objects, all, more frozen ones, and cycles freed."""
    text = _SETTLED.replace("FROZEN", str(frozen))
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    return [int(one) for one in said.split()]


def test_what_was_loaded_counts_as_old_and_cycles_before_it_are_freed() -> None:
    young, every, frozen, freed = settled(frozen=False)
    assert every > 20_000
    # Those that the import statement itself left behind.
    assert young < 2000
    assert frozen == 0
    assert freed


def test_what_a_user_has_frozen_stays_frozen() -> None:
    # Some of the frozen objects are freed by their counts of references.
    _, _, frozen, freed = settled(frozen=True)
    assert frozen > -1000
    assert not freed


def test_only_processes_of_the_command_skip_the_last_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[object] = []
    monkeypatch.setattr("atexit.register", registered.append)
    skip_last_collection.cache_clear()
    path = str(write_model(tmp_path / "model.gguf"))
    arguments = ["generate", path, "-p", "Hi", "-n", "1", "--device", "numpy"]
    assert main(arguments) == 0
    assert gc.freeze not in registered
    for others, skips in ((["inspect", path], False), (arguments, True)):
        monkeypatch.setattr("sys.argv", ["flowcompute", *others])
        assert main() == 0
        assert (gc.freeze in registered) == skips
    skip_last_collection.cache_clear()
