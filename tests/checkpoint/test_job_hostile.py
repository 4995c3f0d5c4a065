"""Descriptions that somebody has changed: an error of one kind or a job that is sound, no code, little memory and time."""

from __future__ import annotations

import copy
import math
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.job.describe import describe_job
from flowcompute.checkpoint.job.difference import check_sources, differences
from flowcompute.checkpoint.job.parts.tags import TAGS
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.elements.operators import RECORDS
from flowcompute.errors import FlowError, PlanError
from flowcompute.graph.graph import build_graph
from tests.checkpoint.elements import JOBS, TEXT, elementwise
from tests.checkpoint.kept import Store, bindings, described, graph_of
from tests.properties.cases import cases

FORBIDDEN = ("exec", "compile", "import", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect",
             "ctypes.dlopen", "marshal.loads", "pickle.find_class", "os.remove", "os.rename", "os.mkdir")  # fmt: skip
_watched = threading.local()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if getattr(_watched, "on", False) and event.startswith(FORBIDDEN):
        raise AssertionError(f"{event} {arguments}")
    if getattr(_watched, "on", False) and event == "open":
        assert isinstance(arguments[1], type(None)) or "w" not in arguments[1], arguments


sys.addaudithook(_audit)


@contextmanager
def watched() -> Iterator[None]:
    """Nothing is run, imported, written or removed meanwhile."""
    _watched.on = True
    try:
        yield
    finally:
        _watched.on = False


def never(name: str) -> Any:
    """A function of this name that must not be called."""

    def function(*_: object) -> None:
        raise AssertionError("what was bound was called")

    function.__name__ = name
    return function


class Bases:
    """Some jobs as data, with what they need to be made again."""

    def __init__(self, folder: Path) -> None:
        self.store = Store()
        self.jobs: list[tuple[dict[str, Any], dict[str, object]]] = []
        names = [name for name in JOBS if name not in elementwise() or name in ("add", "less", "sigmoid", "isnan")]
        for place, name in enumerate(names):
            own = folder / str(place)
            own.mkdir()
            with np.errstate(all="ignore"):
                made = JOBS[name](own)
            roots = made if isinstance(made, tuple) else (made,)
            data = described(*roots, store=self.store)
            bound = {
                key: never(value.__name__) if callable(value) else value
                for key, value in bindings(graph_of(*roots), [TEXT]).items()
            }
            rebuild_job(data, self.store.get, bound)
            self.jobs.append((data, bound))


@pytest.fixture(name="bases", scope="module")
def fixture_bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return Bases(tmp_path_factory.mktemp("jobs"))


JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 63, 64, 65, 255, 2**31, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 2**127, 10**5000,
    0.5, math.nan, math.inf, -0.0, "", "x", "float32", "float16", "object", "O", "../x", "/etc/passwd", "/dev/zero", "\0",
    "a\nb", "\udc80", "__import__", "{0}", b"", b"\x80\x04.", [], [[]], [0], [-1], [None], [0, 0], [2**62] * 64, [1] * 65,
    {}, {"a": 1}, {"float": "nan"}, {"float": "1e400"}, {"float": "x"}, {"dtype": "float64"}, {"dtype": "object"}, {"x": {}},
    (1, 2), {1}, {1: 2}, 1j, object(), Ellipsis, np.int64(3), np.ones(3), int, print,
)  # fmt: skip


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value."""
    if path:
        yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from places(value, (*path, i))


def one_of(draw: Any, things: list[Any]) -> Any:
    """One of them; drawn by its place, since they are long to print."""
    return things[draw(st.integers(0, len(things) - 1))]


def changed(draw: Any, data: dict[str, Any]) -> None:
    """One change, anywhere."""
    *way, key = one_of(draw, list(places(data)))
    holder: Any = data
    for one in way:
        holder = holder[one]
    kind = draw(st.sampled_from(["junk", "junk", "other", "other", "remove", "add", "swap", "nudge", "tag"]))
    if kind == "junk":
        holder[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
    elif kind == "other":
        # What stands elsewhere at such a place: of the right form, and perhaps wrong.
        same = [path for path in places(data) if path[-1] == key or isinstance(key, int)]
        value: Any = data
        for one in one_of(draw, same):
            value = value[one]
        holder[key] = copy.deepcopy(value)
    elif kind == "remove":
        del holder[key]
    elif kind == "add" and isinstance(holder, dict):
        holder[draw(st.sampled_from(["code", "bind", "blob", "sample", "attrs", "file", "files", ""]))] = holder[key]
    elif kind == "add":
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind == "swap" and isinstance(holder, list):
        other = draw(st.integers(0, len(holder) - 1))
        holder[key], holder[other] = holder[other], holder[key]
    elif kind == "nudge" and type(holder[key]) is int:
        holder[key] += draw(st.sampled_from([-1, 1, 2, 64, 1 << 40]))
    elif kind == "tag":
        holder[key] = draw(st.sampled_from([*TAGS, *RECORDS]))


def essence(data: dict[str, Any]) -> dict[str, Any]:
    """What of a description says what the job is: neither states of files nor digests of functions, which are compared."""
    made = copy.deepcopy({key: data[key] for key in ("nodes", "roots")})
    calls: dict[Any, int] = {}
    for node in made["nodes"]:
        if node.get("call") is not None:
            # Which number a call has says nothing: calls are numbered as they are met.
            node["call"] = calls.setdefault(node["call"], len(calls))
        node.pop("digest", None)
        files = [node["file"]] if "file" in node else [one["file"] for one in node.get("files", ())]
        for file in files:
            for key in ("size", "mtime_ns", "sample"):
                file.pop(key)
    return made


@cases(60)
@given(st.data())
def test_a_changed_description_is_refused_or_sound(bases: Bases, data: st.DataObject) -> None:
    base, bound = one_of(data.draw, bases.jobs)
    job = copy.deepcopy(base)
    for _ in range(data.draw(st.integers(1, 3))):
        changed(data.draw, job)
    kept = copy.deepcopy(job) if not _odd(job) else None
    for attempt in (lambda: differences(base, job), lambda: differences(job, base), lambda: check_sources(job)):
        try:
            with watched():
                lines = attempt()
            assert all(isinstance(line, str) and len(line) < 4000 for line in lines)
        except fc.CheckpointError:
            pass
    try:
        with watched():
            roots = rebuild_job(job, bases.store.get, bound)
    except fc.CheckpointError:
        return
    again = describe_job(build_graph(roots), bases.store.put)
    if kept is not None:
        assert repr(essence(again)) == repr(essence(kept)).replace("(", "[").replace(")", "]") or essence(
            again
        ) == essence(kept)
    with suppress(FlowError):
        fc.plan(*roots, device="numpy")


def _odd(data: Any) -> bool:
    """Whether data holds what no file can: it compares in ways of its own."""
    if isinstance(data, dict):
        return any(map(_odd, data.values()))
    if isinstance(data, list):
        return any(map(_odd, data))
    return not isinstance(data, type(None) | bool | int | float | str | bytes)


@pytest.mark.parametrize("junk", JUNK, ids=lambda one: str(type(one).__name__))
def test_junk_is_no_job(junk: Any) -> None:
    for attempt in (
        lambda: rebuild_job(junk, Store().get),
        lambda: rebuild_job({"nodes": junk}, Store().get),
        lambda: differences(junk, junk),
        lambda: differences({"nodes": junk}, {"nodes": [junk]}),
        lambda: check_sources({"nodes": [junk]}),
    ):
        try:
            attempt()
        except fc.CheckpointError as error:
            assert len(str(error)) < 4000


# -- much out of little ------------------------------------------------------------------------------


def node(tag: str, **fields: Any) -> dict[str, Any]:
    base = {"tag": tag, "name": tag, "given": False, "site": None, "inputs": [], "dtype": "float64", "shape": []}
    return {**base, "stream": False, "length": None, **fields}


def job(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    roots = [len(nodes) - 1] if nodes else []
    return {"format": 1, "order": 1, "python": "3.11", "nodes": list(nodes), "roots": roots, "kernels": [], **fields}


def constant(*shape: int, name: str = "constant") -> dict[str, Any]:
    return node("constant", name=name, given=True, shape=list(shape), bytes=bytes(8 * math.prod(shape)))


def operation(op: str, inputs: list[int], shape: list[int], **attrs: Any) -> dict[str, Any]:
    name = op.rpartition(".")[2]
    return node("compute", name=name, op=op, inputs=inputs, shape=shape, attrs=attrs)


def _deep(depth: int) -> Any:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    return data


HUGE = 1 << 40
BOMBS: dict[str, tuple[dict[str, Any], str]] = {
    "a constant that is not there": (job(node("constant", shape=[HUGE], bytes=b"")), "the bytes of float64"),
    "a constant of no numbers and no shape": (job(node("constant", shape=[0, 1 << 62], bytes=b"")), "a shape that an array can have"),
    "a constant of many axes": (job(node("constant", shape=[1] * 65, bytes=bytes(8))), "cannot read 'shape' of a node"),
    "windows of a constant": (job(constant(2), operation("view.windows", [0], [1, HUGE], windows=[[0, 1, 1, HUGE]])), "the same dtype, shape and length"),
    "an index of everything": (job(constant(2), operation("view.index", [0], [HUGE], index=[[0, HUGE, 0]])), "places among 2"),
    "an operation of many": (job(constant(), operation("elementwise.add", [0] * (1 << 16), [])), "expected  2 operands"),
    "nodes without end": (job(*[constant()] * 3, nodes=[None] * ((1 << 20) + 1)), "a list of at most 1048576"),
    "roots without end": (job(constant(), roots=[0] * ((1 << 20) + 1)), "a list of at most 1048576"),
    "a large number": (job(constant(), operation("elementwise.add", [0, 0], [10**4000])), "a number of 13288 bits"),
    "deep attributes": (job(constant(), operation("reduce.sum", [0], [], axes=_deep(100_000), keepdims=False)), "cannot read an attribute"),
    "deep nodes": (job(_deep(100_000)), "a map with names"),
    "a deep kernel": (job(constant(), kernels=[{"digest": _deep(100_000)}]), "text of at most 65536"),
    "a long name": (job(node("constant", name="x" * (1 << 24), bytes=bytes(8))), "text of at most 65536"),
    "long bytes": (job(node("constant", bytes=bytes(1 << 24))), "got       16777216 bytes"),
    "a long text": (job(node("compute", op="x" * (1 << 24), attrs={})), "text of at most 65536"),
    "operands that come later": (job(operation("elementwise.add", [1, 1], []), constant()), "stand behind it"),
    "its own operand": (job(operation("elementwise.add", [0, 0], [])), "stand behind it"),
    "a destination as an operand": (job(constant(), node("discard", inputs=[0]), node("discard", name="discard_2", inputs=[1])), "are destinations"),
    "a part that nobody wants": (job(constant(), constant(name="constant_2"), roots=[1]), "other nodes than are described"),
    "one thing twice": (job(constant(), constant(name="constant_2"), roots=[0, 1]), "other nodes than are described"),
    "no roots": (job(constant(), roots=[]), "a job without roots"),
    "a root beyond": (job(constant(), roots=[1]), "whole numbers from 0 to 0"),
    "the same name twice": (job(*[node("feed", name="a", given=True, stream=True)] * 2, roots=[0, 1]), "two elements the name 'a'"),
    "another order of reductions": (job(constant(), order=2), "version 2"),
    "another library's format": (job(constant(), format=2), "a newer version of flowcompute"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_much_out_of_little(name: str) -> None:
    data, words = BOMBS[name]
    try:
        rebuild_job(job(constant()), Store().get)
        tracemalloc.start()
        with watched(), pytest.raises(fc.CheckpointError) as caught:
            rebuild_job(data, Store().get)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert words in str(caught.value)
    assert len(str(caught.value)) < 4000


LARGE: dict[str, dict[str, Any]] = {
    "a padded constant": job(constant(2), operation("view.pad", [0], [HUGE], widths=[[0, HUGE - 2]], mode="edge", fill=0)),
    "a stack of one thing": job(constant(1 << 14), operation("view.stack", [0] * (1 << 12), [1 << 12, 1 << 14], axis=0)),
    "things joined": job(constant(1 << 14), operation("view.concat", [0] * (1 << 12), [1 << 26], axis=0)),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_large_views_of_constants_are_not_made_before_they_are_planned(name: str) -> None:
    """They may be views of parameters, which programs compose too. Budgets refuse them."""
    try:
        rebuild_job(job(constant()), Store().get)
        tracemalloc.start()
        with watched():
            roots = rebuild_job(LARGE[name], Store().get)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(PlanError, match="memory budget"):
        fc.plan(*roots, device="numpy", memory="64MiB")


def test_the_sound_ones_among_them_are_taken() -> None:
    roots = rebuild_job(job(constant(2), operation("reduce.sum", [0], [], axes=[0], keepdims=False)), Store().get)
    assert fc.resolve(*roots, device="numpy", progress=False) == 0.0


@pytest.mark.parametrize("given", [None, 5, "text", np.ones(3), np.ones((2, 2)), np.ones(4, "f4"), KeyError, TypeError])
def test_an_array_that_is_another_one_is_refused(given: Any) -> None:
    def get(_: Any) -> Any:
        if isinstance(given, type):
            raise given
        return given

    with pytest.raises(fc.CheckpointError):
        rebuild_job(job(node("constant", shape=[4], blob="b")), get)


def test_the_error_names_the_element_and_its_line() -> None:
    data = job(constant(2), operation("reduce.sum", [0], [3], axes=[0], keepdims=False))
    data["nodes"][1]["site"] = ["job.py", 7]
    with pytest.raises(fc.CheckpointError) as caught:
        rebuild_job(data, Store().get)
    text = str(caught.value)
    assert "sum: cannot rebuild it with the same dtype, shape and length" in text
    assert "job.py:7" in text
    assert "float64(3,)" in text
    assert "float64()" in text
