"""Values that are computed again where not even a record fits the budget: equal bits, in less memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements import Kind
from flowcompute.elements.creation import Trainable
from flowcompute.errors import PlanError, RunError
from flowcompute.schedule.memory import HostIntermediates
from flowcompute.schedule.tight_plans import recomputations
from tests.properties.cases import cases

NUMPY: dict[str, Any] = {"device": "numpy", "progress": False}
RNG = np.random.default_rng(20)
RECORDS, SIZE, SIDE = 6, 16, 12
ROWS = RNG.standard_normal((RECORDS, SIZE, SIZE), dtype=np.float32)
IMAGES = RNG.standard_normal((RECORDS, 2, SIDE, SIDE), dtype=np.float32)
ENOUGH = 1 << 30


def parameter(name: str, *shape: int) -> Any:
    seed = sum(name.encode())
    numbers = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return fc.parameter(numbers / np.float32(np.prod(shape[1:]) ** 0.5), name=name)


def dense(h: Any, name: str) -> Any:
    return fc.nn.gelu(h @ parameter(name, SIZE, SIZE))


def residual(h: Any, name: str) -> Any:
    return h + fc.nn.dropout(fc.tanh(fc.nn.layer_norm(h, 1) @ parameter(name, SIZE, SIZE)), 0.25, seed=1)


def attending(h: Any, name: str) -> Any:
    q, k, v = (fc.reshape(h @ parameter(f"{name}{one}", SIZE, SIZE), (-1, 1, SIZE, SIZE)) for one in "qkv")
    return h + fc.reshape(fc.nn.attention(q, k, v, causal=True), (-1, SIZE, SIZE))


def elementwise(h: Any, name: str) -> Any:
    return fc.nn.softmax(h * parameter(name, SIZE) + fc.sin(h), axis=2)


LAYERS = {one.__name__: one for one in (dense, residual, attending, elementwise)}


def chain(layers: list[str]) -> Any:
    h = fc.source(ROWS)
    for place, name in enumerate(layers):
        h = LAYERS[name](h, f"w{place}")
    return (h * h).mean()


def convolved(count: int = 5, side: int = SIDE) -> Any:
    h, channels = fc.source(np.resize(IMAGES, (RECORDS, 2, side, side))), 2
    for place in range(count):
        h = fc.nn.conv2d(h, parameter(f"w{place}", 6, channels, 3, 3), padding=1)
        h, channels = fc.nn.relu(h - h.mean(axis=(2, 3), keepdims=True)), 6
    return (h * h).mean()


def fitted(loss: Any, batch: int = 3) -> tuple[Any, ...]:
    trained = fc.train.fit(loss, fc.train.sgd(0.1), batch=batch, epochs=2)
    return *trained.values(), trained.losses


def parameters_of(loss: Any) -> list[Any]:
    found: dict[int, Any] = {}
    todo = [loss]
    while todo:
        one = todo.pop()
        if isinstance(one, Trainable):
            found[id(one)] = one
        else:
            todo += one.inputs
    return [*found.values()]


def gradients(loss: Any) -> tuple[Any, ...]:
    """Return a loss, and its gradients by all parameters."""
    return loss, *fc.grad(loss, parameters_of(loss))


def fits(elements: tuple[Any, ...], memory: int, **options: Any) -> bool:
    try:
        fc.plan(*elements, memory=memory, **options)
    except PlanError:
        return False
    return True


def told(error: PlanError) -> int:
    """Return the budget that a refusal tells."""
    return int(str(error.expected).split()[4])


def least_memory(elements: tuple[Any, ...], **options: Any) -> int:
    """Return about the least budget of a job: that of a refusal of a record, or where all else just fits."""
    with pytest.raises(PlanError) as caught:
        fc.plan(*elements, memory=1 << 13, **options)
    memory = told(caught.value)
    while True:
        smaller = memory * 15 // 16
        try:
            fc.plan(*elements, memory=smaller, **options)
        except PlanError as error:
            return told(error) if "one batch" in str(error) else memory
        memory = smaller


def recomputes(plan: Any) -> bool:
    return any(reason.kind == "recompute" and "computed again" in reason.text for reason in plan.reasons)


def value_bytes(values: Any) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in values]


@cases(4)
@given(st.lists(st.sampled_from([*LAYERS]), min_size=3, max_size=6), st.floats(0, 1))
def test_no_budget_changes_a_bit(layers: list[str], share: float) -> None:
    """Of any budget from the least to one that keeps everything."""
    for elements in (fitted(chain(layers)), gradients(chain(layers))):
        whole = fc.resolve(*elements, memory=ENOUGH, **NUMPY)
        least = least_memory(elements, device="numpy")
        memory = int(least * (1 + share))
        assert value_bytes(fc.resolve(*elements, memory=least, **NUMPY)) == value_bytes(whole)
        assert value_bytes(fc.resolve(*elements, memory=memory, **NUMPY)) == value_bytes(whole)


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
def test_values_are_computed_again_where_a_record_does_not_fit(device: str) -> None:
    options: dict[str, Any] = {"device": device, "progress": False}
    for made in (fitted, gradients):
        elements = made(convolved())
        least = least_memory(elements, device=device)
        assert not recomputes(fc.plan(*elements, memory=ENOUGH, device=device))
        plan = fc.plan(*elements, memory=least, device=device)
        assert recomputes(plan)
        assert "more operations" in str(plan)
        whole = fc.resolve(*elements, memory=ENOUGH, **options)
        assert value_bytes(fc.resolve(*elements, memory=least, **options)) == value_bytes(whole)


def between_kernels(plan: Any) -> int:
    return sum(size for what, size in plan.memory.items if "between kernels" in what)


@pytest.mark.slow
def test_a_record_takes_much_less_than_it_takes_where_all_is_kept() -> None:
    elements = gradients(convolved(12))
    kept = fc.plan(*elements, memory=ENOUGH, device="numpy", strategy=fc.Strategy(batch_bytes=1))
    least = fc.plan(*elements, memory=least_memory(elements, device="numpy"), device="numpy")
    assert between_kernels(least) < 0.6 * between_kernels(kept)


def test_what_takes_no_product_is_tried_first() -> None:
    plan = fc.plan(*gradients(chain(["dense"] * 5)), device="numpy")
    found = recomputations(plan.graph, plan.passes[0])
    again = [[node for node in one.graph.nodes if node.again] for one in found]
    assert all(again)
    assert not any(node.kind is Kind.CONTRACT for node in again[0])
    assert any(node.kind is Kind.CONTRACT for node in again[-1])
    operations = [one.operations for one in found]
    assert operations == sorted(operations)
    assert found[-1].record_bytes < found[0].record_bytes


def test_a_trainer_computes_again() -> None:
    def trained(memory: int) -> tuple[list[bytes], bool]:
        loss = convolved()
        with fc.train.Trainer(parameters_of(loss), fc.train.sgd(0.1), memory=memory, device="numpy") as trainer:
            losses = [trainer.step(loss) for _ in range(3)]
            (_, job), *_ = trainer._jobs
            return [*value_bytes(losses), *value_bytes(trainer.values.values())], recomputes(job.plan)

    with pytest.raises(PlanError) as caught:
        trained(1 << 13)
    memory, (whole, again) = told(caught.value), trained(ENOUGH)
    assert not again
    while not again:
        memory = memory * 15 // 16
        found, again = trained(memory)
        assert found == whole


def test_a_refusal_tells_the_least_budget_with_values_computed_again() -> None:
    elements = gradients(convolved())
    least = least_memory(elements, device="numpy")
    with pytest.raises(PlanError, match="cannot fit one batch") as caught:
        fc.plan(*elements, memory=least * 19 // 20, device="numpy")
    assert "although values are computed again" in str(caught.value.hint)
    assert fits(elements, told(caught.value), device="numpy")
    assert not fits(elements, told(caught.value) - 1, device="numpy")


def frozen_after(elements: tuple[Any, ...], folder: Path, batches: int, **options: Any) -> None:
    seen: list[int] = []

    def watch(run: fc.Run) -> None:
        seen.append(1)
        if len(seen) == batches:
            run.freeze()

    with pytest.raises(RunError, match="frozen"):
        fc.run(*elements, checkpoint=folder, on_batch=watch, **options, **NUMPY)


@pytest.mark.parametrize("made", [fitted, gradients])
@pytest.mark.parametrize("first_is_tight", [True, False])
def test_a_frozen_job_goes_on_under_any_budget(
    made: Callable[[Any], Any], first_is_tight: bool, tmp_path: Path
) -> None:
    """What was computed again leaves no trace in a checkpoint, and needs none."""
    elements = made(convolved())
    least = least_memory(elements, device="numpy", checkpoint=tmp_path / "none")
    whole = value_bytes(fc.resolve(*elements, memory=ENOUGH, **NUMPY))
    small = {"batch_bytes": 1}
    tight = {"memory": least}
    ample = {"memory": ENOUGH, "strategy": fc.Strategy(**small)}
    first, second = (tight, ample) if first_is_tight else (ample, tight)
    frozen_after(elements, tmp_path / "kept", 2, **first)
    thawed = fc.thaw(tmp_path / "kept")
    assert value_bytes(thawed.resolve(**second, **NUMPY)) == whole
    frozen_after(elements, tmp_path / "again", 2, **first)
    assert value_bytes(fc.resolve(*elements, checkpoint=tmp_path / "again", **second, **NUMPY)) == whole


@pytest.mark.slow
def test_what_the_plan_saves_is_saved() -> None:
    """Memory between kernels is that of the plan, also where folds give it back within a batch."""
    elements = gradients(convolved(8))
    least, held = least_memory(elements, device="numpy"), set[int]()
    forget = HostIntermediates.forget

    def noted(self: Any) -> None:
        held.add(sum(len(memory) for memory in self._memory.values()))
        forget(self)

    with mock.patch.object(HostIntermediates, "forget", noted):
        run = fc.run(*elements, memory=least, **NUMPY)
    assert max(held) == between_kernels(run.plan)
