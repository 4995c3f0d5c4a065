"""Values that kernels put together of others, with what stands before and after them, in both code shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.schedule import RegionStep
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu

pytestmark = pytest.mark.compiles

Case = Callable[[Element, Element], Element]


def numbers(*shape: int, dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


A, B = numbers(9, 4, 21), numbers(9, 4, 21, seed=1)
AFTER = numbers(4, 26)

CASES: dict[str, Case] = {
    "padded all round": lambda a, b: fc.pad(a * 2, 1) + 1,
    "padded behind": lambda a, b: fc.pad(a * A[0, 0], ((0, 0), (2, 3)), constant_values=3) * AFTER,
    "edges": lambda a, b: fc.pad(a * 2, ((1, 2), (3, 2)), "edge") + 1,
    "mirrors, farther than the axis is long": lambda a, b: fc.pad(a.mT * 2, ((1, 2), (9, 8)), "reflect") + 1,
    "around and around": lambda a, b: fc.pad(a * 2, ((1, 2), (30, 2)), "wrap") + 1,
    "joined along rows": lambda a, b: fc.concat([a * 2, b.mT[:, :4, :4] + 1, b], axis=2) * 0.5,
    "joined along the first axis": lambda a, b: fc.concat([a * 2, b[:, 1:2], b * a], axis=1) * numbers(9, 1),
    "stacked first": lambda a, b: fc.stack([a * 2, b], axis=1) + 1,
    "stacked last": lambda a, b: fc.stack([a * 2, b, a], axis=3) + 1,
    "rows taken": lambda a, b: fc.take(a * 2, np.array([3, -1, 0, 0]), axis=1) + 1,
    "columns taken": lambda a, b: fc.take(a, np.array([3, -1, 0, 20, 7] * 4), axis=2) + b[:, :, :20],
    "numbers": lambda a, b: fc.stack([a[:, 0, 0] * 2, b[:, 0, 0]], axis=1) + 1,
    "half formats": lambda a, b: fc.pad(a.astype("f2") * 2, 2, constant_values=0.1) + 1,
    "integers": lambda a, b: fc.pad(fc.trunc(a * 9).astype("i8"), 2, constant_values=-7) + 1,
    "a view of windows": lambda a, b: fc.pad(fc.nn.unfold(a * 2, 3, 2), ((0, 0), (0, 0), (1, 1))) - 1,
}


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_puts_values_together(name: str) -> None:
    root = CASES[name](fc.source(A), fc.source(B))
    for plan in (fc.plan(root), plan_for_gpu(root)):
        assert len(plan.kernels) == 1, plan
        assert not [what for what, _ in plan.memory.items if "copy" in what]
    wanted = root.resolve(device="numpy")
    for made in (root.resolve(), resolve_on_gpu(root)[0], root.resolve(strategy=fc.Strategy(batch_bytes=1))):
        assert np.asarray(made).dtype == wanted.dtype
        np.testing.assert_array_equal(made, wanted)


def test_gpus_move_neighbours_in_vectors() -> None:
    a, b, h = (fc.source(numbers(7, 2, 6, size, dtype=dtype)) for size, dtype in ((8, "f4"), (16, "f4"), (8, "f2")))
    heads = [fc.permute_dims(one, (0, 2, 1, 3)) for one in (a, b[:, :, :, 8:], b[:, :, :, :8])]
    roots = {
        "heads behind each other": fc.stack(heads, axis=2) * 2,
        "a border": fc.pad(a, ((0, 0), (1, 2), (0, 0)), constant_values=3) + 1,
        "along rows": fc.concat([a, b], axis=3) * numbers(6, 24),
        "halves in fours": fc.concat([h, h[:, :, :, :4]], axis=3) + np.float16(1),
    }
    halves = {"halves, the last ones first": fc.concat([h, h[:, ::-1]], axis=1) + np.float16(1)}
    apart = {
        "rows that begin anywhere": fc.concat([a[:, :, :, 1:5], b], axis=3) * 2,
        "every other number": fc.concat([a, b[:, :, :, ::2]], axis=3) * 2,
        "pairs": fc.concat([a[:, :, :, :2], b[:, :, :, 4:6]], axis=1) * 2,
    }
    for lanes, some in ((4, roots), (8, halves), (1, apart)):
        for name, root in some.items():
            (step,) = (step for step in plan_for_gpu(root).steps if isinstance(step, RegionStep))
            assert step.kernel is not None
            assert step.kernel.lanes == lanes, name
    every = [*roots.values(), *halves.values(), *apart.values()]
    for made, root in zip(resolve_on_gpu(*every), every, strict=True):
        np.testing.assert_array_equal(made, np.asarray(root.resolve(device="numpy")))


def test_halves_of_a_product_are_turned_in_one_kernel() -> None:
    """A rotation by position: the halves are views of what the product has stored."""
    x, turns = fc.source(numbers(9, 4, 21)), fc.source(numbers(9, 8))
    heads = fc.permute_dims(fc.reshape(x @ numbers(21, 16), (-1, 4, 2, 8)), (0, 2, 1, 3))
    halves = fc.concat([-heads[:, :, :, 4:], heads[:, :, :, :4]], axis=3)
    angles = fc.reshape(turns * 3, (-1, 1, 1, 8))
    root = heads * fc.cos(angles) + halves * fc.sin(angles)
    plan = fc.plan(root, device="cpu")
    assert len(plan.kernels) == 3, plan
    wanted = root.resolve(device="numpy")
    for made in (root.resolve(), resolve_on_gpu(root)[0]):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)


def test_borders_of_convolutions_and_pooling_stay_on_the_device() -> None:
    x = fc.nn.relu(fc.source(numbers(5, 3, 8, 9)) * numbers(3, 1, 1))
    roots = [
        fc.nn.relu(fc.nn.conv2d(x, numbers(4, 3, 3, 3), padding=1)),
        fc.nn.max_pool2d(x, 3, padding=1, stride=2),
        fc.nn.avg_pool2d(x, 3, padding=1, stride=2),
    ]
    for root in roots:
        plan = fc.plan(root)
        assert len(plan.kernels) == 2, plan
        assert not [what for what, _ in plan.memory.items if "copy" in what]
        np.testing.assert_allclose(root.resolve(), root.resolve(device="numpy"), rtol=1e-5, atol=1e-5)


COPIED: dict[str, tuple[Case, str]] = {
    "beside nothing": (lambda a, b: fc.pad(a, 1), "nothing is computed beside it: the host copies"),
    "unknown indices": (
        lambda a, b: fc.take(a, fc.argmax(fc.constant(A[0]), axis=1), axis=2) + 1,
        "its indices are known only when it runs, and are checked on the host",
    ),
    "many": (lambda a, b: fc.stack([a[:, 0]] * 9, axis=1) + 1, "a kernel puts at most 8 values together"),
    "bools": (lambda a, b: fc.pad(a > 0, 1).any(axis=1), "bools are put together on the host"),
}


@pytest.mark.parametrize("name", COPIED)
def test_why_the_host_copies(name: str) -> None:
    make, why = COPIED[name]
    root = make(fc.source(A), fc.source(B))
    plan = fc.plan(root, device="cpu")
    assert why in [reason.text for reason in plan.reasons if reason.kind == "cut"]
    assert [what for what, _ in plan.memory.items if "copy" in what]
    np.testing.assert_array_equal(root.resolve(device="cpu"), root.resolve(device="numpy"))


@pytest.mark.parametrize("dtype", ["bool", "float16"])
def test_every_so_manyth_number_of_short_runs_is_put_between_borders(dtype: str) -> None:
    rng = np.random.default_rng(4)
    made, wanted = [], []
    # Runs within one vector, over two and over three, and numbers too far apart for vectors.
    for stride, count in ((2, 5), (2, 14), (3, 13), (7, 11)):
        x = rng.integers(0, 2 if dtype == "bool" else 100, (3, 2, stride * count)).astype(dtype)
        both = fc.source(x)[:, :, ::stride], fc.source(x)[:, :, 1::stride]
        made.append(fc.pad(fc.where(fc.equal(*both), both[0], both[1]), ((0, 0), (0, 0), (1, 2))))
        wanted.append(np.pad(x[:, :, 1::stride], ((0, 0), (0, 0), (1, 2))))
    for got, want in zip(fc.resolve(*made), wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
