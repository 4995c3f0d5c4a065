"""Each rule against finite differences, and a rule that gives twice as much, which must be noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import flowcompute as fc
from flowcompute.elements.math import product_of_rows
from flowcompute.gradients.rules import RULES, Equivalent, NoGradient, Refused, Scaled, Through
from flowcompute.spec import is_float

RNG = np.random.default_rng(18)
RECORDS, WIDTH, STEP = 6, 8, 1e-6


def numbers(low: float, high: float, *shape: int) -> np.ndarray:
    """Return numbers without ties, and none near a whole one."""
    made = RNG.uniform(low, high, (RECORDS, *(shape or (WIDTH,))))
    made[np.abs(made - np.round(made)) < 1e-3] += 0.01
    return made


ANY, LOW, HIGH = numbers(-2, 2), numbers(-0.9, 0.9), numbers(1.1, 3)
OTHER = fc.source(numbers(0.3, 2))
MATRIX = fc.constant(RNG.standard_normal((WIDTH, 5)))
KEYS = fc.source(np.array([0, 2, 1, 0, 2, 2]))
MASK = fc.source(np.array([True, False, True, True, False, True]))
PLACES = fc.source(RNG.integers(0, WIDTH, (RECORDS, 3)))
ROWS = fc.source(ANY)
KERNEL = fc.constant(RNG.standard_normal((4, 2, 3)))


class Case(NamedTuple):
    """A function whose gradient takes a rule."""

    function: Callable[[Any], Any]
    data: np.ndarray
    leaf: Callable[[Any], Any] = fc.source
    step: float = STEP


def unary(names: str, data: np.ndarray) -> dict[str, Case]:
    return {f"elementwise.{name}": Case(getattr(fc, name), data) for name in names.split()}


def both(name: str) -> Case:
    """A function of two operands, each of which follows x once."""
    function = getattr(fc, name)
    return Case(lambda x: function(x, OTHER) + 2.0 * function(OTHER, x + 3.7), ANY)


def _rows_of_matrices(x: Any) -> Any:
    """A product whose rows count like records, as one number."""
    made = fc.reshape(x, (-1, 2, WIDTH // 2))
    return fc.sum(product_of_rows(made, fc.sin(made)) + product_of_rows(made, made))


def of(name: str, *more: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(fc, name)(x, *more, **options)


CASES = {
    **unary("abs asinh atan cos cosh exp exp2 expm1 sin sinh square tanh positive negative", ANY),
    **unary("acos asin atanh log1p tan", LOW),
    **unary("acosh log log10 log2 reciprocal sqrt", HIGH),
    **{
        f"elementwise.{name}": both(name)
        for name in [
            "add",
            "subtract",
            "multiply",
            "divide",
            "maximum",
            "minimum",
            "atan2",
            "hypot",
            "logaddexp",
            "copysign",
            "fmod",
            "remainder",
        ]
    },
    **{f"reduce.{name}": Case(of(name, axis=1), ANY) for name in ("sum", "max", "min", "prod")},
    **{
        f"scan.cumulative_{name}": Case(of(f"cumulative_{name}", axis=1), ANY) for name in ("sum", "prod", "max", "min")
    },
    **{f"fold.{name}": Case(of(name, axis=0), ANY) for name in ("sum", "mean", "var", "max", "min", "prod")},
    **{f"fold.{name}": Case(getattr(fc, name), ANY) for name in ("first", "last", "cov", "corrcoef")},
    **{f"fold.segment_{name}": Case(of(f"segment_{name}", KEYS, 3), ANY) for name in ("sum", "mean")},
    **{f"fold.segment_{name}": Case(of(f"segment_{name}", KEYS, 3), ANY[:, 0]) for name in ("max", "min")},
    "elementwise.erf": Case(fc.nn.erf, ANY),
    "elementwise.sigmoid": Case(fc.nn.sigmoid, ANY),
    "elementwise.pow": Case(lambda x: fc.pow(x, OTHER) + fc.pow(1.7, x), HIGH),
    "elementwise.where": Case(lambda x: fc.where(OTHER > 1.0, x * x, fc.sin(x)), ANY),
    "elementwise.astype": Case(lambda x: x.astype("float32").astype("float64"), ANY, step=0.03),
    "elementwise.recompute": Case(lambda x: fc.recompute(fc.sin(x) * x) * x, ANY),
    "reduce.vecdot": Case(lambda x: fc.vecdot(x, OTHER) + 2.0 * fc.vecdot(OTHER, x), ANY),
    "scan.linear_recurrence": Case(lambda x: fc.linear_recurrence(fc.nn.sigmoid(x), x, axis=1), ANY),
    "view.index": Case(lambda x: x[:, 1:6:2], ANY),
    "view.pad": Case(lambda x: fc.pad(x, [(0, 0), (1, 2)]), ANY),
    "view.permute_dims": Case(lambda x: fc.permute_dims(x, (0, 2, 1)) * 2.0, numbers(-2, 2, 2, 3)),
    "view.reshape": Case(lambda x: fc.reshape(x, (-1, 2, 4)).sum(axis=1), ANY),
    "view.broadcast_to": Case(lambda x: fc.broadcast_to(x[:, None], (-1, 3, WIDTH)), ANY),
    "view.spool": Case(lambda x: fc.spool(x * x), ANY),
    "view.concat": Case(lambda x: fc.concat([x, fc.sin(x)], axis=1), ANY),
    "view.stack": Case(lambda x: fc.stack([x, x * x], axis=1), ANY),
    "view.windows": Case(lambda x: fc.nn.unfold(x, 3, axis=1), ANY),
    "view.take": Case(lambda x: fc.take(x, [0, 3, 3, -1], axis=1), ANY),
    "view.lookup": Case(lambda p: fc.take(p, PLACES, axis=0), ANY[0], fc.parameter),
    "view.take_along_axis": Case(lambda x: fc.take_along_axis(x, PLACES, axis=1), ANY),
    "view.sort": Case(lambda x: fc.sort(x, axis=1), ANY),
    "view.scatter": Case(lambda x: fc.scatter_elements(x * 1.5, PLACES, x[:, :3], axis=1, reduction="add"), ANY),
    "contract.matmul": Case(lambda x: x @ fc.permute_dims(fc.sin(x), (0, 2, 1)), numbers(-2, 2, 3, 4)),
    "contract.attention": Case(lambda x: fc.nn.attention(x, x * 0.5, fc.sin(x)), numbers(-1, 1, 2, 5, 4)),
    "along.along": Case(lambda p: ROWS * p, ANY, fc.parameter),
    "rebatch.repeat": Case(lambda x: fc.repeat(x, 2, axis=0), ANY),
    "rebatch.flatten": Case(fc.flatten, ANY),
    "rebatch.cut": Case(lambda x: fc.cut(x, every=2).max(axis=1), ANY),
    "window.window": Case(lambda x: fc.window(x, size=3).prod(axis=1), ANY),
    "rebatch.shuffle": Case(lambda x: fc.shuffle(fc.sin(x), seed=3), ANY),
    "rebatch.section": Case(lambda x: fc.sin(x)[1:5].sum(axis=0), ANY),
    "select.select": Case(lambda x: x[MASK].sum(axis=0), ANY),
    "fold.top_k_values": Case(lambda x: fc.top_k(x[:, 0], 3)[0], ANY),
    "fold.vecdot": Case(lambda x: fc.vecdot(x[:, 0], x[:, 1]), ANY),
    "fold.matmul": Case(lambda x: x.T @ OTHER + 2.0 * (OTHER.T @ x) + _rows_of_matrices(x), ANY),
}

ELSEWHERE = {
    # Of half formats alone; see `test_attention_back`.
    "contract.attention_part",
    # Inside of users' functions, whose slopes are those of the table; and a parameter, which is itself differentiated.
    *(f"elementwise.{name}" for name in ("fmax", "fmin", "native_exp2", "quiet_nan", "parameter")),
}


def loss(case: Case, leaf: Any) -> Any:
    """Return the sum of a result with weights of its numbers, so that no gradient cancels."""
    made = case.function(leaf)
    weighted = made * fc.constant(np.random.default_rng(5).uniform(0.5, 1.5, made.spec.shape))
    return weighted.sum() if weighted.spec.shape or weighted.spec.is_stream else weighted


def slopes(case: Case, direction: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the gradient, and the loss a step ahead and behind."""
    leaf = case.leaf(case.data)
    ends = (loss(case, case.leaf(case.data + sign * case.step * direction)) for sign in (1, -1))
    return fc.grad(loss(case, leaf), leaf), *ends


