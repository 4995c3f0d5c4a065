"""The nine large networks of the onnx package, without their weights: they give the answers that are stored there.

Each number of a weight is the same, so scores are all equal or next to it, and as large as 4e12.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import flowcompute as fc

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
GRAPHS = sorted(FOLDER.glob("*.onnx"))
LARGE = 1e3
"""Scores from which on a unit in the last place is seen behind a softmax."""
LIKE_OTHERS = ("light_vgg19", "light_inception_v1", "light_densenet121")
"""Networks whose operators the other six have, too; left to the nightly script."""
ON_A_DEVICE = ("light_bvlc_alexnet", "light_zfnet512")


def image(loaded: fc.onnx.OnnxModel) -> np.ndarray:
    """What onnx's own runner gives them."""
    (port,) = loaded.inputs
    numbers = np.arange(3 * 224 * 224).reshape(1, 3, 224, 224)
    assert port.shape == numbers.shape
    return (numbers / numbers.size).astype("f4")


def stored(path: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb")))


def test_there_are_nine() -> None:
    assert len(GRAPHS) == 9


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.compiles if path.stem in LIKE_OTHERS else ()) for path in GRAPHS],
    ids=[path.stem for path in GRAPHS],
)
def test_a_graph_gives_its_stored_answer(path: Path) -> None:
    made = onnx.load(path)
    wanted = stored(path)
    last = made.graph.node[-1]
    if last.op_type == "Softmax":
        # Libraries of products add up some columns in another order. Scores of 3.6e12 then differ by a unit in the
        # last place, which is 262144, and the softmax of them is all or nothing.
        scores = helper.make_tensor_value_info(last.input[0], onnx.TensorProto.FLOAT, None)
        made.graph.output.append(scores)
        loaded = fc.onnx.load(made)
        got, scores = fc.resolve(*loaded(image(loaded)), device="numpy", progress=False)
        np.testing.assert_allclose(scores, np.full_like(scores, scores.mean(dtype="f8")), rtol=1e-5)
        assert (wanted == wanted[0, 0]).all()
        if abs(scores).max() > LARGE:
            return
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-7, strict=True)
        return
    loaded = fc.onnx.load(made)
    got = loaded(image(loaded)).resolve(device="numpy", progress=False)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-7, strict=True)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_a_graph_gives_its_stored_answer_on_a_device(name: str) -> None:
    """Also AlexNet, since kernels add up all columns in one order."""
    path = FOLDER / f"{name}.onnx"
    loaded = fc.onnx.load(path)
    got = loaded(image(loaded)).resolve(device="cpu", progress=False)
    np.testing.assert_allclose(got, stored(path), rtol=1e-3, atol=1e-7, strict=True)
