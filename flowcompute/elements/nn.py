"""Functions of neural networks, public as `fc.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.compute import Function
from flowcompute.elements.op import Kind, Op, by_ufunc


def _sigmoid(x: Any) -> Any:
    one = x.dtype.type(1)
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, one) / (one + e)


sigmoid = Function(
    Op(
        "sigmoid", 1, Kind.ELEMENTWISE, _sigmoid, by_ufunc(np.exp),
        text={"float": "{F}({a})"},
        helper={
            "float": """
    {T} e = exp(-fabs(a));
    return (a < ({T})(0) ? e : ({T})(1)) / (({T})(1) + e);"""
        },
        ulp=6, cost=30, doc="The logistic function 1 / (1 + exp(-x)), without overflow.",
    )
)  # fmt: skip
