"""What cannot be kept as data: functions, which have digests, and what is given again by name."""

from __future__ import annotations

import functools
import math
import operator
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.difference import differences
from flowcompute.checkpoint.job.fingerprint import function_digest
from flowcompute.checkpoint.job.parts import kept_sources as sources
from flowcompute.checkpoint.job.rebuild import rebuild_job
from tests.checkpoint.kept import Store, bindings, described, graph_of
from tests.checkpoint.test_job_edits import fixture_folder, roots_of

__all__ = ["fixture_folder"]

# -- functions ---------------------------------------------------------------------------------------


def digest_of(text: str, name: str = "f", **space: Any) -> str:
    exec(compile(text, "<text>", "exec"), space)
    return function_digest(space[name])


FUNCTION = "def f(a, b=2):\n    s = {'x', 'y', 'z'}\n    return [i * b for i in a if 'x' in {'x', 'y', 'z'}] + g(a)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [("i * b", "i + b"), ("b=2", "b=3"), ("g(a)", "h(a)"), ("'x' in", "'y' in"), ("'z'}] + g", "'w'}] + g")],
)
def test_functions_that_differ(old: str, new: str) -> None:
    assert old in FUNCTION
    assert digest_of(FUNCTION) != digest_of(FUNCTION.replace(old, new))


def test_functions_that_are_the_same() -> None:
    same = [FUNCTION, "\n\n# here\n" + FUNCTION, FUNCTION.replace("    s =", "    # a set\n    s =")]
    assert len({digest_of(one) for one in same}) == 1


def test_the_order_of_a_set_is_of_no_account() -> None:
    code = (lambda a: a in {0, 8}).__code__
    (place,) = [i for i, one in enumerate(code.co_consts) if isinstance(one, frozenset)]
    made = []
    for items in ([0, 8], [8, 0]):
        constants = [*code.co_consts]
        constants[place] = frozenset(items)
        made.append(code.replace(co_consts=tuple(constants)))
    assert [list(one.co_consts[place]) for one in made] == [[0, 8], [8, 0]]
    assert function_digest(types.FunctionType(made[0], {})) == function_digest(types.FunctionType(made[1], {}))


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, batch: Any) -> Any:
        return batch * self.by

    def method(self, batch: Any) -> Any:
        return batch


def test_whatever_can_be_called_has_a_digest() -> None:
    table = {"a": 1, "b": [2, {3}]}
    some: list[Any] = [np.sort, np.add, math.sqrt, len, Scale, lambda a: a, lambda a: a + table["b"][0]]
    some += [Scale(1), Scale(2), Scale(1).method, Scale(2).method, Scale(np.ones(3)), Scale(np.ones(4)), Scale(print)]
    some += [functools.partial(np.sort, axis=0), functools.partial(np.sort, axis=1), functools.partial(np.sort, None)]
    some += [operator.methodcaller("clip", 0, top) for top in (1, 2)] + [operator.itemgetter(0), operator.itemgetter(1)]
    some += [functools.cache(lambda a: a), functools.cache(lambda a: a + 1)]
    digests = [function_digest(one) for one in some]
    assert len(set(digests)) == len(digests)
    assert digests == [function_digest(one) for one in some]
    table["b"][0] = 3
    assert [function_digest(one) == digest for one, digest in zip(some, digests, strict=True)].count(False) == 1


def test_where_an_object_lies_is_no_part_of_a_digest() -> None:
    assert function_digest(Scale(object())) == function_digest(Scale(object()))
    assert function_digest(Scale({object(): 1})) == function_digest(Scale({object(): 1}))
    assert function_digest(Scale(Scale(1))) != function_digest(Scale(Scale(2)))


def test_a_function_that_holds_itself_has_a_digest() -> None:
    def again(batch: Any) -> Any:
        return again

    held: list[Any] = []
    held.append(held)
    assert function_digest(again) == function_digest(again)
    assert function_digest(Scale(held)) == function_digest(Scale(held))


# -- what is bound -------------------------------------------------------------------------------------


def test_everything_to_be_bound_is_listed(folder: Path) -> None:
    roots = roots_of(folder, [])
    store = Store()
    data = described(*roots, store=store)
    with pytest.raises(fc.CheckpointError) as caught:
        rebuild_job(data, store.get, {"step": print})
    text = str(caught.value)
    for word in ("twice (function)", "f (text)", "callback (function)", "bind={'twice': ...,"):
        assert word in text, text
    assert "step (" not in text
    bind = bindings(graph_of(*roots), ["float f(float a) { return a * 2; }"])
    with pytest.raises(fc.CheckpointError, match="cannot bind anything to these names") as caught:
        rebuild_job(data, store.get, {**bind, "twise": print})
    assert "twise" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("twice", 3, "cannot call this"),
        ("step", None, "cannot call this"),
        ("callback", "print", "fc.callback takes a plain function"),
        ("f", "float f(float a) { return a * 3; }", "cannot go on with another OpenCL text"),
        ("f", "float f(float a, float b) { return a; }", "cannot take so many inputs"),
        ("f", 3, "cannot read this as a source"),
    ],
)
def test_what_is_bound_is_checked(folder: Path, name: str, value: object, words: str) -> None:
    roots, store = roots_of(folder, []), Store()
    data = described(*roots, store=store)
    bind = bindings(graph_of(*roots), ["float f(float a) { return a * 2; }"])
    with pytest.raises(fc.CheckpointError, match=words) as caught:
        rebuild_job(data, store.get, {**bind, name: value})
    assert "job.py" in str(caught.value)
    assert "do        bind" in str(caught.value)


def test_a_function_of_another_name_takes_the_name_of_the_one_before() -> None:
    x = fc.source(np.arange(6.0))

    def first(a: Any) -> Any:
        return a * 2

    def second(a: Any) -> Any:
        return a * 3

    data = described(fc.host(first, x), fc.host(first, x + 1), fc.host(second, x))
    roots = rebuild_job(data, Store().get, {"first": second, "first_2": first, "second": lambda a: -a})
    assert [node.name for node in graph_of(*roots).nodes] == [node["name"] for node in data["nodes"]]
    assert fc.resolve(*roots, device="numpy", progress=False)[0].tolist() == [0, 3, 6, 9, 12, 15]


def test_large_arrays_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOB_BYTES", 1 << 20)
    large = np.zeros((1 << 16, 3), np.uint64)
    large[::1000] = 7
    x, store = fc.source(large, name="large"), Store()
    data = described(x.sum(), fc.constant(large[:, 0]).sum(), fc.source(large[::-1].T).sum(), store=store)
    assert [node["tag"] for node in data["nodes"] if node.get("bind")] == ["memory", "memory"]
    assert len(store.arrays) == 1
    bind = {"large": large.copy(), "source": np.asfortranarray(large[::-1].T)}
    again = rebuild_job(data, store.get, bind)
    assert differences(data, described(*again)) == []
    for wrong in (large[1:], large.astype("i8"), large + 1, "large", None):
        with pytest.raises(fc.CheckpointError, match="cannot go on with another array"):
            rebuild_job(data, store.get, {**bind, "large": wrong})
