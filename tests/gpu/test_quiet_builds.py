"""Programs are built without warnings that users can do nothing about."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pyopencl as cl
import pytest

from flowcompute.gpu.device import retargeting
from flowcompute.gpu.device._cl import build_quietly


class _LoudProgram:
    """A program whose compiler prints something, and whose binary is PTX."""

    binaries = (b".version 8.0\n.target sm_90\n",)

    def __init__(self, *_: object) -> None:
        self.options: Sequence[str] = ()

    def build(self, options: Sequence[str]) -> None:
        self.options = options
        warnings.warn("Function probe is a kernel, so overriding its attributes", cl.CompilerWarning, stacklevel=2)


def test_what_a_compiler_prints_is_no_warning() -> None:
    program = _LoudProgram()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert build_quietly(program, ("-w",)) is program  # type: ignore[arg-type, comparison-overlap]
    assert (told, program.options) == ([], ["-w"])


def test_the_probe_of_a_device_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retargeting, "cl", type("Loud", (), {"Program": _LoudProgram, "Error": cl.Error}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert retargeting.takes_marked(None, None)  # type: ignore[arg-type]
