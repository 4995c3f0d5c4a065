"""Fusion: how many kernels a graph becomes, and the reason that is given for each cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.errors import PlanError
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.steps import NodeStep, RegionStep
from tests.gpu.shapes import resolve_on_gpu


def rows(columns: int = 7, *more: int) -> Element:
    return fc.source(np.ones((300, columns, *more), np.float32))


def numbers() -> Element:
    return fc.source(np.ones(300, np.float32))


def weights(*shape: int) -> Element:
    return fc.constant(np.ones(shape, np.float32))


def plan_of(elements: Element | Sequence[Element]) -> Plan:
    return fc.plan(*(elements if isinstance(elements, Sequence) else [elements]), device="cpu")


def centred(x: Element) -> Element:
    return x - x.mean(axis=1, keepdims=True)


def from_its_mean(y: Element) -> Element:
    return y - y.mean(axis=0)


def from_its_length(y: Element) -> Element:
    return y / fc.sqrt((y * y).sum(axis=0))


def softmax(x: Element) -> Element:
    e = fc.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x: Element) -> Element:
    d = centred(x)
    return d / fc.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5)


def several(x: Element) -> list[Element]:
    return [x + 1, fc.exp(x), x.sum(axis=0), x.max(axis=1), x.argmax(axis=1), x.var(axis=0), (x > 0).any(axis=0)]


def two_axes(x: Element) -> list[Element]:
    return [x.sum(axis=1), x.sum(axis=2)]


def product_and_sum(x: Element, y: Element) -> list[Element]:
    return [x * y, (x * y).sum(axis=0)]


def columns_and_rows(x: Element) -> list[Element]:
    y = x * 3
    return [y.sum(axis=0), y.sum(axis=1)]


def choice(x: Element) -> Element:
    return fc.where(x > 0, x, -x) * (x < 5)


def labels() -> Element:
    return fc.source(np.arange(300, dtype=np.int32) % 7)


def at_labels(x: Element, y: Element) -> Element:
    return fc.where(fc.expand_dims(y, 1).astype("int64") == np.arange(x.shape[1]), x, 0).sum(axis=1)


def beside_numbers(x: Element, y: Element) -> list[Element]:
    column = fc.exp(fc.expand_dims(y, 1))
    return [column * x, (x - column).sum(axis=1), (column * x).sum(axis=0)]


def beside_themselves(x: Element) -> list[Element]:
    column = fc.expand_dims(fc.exp(x.sum(axis=1)), 1)
    return [x * column, (x * column).sum(axis=0)]


def through_the_host(x: Element) -> Element:
    y = x + 1
    return y * fc.host(np.square, y)


def many_sources(count: int) -> Element:
    total: Element = numbers()
    for _ in range(count - 1):
        total = total + numbers()
    return total


def chain(steps: int) -> Element:
    x = rows()
    for step in range(steps):
        x = x + (0.5 + step)
    return x


CASES: dict[str, tuple[Callable[[], Element | list[Element]], int, list[str]]] = {
    # the graph, its kernels, and what the cuts say
    "w * x + y * z": (lambda: numbers() * numbers() + numbers() * numbers(), 1, []),
    "softmax": (lambda: softmax(rows()), 1, []),
    "layer norm": (lambda: layer_norm(rows()), 1, []),
    "several outputs of one reading": (lambda: several(rows()), 1, []),
    "dot products of rows": (lambda: fc.vecdot(rows(), rows() * 2), 1, []),
    "dot product of streams": (lambda: fc.vecdot(numbers(), numbers() + 1), 1, []),
    "resident rows and columns": (lambda: rows() * weights(7) + weights(1), 1, []),
    "streams of unequal items": (lambda: product_and_sum(rows(), rows(1)), 1, []),
    "where and bools": (lambda: choice(rows()), 1, []),
    "a product and what follows": (
        lambda: fc.exp((rows() + 1) @ weights(7, 5)),
        1,
        [],
    ),
    "sums of products": (
        lambda: (rows() @ weights(7, 5)).sum(axis=1),
        2,
        ["sum: it needs whole rows of a matrix product, which is stored in parts"],
    ),
    "two products": (
        lambda: rows() @ weights(7, 5) + rows() @ weights(7, 5),
        2,
        ["add: a kernel holds one matrix product, attention, scan or gather"],
    ),
    "labels beside rows": (lambda: at_labels(rows(), labels()), 1, []),
    "numbers beside rows, both ways": (lambda: beside_numbers(rows(), numbers()), 1, []),
    "numbers of rows beside these rows": (lambda: beside_themselves(rows()), 1, []),
    "numbers beside a product": (
        lambda: rows() @ weights(7, 5) * fc.exp(fc.expand_dims(numbers(), 1)),
        2,
        ["multiply: its shape is not that of a matrix product, (5,)"],
    ),
    "unrelated streams": (lambda: [numbers() + 1, rows() + 1], 2, []),
    "what stays resident": (lambda: rows() + fc.exp(weights(7)), 2, []),
    "after a fold": (lambda: fc.sqrt(rows().sum(axis=0)), 2, []),
    "a fold of what another pass computes again": (lambda: from_its_mean(rows() * rows()), 2, []),
    "a result of such a fold": (lambda: from_its_length(rows() * rows()), 3, []),
    "other axes": (lambda: two_axes(rows(7, 4)), 2, ["sum_2: reduces other axes than sum"]),
    "a fold of row results": (
        lambda: rows().sum(),
        1,
        ["sum: row results are few: their blocks are folded on the host"],
    ),
    "wide rows and their columns": (
        lambda: product_and_sum(centred(rows(5000)), rows(1)),
        2,
        ["sum: rows this wide are folded in a kernel of their own"],
    ),
    "columns of wide rows, and rows of them": (
        lambda: columns_and_rows(rows(5000)),
        2,
        ["sum_2: rows this wide are folded in a kernel of their own"],
    ),
    "numbers as rows of one": (
        lambda: columns_and_rows(rows(1)),
        2,
        ["sum_2: numbers are folded in blocks of records, not row by row"],
    ),
    "a host function between": (
        lambda: through_the_host(rows()),
        2,
        ["multiply: a value it needs is made from this kernel's results by another step"],
    ),
    "thirty sources": (lambda: many_sources(30), 3, ["add_15: the kernel would take more than 16 pointers"]),
}


@pytest.mark.parametrize("case", CASES)
def test_kernels_and_reasons(case: str) -> None:
    build, kernels, boundaries = CASES[case]
    plan = plan_of(build())
    assert len(plan.kernels) == kernels
    said = [f"{reason.element}: {reason.text}" for reason in plan.reasons if reason.kind == "cut"]
    assert said[: len(boundaries)] == boundaries
    assert bool(said) == bool(boundaries)
    for text in boundaries:
        assert f"cut at {text}" in str(plan)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("columns", [1, 3, 5000])
def test_a_fold_has_the_bits_that_it_has_without_the_rows_beside_it(columns: int, device: str) -> None:
    x = fc.source(np.random.default_rng(1).standard_normal((3001 if columns < 10 else 40, columns)))
    folded, reduced = columns_and_rows(x)
    alone = folded.resolve(device=device, progress=False)
    assert fc.resolve(folded, reduced, device=device, progress=False)[0].tobytes() == alone.tobytes()
    assert fc.resolve(reduced, folded, device=device, progress=False)[1].tobytes() == alone.tobytes()


def test_numbers_known_beforehand_take_no_pointers() -> None:
    assert len(plan_of(chain(100)).kernels) == 1
    plan = plan_of(chain(700))
    assert len(plan.kernels) == 3
    assert "more than 300 operations" in str(plan)


def test_every_node_is_computed_by_exactly_one_step() -> None:
    plan = plan_of([*several(rows()), through_the_host(rows()), rows() @ weights(7, 3)])
    (one_pass,) = plan.passes
    computed: list[int] = []
    for step in plan.steps:
        computed += step.region.nodes if isinstance(step, RegionStep) else [step.node.id]
    assert sorted(computed) == [node.id for node in plan.graph.nodes if node.op is not None]
    made: set[int] = {stage.value for stage in one_pass.sources}
    made |= {node.id for node in plan.graph.nodes if node.op is None}
    for step in (*one_pass.before, *one_pass.steps, *one_pass.after):
        needed = step.region.inputs if isinstance(step, RegionStep) else step.node.inputs
        assert made.issuperset(needed), f"{step.name} runs before what it needs"
        made.update((*step.region.outputs, *step.region.folds) if isinstance(step, RegionStep) else (step.node.id,))


def test_only_what_others_need_is_stored() -> None:
    x = rows()
    plan = plan_of(softmax(x))
    (step,) = plan.passes[0].steps
    assert isinstance(step, RegionStep)
    assert len(step.region.outputs) == 1
    assert step.region.domain == (7,)
    assert step.region.reduced == {0}


def test_one_launch_for_each_batch() -> None:
    run = softmax(rows()).run(device="cpu", strategy=fc.Strategy(batch_bytes=2800), progress=False)
    assert run.plan.batch_items == 100
    assert run.launches == 3


def test_steps_of_host_functions_stand_alone() -> None:
    plan = plan_of(fc.host(np.square, rows()))
    assert [type(step) for step in plan.steps] == [NodeStep]
    assert plan.kernels == ()


def test_nothing_is_lowered_where_nothing_is_computed() -> None:
    plan = plan_of([fc.source(np.ones((5, 0))) + 1, fc.source(np.ones((5, 0))).sum(axis=0)])
    assert plan.kernels == ()


# -- passes ---------------------------------------------------------------------------------------


TWO_PASSES: dict[str, tuple[Callable[[Element], Element], int]] = {
    "centred columns": (lambda x: x - x.mean(axis=0), 2),
    "kept axis": (lambda x: x - x.mean(axis=0, keepdims=True), 2),
    "scaled by the largest": (lambda x: x / x.max(), 2),
    "through resident steps": (lambda x: x * fc.sqrt(x.var(axis=0) + 1), 2),
    "two folds of one reading": (lambda x: (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0) + 1), 2),
    "into another fold": (lambda x: fc.vecdot(x, x.sum(axis=0)), 2),
    "into a product": (lambda x: x @ x.sum(axis=0), 2),
    "a fold of centred records": (lambda x: fc.square(x - x.mean(axis=0)).sum(axis=0), 2),
    "and back to the records": (lambda x: x - fc.square(x - x.mean(axis=0)).sum(axis=0), 3),
    "a host function": (lambda x: fc.host(lambda a, m: a - m, x, x.mean(axis=0)), 2),
}


@pytest.mark.parametrize("case", TWO_PASSES)
@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_a_fold_that_feeds_a_stream_takes_another_pass(case: str, device: str) -> None:
    build, passes = TWO_PASSES[case]
    rng = np.random.default_rng(4)
    data = rng.standard_normal((1500, 5))
    element = build(fc.source(data))
    plan = element.plan(device=device)
    assert len(plan.passes) == passes, plan
    assert all(len(one.sources) == 1 for one in plan.passes)
    whole = build_in_numpy(case, data)
    for batch_bytes in (200, 1 << 13, 1 << 20):
        value = element.resolve(device=device, strategy=fc.Strategy(batch_bytes=batch_bytes), progress=False)
        np.testing.assert_allclose(value, whole, rtol=1e-9, atol=1e-9)


def build_in_numpy(case: str, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=0)
    return {
        "centred columns": lambda: centred,
        "kept axis": lambda: centred,
        "scaled by the largest": lambda: x / x.max(),
        "through resident steps": lambda: x * np.sqrt(x.var(axis=0) + 1),
        "two folds of one reading": lambda: (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0) + 1),
        "into another fold": lambda: x @ x.sum(axis=0),
        "into a product": lambda: x @ x.sum(axis=0),
        "a fold of centred records": lambda: np.square(centred).sum(axis=0),
        "and back to the records": lambda: x - np.square(centred).sum(axis=0),
        "a host function": lambda: centred,
    }[case]()


def test_what_can_be_read_once_is_not_read_twice() -> None:
    once = fc.iterate(iter([np.ones((3, 2))]), shape=2, dtype="float64", name="feed")
    with pytest.raises(PlanError, match="twice") as caught:
        (once - once.mean(axis=0)).plan(device="numpy")
    assert caught.value.element == "feed"
    assert "mean" in str(caught.value)
    assert "fc.spool" in (caught.value.hint or "")
    assert len((once * 2).plan(device="numpy").passes) == 1
    assert len(fc.plan(once.sum(), once.max(), device="numpy").passes) == 1


def test_folds_may_meet_each_other() -> None:
    x = rows()
    y = (x.sum(axis=0) - x.mean(axis=0)) / fc.sqrt(x.var(axis=0) + 1)
    value = y.resolve(device="cpu", progress=False)
    assert np.array_equal(value, np.full(7, 299.0))
    assert fc.resolve(y.sum(), y.max() + x.max(), device="cpu", progress=False) == (7 * 299.0, 300.0)


def test_streams_that_do_not_meet_may_have_any_length() -> None:
    first, second = fc.resolve(rows() + 1, fc.source(np.ones(5)) + 1, device="numpy", progress=False)
    assert first.shape == (300, 7)
    assert second.tolist() == [2] * 5


def test_numbers_beside_rows_are_the_same_in_one_kernel() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((1025, 7)).astype(np.float32), rng.integers(0, 7, 1025).astype(np.int32)
    wide, label = fc.source(x), fc.source(y)
    column = fc.expand_dims(label, 1) * 2 + 1
    roots = [at_labels(wide, label), column * wide, (wide - column).max(axis=1), (column * wide).sum(axis=0), column]
    assert len(plan_of(roots).kernels) == 1
    on_host = fc.resolve(*roots, device="numpy")
    np.testing.assert_array_equal(on_host[0], x[np.arange(1025), y])
    np.testing.assert_array_equal(on_host[1], x * (y[:, None] * 2 + 1))
    for made in (fc.resolve(*roots, device="cpu"), resolve_on_gpu(*roots)):
        for got, wanted in zip(made, on_host, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)


def test_what_stands_beside_a_scan_or_product_is_read_again_and_the_plan_says_so() -> None:
    x = fc.source(np.ones((50, 8), np.float32))
    for made, called in (
        (fc.cumulative_sum(x, axis=0), "a scan"),
        (x @ np.ones((8, 8), np.float32), "a matrix product"),
    ):
        plan = fc.plan(made, x.max(axis=0))
        assert len(plan.kernels) == 2
        assert [reason.element for reason in plan.reasons if f"{called} reads them in another order" in reason.text]
        # What needs the other's result is no matter of reading twice.
        after = fc.plan(made, x - made.max(axis=1, keepdims=True))
        assert not [reason for reason in after.reasons if "once more" in reason.text]


@fc.kernel(boundary="edge")
def uphill(u, v, *, i):  # type: ignore[no-untyped-def]
    return u[i] - u[i - 1] + v[i]


def test_what_a_kernel_computes_for_another_is_named_with_the_reason() -> None:
    x, square = rows(8), weights(8, 8)
    scanned = fc.cumulative_sum(x, axis=0)
    blocks = fc.source(np.zeros((300, 34), np.uint8))
    cases = {
        "matmul: cumulative_sum is stored: a scan computes it, and a matrix product reads it in another order":
            scanned @ square,
        "matmul: cumulative_sum is stored: a scan, attention or gather computes it in its own kernel":
            (scanned + fc.cumulative_sum(x * 2, axis=0)) @ square,
        "attention: pad is stored: its index would be computed at each load":
            fc.nn.attention(fc.pad(rows(8, 8) * 2, ((0, 0), (1, 1), (0, 0))), rows(8, 8), rows(8, 8)),
        "pad_2: pad is stored: a kernel holds one gather": fc.pad(fc.pad(x + 1, ((0, 0), (1, 1))) , ((0, 0), (1, 1))) + 1,
        "uphill: exp is stored: a stencil reads its operands from memory": uphill(x, fc.exp(x)),
        "dequantize: bitwise_xor is stored: blocks are decoded from memory":
            fc.dequantize(blocks ^ np.uint8(1), "Q8_0") + 1,
        "take.indices: the host checks indices before a kernel reads the table": fc.take(square, labels(), axis=0) + 1,
        "reshape: no strides describe this view: the host copies": fc.exp(fc.reshape(fc.flip(rows(8, 4), 2), (-1, 32))),
        "square: a Python function computes it on the host": fc.exp(fc.host(np.square, x)),
        "inv: LAPACK computes it on the host": fc.exp(fc.linalg.inv(rows(3, 3))),
    }  # fmt: skip
    for wanted, root in cases.items():
        cuts = [f"{reason.element}: {reason.text}" for reason in plan_of(root).reasons if reason.kind == "cut"]
        assert wanted in cuts, cuts


def test_a_view_of_a_computed_value_is_named_where_it_cuts() -> None:
    x = fc.source(np.ones((8, 8, 16, 16), np.float32))
    for made in (fc.nn.relu(fc.nn.group_norm(x, groups=4)), fc.nn.max_pool2d(fc.nn.relu(x), 5)):
        plan = plan_of(made)
        assert len(plan.kernels) == 2
        stored, read = (kernel.ir.region for kernel in plan.kernels)
        cuts = [str(reason) for reason in plan.reasons if reason.kind == "cut"]
        assert cuts == [f"cut at {read}: {stored} is stored: it is read in another shape or order"]
