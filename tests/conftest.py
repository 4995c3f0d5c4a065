"""How many cases property tests draw, always the same ones but for the last.

HYPOTHESIS_PROFILE=quick, which `scripts/test` sets, draws a few; "ci", the default, forty; "full" thousands.
"""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from flowcompute.schedule.known_plans import plan_store
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import PLANS

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile(
    "quick", deadline=None, derandomize=True, max_examples=20, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile("full", deadline=None, max_examples=5000, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


plan_store.LEAST_NODES = 1 << 60
"""Tests change what plans are made by, so that none may come from a process before, or go to one after."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what lasts: modules, and all tests. It went through them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with users' programs: one takes a minute, for which other processors would wait at the end."""
    items.sort(key=lambda item: item.path.name != "test_programs.py")


def pytest_runtest_setup() -> None:
    """Forget plans and kernels, since tests change what they are made by."""
    PLANS.clear()
    KERNELS.clear()
