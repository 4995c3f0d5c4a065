"""Sequences between nodes: lists of values that are taken apart before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import flowcompute as fc
from tests.onnx.models import FLOAT, INT64, model, node, port

X = np.random.default_rng(5).standard_normal((4, 6, 5)).astype("f4")


def computed(made: Any, x: np.ndarray, device: str = "numpy", stream: bool = False) -> Any:
    loaded = fc.onnx.load(made)
    out = loaded(fc.source(x) if stream else x)
    elements = tuple(out) if len(loaded.outputs) > 1 else (out,)
    got = fc.resolve(*elements, device=device, progress=False)
    return got if len(loaded.outputs) > 1 else (got,)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("split", "parts"),
    [(np.int64(2), [2, 2, 2]), (np.int64(4), [4, 2]), (np.int64(9), [6]), (np.array([1, 0, 5]), [1, 0, 5])],
)
def test_parts_are_taken_out_and_joined_again(split: Any, parts: list[int], stream: bool) -> None:
    names = [f"y{place}" for place in range(len(parts))]
    nodes = [node("SplitToSequence", "x split", "s", axis=1)]
    nodes += [node("SequenceAt", f"s p{place}", name) for place, name in enumerate(names)]
    nodes += [node("SequenceConstruct", " ".join(reversed(names)), "t"), node("ConcatFromSequence", "t", "z", axis=-2)]
    values = {"split": split, **{f"p{place}": np.int64(place - len(parts)) for place in range(len(parts))}}
    made = model(nodes, [port("x", ["N", 6, 5])], (*names, "z"), values=values)
    *got, joined = computed(made, X, "cpu" if stream else "numpy", stream)
    wanted = np.split(X, np.cumsum(parts)[:-1], axis=1)
    for one, own in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(one, own, strict=True)
    np.testing.assert_array_equal(joined, np.concatenate(wanted[::-1], axis=1), strict=True)


@pytest.mark.parametrize("stream", [False, True])
def test_an_axis_is_unbound_as_exporters_do_it(stream: bool) -> None:
    """Queries, keys and values of one product: each place of an axis by itself, and stacked along another."""
    nodes = [node("SplitToSequence", "x", "s", axis=1, keepdims=0), node("SequenceLength", "s", "n")]
    nodes += [node("Sub", "n one", "last"), node("SequenceAt", "s last", "y")]
    nodes += [node("SequenceErase", "s zero", "t"), node("ConcatFromSequence", "t", "z", axis=-1, new_axis=1)]
    values = {"one": np.int64(1), "zero": np.int64(0)}
    made = model(nodes, [port("x", ["N", 6, 5])], ("y", "z"), values=values)
    y, z = computed(made, X, stream=stream)
    np.testing.assert_array_equal(y, X[:, -1], strict=True)
    np.testing.assert_array_equal(z, np.stack([X[:, place] for place in range(1, 6)], axis=-1), strict=True)


def test_a_shape_is_taken_apart() -> None:
    """The number of records is followed through a sequence, and stays open."""
    nodes = [node("Shape", "x", "shape"), node("SplitToSequence", "shape", "s", axis=0, keepdims=0)]
    nodes += [node("SequenceAt", "s zero", "n"), node("SequenceConstruct", "n minus", "t")]
    nodes += [node("ConcatFromSequence", "t", "wanted", axis=0, new_axis=1), node("Reshape", "x wanted", "y")]
    made = model(nodes, [port("x", ["N", 6, 5])], values={"zero": np.int64(0), "minus": np.int64(-1)})
    for stream in (False, True):
        (got,) = computed(made, X, stream=stream)
        np.testing.assert_array_equal(got, X.reshape(4, 30), strict=True)


def _loop_body() -> Any:
    """A turn: the number of the turn times x goes to the front of what is carried."""
    carried = [helper.make_tensor_sequence_value_info(name, FLOAT, None) for name in ("before", "after")]
    nodes = [node("Cast", "turn", "number", to=FLOAT), node("Mul", "x number", "one")]
    nodes += [node("SequenceInsert", "before one front", "after"), node("Identity", "going", "still")]
    scalars = [port("turn", [], INT64), port("going", [], TensorProto.BOOL)]
    return helper.make_graph(nodes, "body", [*scalars, carried[0]], [port("still", [], TensorProto.BOOL), carried[1]])


@pytest.mark.parametrize("stream", [False, True])
def test_a_loop_grows_a_sequence(stream: bool) -> None:
    nodes = [node("SequenceEmpty", "", "s", dtype=FLOAT), node("Loop", "three _ s", "t", body=_loop_body())]
    nodes += [node("ConcatFromSequence", "t", "y", axis=1)]
    made = model(nodes, [port("x", ["N", 6, 5])], values={"three": np.int64(3), "front": np.int64(0)})
    (got,) = computed(made, X, stream=stream)
    np.testing.assert_array_equal(got, np.concatenate([2 * X, X, 0 * X], axis=1))


def test_a_branch_gives_a_sequence() -> None:
    def branch(first: str) -> Any:
        made = helper.make_tensor_sequence_value_info("s", FLOAT, None)
        return helper.make_graph([node("SequenceConstruct", f"{first} x", "s")], first, [], [made])

    nodes = [node("Neg", "x", "n"), node("Abs", "x", "a")]
    nodes += [node("If", "yes", "t", then_branch=branch("n"), else_branch=branch("a"))]
    nodes += [node("ConcatFromSequence", "t", "y", axis=0)]
    (got,) = computed(model(nodes, [port("x", ["N", 6, 5])], values={"yes": np.bool_(True)}), X)
    np.testing.assert_array_equal(got, np.concatenate([-X, X]))


@given(st.lists(st.tuples(st.booleans(), st.integers(-6, 6) | st.none()), max_size=8))
def test_positions_are_those_of_a_list(steps: list[tuple[bool, int | None]]) -> None:
    """Inserting and erasing at any place there is, against Python's lists."""
    kept, values, nodes = [0], {}, [node("SequenceConstruct", "c0", "s0")]
    for place, (inserts, position) in enumerate(steps, 1):
        if position is not None and not -len(kept) <= position < len(kept) + inserts:
            continue
        before = nodes[-1].output[0]
        at = "" if position is None else f" p{place}"
        if position is not None:
            values[f"p{place}"] = np.int64(position)
        if inserts:
            kept.insert(len(kept) if position is None else position, place)
            nodes.append(node("SequenceInsert", f"{before} c{place}{at}", f"s{place}"))
        elif len(kept) > 1:
            kept.pop(-1 if position is None else position)
            nodes.append(node("SequenceErase", f"{before}{at}", f"s{place}"))
    values |= {f"c{place}": np.float32([place]) for place in range(len(steps) + 1)}
    nodes.append(node("ConcatFromSequence", nodes[-1].output[0], "y", axis=0))
    nodes.append(node("Mul", "y x", "z"))
    made = model(nodes, [port("x", [1])], ("z",), values=values)
    (got,) = computed(made, np.ones(1, "f4"))
    np.testing.assert_array_equal(got, np.float32(kept))


