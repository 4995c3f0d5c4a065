"""What users see bears the names that they wrote: functions with their arguments and lines, and names of their own."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError
from flowcompute.graph import build_graph, draw_tree
from flowcompute.graph.folding import fold_calls

ITEMS = np.random.default_rng(3).random((40, 6)).astype(np.float32)
PICTURES = np.random.default_rng(4).random((5, 3, 8, 8)).astype(np.float32)


def lines(*roots: Any) -> list[str]:
    """Return the lines of the tree without their branches and places."""
    return [line.lstrip("│├└─ ").partition("  ")[0] for line in draw_tree(build_graph(roots)).splitlines()]


def here(above: int = 1) -> str:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"{Path(__file__).name}:{frame.f_back.f_lineno - above}"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: fc.nn.softmax(x, axis=1), "softmax axis=1"),
        (lambda x: fc.nn.softmax(x), "softmax"),
        (lambda x: fc.nn.log_softmax(x, 1), "log_softmax axis=1"),
        (lambda x: x.sum(axis=1), "sum axis=1"),
        (lambda x: x.sum(axis=(1,), keepdims=True), "sum axis=(1,) keepdims=True"),
        (lambda x: x.sum(), "sum"),
        (lambda x: x.std(axis=0), "std axis=0"),
        (lambda x: x.std(axis=0, correction=1), "std axis=0 correction=1"),
        (lambda x: x.mean(), "mean"),
        (lambda x: x.var(axis=-1), "var axis=-1"),
        (lambda x: x.astype("int8"), "astype dtype='int8'"),
        (lambda x: x.clip(0, 0.5), "clip min=0 max=0.5"),
        (lambda x: fc.where(x > 0, x, 0), "where x2=0"),
        (lambda x: x**2, "pow x2=2"),
        (fc.nn.gelu, "gelu"),
        (fc.nn.layer_norm, "layer_norm"),
        (lambda x: fc.reshape(x, (-1, 2, 3)), "reshape shape=(-1, 2, 3)"),
        (lambda x: fc.top_k(x[:, 0], 3)[1], "top_k_indices k=3"),
        (fc.tanh, "tanh"),
    ],
)
def test_a_call_is_one_node_with_its_arguments(make: Callable[[Any], Any], text: str) -> None:
    x = fc.source(ITEMS, name="x")
    made = make(x)
    assert lines(made)[0].partition(":")[0] == text
    # A call that did not leave its steps behind would show later elements as its own.
    assert lines(made + 1)[0].startswith("add:")


def test_all_that_users_call_is_recorded() -> None:
    rooms = (fc, fc.fft, fc.linalg, fc.nn)
    composing = [getattr(room, name) for room in rooms for name in room.__all__]
    functions = [one for one in composing if inspect.isfunction(one) and ".elements." in one.__module__]
    own = {fc.host, fc.kernel, fc.opencl, fc.scan, fc.spool, fc.pinned}
    own |= {fc.can_cast, fc.finfo, fc.iinfo, fc.isdtype, fc.result_type}  # they make no elements
    left = [one.__name__ for one in functions if one not in own and not hasattr(one, "__wrapped__")]
    assert len(functions) > 70
    assert left == []


def test_a_network_reads_as_it_was_written() -> None:
    x, weight = fc.source(PICTURES, name="x"), fc.constant(np.ones((4, 3, 3, 3), np.float32))
    y = fc.nn.max_pool2d(fc.nn.relu(fc.nn.conv2d(x, weight, padding=1)), 2)
    assert [line.partition(":")[0] for line in lines(y)] == [
        "max_pool2d kernel=2",
        "relu",
        "conv2d padding=1",
        "constant",
        "x",
    ]
    plan = y.plan(device="numpy")
    assert {name.partition(".")[0] for step in plan.steps for name in [step.name]} <= {"conv2d", "relu", "max_pool2d"}
    assert "relu" in plan.text
    assert "matmul" not in plan.text


def test_numbers_of_an_operator_are_drawn_and_those_of_a_function_are_not() -> None:
    x = fc.source(ITEMS, name="x")
    assert lines(x * 2.5)[1:] == ["x: float32(40, 6) stream", "2.5"]
    assert lines(fc.nn.gelu(x))[1:] == ["x: float32(40, 6) stream"]


def test_a_loop_over_one_line_is_as_many_calls() -> None:
    x = fc.source(ITEMS, name="x")
    for _ in range(3):
        x = fc.nn.softmax(x)
    assert [line.partition(":")[0] for line in lines(x)] == ["softmax_3", "softmax_2", "softmax", "x"]


def test_a_step_that_others_use_too_is_a_node_of_its_own() -> None:
    x = fc.source(ITEMS, name="x")
    spread = x.std(axis=0)
    graph = build_graph([spread, x.var(axis=0) + 1])
    folded, into = fold_calls(graph)
    # The variance was asked for, so it is no step of the deviation.
    assert [node.name for node in folded.nodes] == ["x", "var", "std", "1.0", "add"]
    assert len(into) == len(graph.nodes)
    assert {node.id for node in folded.nodes} == set(into)
    assert folded.nodes[2].inputs == (1,)


def test_folding_keeps_every_path() -> None:
    x = fc.source(ITEMS, name="x")
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    loss = fc.nn.cross_entropy(fc.nn.layer_norm(z), fc.source(np.zeros(40, np.int64), name="labels"))
    graph = build_graph([loss.mean(), z.sum()])
    folded, into = fold_calls(graph)
    for node in folded.nodes:
        assert all(operand < node.id for operand in node.inputs)
    across = {(into[i], into[node.id]) for node in graph.nodes for i in node.inputs if into[i] != into[node.id]}
    kept = {(operand, node.id) for node in folded.nodes for operand in node.inputs}
    assert across == kept


def test_the_line_is_the_users() -> None:
    x = fc.source(ITEMS, name="x")
    y = fc.nn.softmax(x - 1)
    place = here()
    tree = draw_tree(build_graph([y])).splitlines()
    assert tree[0].endswith(place)
    assert tree[1].endswith(place)
    total = y.sum(axis=1)
    line = here().rpartition(":")[2]
    assert f"region: subtract softmax sum  {place}, {line}" in total.plan(device="numpy").text


def test_metrics_tell_names_and_lines() -> None:
    x = fc.source(ITEMS, name="x")
    y = fc.nn.softmax(x).named("shares")
    place = here()
    run = y.run(device="numpy", progress=False)
    assert run.metrics["shares"].place == place
    assert run.metrics["shares.exp"].name == "shares"


# -- names that users give --------------------------------------------------------------------------


def test_a_given_name_is_shown_everywhere() -> None:
    x = fc.source(ITEMS).named("prices")
    loss = x.std(axis=1).mean(axis=0).named("loss")
    saved = (loss * 2) >> fc.to_array().named("answer")
    assert lines(saved) == [
        "answer: float32()",
        "multiply: float32()",
        "loss (mean) axis=0: float32()",
        "std axis=1: float32(40,) stream",
        "prices: float32(40, 6) stream",
        "2.0",
    ]
    plan = saved.plan(device="numpy")
    assert "read   prices:" in plan.text
    assert "write  answer:" in plan.text
    assert " loss" in plan.text
    assert "loss" in plan.svg()
    assert "loss" in plan.dot()
    assert repr(loss) == "<Compute loss: float32()>"


def test_a_named_element_is_the_same_value() -> None:
    seen = []
    x = fc.source(ITEMS)
    for make in (lambda e: e + 1, lambda e: fc.host(lambda a: seen.append(len(a)) or a, e), lambda e: e.max(axis=0)):
        made = make(x)
        twin = made.named("a").named("b")
        graph = build_graph([made, twin])
        assert graph.roots[0] == graph.roots[1]
        assert graph.nodes[graph.roots[0]].name == "b"
        assert twin.hash == made.hash
        one, other = fc.resolve(made, twin, device="numpy", progress=False)
        np.testing.assert_array_equal(one, other)
    assert sum(seen) == len(ITEMS)


def test_a_name_stays_with_a_pin_and_a_pin_with_a_name() -> None:
    x = fc.source(ITEMS)
    y = x * 2
    for made in (y.named("twice").on("numpy"), y.on("numpy").named("twice")):
        graph = build_graph([y, made])
        assert graph.roots[0] == graph.roots[1]
        node = graph.nodes[graph.roots[0]]
        assert node.name == "twice"
        assert node.pin is not None
        assert node.pin.device == "numpy"


def test_one_named_destination_takes_two_inputs() -> None:
    x, kept = fc.source(ITEMS), fc.to_array().named("kept")
    with pytest.raises(SpecError, match="cannot give two elements the name 'kept'"):
        fc.resolve(x >> kept, (x + 1) >> kept, device="numpy")


@pytest.mark.parametrize("name", ["", "two\nlines", 3, None])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(SpecError, match="cannot take name="):
        fc.source(ITEMS).named(name)


# -- errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: fc.nn.softmax(x, axis=7), "softmax"),
        (lambda x: fc.std(x, axis=7), "std"),
        (lambda x: fc.nn.layer_norm(x, axis=7), "layer_norm"),
        (lambda x: fc.nn.relu(x.astype("float32") + fc.source(ITEMS[:3])), "add"),
    ],
)
def test_errors_name_what_was_called(call: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(SpecError) as caught:
        call(fc.source(ITEMS))
    assert caught.value.element == name


def test_unequal_lengths_name_the_files(tmp_path: Path) -> None:
    np.save(tmp_path / "big.npy", np.zeros(4000, np.float32))
    np.save(tmp_path / "lab.npy", np.zeros(1000, np.int64))
    big, lab = fc.open(tmp_path / "big.npy"), fc.open(tmp_path / "lab.npy")
    with pytest.raises(SpecError) as caught:
        fc.tanh(big) + lab
    assert (caught.value.expected, caught.value.got) == ("4000 records as in big.npy", "1000 records in lab.npy")
    with pytest.raises(SpecError) as caught:
        big + lab.named("labels") * 2
    assert caught.value.got == "1000 records in labels"
    cut = big[:7]
    place = here()
    with pytest.raises(SpecError) as caught:
        cut + lab
    assert caught.value.expected is not None
    assert caught.value.expected.startswith("7 records as in ")
    assert caught.value.expected.endswith(f"({place})")


def test_a_call_that_fails_is_over() -> None:
    x = fc.source(ITEMS)
    with pytest.raises(SpecError):
        fc.nn.softmax(x, axis=9)
    assert (x + 1).call is not None
    assert (x + 1).base_name == "add"


# -- cost -----------------------------------------------------------------------------------------------


class _Array(np.ndarray):
    """An array that can be referred to weakly."""


def test_composing_holds_no_arrays_of_the_user() -> None:
    array = np.ones(6, np.float32).view(_Array)
    gone = weakref.ref(array)
    x = fc.source(ITEMS)
    made = fc.where(x > 0, x, array)
    del array
    gc.collect()
    assert gone() is None
    assert made.call is not None
