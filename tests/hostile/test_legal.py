"""Arguments that NumPy takes are taken, with its meaning; what is refused is of Python's own kind of error, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc

ARRAY = np.arange(6, dtype="f4").reshape(2, 1, 3)
DEVICES = ("numpy", "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("of", [fc.source, fc.constant])
def test_views_and_joins(device: str, of: Any) -> None:
    s, flat = of(ARRAY), of(ARRAY[:, 0, 0])
    made = [
        fc.concat([s, s], axis=None),
        fc.concat([s, flat * 2, s], axis=None),
        fc.concat((one for one in (s, s)), axis=np.int64(1)),
        fc.expand_dims(s, (1, 2)),
        fc.expand_dims(s, (-1, 1)),
        fc.expand_dims(s, [2]),
        fc.moveaxis(s, np.int64(1), np.int64(2)),
        fc.moveaxis(s, [1], (2,)),
        fc.squeeze(s, None),
        fc.squeeze(s),
        fc.squeeze(s, np.int64(1)),
        fc.flip(s, np.int8(2)),
    ]
    wanted = [
        np.concatenate([ARRAY, ARRAY], axis=None),
        np.concatenate([ARRAY, ARRAY[:, 0, 0] * 2, ARRAY], axis=None),
        np.concatenate([ARRAY, ARRAY], axis=1),
        np.expand_dims(ARRAY, (1, 2)),
        np.expand_dims(ARRAY, (-1, 1)),
        np.expand_dims(ARRAY, 2),
        np.moveaxis(ARRAY, 1, 2),
        np.moveaxis(ARRAY, 1, 2),
        np.squeeze(ARRAY),
        np.squeeze(ARRAY),
        np.squeeze(ARRAY, 1),
        np.flip(ARRAY, 2),
    ]
    for element, value, want in zip(made, fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        assert element.shape == want.shape
        np.testing.assert_array_equal(value, want)


def test_joined_streams_of_unknown_length() -> None:
    x = fc.iterate([ARRAY, ARRAY], shape=(1, 3), dtype="f4")
    np.testing.assert_array_equal(
        fc.concat([x * 2, fc.source(ARRAY)], axis=None).resolve(device="numpy", progress=False),
        np.concatenate([ARRAY * 2, ARRAY * 2, ARRAY], axis=None),
    )


def test_a_stream_of_one_record_is_not_squeezed_away() -> None:
    with pytest.raises(fc.SpecError, match=r"cannot remove the stream axis(.|\n)*x\[0\] is the only record"):
        fc.squeeze(fc.source(ARRAY[:1]))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: fc.stack(5), TypeError, "values="),
        (lambda x: fc.stack([x, x], 1.5), TypeError, "axis="),
        (lambda x: fc.stack([x, x], 9), IndexError, "cannot find axis 9"),
        (lambda x: fc.expand_dims(x, "a"), TypeError, "axis="),
        (lambda x: fc.expand_dims(x, 9), IndexError, "cannot insert an axis at 9"),
        (lambda x: fc.var(x, correction="a"), TypeError, "correction="),
        (lambda x: fc.cov(fc.flatten(x), correction="a"), TypeError, "correction="),
        (lambda x: fc.sum(x, axis=7), IndexError, "cannot find axis 7"),
        (lambda x: x[9], IndexError, "cannot find this record"),
        (lambda x: x[:, 9], IndexError, "cannot index outside the axis"),
        (lambda x: x["a"], TypeError, "cannot index an axis by this key"),
        (lambda x: x + "a", TypeError, "cannot make an element of this operand"),
        (lambda x: x & x, TypeError, "cannot compute with these dtypes"),
        (lambda x: fc.reshape(x, (-1, 5)), ValueError, "cannot fit the numbers"),
        (lambda x: fc.histogram(x, bins=10**12, range=(0, 1)), ValueError, "bins="),
        (lambda x: fc.quantile(fc.flatten(x), 10**400), ValueError, "q="),
        (lambda x: fc.diff(x, n=10**30), ValueError, "n="),
        (lambda x: bool(x), TypeError, "cannot tell the truth value of a lazy value"),
    ],
)
def test_refusals_are_also_of_pythons_own_kinds(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(fc.SpecError, match=text) as caught:
        call(fc.source(ARRAY))
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value, ValueError)
