"""The records of a step as one array: what products of them are computed of."""

from __future__ import annotations

import numpy as np

from flowcompute.elements.op import Kind, Op


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("records keep their dtype")


ALL_RECORDS = Op(
    "all_records", 1, Kind.FOLD, np.asarray, _declared, doc="The records of a step, in their order, as one array."
)
"""A fold that only planning makes, so that no kept job holds it. Where a step is one batch, it copies nothing."""
