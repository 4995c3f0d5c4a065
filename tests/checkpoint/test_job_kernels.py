"""Typed functions of users as data: what comes back is the very function, and what no user's function is, is refused."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import flowcompute as fc
from flowcompute import function_ir as ir
from flowcompute.checkpoint.job.kept_functions import describe_functions, rebuild_functions
from flowcompute.checkpoint.job.rebuild import rebuild_job
from tests.checkpoint.elements import collatz, divided
from tests.checkpoint.kept import Store, described
from tests.gpu.drawn_functions import Drawn, module


@pytest.mark.parametrize(("seed", "loops"), [*itertools.product(range(300, 302), (False, True))])
def test_drawn_functions_come_back(tmp_path: Path, seed: int, loops: bool) -> None:
    names = [f"f{i}" for i in range(8)]
    text = "\n\n".join(Drawn(seed * 10 + i, loops=loops).source(name) for i, name in enumerate(names))
    made = module(tmp_path / "drawn.py", text)
    x, n = fc.source(np.ones(3)), fc.source(np.ones(3, np.int64))
    found = {op.function.digest: op.function for name in names for op in [getattr(made, name)(x, x, n, n)[0].op]}
    data = describe_functions(found)
    assert rebuild_functions(copy.deepcopy(data)) == found
    assert describe_functions(rebuild_functions(data)) == data


def test_a_function_that_others_call_stands_there_once() -> None:
    data = described(collatz(fc.source(np.arange(3)), 9), divided(fc.source(np.ones(3)), 2.0)[0])["kernels"]
    assert [one["name"] for one in data] == ["divided", "collatz"]


def test_the_names_that_checkpoints_keep_do_not_follow_those_of_classes() -> None:
    assert set(ir.KEPT_NAMES) == {*get_args(ir.Expr), *get_args(ir.Stmt), ir.Variable, ir.TypedFunction}
    renamed = {"Number", "Item", "Put", "While", "For", "Function"}
    kept = {name for kind, name in ir.KEPT_NAMES.items() if name != kind.__name__}
    assert kept == renamed
    step = ir.TypedFunction("f", ("float32",), (), (ir.Return((ir.NumberLiteral(1.0, "float32"),)),), ("float32",))
    as_first_kept = (
        "Function(name='f', parameters=('float32',), variables=(), "
        "body=(Return(values=(Number(value=1.0, dtype='float32'),)),), results=('float32',))"
    )
    assert step.digest == hashlib.blake2b(as_first_kept.encode(), digest_size=8).hexdigest()


# -- what is refused -----------------------------------------------------------------------------------


def function(
    body: tuple[Any, ...], *variables: ir.Variable, results: tuple[str, ...] = ("float32",)
) -> ir.TypedFunction:
    return ir.TypedFunction("f", ("float32", "int64"), variables, body, results)


X = ir.Parameter(0, "float32")
N = ir.Parameter(1, "int64")
V = ir.Local("v", "float32")
YES = ir.NumberLiteral(True, "bool")
ONE = ir.NumberLiteral(1.0, "float32")
FLOAT, ARRAY = ir.Variable("v", "float32"), ir.Variable("a", "float32", 4)
COUNTER = ir.Variable("i", "int64", 0, True)
DONE = ir.Return((X,))
CALLED = function((DONE,))


def at(index: ir.Expr) -> ir.Expr:
    return ir.ItemAt("a", index, "float32")


def chain(length: int, operand: ir.Expr = X) -> ir.Expr:
    for _ in range(length):
        operand = ir.Operation("add", (operand, operand), "float32")
    return operand


SOUND = {
    "least": function((DONE,)),
    "set": function((ir.Set("v", X), ir.Return((V,))), FLOAT),
    "both ways": function((ir.Branch(YES, (ir.Set("v", X),), (ir.Set("v", ONE),)), ir.Return((V,))), FLOAT),
    "array": function((ir.Fill("a", X), ir.Return((at(N),))), ARRAY),
    "loop": function((ir.ForRange("i", 0, 4, 1, (ir.Set("v", X), ir.Leave())), ir.Return((V,))), FLOAT, COUNTER),
    "endless": function((ir.WhileLoop(YES, (ir.Branch(YES, (DONE,), ()),)),)),
    "left": function((ir.WhileLoop(YES, (ir.Set("v", X), ir.Leave())), ir.Return((V,))), FLOAT),
    "call": function((ir.Return((ir.Call(CALLED, (X, N), "float32"),)),)),
    "calls": function((ir.SetAll(("v",), ir.Call(CALLED, (X, N), "float32")), ir.Return((V,))), FLOAT),
}

WRONG = {
    "no end": function(()),
    "an end on one way": function((ir.Branch(YES, (DONE,), ()),)),
    "never reached": function((DONE, DONE)),
    "no value yet": function((ir.Return((V,)),), FLOAT),
    "a value on one way": function((ir.Branch(YES, (ir.Set("v", X),), ()), ir.Return((V,))), FLOAT),
    "a value in a loop": function((ir.WhileLoop(ir.Cast(X, "bool"), (ir.Set("v", X),)), ir.Return((V,))), FLOAT),
    "no such variable": function((ir.Set("v", X), DONE)),
    "a variable's dtype": function((ir.Set("v", N), DONE), FLOAT),
    "an array as a number": function((ir.Set("a", X), DONE), ARRAY),
    "a number as an array": function((ir.Fill("v", X), DONE), FLOAT),
    "no parameter": function((ir.Return((ir.Parameter(2, "float32"),)),)),
    "a parameter's dtype": function((ir.Return((ir.Parameter(1, "float32"),)),)),
    "another result": function((ir.Return((N,)),)),
    "another number of results": function((ir.Return((X, X)),)),
    "no operation": function((ir.Return((ir.Operation("system", (X,), "float32"),)),)),
    "operands": function((ir.Return((ir.Operation("add", (X, N), "float32"),)),)),
    "arity": function((ir.Return((ir.Operation("add", (X,), "float32"),)),)),
    "where": function((ir.Return((ir.Operation("where", (YES, X, X), "float32"),)),)),
    "half inside": function((ir.Return((ir.Cast(X, "float16"),)),), results=("float16",)),
    "no dtype": function((ir.Return((ir.Cast(ir.Cast(X, "object"), "float32"),)),)),
    "half on the way": function((ir.Return((ir.Cast(ir.Cast(X, "float16"), "float32"),)),)),
    "no such array": function((ir.Fill("b", X), DONE), ARRAY),
    "a variable in another dtype": function(
        (ir.Set("v", X), ir.Return((ir.Cast(ir.Local("v", "int64"), "float32"),))), FLOAT
    ),
    "a condition": function((ir.Branch(X, (DONE,), (DONE,)),)),
    "a choice": function((ir.Return((ir.Choose(YES, X, N, "float32"),)),)),
    "beyond an array": function((ir.Fill("a", X), ir.Return((at(ir.NumberLiteral(4, "int64")),))), ARRAY),
    "before an array": function((ir.Fill("a", X), ir.Return((at(ir.NumberLiteral(-1, "int64")),))), ARRAY),
    "an index that is no integer": function((ir.Fill("a", X), ir.Return((at(X),))), ARRAY),
    "a large array": function((DONE,), ir.Variable("a", "float32", 4097)),
    "a break outside": function((ir.Leave(),)),
    "a continue outside": function((ir.Next(),)),
    "a counter that is set": function((ir.Set("i", N), DONE), COUNTER),
    "a loop without a counter": function((ir.ForRange("v", 0, 4, 1, (ir.Next(),)), DONE), FLOAT),
    "a loop of no steps": function((ir.ForRange("i", 0, 4, 0, (ir.Next(),)), DONE), COUNTER),
    "a loop that never runs": function((ir.ForRange("i", 4, 0, 1, (ir.Next(),)), DONE), COUNTER),
    "a loop beyond integers": function((ir.ForRange("i", 0, 1 << 63, 1, (ir.Next(),)), DONE), COUNTER),
    "two loops of one counter": function(
        (ir.ForRange("i", 0, 2, 1, (ir.ForRange("i", 0, 2, 1, (ir.Next(),)),)), DONE), COUNTER
    ),
    "a number": function((ir.Return((ir.NumberLiteral(300, "float32"),)),)),
    "a wide number": function((ir.Return((ir.NumberLiteral(300, "int8"),)),), results=("int8",)),
    "code as a name": function((ir.Set("v; system()", X), DONE), ir.Variable("v; system()", "float32")),
    "code as its own name": ir.TypedFunction("f(); g", ("float32",), (), (DONE,), ("float32",)),
    "a variable twice": function((DONE,), FLOAT, FLOAT),
    "a call's operands": function((ir.Return((ir.Call(CALLED, (X,), "float32"),)),)),
    "a call's dtype": function((ir.Return((ir.Call(CALLED, (X, N), "float64"),)),)),
    "results of a call": function((ir.SetAll(("v", "v"), ir.Call(CALLED, (X, N), "float32")), DONE), FLOAT),
    "no results": ir.TypedFunction("f", ("float32",), (), (DONE,), ()),
}


def as_data(one: ir.TypedFunction) -> list[dict[str, Any]]:
    return describe_functions({one.digest: one})


@pytest.mark.parametrize("name", SOUND)
def test_sound_functions_are_taken(name: str) -> None:
    data = as_data(SOUND[name])
    assert rebuild_functions(data)[SOUND[name].digest] == SOUND[name]


@pytest.mark.parametrize("name", WRONG)
def test_what_no_kernel_is_is_refused(name: str) -> None:
    with pytest.raises(fc.CheckpointError, match="kernel"):
        rebuild_functions(as_data(WRONG[name]))


def test_a_function_that_is_short_as_data_and_long_as_a_text_is_refused() -> None:
    with pytest.raises(fc.CheckpointError, match="too long"):
        rebuild_functions([{**as_data(CALLED)[0], "parts": _doubled(40), "body": [41]}])
    inside = CALLED
    for _ in range(3):
        inside = function((ir.Return((chain(3, ir.Call(inside, (X, N), "float32")),)),))
    data = as_data(inside)
    assert rebuild_functions(data)[inside.digest] == inside
    calls = [["Parameter", 0, "float32"], ["Parameter", 1, "int64"], ["Call", inside.digest, [0, 1], "float32"]]
    doubled = [["Operation", "add", [place, place], "float32"] for place in range(2, 18)]
    with pytest.raises(fc.CheckpointError, match="too long"):
        rebuild_functions([*data, {**data[0], "parts": [*calls, *doubled, ["Return", [18]]], "body": [19]}])


def _doubled(times: int) -> list[list[Any]]:
    rows: list[list[Any]] = [["Parameter", 0, "float32"]]
    rows += [["Operation", "add", [place, place], "float32"] for place in range(times)]
    return [*rows, ["Return", [times]]]


def _job_of(parts: list[list[Any]]) -> dict[str, Any]:
    data = described(divided(fc.source(np.ones(3, "f4")), 2.0)[0])
    data["kernels"][0] |= {"parts": parts, "body": [len(parts) - 1], "results": ["float32"]}
    return data


def test_a_deep_function_is_taken_or_refused_and_never_ends_the_process() -> None:
    for depth in (100, 2000, 20_000):
        rows: list[list[Any]] = [["Parameter", 0, "float32"]]
        rows += [["Operation", "negative", [place], "float32"] for place in range(depth)]
        with pytest.raises(fc.CheckpointError):
            rebuild_job(_job_of([*rows, ["Return", [depth]]]), Store().get, {})


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "its digest": lambda one: one.update(digest="00"),
    "no parts": lambda one: one.update(parts=[]),
    "a later part": lambda one: one["parts"].append(["Cast", 10**6, "float32"]),
    "itself": lambda one: one["parts"].append(["Cast", len(one["parts"]), "float32"]),
    "a statement as an operand": lambda one: one["parts"].append(["Cast", one["body"][0], "float32"]),
    "an unknown part": lambda one: one["parts"].append(["Import", "os"]),
    "a part of other fields": lambda one: one["parts"].append(["Return"]),
    "an unknown field": lambda one: one.update(code="import os"),
    "an unknown function": lambda one: one["parts"].append(["Call", "1234", [], "float32"]),
    "a body beyond": lambda one: one.update(body=[10**9]),
    "a body of text": lambda one: one.update(body="import os"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_data_of_functions_is_refused(name: str) -> None:
    data = described(divided(fc.source(np.ones(3, "f4")), 2.0)[0])
    CHANGES[name](data["kernels"][0])
    with pytest.raises(fc.CheckpointError):
        rebuild_job(data, Store().get, {})
