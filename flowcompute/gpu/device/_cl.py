"""Only import of pyopencl. Without pyopencl the package still imports, and using a device says what to install."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from flowcompute.errors import PlanError

# pyopencl's own cache unpickles any file there, and waits for locks that a killed process left behind.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")

INSTALL_HINT = (
    'install a driver: the vendor\'s for a GPU, or PoCL for the CPU ("pip install pocl-binary-distribution" on '
    "Linux x86-64, the system's package elsewhere); if OCL_ICD_VENDORS is set it must name the folder of the "
    'drivers\' .icd files; device="numpy" needs none'
)
"""Advice where there is no OpenCL device."""


class _Missing:
    """Placeholder of pyopencl where it cannot be imported."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise PlanError(
            "cannot use OpenCL: pyopencl cannot be imported",
            element="device",
            expected="pyopencl and an OpenCL loader",
            got=f"{type(self._error).__name__}: {self._error}",
            hint=f'"pip install pyopencl"; {INSTALL_HINT}',
        ) from self._error


if TYPE_CHECKING:
    import pyopencl as cl
else:
    try:
        import pyopencl as cl
    except (ImportError, OSError) as error:
        cl = _Missing(error)


def build_quietly(program: cl.Program, options: Sequence[str]) -> cl.Program:
    """Build a program without pyopencl's warning that the compiler printed something, and return it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program.build(list(options))
    return program


__all__ = ["INSTALL_HINT", "build_quietly", "cl"]
