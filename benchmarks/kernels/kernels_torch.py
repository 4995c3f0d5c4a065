"""Formulas of `benchmarks.kernels` in torch, eager, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

torch.set_num_threads(len(os.sched_getaffinity(0)))
torch.set_grad_enabled(False)


def _of(formula: Callable[..., Any]) -> Callable[[np.ndarray, Any], Callable[[], Any]]:
    def prepare(x: np.ndarray, operand: Any) -> Callable[[], Any]:
        operands = [torch.from_numpy(one) for one in (x, operand) if one is not None]
        return lambda: formula(*operands)

    return prepare


FORMULAS = {
    "W1": _of(lambda x: torch.sigmoid(1.5 * x - 0.25) * torch.tanh(x) + x * x),
    "W3": _of(lambda x: torch.softmax(x, dim=1)),
    "W4": _of(lambda x, weight: (x / x.norm(dim=1, keepdim=True)) @ weight),
    "W5": _of(lambda x: (x.mean(dim=0), x.var(dim=0, correction=0))),
    "sum": _of(lambda x: x.sum()),
    "layer norm": _of(lambda x: torch.nn.functional.layer_norm(x, x.shape[1:])),
    "argmax": _of(lambda x: x.argmax(dim=1)),
    "scan": _of(lambda x: x.cumsum(dim=0)),
    "conv": _of(torch.nn.functional.conv2d),
    "attention": _of(lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x)),
}
