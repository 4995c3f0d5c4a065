"""The node tests of the onnx package: right, or refused by node; never wrong."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx.backend.test.case.node import collect_testcases

import flowcompute as fc

EVERY = 4


def given_to(loaded: fc.onnx.OnnxModel, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, dict):
        return dict(inputs)
    return dict(zip((port.name for port in loaded.inputs), inputs, strict=False))


def same(case: Any, got: Any, wanted: Any) -> bool:
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "biuOSU":
        return np.array_equal(got, wanted)
    rtol, atol = case.rtol, max(case.atol, 1e-6)
    if wanted.dtype.itemsize == 2:
        rtol, atol = 2e-3 if wanted.dtype == np.float16 else 1.6e-2, 1e-3
    return np.allclose(got.astype("f8"), wanted.astype("f8"), rtol=rtol, atol=atol, equal_nan=True)


def attempt(case: Any, stream: bool) -> str:
    try:
        loaded = fc.onnx.load(case.model)
        for inputs, wanted in case.data_sets:
            given = given_to(loaded, inputs)
            if stream:
                first = next(iter(given))
                given[first] = fc.source(given[first])
            made = loaded(**given)
            made = tuple(made) if len(loaded.outputs) > 1 else (made,)
            got = fc.resolve(*made, device="numpy", progress=False)
            got = got if len(made) > 1 else (got,)
            expected = list(wanted.values()) if isinstance(wanted, dict) else wanted
            if not all(same(case, *pair) for pair in zip(got, expected, strict=True)):
                return "wrong"
    except fc.onnx.UnsupportedError as error:
        assert error.reason in fc.onnx.REASONS
        assert error.hint
        assert any(one.op.rpartition(".")[2] in str(error) for one in error.problems)
        return "refused"
    return "right"


@pytest.mark.slow
def test_every_fourth_node_test() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)[::EVERY]
    found = {case.name: attempt(case, stream=False) for case in cases}
    assert [name for name, kind in found.items() if kind == "wrong"] == []
    assert sum(kind == "right" for kind in found.values()) >= 0.76 * len(cases)
    streamed = []
    for case in cases[::2]:
        inputs = case.data_sets[0][0]
        first = next(iter(inputs.values() if isinstance(inputs, dict) else inputs), None)
        if found[case.name] == "right" and isinstance(first, np.ndarray) and first.ndim >= 2 and len(first):
            streamed.append(attempt(case, stream=True))
    assert "wrong" not in streamed
    assert streamed.count("right") >= 0.6 * len(streamed)
