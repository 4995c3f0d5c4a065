"""When values are computed: as early as a pass that reads them, and no earlier."""

from __future__ import annotations

import numpy as np

import flowcompute as fc

X = np.arange(24, dtype=np.float32).reshape(6, 4)
MOMENT = np.linspace(1, 2, 4, dtype=np.float32)


def test_values_are_computed_with_the_results_that_alone_read_them() -> None:
    moment = fc.parameter(MOMENT, name="moment")
    made = fc.sqrt(moment * 0.9) + fc.source(X).sum(axis=0) * 0.1
    (one,) = fc.plan(made, device="numpy").passes
    assert not one.before
    assert len(one.after) == 1
    np.testing.assert_allclose(made.resolve(device="numpy"), np.sqrt(MOMENT * 0.9) + X.sum(0) * 0.1, rtol=1e-6)


def test_what_records_read_as_well_is_there_before_them() -> None:
    scaled = fc.parameter(MOMENT, name="moment") * 0.9
    made = scaled + (fc.source(X) * scaled).sum(axis=0)
    (one,) = fc.plan(made, device="numpy").passes
    assert [step.name for step in one.before] == ["multiply"]
    np.testing.assert_allclose(made.resolve(device="numpy"), MOMENT * 0.9 + (X * MOMENT * 0.9).sum(0), rtol=1e-6)


def test_single_numbers_are_computed_once_before() -> None:
    made = fc.exp(fc.parameter(np.float32(0.5), name="rate")) * fc.source(X).sum(axis=0)
    (one,) = fc.plan(made, device="numpy").passes
    assert len(one.before) == 1
    np.testing.assert_allclose(made.resolve(device="numpy"), np.exp(np.float32(0.5)) * X.sum(0), rtol=1e-6)
