"""Formulas of `benchmarks.kernels` in tinygrad, on the PoCL that pyopencl has."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl

# Read when tinygrad is imported: which library of OpenCL there is, and which of its devices to take.
_LIBRARIES = glob.glob(os.path.join(os.path.dirname(pyopencl.__file__), ".libs", "libOpenCL*"))
os.environ.setdefault("OPENCL_PATH", next(iter(_LIBRARIES), ""))
os.environ.setdefault("DEV", "CL")

from tinygrad import Device, Tensor, TinyJit  # noqa: E402


def _of(formula: Callable[..., Any]) -> Callable[[np.ndarray, Any], Callable[[], Any]]:
    def prepare(x: np.ndarray, operand: Any) -> Callable[[], Any]:
        operands = [Tensor(one).realize() for one in (x, operand) if one is not None]

        @TinyJit
        def compiled(*given: Tensor) -> Any:
            made = formula(*given)
            return tuple(one.realize() for one in made) if isinstance(made, tuple) else made.realize()

        def run() -> Any:
            made = compiled(*operands)
            Device[Device.DEFAULT].synchronize()
            return made

        for _ in range(3):
            run()
        return _Answer(run)

    return prepare


class _Answer:
    """A call whose first result, which is compared, comes as arrays."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.first = True

    def __call__(self) -> Any:
        made = self.run()
        if self.first:
            self.first = False
            return tuple(one.numpy() for one in made) if isinstance(made, tuple) else made.numpy()
        return made


FORMULAS = {
    "W1": _of(lambda x: (1.5 * x - 0.25).sigmoid() * x.tanh() + x * x),
    "W3": _of(lambda x: x.softmax(axis=1)),
    "W4": _of(lambda x, weight: (x / (x * x).sum(axis=1, keepdim=True).sqrt()) @ weight),
    "W5": _of(lambda x: (x.mean(axis=0), x.var(axis=0, correction=0))),
    "sum": _of(lambda x: x.sum()),
    "layer norm": _of(lambda x: x.layernorm()),
    "argmax": _of(lambda x: x.argmax(axis=1)),
    "scan": _of(lambda x: x.cumsum(axis=0)),
    "conv": _of(lambda x, weight: x.conv2d(weight)),
    "attention": _of(lambda x: x.scaled_dot_product_attention(x, x)),
}
