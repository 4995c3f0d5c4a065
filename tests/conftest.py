"""How many cases property tests draw, always the same ones but for the last.

HYPOTHESIS_PROFILE=quick, which `scripts/test` sets, draws a few; "ci", the default, forty; "full" thousands.
"""

import contextlib
import gc
import importlib
import os
from collections.abc import Generator
from pathlib import Path

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


def _import_tests(config: pytest.Config, worker: int, workers: int) -> None:
    """Import all tests that are to be collected, each process from another one on.

    Asserts of a test are rewritten where no process has kept it compiled. All processes began with the same test, so
    that each compiled all of them.
    """
    files: list[Path] = []
    for one in config.args:
        path = Path(one.split("::")[0]).absolute()
        files += [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    first = len(files) * worker // workers
    for file in files[first:] + files[:first]:
        # Whoever collects this file tells what is wrong with it.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Spare the garbage collector what lasts: modules, and all tests. It went through them again and again."""
    gc.disable()
    try:
        worker = getattr(session.config, "workerinput", None)
        if worker is not None:
            _import_tests(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
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
