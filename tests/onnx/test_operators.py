"""Operators by family, against formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

import flowcompute as fc
from flowcompute.spec import BFLOAT16
from tests.onnx.models import INT64, model, node, one, port

rng = np.random.default_rng(17)
X = rng.standard_normal((2, 3, 4)).astype("f4")
IMAGES = rng.standard_normal((2, 3, 7, 6)).astype("f4")


def close(got: Any, wanted: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    assert got.shape == np.shape(wanted), (got.shape, np.shape(wanted))
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def test_integers_divide_towards_zero() -> None:
    a, b = np.array([7, -7, 7, -7], "i4"), np.array([2, 2, -2, -2], "i4")
    np.testing.assert_array_equal(one("Div", [a, b]), np.trunc(a / b).astype("i4"), strict=True)
    np.testing.assert_array_equal(one("Mod", [a, b]), np.mod(a, b), strict=True)
    np.testing.assert_array_equal(one("Mod", [a, b], fmod=1), np.fmod(a, b), strict=True)


def test_a_power_has_the_dtype_of_its_base() -> None:
    base, power = np.array([1, 2, 3], "i4"), np.array([0.5, 2, 3], "f4")
    np.testing.assert_array_equal(one("Pow", [base, power]), np.array([1, 4, 27], "i4"), strict=True)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("Selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
        ("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("Softsign", lambda x: x / (1 + np.abs(x))),
        ("ThresholdedRelu", lambda x: np.where(x > 1, x, 0)),
        ("Shrink", lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    ],
)
def test_activations(op: str, wanted: Any) -> None:
    close(one(op, [X]), wanted(X))


def test_a_product_of_bfloat16_keeps_its_dtype() -> None:
    a, b = X[0].astype(BFLOAT16), X[1].T.astype(BFLOAT16)
    got = one("MatMul", [a, b])
    assert got.dtype == BFLOAT16
    close(got.astype("f4"), a.astype("f4") @ b.astype("f4"), rtol=1e-2, atol=1e-2)


def test_gemm() -> None:
    a, b, c = X[0].T.copy(), X[1].T.copy(), np.arange(3, dtype="f4")
    close(one("Gemm", [a, b, c], transA=1, alpha=0.5, beta=2.0), 0.5 * a.T @ b + 2 * c)


@pytest.mark.parametrize("opset", [11, 18])
def test_softmax_over_the_last_axis_and_over_all_from_one_on(opset: int) -> None:
    e = np.exp(X - X.max())
    total = e.sum((1, 2) if opset == 11 else 2, keepdims=True)
    close(one("Softmax", [X], opset=opset), e / total)


def test_reductions_of_nothing_have_identities() -> None:
    nothing, axes = np.zeros((2, 0, 3), "f4"), np.array([1])
    for op, identity in (("ReduceMax", -np.inf), ("ReduceMin", np.inf), ("ReduceSum", 0), ("ReduceProd", 1)):
        np.testing.assert_array_equal(one(op, [nothing, axes], opset=20), np.full((2, 1, 3), identity, "f4"))


@pytest.mark.parametrize(("pads", "wanted"), [([-3, 3], [7, 7]), ([3, -3], [7, 7]), ([-1, 1], [5, 7]), ([-2, 0], [])])
def test_what_is_cut_beyond_the_numbers_is_cut_off_what_is_added(pads: list[int], wanted: list[int]) -> None:
    numbers = model(
        [node("Pad", "x pads seven", "y")], [port("x", (2,))], values={"pads": pads, "seven": np.float32(7)}
    )
    assert fc.onnx.load(numbers)(np.array([4, 5], "f4")).resolve(device="numpy").tolist() == wanted


def test_more_is_cut_away_than_there_is() -> None:
    numbers = model([node("Pad", "x pads", "y")], [port("x", (2,))], values={"pads": [-3, 0]})
    with pytest.raises(fc.onnx.UnsupportedError, match="3 of 2 numbers are cut away"):
        fc.onnx.load(numbers)(np.array([4, 5], "f4"))


def test_the_last_of_equal_extremes() -> None:
    x = np.array([[1, 5, 5, 2]], "f4")
    assert one("ArgMax", [x], axis=1, select_last_index=1).tolist() == [[2]]
    assert one("ArgMax", [x], axis=1).tolist() == [[1]]


# -- windows ------------------------------------------------------------------------------------------


def pooled(x: np.ndarray, kernel: int, stride: int, pads: tuple[int, int, int, int], fill: float) -> np.ndarray:
    top, left, bottom, right = pads
    wide = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    return sliding_window_view(wide, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]


def test_pools_with_other_pads_on_each_side() -> None:
    pads = (1, 0, 2, 1)
    options: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": list(pads)}
    close(one("MaxPool", [IMAGES], **options), pooled(IMAGES, 3, 2, pads, -np.inf).max((4, 5)))
    total, count = (pooled(each, 3, 2, pads, 0).sum((4, 5)) for each in (IMAGES, np.ones_like(IMAGES)))
    close(one("AveragePool", [IMAGES], **options), total / count)
    close(one("AveragePool", [IMAGES], count_include_pad=1, **options), total / 9)


def test_a_last_window_may_reach_beyond() -> None:
    x = np.arange(16, dtype="f4").reshape(1, 1, 4, 4)
    got = one("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    np.testing.assert_array_equal(got, [[[[10, 11], [14, 15]]]])


def test_convolution_with_groups_strides_and_pads() -> None:
    weights, bias = rng.standard_normal((6, 1, 3, 3)).astype("f4"), rng.standard_normal(6).astype("f4")
    seen = pooled(IMAGES, 3, 2, (1, 1, 0, 2), 0)
    wanted = np.einsum("nchwkl,cokl->ncohw", seen, weights.reshape(3, 2, 3, 3)).reshape(2, 6, *seen.shape[2:4])
    got = one("Conv", [IMAGES, weights, bias], group=3, strides=[2, 2], pads=[1, 1, 0, 2])
    close(got, wanted + bias[:, None, None], atol=1e-5)
    assert one("Conv", [IMAGES, weights], auto_pad="SAME_UPPER", group=3).shape == (2, 6, 7, 6)


def test_resizing_by_the_nearest_number_and_by_interpolation() -> None:
    x = np.arange(8, dtype="f4").reshape(1, 1, 2, 4)
    nothing, twice = np.zeros(0, "f4"), np.array([1, 1, 2, 2], "f4")
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    np.testing.assert_array_equal(one("Resize", [x, nothing, twice], **how), x.repeat(2, 2).repeat(2, 3))
    middle = one("Resize", [x, nothing, np.array([1, 1, 1, 0.5], "f4")], mode="linear")
    np.testing.assert_allclose(middle, x.reshape(1, 1, 2, 2, 2).mean(-1))


def test_a_transposed_convolution_spreads_numbers() -> None:
    weights = rng.standard_normal((3, 2, 3, 3)).astype("f4")
    wanted = np.zeros((2, 2, 2 * 6 + 3, 2 * 5 + 3), "f4")
    for i in range(7):
        for j in range(6):
            wanted[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum(
                "nc,cokl->nokl", IMAGES[:, :, i, j], weights
            )
    close(one("ConvTranspose", [IMAGES, weights], strides=[2, 2]), wanted, rtol=1e-4, atol=1e-5)
    close(one("ConvTranspose", [IMAGES, weights], strides=[2, 2], pads=[1, 0, 0, 2]), wanted[:, :, 1:, :-2], 1e-4, 1e-5)


def test_numbers_are_put_at_their_places() -> None:
    x, places = np.zeros((2, 4), "f4"), np.array([[1, -1], [0, 0]])
    updates = np.array([[1, 2], [3, 4]], "f4")
    for how, wanted in (("none", [[0, 1, 0, 2], [4, 0, 0, 0]]), ("add", [[0, 1, 0, 2], [7, 0, 0, 0]])):
        np.testing.assert_array_equal(one("ScatterElements", [x, places, updates], axis=1, reduction=how), wanted)
    got = one("ScatterND", [x, np.array([[1], [0]]), np.stack([x[0] + 1, x[0] + 2])])
    np.testing.assert_array_equal(got, [[2] * 4, [1] * 4])


# -- integers that stand for floats -------------------------------------------------------------------


def test_integers_are_convolved_exactly() -> None:
    x, w = rng.integers(0, 256, (2, 3, 7, 6), "u1"), rng.integers(-128, 128, (4, 3, 3, 3)).astype("i1")
    zero = np.array(119, "u1")
    seen = sliding_window_view(x.astype("i8") - 119, (3, 3), (2, 3))
    wanted = np.einsum("nchwkl,ockl->nohw", seen, w.astype("i8"))
    np.testing.assert_array_equal(one("ConvInteger", [x, w, zero]), wanted.astype("i4"), strict=True)


def test_quantising_rounds_halves_to_even_and_saturates() -> None:
    x = np.array([0.5, 1.5, 2.5, -1000, 1000, -0.5], "f4")
    got = one("QuantizeLinear", [x, np.float32(1), np.uint8(10)])
    np.testing.assert_array_equal(got, np.array([10, 12, 12, 0, 255, 10], "u1"), strict=True)
    np.testing.assert_array_equal(one("DequantizeLinear", [got, np.float32(2), np.uint8(10)])[:3], [0, 4, 4])


def test_both_forms_of_a_quantised_layer_agree() -> None:
    x, w = rng.random((5, 8), "f4"), rng.integers(-127, 128, (8, 4)).astype("i1")
    values = {"s": np.float32(1 / 255), "z": np.uint8(0), "w": w, "ws": np.float32(0.01), "wz": np.int8(0),
              "ys": np.float32(0.1), "yz": np.uint8(128)}  # fmt: skip
    inner = [node("QuantizeLinear", "x s z", "q"), node("QLinearMatMul", "q s z w ws wz ys yz", "y")]
    outer = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
             node("DequantizeLinear", "w ws wz", "f"), node("MatMul", "d f", "m"),
             node("QuantizeLinear", "m ys yz", "y")]  # fmt: skip
    quantised = np.rint(x / np.float32(1 / 255)).astype("i8") @ w.astype("i8")
    wanted = np.clip(np.rint(quantised * (0.01 / 255 / 0.1)) + 128, 0, 255).astype("u1")
    for nodes in (inner, outer):
        got = fc.onnx.load(model(nodes, [port("x", ("N", 8))], values=values))(x).resolve(device="numpy")
        assert np.abs(got.astype(int) - wanted.astype(int)).max() <= 1
        assert (got != wanted).mean() <= 0.05


# -- shapes -------------------------------------------------------------------------------------------


def test_shape_arithmetic_is_folded() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Concat", "n rest", "target", axis=0),
        node("Reshape", "x target", "y"),
    ]
    made = model(nodes, [port("x", ("N", 3, 4))], values={"zero": np.array([0]), "rest": np.array([-1])})
    y = fc.onnx.load(made)(fc.source(X))
    assert y.shape == (2, 12)
    np.testing.assert_array_equal(y.resolve(device="numpy"), X.reshape(2, 12))


def test_a_branch_with_a_known_condition_is_inlined() -> None:
    then, otherwise = (model([node("Constant", "", "v", value_float=number)], [], ["v"]).graph for number in (1.0, 2.0))
    made = model([node("If", "c", "y", then_branch=then, else_branch=otherwise)], [port("c", (), 9)])
    assert fc.onnx.load(made)(np.bool_(False)).resolve(device="numpy") == 2


def test_a_loop_of_known_length_is_unrolled() -> None:
    body = model(
        [node("Add", "a x", "next"), node("Identity", "going", "still"), node("Identity", "next", "kept")],
        [port("turn", (), INT64), port("going", (), 9), port("a", (3,))],
        ["still", "next", "kept"],
    ).graph
    nodes = [node("Loop", "turns _ first", "last all", body=body)]
    values = {"turns": np.array(3), "first": np.zeros(3, "f4")}
    x = np.arange(3, dtype="f4")
    made = fc.onnx.load(model(nodes, [port("x", (3,))], ["last", "all"], values=values))(x)
    np.testing.assert_array_equal(made.last.resolve(device="numpy"), 3 * x)
    np.testing.assert_array_equal(made["all"].resolve(device="numpy"), np.outer([1, 2, 3], x))
    endless = fc.onnx.load(model(nodes, [port("x", (3,))], ["last"], values=values | {"turns": np.array(1 << 40)}))
    with pytest.raises(fc.onnx.UnsupportedError, match="loop of more than") as caught:
        endless(x)
    assert caught.value.reason == "unbounded"


def test_a_function_of_the_model_is_inlined() -> None:
    from onnx import helper  # noqa: PLC0415 - of this test alone

    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Mul", ["a", "two"], ["b"])], [helper.make_opsetid("", 18)]
    )
    constant = helper.make_node("Constant", [], ["two"])
    constant.attribute.add(name="value_float", ref_attr_name="by", type=1)
    twice.node.insert(0, constant)
    twice.attribute.append("by")
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="own", by=3.0)]
    made = model(nodes, [port("x", ("N", 3, 4))], functions=[twice], domains=[helper.make_opsetid("own", 1)])
    np.testing.assert_array_equal(fc.onnx.load(made)(X).resolve(device="numpy"), 3 * X)


def test_lstm_is_its_equations() -> None:
    hidden, steps = 3, 5
    x = rng.standard_normal((steps, 2, 4)).astype("f4")
    w, r = (rng.standard_normal((1, 4 * hidden, size)).astype("f4") for size in (4, hidden))
    h = c = np.zeros((2, hidden), "f4")

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    for step in x:
        i, o, f, g = np.split(step @ w[0].T + h @ r[0].T, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    nodes = [node("LSTM", "x w r", "all y", hidden_size=hidden)]
    made = model(nodes, [port("x", x.shape)], values={"w": w, "r": r})
    close(fc.onnx.load(made)(x).resolve(device="numpy"), h[None], rtol=1e-4)


@pytest.mark.slow
def test_a_network_on_a_device() -> None:
    """Two convolutions, a pool and a product, as kernels."""
    w, v = rng.standard_normal((4, 3, 3, 3)).astype("f4"), rng.standard_normal((4 * 3 * 3, 5)).astype("f4")
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
             node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", "p", "f"),
             node("MatMul", "f v", "y")]  # fmt: skip
    loaded = fc.onnx.load(model(nodes, [port("x", ("N", 3, 7, 6))], values={"w": w, "v": v}))
    y = loaded(fc.source(IMAGES))
    close(y.resolve(device="cpu"), y.resolve(device="numpy"), rtol=1e-4, atol=1e-5)


# -- edges of single operators ------------------------------------------------------------------------


def test_a_slice_backwards_from_before_the_axis_takes_its_first_number() -> None:
    x = np.arange(5, dtype="f4")
    least = np.iinfo("i8").min
    got = one("Slice", [x, np.array([-9]), np.array([least]), np.array([0]), np.array([-1])], opset=13)
    np.testing.assert_array_equal(got, [0])
    values = {name: np.array([number]) for name, number in (("b", -9), ("e", least), ("a", 0), ("s", -1))}
    nodes = [node("Slice", "five b e a s", "n"), node("Reshape", "x n", "y")]
    made = model(nodes, [port("x", [5])], values={"five": np.array([5, 1]), **values})
    assert fc.onnx.load(made)(x).resolve(device="numpy").shape == (5,)


def test_zeros_are_quantised_by_a_scale_of_one() -> None:
    made = model([node("DynamicQuantizeLinear", "x", "y s z")], [port("x", [3])], ["y", "s", "z"])
    numbers, scale, zero = fc.resolve(*fc.onnx.load(made)(np.zeros(3, "f4")), device="numpy")
    assert (numbers.tolist(), scale, zero) == ([0, 0, 0], 1, 0)


@pytest.mark.parametrize(("dtype", "index", "depth"), [("u1", 3, 300), ("i1", -3, 140), ("i2", -1, 5)])
def test_more_classes_than_numbers_of_a_dtype(dtype: str, index: int, depth: int) -> None:
    got = one("OneHot", [np.array([index], dtype), np.int64(depth), np.array([0, 1], "f4")])
    np.testing.assert_array_equal(np.flatnonzero(got), [index % depth])


@pytest.mark.parametrize(
    ("op", "shape", "attributes"),
    [
        ("LRN", (1, 2, 3, 3), {"size": 1 << 40}),
        ("AveragePool", (1, 2, 8), {"kernel_shape": [1 << 33], "pads": [1 << 33, 1 << 33]}),
    ],
)
def test_absurd_windows_are_refused(op: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        one(op, [np.ones(shape, "f4")], **attributes)
    assert caught.value.reason == "unbounded"


def test_a_loop_that_never_ends_is_refused() -> None:
    parts = [[port("i", [], INT64), port("k", [], TensorProto.BOOL), port("c", [4])]]
    body = helper.make_graph(
        [node("Add", "c c", "d")], "b", parts[0], [port("k", [], TensorProto.BOOL), port("d", [4])]
    )
    made = model([node("Loop", "_ k x", "y", body=body)], [port("x", [4])], values={"k": np.array(True)})
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)(np.ones(4, "f4"))
    assert caught.value.reason == "unbounded"


def test_functions_that_double_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.onnx.graph_builder.MOST_WITHIN", 1 << 10)
    nothing = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = []
    for at in range(24):
        inner = [helper.make_node(f"f{at + 1}", [a], [b], domain="own") for a, b in (("a", "b"), ("b", "c"))]
        inner = inner if at < 23 else [node("Relu", "a", "c")]
        functions.append(helper.make_function("own", f"f{at}", ["a"], ["c"], inner, nothing))
    start = helper.make_node("f0", ["x"], ["y"], domain="own")
    made = model([start], [port("x", [2])], functions=functions, domains=nothing[1:])
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)(np.ones(2, "f4"))
    assert caught.value.reason == "unbounded"
