"""The batch axis is tracked: a model of a stream gives what it gives of an array, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from tests.onnx.models import model, node, one, port

rng = np.random.default_rng(5)
X = rng.standard_normal((6, 3, 4)).astype("f4")


def both(made: Any, x: np.ndarray, **options: Any) -> np.ndarray:
    """The answer, which is the same for an array and for a stream."""
    loaded = fc.onnx.load(made, **options)
    y = loaded(fc.source(x))
    assert y.spec.is_stream
    streamed = y.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=64))
    np.testing.assert_array_equal(streamed, loaded(x).resolve(device="numpy"), strict=True)
    return np.asarray(streamed)


def refused(made: Any, *values: Any) -> fc.onnx.UnsupportedError:
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)(*values)
    assert {problem.reason for problem in caught.value.problems} == {"batch axis"}
    assert caught.value.hint
    return caught.value


def test_the_axis_goes_away_and_comes_back() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[2, 0, 1]),
        node("Softmax", "t", "s", axis=0),
        node("Add", "s w", "a"),
        node("Transpose", "a", "y", perm=[1, 2, 0]),
    ]
    w = rng.standard_normal((4, 1, 3)).astype("f4")
    got = both(model(nodes, [port("x", ("N", 3, 4))], values={"w": w}), X)
    e = np.exp(X - X.max(2, keepdims=True))
    wanted = e / e.sum(2, keepdims=True) + w.transpose(1, 2, 0)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_attention_as_it_is_exported() -> None:
    """(N, T, 3 H D) to three parts (H, N, T, D) and back."""
    x = rng.standard_normal((5, 7, 24)).astype("f4")
    shape, back = np.array([-1, 7, 3, 2, 4]), np.array([-1, 7, 8])
    nodes = [node("Reshape", "x shape", "r"), node("Transpose", "r", "t", perm=[2, 3, 0, 1, 4]),
             node("Split", "t", "q k v", axis=0, num_outputs=3),
             *(node("Squeeze", f"{one} zero", f"{one}s") for one in "qkv"),
             node("Transpose", "ks", "kt", perm=[0, 1, 3, 2]), node("MatMul", "qs kt", "scores"),
             node("Softmax", "scores", "p"), node("MatMul", "p vs", "o"),
             node("Transpose", "o", "u", perm=[1, 2, 0, 3]), node("Reshape", "u back", "y")]  # fmt: skip
    made = model(nodes, [port("x", ("N", 7, 24))], values={"shape": shape, "back": back, "zero": np.array([0])})
    got = both(made, x)
    q, k, v = x.reshape(5, 7, 3, 2, 4).transpose(2, 3, 0, 1, 4)
    scores = q @ k.swapaxes(-1, -2)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = (p / p.sum(-1, keepdims=True) @ v).transpose(1, 2, 0, 3).reshape(5, 7, 8)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stack", [(6,), (1,), (2, 6)])
def test_rows_do_not_meet_a_stack_of_matrices_as_records(stack: tuple[int, ...]) -> None:
    x, w = (rng.integers(-9, 9, shape).astype("f4") for shape in ((6, 4), (*stack, 4, 5)))
    at = len(stack)
    perm = [at, *range(at), at + 1]
    nodes = [node("MatMul", "x w", "m"), node("Transpose", "m", "y", perm=perm)]
    got = both(model(nodes, [port("x", ("N", 4))], values={"w": w}), x)
    np.testing.assert_array_equal(got, np.transpose(x @ w, perm))


def test_a_class_token_is_put_before_each_record() -> None:
    nodes = [
        node("Shape", "x", "s", start=0, end=1),
        node("Concat", "s ones", "target", axis=0),
        node("Expand", "token target", "tokens"),
        node("Concat", "tokens x", "y", axis=1),
    ]
    token = np.full((1, 1, 4), np.nan, "f4")
    got = both(model(nodes, [port("x", ("N", 3, 4))], values={"token": token, "ones": np.array([1, 4])}), X)
    np.testing.assert_array_equal(got, np.concatenate([np.broadcast_to(token, (6, 1, 4)), X], 1))


@pytest.mark.parametrize(
    "made",
    [
        node("ReduceMean", "x axes", "y"),
        node("Reshape", "x flat", "y"),
        node("Concat", "x x", "y", axis=0),
        node("CumSum", "x zero", "y"),
        node("Gather", "x zero", "y", axis=0),
        node("Softmax", "x", "y", axis=0),
        node("Tile", "x twice", "y"),
        node("Squeeze", "x axes", "y"),
        node("Transpose", "x", "y", perm=[1, 0, 2]),
        node("Slice", "x zero one", "y"),
    ],
    ids=lambda made: made.op_type,
)
def test_what_mixes_records_is_refused_by_node(made: Any) -> None:
    values = {"axes": np.array([0]), "flat": np.array([-1, 2]), "zero": np.array([0]), "one": np.array([1]),
              "twice": np.array([2, 1, 1])}  # fmt: skip
    error = refused(model([made], [port("x", ("N", 3, 4))], values=values), fc.source(X))
    assert [(problem.node, problem.op) for problem in error.problems] == [(made.name, made.op_type)]


def test_all_nodes_that_mix_records_are_told_at_once() -> None:
    nodes = [
        node("Softmax", "x", "a", axis=0),
        node("Relu", "a", "b"),
        node("Flatten", "x", "y", axis=2),
        node("Relu", "x", "fine"),
    ]
    error = refused(model(nodes, [port("x", ("N", 3, 4))], ["b", "y", "fine"]), fc.source(X))
    assert [problem.op for problem in error.problems] == ["Softmax", "Flatten"]
    assert "relu" not in str(error)


def test_a_model_for_one_record_is_computed_record_by_record() -> None:
    nodes = [node("Reshape", "x flat", "f"), node("MatMul", "f w", "m"), node("Add", "m bias", "y")]
    w = rng.standard_normal((12, 2)).astype("f4")
    values = {"flat": np.array([1, 12]), "w": w, "bias": np.ones((1, 2), "f4")}
    y = fc.onnx.load(model(nodes, [port("x", (1, 3, 4))], values=values))(fc.source(X))
    np.testing.assert_allclose(y.resolve(device="numpy"), X.reshape(6, 12) @ w + 1, rtol=1e-4, atol=1e-5)
    several = model(nodes[2:], [port("m", (1, 2))], values={"bias": np.ones((5, 2), "f4")})
    refused(several, fc.source(X[:, 0, :2]))


def test_another_axis_may_be_the_stream() -> None:
    nodes = [node("Softmax", "x", "s", axis=0), node("Transpose", "s", "y", perm=[1, 0])]
    loaded = fc.onnx.load(model(nodes, [port("x", (4, "N"))]), batch_axis={"x": 1})
    x = X[:, 0]
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(loaded(fc.source(x)).resolve(device="numpy"), e / e.sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(fc.SpecError, match="cannot take a stream"):
        fc.onnx.load(model(nodes, [port("x", (4, "N"))]), batch_axis=None)(fc.source(x))


@given(st.permutations(range(3)), st.integers(0, 2), st.booleans())
@settings(max_examples=25)
def test_any_order_of_axes(order: list[int], axis: int, keepdims: bool) -> None:
    """A reduction between a transposition and its inverse is right, or refused where it is over the records."""
    nodes = [node("Transpose", "x", "t", perm=order), node("ReduceMax", "t axes", "r", keepdims=1),
             node("Mul", "t r", "m"), node("Transpose", "m", "y", perm=np.argsort(order).tolist())]  # fmt: skip
    made = model(nodes, [port("x", ("N", 3, 4))], values={"axes": np.array([axis])})
    if order[axis] == 0:
        refused(made, fc.source(X))
        return
    np.testing.assert_array_equal(both(made, X), X * X.max(order[axis], keepdims=True))


def test_arrays_of_any_shape_are_resident() -> None:
    x = np.zeros((0, 3), "f4")
    assert one("Relu", [x]).shape == (0, 3)
    assert one("Neg", [np.float32(2)]).shape == ()


def test_a_resident_with_one_number_a_record_meets_any_number_of_records() -> None:
    made = model([node("Add", "x w", "y")], [port("x", ["N", 2])], values={"w": np.array([[5], [7], [9]], "f4")})
    x = np.arange(6, dtype="f4").reshape(3, 2)
    np.testing.assert_array_equal(both(made, x), x + np.array([[5], [7], [9]], "f4"))
    with pytest.raises(fc.FlowError):
        fc.onnx.load(made)(fc.source(x[:1])).resolve(device="numpy")


def test_all_axes_of_one_are_removed_but_that_of_the_records() -> None:
    x = np.arange(3, dtype="f4").reshape(3, 1, 1)
    assert both(model([node("Squeeze", "x", "y")], [port("x", ["N", 1, 1])]), x).shape == (3,)


def test_what_a_definition_cannot_do_is_told_of_the_node_of_the_model() -> None:
    """Neither operator nor number of a node that the model does not have."""
    ports = [port("q", ("N", 5, 4)), port("k", (2, 5, 4)), port("v", (2, 5, 4))]
    nodes = [node("LinearAttention", "q k v", "y state", q_num_heads=1, kv_num_heads=1, update_rule="linear")]
    one_ = np.ones((2, 5, 4), "f4")
    error = refused(model(nodes, ports, ["y", "state"], opset=27), fc.source(one_), one_, one_)
    assert {(one.node, one.op) for one in error.problems} == {("linearattention_y", "LinearAttention")}
    assert "of its definition: " in error.problems[0].text


@pytest.mark.parametrize("kernel", [1, 3])
def test_a_convolution_that_goes_on_from_a_state(kernel: int) -> None:
    """Two parts of a text, the state between them, give what all of it gives; of arrays and record by record."""
    x, w = rng.standard_normal((4, 3, 9)).astype("f4"), rng.standard_normal((3, 1, kernel)).astype("f4")
    nodes = [node("CausalConvWithState", "x w _ p", "y s", activation="silu")]
    first = [node("CausalConvWithState", "x w", "y s", activation="silu")]
    ports = [port("x", ("N", 3, "T")), port("p", ("N", 3, kernel - 1))]
    go, then = (
        fc.onnx.load(model(made, ports[: at + 1], ["y", "s"], opset=27, values={"w": w}))
        for at, made in enumerate((first, nodes))
    )
    wide = np.pad(x, ((0, 0), (0, 0), (kernel - 1, 0)))
    sums = sum(w[:, 0, at, None] * wide[:, :, at : at + 9] for at in range(kernel))
    for give in (np.asarray, fc.source):
        y, state = fc.resolve(*go(give(x[:, :, :4])), device="numpy", progress=False)
        more, state = fc.resolve(*then(give(x[:, :, 4:]), give(state)), device="numpy", progress=False)
        wanted = sums / (1 + np.exp(-sums))
        np.testing.assert_allclose(np.concatenate([y, more], 2), wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(state, wide[:, :, 9:])
