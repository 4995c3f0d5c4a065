"""Operators of onnxruntime's own domain: against plain formulas, and against onnxruntime itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.onnx.microsoft_cases import CASES, SHARED, Case, group, grouped


def made(case: Case, device: str = "numpy") -> list[Any]:
    got = fc.onnx.load(case.model())(**case.feed())
    return list(fc.run(*(got if isinstance(got, tuple) else [got]), device=device, progress=False).values)


def close(got: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(got, wanted, strict=False):
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6 * max(1, np.abs(other).max()))


@pytest.mark.parametrize("name", CASES)
def test_operators_by_their_formulas(name: str) -> None:
    close(made(CASES[name]), CASES[name].wanted())


def test_sequences_of_unequal_lengths() -> None:
    """A sequence sees its own rows, whatever the buffer holds behind them."""
    arrays = group(1, 6, [3, 6])
    for buffer in arrays[3:5]:
        buffer[0, :, 3:] = np.nan
    case = Case("GroupQueryAttention", arrays, 1, grouped, SHARED)
    close(made(case), case.wanted())


def test_streams_of_sequences() -> None:
    """Records are sequences: the same answers as of arrays."""
    case = CASES["grouped, some tokens"]
    model = fc.onnx.load(case.model())
    streams = {name: fc.source(one) if one.ndim in (1, 3, 4) else one for name, one in case.feed().items()}
    got = model(**streams)
    np.testing.assert_allclose(got[0].resolve(device="numpy"), made(case)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["grouped, some tokens", "4 bits, zero points", "heads with past keys"])
def test_operators_on_a_device(name: str) -> None:
    close(made(CASES[name], "cpu"), CASES[name].wanted())


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"grouped, some tokens"}))
def test_operators_beside_onnxruntime(name: str) -> None:
    """But for several tokens behind past keys, which onnxruntime takes of one sequence only."""
    ort = pytest.importorskip("onnxruntime")
    case = CASES[name]
    session = ort.InferenceSession(case.model().SerializeToString(), providers=["CPUExecutionProvider"])
    close(made(case), session.run(None, case.feed()))
