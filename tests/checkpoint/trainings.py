"""Jobs that train."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute as fc
from tests.checkpoint.operands import Build, numbers, rows


def trained(**options: Any) -> fc.train.Trained:
    w, b = fc.parameter(np.full(6, 0.5, "f4"), name="w"), fc.parameter(np.zeros((), "f4"), name="b")
    dropped = fc.nn.dropout(rows(), 0.25, seed=3)
    return fc.train.fit(fc.nn.mse(dropped @ w + b, numbers("f4"), reduction="mean"), fc.train.adam(0.1), **options)


def _evaluated() -> tuple[Any, ...]:
    w, b = fc.parameter(np.full(6, 0.5, "f4"), name="w"), fc.parameter(np.zeros((), "f4"), name="b")
    loss = fc.nn.mse(rows() @ w + b, numbers("f4"), reduction="mean")
    options = {"batch": 5, "epochs": 4, "evaluate": {"loss": loss, "length": (w * w).sum()}}
    made = fc.train.fit(loss, fc.train.sgd(0.01), stop=fc.train.patience(2, least=1e-3, measure="loss"), **options)
    return made["w"], made.losses, *made.measures.values()


def _fitted(**options: Any) -> tuple[Any, ...]:
    made = trained(**options)
    return made["w"], made["b"], made.losses


def _computed_again() -> tuple[Any, ...]:
    w = fc.parameter(np.full((6, 6), 0.1, "f4"), name="w")
    inside = fc.nn.dropout(fc.tanh(rows() @ w), 0.5, seed=4)
    return fc.grad((fc.recompute(inside @ w) ** 2.0).sum(), w), (fc.recompute(rows() * 2.0) + 1).sum()


TRAININGS: dict[str, Build] = {
    "evaluated_training": lambda _: _evaluated(),
    "recompute": lambda _: _computed_again(),
    "training": lambda _: (*_fitted(batch=5, epochs=2), *_fitted(batch=None, clip_norm=0.5)),
}
