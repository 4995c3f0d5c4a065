"""What program 17 cannot see of the node tests of onnx, all of which it runs itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node
from onnx.backend.test.case.node import quantizelinear

import flowcompute as fc
from tests.onnx.models import one


def case_of(name: str) -> Any:
    """A case of those modules that are imported; all of them would take seconds."""
    assert quantizelinear.__name__.startswith(node.__name__)
    return next(case for case in node._NodeTestCases if case.name == name)


def test_blocks_without_a_zero_point_wait_for_an_array_to_be_compared_with() -> None:
    """That node test expects a TensorProto, so the program holds any answer against it as wrong.

    The node is refused. The way round that its hint names gives the numbers that the proto holds.
    """
    case = case_of("test_quantizelinear_blocked_symmetric")
    ((inputs, (wanted,)),) = case.data_sets
    assert isinstance(wanted, TensorProto)
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(case.model)(*inputs)
    assert caught.value.reason == "missing"
    assert "zero point" in caught.value.hint
    x, scale = inputs
    got = one("QuantizeLinear", [x, scale, np.zeros(scale.shape, "i2")], opset=28, axis=1, block_size=2)
    np.testing.assert_array_equal(got, numpy_helper.to_array(wanted), strict=True)
