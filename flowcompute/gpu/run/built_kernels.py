"""The kernels that an executor has built."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from flowcompute.gpu.kernel_arguments import argument_types
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.gpu.worker import Launcher
from flowcompute.ir import Kernel
from flowcompute.strategy import KernelKnobs

LONG_RUN_S = 2.0
"""After runs of this length new programs are kept at once, so that a killed process has them too."""

KEEPING_SHARE = 0.05
"""Share of the seconds of a run that keeping its programs may take; the rest are kept at exit."""


class BuiltKernels:
    """Kernels that a launcher has built. Those that do the same are one: an executor launches one at a time."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, KernelKnobs], Any] = {}
        self._by_text: dict[tuple[str, tuple[np.dtype | None, ...]], Any] = {}
        self._others: dict[tuple[str, Hashable], Any] = {}

    def get(self, kernel: Kernel, launcher: Launcher) -> Any:
        """Return what to launch for a kernel of the plan, built when it is first asked for.

        Raises:
            KernelError: if it does not compile.
        """
        key = (kernel.name, kernel.knobs)
        if key not in self._by_name:
            (text, name), types = program_of(kernel), argument_types(kernel)
            equal = text, tuple(types)
            if equal not in self._by_text:
                # pyopencl takes milliseconds for a kernel, also of a program that was built before.
                self._by_text[equal] = launcher.build(text, name, types)
            self._by_name[key] = self._by_text[equal]
        return self._by_name[key]

    def of_text(
        self,
        text: Callable[[], str],
        name: str,
        types: Sequence[np.dtype | None],
        launcher: Launcher,
        key: Hashable = None,
    ) -> Any:
        """Return a kernel that is none of the plan's, built when it is first asked for.

        Args:
            text: gives OpenCL C.
            name: of the kernel in it.
            types: the dtype of each scalar parameter, None for pointers.
            launcher: builds it.
            key: what the text depends on.
        """
        whole = name, key
        if whole not in self._others:
            self._others[whole] = launcher.build(text(), name, types)
        return self._others[whole]

    def has_text(self, name: str, key: Hashable) -> bool:
        """Check whether a kernel of `of_text` is built."""
        return (name, key) in self._others

    def clear(self) -> None:
        """Let go of all."""
        self._by_name.clear()
        self._by_text.clear()
        self._others.clear()


def keep_programs(launcher: Launcher, ran_s: float) -> None:
    """Keep the programs that a run of some seconds has built, for later processes.

    Keeping compiles them once more, which would be felt after a short run: those are kept at exit.
    """
    if ran_s > LONG_RUN_S:
        launcher.keep_programs(KEEPING_SHARE * ran_s)