@contextmanager
def removed(name: str, place: int) -> Iterator[list[int]]:
    """Let a rule give nothing to one of the operands; gives the operands that any call of it gives something to."""
    rule: Any = RULES[name]
    reached: list[int] = []

    def without(node: Any, g: Any) -> Any:
        made = rule(node, g)
        if isinstance(made, Equivalent):
            # What it stands for has rules of its own.
            reached.append(0)
            return made if place < 0 else [None] * len(node.inputs)
        reached.extend(i for i, one in enumerate(made) if one is not None and is_float(node.inputs[i].dtype))
        return [None if i == place else one for i, one in enumerate(made)]

    with mock.patch.dict(RULES, {name: without}):
        yield reached


@contextmanager
def doubled(name: str) -> Iterator[None]:
    """Let a rule give twice what it should."""
    rule: Any = RULES[name]

    def twice(node: Any, g: Any) -> Any:
        made = rule(node, g)
        if isinstance(made, Equivalent):
            return Equivalent(made.value * 2.0)
        return tuple(
            one
            if one is None
            else replace(one, value=one.value * 2.0)
            if isinstance(one, Scaled | Through)
            else one * 2.0
            for one in made
        )

    with mock.patch.dict(RULES, {name: twice}):
        yield


def test_each_rule_has_a_case() -> None:
    rules = {name for name, rule in RULES.items() if not isinstance(rule, NoGradient | Refused)}
    assert rules - ELSEWHERE == set(CASES)


