"""Streams joined with resident values along axes of items: a row that each record has, or a row of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError
from flowcompute.spec import SUPPORTED_DTYPES
from tests.gpu.shapes import resolve_on_gpu

ARRAY = np.arange(30, dtype="f4").reshape(5, 2, 3)
TOKEN = np.array([[np.nan, -0.0, np.inf]], "f4")
KEPT = np.array([True, False, True, True, False])


def joined(*arrays: np.ndarray, axis: int = 1) -> np.ndarray:
    return np.concatenate([np.broadcast_to(one, (5, *one.shape[-2:])) for one in arrays], axis=axis)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.slow)])
def test_a_token_before_each_item(device: str) -> None:
    x = fc.source(ARRAY)
    rows = np.arange(15, dtype="f4").reshape(5, 1, 3)
    made = [
        fc.concat([TOKEN, x], axis=1),
        fc.concat([TOKEN[None], x], axis=1) * 2,
        fc.concat([x + 1, fc.constant(TOKEN) * 2, TOKEN], axis=-2),
        fc.concat([rows, x], axis=1),
        fc.concat([x, ARRAY[:1].sum(axis=0), x[:, :1].sum(axis=0)], axis=1) + 1,
        fc.stack([x, ARRAY[1]], axis=1),
        fc.stack([x[:, 0, 0], np.float32(7)], axis=1),
    ]
    wanted = [
        joined(TOKEN, ARRAY),
        joined(TOKEN, ARRAY) * 2,
        joined(ARRAY + 1, TOKEN * 2, TOKEN),
        joined(rows, ARRAY),
        joined(ARRAY, ARRAY[0], ARRAY[:, :1].sum(axis=0)) + 1,
        np.stack([ARRAY, np.broadcast_to(ARRAY[1], ARRAY.shape)], axis=1),
        np.stack([ARRAY[:, 0, 0], np.full(5, 7, "f4")], axis=1),
    ]
    for batch_bytes in (40, 1 << 20):
        options = {"strategy": fc.Strategy(batch_bytes=batch_bytes), "progress": False}
        for got, want in zip(fc.resolve(*made, device=device, **options), wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            assert np.ascontiguousarray(got).tobytes() == want.tobytes()


def test_on_gpus_and_of_unknown_length() -> None:
    x = fc.source(ARRAY)[fc.source(KEPT)]
    made, want = fc.concat([TOKEN, x * 2], axis=1) + 1, joined(TOKEN, ARRAY * 2)[KEPT] + 1
    assert made.resolve(progress=False).tobytes() == want.tobytes()
    (got,) = resolve_on_gpu(fc.concat([TOKEN, fc.source(ARRAY) * 2], axis=1) + 1, strategy=fc.Strategy(batch_bytes=40))
    assert got.tobytes() == (joined(TOKEN, ARRAY * 2) + 1).tobytes()


@pytest.mark.parametrize("kept", [None, KEPT])
def test_a_stream_of_a_resident_value(kept: np.ndarray | None) -> None:
    """Its bits at each record, whatever the stream holds."""
    array = np.full((5, 2, 3), np.nan, "f4")
    x = fc.source(array) if kept is None else fc.source(array)[fc.source(kept)]
    records = 5 if kept is None else 3
    made = fc.broadcast_arrays(x, TOKEN, np.int64(3), np.ones((1, 2, 1), "?"))
    wanted = np.broadcast_arrays(array[:records], TOKEN, np.int64(3), np.ones((1, 2, 1), "?"))
    for got, want in zip(fc.resolve(*made, device="numpy", progress=False), wanted, strict=True):
        assert (got.dtype, got.tobytes()) == (want.dtype, np.ascontiguousarray(want).tobytes())
    assert fc.broadcast_arrays() == ()
    assert [one.shape for one in fc.broadcast_arrays(np.ones((3, 1)), np.ones(4))] == [(3, 4)] * 2
    with pytest.raises(SpecError, match="cannot broadcast"):
        fc.broadcast_arrays(x, np.ones(5))


def test_every_dtype_and_promotion() -> None:
    for dtype in SUPPORTED_DTYPES:
        array, token = (np.arange(n).reshape(-1, 2).astype(dtype) for n in (12, 2))
        got = fc.concat([token[0], fc.source(array)], axis=1).resolve(device="numpy", progress=False)
        assert got.tobytes() == np.concatenate([np.broadcast_to(token, (6, 2)), array], axis=1).tobytes()
    assert fc.concat([np.ones(1, "f8"), fc.source(np.ones((2, 2), "f4"))], axis=1).dtype == "f8"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fc.concat([x, ARRAY]), "cannot join streams and resident values along the stream"),
        (lambda x: fc.concat([x, ARRAY], axis=None), "cannot join streams and resident values along the stream"),
        (lambda x: fc.concat([TOKEN[0], x], axis=1), "cannot join a stream and a resident value of another rank"),
        (lambda x: fc.concat([ARRAY[:3], x], axis=1), "cannot align a resident operand with the stream"),
        (lambda x: fc.concat([TOKEN, x], axis=2), "cannot join values that differ in another axis"),
        (lambda x: fc.stack([x, TOKEN], axis=1), "cannot stack values of different shape"),
        (lambda x: fc.concat([], axis=1), "cannot join no values"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        call(fc.source(ARRAY))
