"""flowcompute: stream data larger than memory through fused OpenCL kernels, on any vendor's GPU or on none."""

from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from flowcompute.imports import load_module as _load_module
from flowcompute.version import __version__ as __version__

if TYPE_CHECKING:
    # For type checkers, editors and the site.
    from flowcompute import models as models
    from flowcompute import onnx as onnx
    from flowcompute import train as train
    from flowcompute.api import *  # noqa: F403
    from flowcompute.flow import aresolve as aresolve
    from flowcompute.flow import arun as arun
    from flowcompute.flow import open_flow as open_flow
    from flowcompute.flow import plan as plan
    from flowcompute.flow import resolve as resolve
    from flowcompute.flow import run as run
    from flowcompute.flow import start as start
    from flowcompute.gradients import grad as grad
    from flowcompute.runtime.run import Run as Run
    from flowcompute.schedule.explain import Plan as Plan
    from flowcompute.thawing import Frozen as Frozen
    from flowcompute.thawing import thaw as thaw


def __getattr__(name: str) -> object:
    """Load a room, or the public names when the first is asked for: help of the command needs none."""
    if PathFinder.find_spec(f"{__name__}.{name}", __path__):  # noqa: F405 - every package has it
        return _load_module(f"{__name__}.{name}")
    globals()[name] = found = getattr(_load_module("flowcompute.api"), name)
    return found


def __dir__() -> list[str]:
    """Return the public names, which is what editors complete; rooms are not among them."""
    return list(_load_module("flowcompute.api").__all__)