def test_each_rule_is_right_and_a_wrong_one_is_noticed() -> None:
    wanted: list[Any] = []
    directions = {name: RNG.standard_normal(case.data.shape) for name, case in CASES.items()}
    for name, case in CASES.items():
        wanted += slopes(case, directions[name])
        with doubled(name):
            leaf = case.leaf(case.data)
            wanted.append(fc.grad(loss(case, leaf), leaf))
    found = fc.resolve(*wanted, device="numpy", progress=False)
    wrong, unnoticed = [], []
    for place, (name, case) in enumerate(CASES.items()):
        gradient, ahead, behind, mutated = found[4 * place : 4 * place + 4]
        expected = (ahead - behind) / (2 * case.step)
        told, missed = ((one * directions[name]).sum() for one in (gradient, mutated))
        if not np.isclose(told, expected, rtol=1e-5, atol=1e-5):
            wrong.append((name, told, expected))
        if np.isclose(missed, expected, rtol=1e-3, atol=1e-3):
            unnoticed.append(name)
    assert wrong == []
    assert unnoticed == []


def test_a_rule_that_forgets_an_operand_is_noticed() -> None:
    """Mutate: each rule gives nothing to each of its operands in turn."""
    directions = {name: RNG.standard_normal(case.data.shape) for name, case in CASES.items()}
    mutants: list[tuple[str, int]] = []
    wanted: list[Any] = []
    for name, case in CASES.items():
        leaf = case.leaf(case.data)
        with removed(name, -1) as reached:
            whole = fc.grad(loss(case, leaf), leaf)
        for place in sorted(set(reached)):
            with removed(name, place):
                wanted += [whole, fc.grad(loss(case, leaf), leaf)]
            mutants.append((name, place))
    found = iter(fc.resolve(*wanted, device="numpy", progress=False))
    unnoticed = []
    for mutant, whole, less in zip(mutants, found, found, strict=True):
        if np.isclose(*((one * directions[mutant[0]]).sum() for one in (whole, less)), rtol=1e-3):
            unnoticed.append(mutant)
    assert unnoticed == []
    assert {name for name, _ in mutants} == set(CASES)
