"""Plans of processes before: the same in every bit, and never of another job, another code or a damaged file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu import rendered_programs
from flowcompute.graph import Graph, TheVeryObject, UnknownError
from flowcompute.schedule import planner
from flowcompute.schedule.known_plans import plan_digest, plan_rows, plan_store
from flowcompute.schedule.known_plans.plan_digest import digest
from flowcompute.schedule.known_plans.plan_rows import PlanWriter, read_rows
from flowcompute.schedule.passes import KERNELS
from flowcompute.schedule.planner import KEPT, PLANS, make_plan
from flowcompute.strategy import Config, Strategy
from tests.golden.test_golden import GRAPHS, PRECISIONS, graph_of, on_paper
from tests.lower.test_kernel_cache import WIDTH, layers
from tests.models.files import write_model
from tests.schedule.test_plan_cache import jobs, told

ROWS = np.arange(3 * WIDTH, dtype=np.float32).reshape(3, WIDTH) / 7


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where plans of any size are kept during the test."""
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(KEPT, "_waiting", {})
    monkeypatch.setattr(plan_store, "LEAST_NODES", 1)
    monkeypatch.setattr(plan_store, "MOST_WAITING", 1000)
    # The code of whoever runs this may have changed a moment ago.
    monkeypatch.setattr(plan_digest, "_SETTLED_NS", -(1 << 62))
    plan_digest._code.cache_clear()
    return tmp_path / "cache" / "plans"


def begin_anew() -> int:
    """Let this process know what another one would; return how many plans it has kept before."""
    written = KEPT.write()
    PLANS.clear()
    KERNELS.clear()
    return written


def job(data: np.ndarray = ROWS) -> fc.Element:
    return layers(3, fc.source(data))


def exactly(plan: fc.Plan) -> str:
    """Return all that a plan holds, in which 0.0 and -0.0 differ. Sets have no order."""
    text = repr((plan.passes, plan.folds, plan.host_folds, plan.memory, plan.depth, plan.reasons))
    # What a dtype is told by depends on who made the first equal one in this process.
    text = re.sub(r"dtype\('<([a-z]\d+)'\)", lambda found: repr(np.dtype(found[1])), text)
    return re.sub(r"\{(\d+(?:, \d+)*)\}", lambda found: str(sorted(map(int, found[1].split(", ")))), text)


def test_another_process_neither_plans_nor_renders(folder: Path) -> None:
    first = job().run(device="cpu", progress=False)
    assert begin_anew() == 1
    assert len(list(folder.iterdir())) == 1
    fail = AssertionError("made again")
    with (
        mock.patch.object(planner, "_planned", side_effect=fail),
        mock.patch.object(rendered_programs, "rendered", side_effect=fail),
    ):
        again = job().run(device="cpu", progress=False)
    np.testing.assert_array_equal(again.value, first.value)
    assert exactly(again.plan) == exactly(first.plan)
    assert again.plan.graph is not first.plan.graph
    for one, other in zip(again.plan.kernels, first.plan.kernels, strict=True):
        assert one.ir == other.ir
        assert one.ir is not other.ir


def test_texts_are_added_once_they_are_known(folder: Path) -> None:
    job().plan(device="cpu")
    assert begin_anew() == 1
    with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
        job().run(device="cpu", progress=False)
        assert begin_anew() == 1
        with mock.patch.object(rendered_programs, "rendered", side_effect=AssertionError("rendered again")):
            job().run(device="cpu", progress=False)
    assert begin_anew() == 0
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
def test_no_job_gets_the_kept_plan_of_another(tmp_path: Path) -> None:
    every = jobs(tmp_path)
    alone = {}
    for name, plan in every.items():
        PLANS.clear()
        alone[name] = told(plan())
    assert begin_anew() > 40
    with mock.patch.object(planner, "_planned", wraps=planner._planned) as planned:
        again = {name: told(plan()) for name, plan in every.items()}
    assert again == alone
    # Those of NumPy, and of functions of users, are planned in each process.
    assert planned.call_count < 20