@pytest.mark.parametrize(
    ("nodes", "reason", "words"),
    [
        ([node("SequenceConstruct", "x x", "y")], "sequence", "where an array is needed"),
        ([node("SequenceConstruct", "x x", "s"), node("Add", "s x", "y")], "sequence", "where an array is needed"),
        ([node("SequenceConstruct", "x x", "s"), node("Shape", "s", "y")], "sequence", "where an array is needed"),
        ([node("SequenceAt", "x zero", "y")], "invalid", "where a sequence is needed"),
        ([node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s two", "y")], "invalid", "position 2 among 2"),
        ([node("SequenceConstruct", "x x", "s"), node("SequenceErase", "s two", "y")], "invalid", "position 2 among 2"),
        ([node("SequenceConstruct", "x zero", "y")], "invalid", "several dtypes"),
        ([node("SequenceEmpty", "", "s"), node("ConcatFromSequence", "s", "y", axis=0)], "invalid", "no values"),
        ([node("SequenceConstruct", "x", "s"), node("ConcatFromSequence", "s", "y", axis=3)], "invalid", "axis 3 of 3"),
        ([node("SplitToSequence", "x zero", "y")], "invalid", "parts of 0"),
        ([node("SplitToSequence", "x pair", "y")], "invalid", "parts"),
        ([node("SplitToSequence", "wide", "y")], "unbounded", "1024 parts"),
    ],
)
def test_what_is_no_list_of_values_is_refused_by_node(nodes: list[Any], reason: str, words: str) -> None:
    values = {"zero": np.int64(0), "two": np.int64(2), "pair": np.array([2, 3]), "wide": np.zeros(2000, "f4")}
    with pytest.raises(fc.onnx.UnsupportedError, match=words) as error:
        fc.onnx.load(model(nodes, [port("x", [4, 6, 5])], values=values))(X)
    (problem,) = error.value.problems
    assert (problem.reason, problem.node) == (reason, nodes[-1].name)


def test_the_batch_axis_is_not_split() -> None:
    made = model(
        [node("SplitToSequence", "x", "s"), node("SequenceAt", "s zero", "y")],
        [port("x", ["N", 6, 5])],
        values={"zero": np.int64(0)},
    )
    with pytest.raises(fc.onnx.UnsupportedError, match="split along axis 0"):
        fc.onnx.load(made)(fc.source(X))