def test_the_plan_of_a_language_model_is_kept(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf")
    # A file that was written a moment ago is read, and a while later mapped: two plans.
    os.utime(path, (2, 2))

    def planned() -> str:
        tokens = fc.source(np.arange(5, dtype=np.int32))
        return exactly(fc.argmax(fc.models.load(path).logits(tokens), axis=1).plan(device="cpu"))

    first = planned()
    assert begin_anew() == 1
    with mock.patch.object(planner, "_planned", side_effect=AssertionError("planned again")):
        assert planned() == first
    os.utime(path, (1, 1))
    with mock.patch.object(planner, "_planned", wraps=planner._planned) as made:
        planned()
    assert made.call_count == 1, "another state of the file"


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_of_all_families_are_written_and_read(name: str) -> None:
    make, capabilities = GRAPHS[name]
    graph = graph_of(make(), capabilities)
    plan = make_plan(
        graph, Config(1 << 30, precision=PRECISIONS.get(name, "exact")), Strategy(), on_paper(capabilities)
    )
    writer = PlanWriter()
    places = [writer.place(one) for one in plan.passes[0].kernels]
    rows = json.loads(json.dumps(writer.rows))
    values = read_rows(rows, Graph((), ()))
    for place, kernel in zip(places, plan.passes[0].kernels, strict=True):
        assert values[place] == kernel
        assert repr(values[place]) == repr(kernel)


def test_numbers_keep_their_bits_and_types() -> None:
    numbers = (0.0, -0.0, 0, False, 1, True, 1.0, 1e-45, float("inf"), 2**63, "1", None, 0.1)
    writer = PlanWriter()
    place = writer.place((numbers, {1: numbers}, frozenset({3, 2}), np.dtype("f4")))
    mixed = writer.place(frozenset({3, "a"}))
    read = read_rows(json.loads(json.dumps(writer.rows)), Graph((), ()))
    assert repr(read[place]) == repr((numbers, {1: numbers}, frozenset({2, 3}), np.dtype("f4")))
    assert read[mixed] == frozenset({3, "a"})


def test_a_text_of_a_kernel_that_is_not_there_is_refused(folder: Path) -> None:
    first = exactly(job().plan(device="cpu"))
    begin_anew()
    (file,) = folder.iterdir()
    kept = json.loads(file.read_bytes()[struct.calcsize("<8sQ32s") :])
    for kernels in ([[99, 0, 0]], [[0, 99, 0]], [[0, 0, 1]]):
        file.write_bytes(sealed(file.stem, json.dumps(kept | {"texts": ["x"], "kernels": kernels}).encode()))
        with mock.patch.object(planner, "_planned", wraps=planner._planned) as planned:
            assert exactly(job().plan(device="cpu")) == first
        assert planned.call_count == 1
        begin_anew()


@pytest.mark.parametrize("value", [object(), lambda: 0, np.float32(1), b"", [1], np.dtype(">f4"), {1: {2}}])
def test_what_no_table_names_is_not_written(value: object) -> None:
    with pytest.raises(UnknownError):
        PlanWriter().place((value,))


@pytest.mark.parametrize(
    "rows",
    [[["system", 0]], [["Kernel"]], ["x", ["dtype", 0]], ["os.system", ["op", 0]], [["tuple", 5]], [["dict", 0]], [[]]],
)
def test_rows_of_others_are_refused(rows: list[object]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        read_rows(rows, Graph((), ()))


def sealed(name: str, content: bytes) -> bytes:
    whole = hashlib.sha256(name.encode() + b"\n" + content).digest()
    return struct.pack("<8sQ32s", b"fcplan1\n", len(content), whole) + content


def test_a_file_that_is_no_plan_is_made_again(folder: Path) -> None:
    first = exactly(job().plan(device="cpu"))
    begin_anew()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    contents = [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b'{"rows": [], "plan": [], "texts": []}']
    damaged = [whole[:-1], whole[:100] + b"!" + whole[101:], b"", *[sealed(file.stem, one) for one in contents]]
    for one in damaged:
        file.write_bytes(one)
        with mock.patch.object(planner, "_planned", wraps=planner._planned) as planned:
            assert exactly(job().plan(device="cpu")) == first
        assert planned.call_count == 1
        assert not file.exists()
        begin_anew()


def test_other_code_has_plans_of_its_own(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job().plan(device="cpu")
    begin_anew()
    root = tmp_path / "code" / "schedule" / "known_plans"
    root.mkdir(parents=True)
    (root / "plan_digest.py").write_text("one")
    monkeypatch.setattr(plan_digest, "__file__", str(root / "plan_digest.py"))
    found = []
    for text, changed in (("one", 1), ("two", 2), ("three", 2), ("three", 2)):
        (root / "plan_digest.py").write_text(text)
        os.utime(root / "plan_digest.py", (changed, changed))
        plan_digest._code.cache_clear()
        found.append(digest(()))
    assert len({*found}) == 3
    with mock.patch.object(planner, "_planned", wraps=planner._planned) as planned:
        job().plan(device="cpu")
    assert planned.call_count == 1
    begin_anew()
    assert len(list(folder.iterdir())) == 2


def test_code_that_changed_while_it_was_loaded_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for settled, there in ((time.time_ns(), False), (-(1 << 62), True)):
        monkeypatch.setattr(plan_digest, "_SETTLED_NS", settled)
        plan_digest._code.cache_clear()
        assert (digest(()) is not None) == there
    plan_digest._code.cache_clear()


@pytest.mark.parametrize("value", [TheVeryObject(object()), object(), lambda: 0, type("Mine", (), {}), [1]])
def test_what_only_this_process_knows_has_no_digest(value: object) -> None:
    assert digest((1, value)) is None


def test_values_of_other_types_have_other_digests() -> None:
    values = [
        0,
        False,
        None,
        0.0,
        -0.0,
        "0",
        b"0",
        (),
        (0,),
        ((0,),),
        int,
        np.dtype("i4"),
        np.dtype(">i4"),
        frozenset(),
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(("a", "b")) != digest(("a,b",))
    assert digest({1: 2}) != digest(((1, 2),))


def test_a_child_does_not_write_the_plans_of_its_parent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job().plan(device="cpu")
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    assert KEPT.write() == 0
    assert list(folder.iterdir()) == []


def test_small_graphs_are_planned_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "LEAST_NODES", 256)
    job().plan(device="cpu")
    assert begin_anew() == 0
    assert not folder.exists()


def test_classes_of_plans_have_names_of_their_own() -> None:
    assert len({*plan_rows._CLASSES.values()}) == len(plan_rows._CLASSES)
    assert not {*plan_rows._CLASSES} & {"tuple", "dict", "frozenset", "node", "nothing", "dtype", "op", "blocks"}
