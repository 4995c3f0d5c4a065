"""Every class of elements and every operation as data and back; a new one that job data does not know is found here."""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.parts.tags import PARTS, TAGS
from flowcompute.elements.calls.call_templates import ComputeStandIn, ConstantStandIn, SourceStandIn
from flowcompute.elements.compute import Compute
from flowcompute.elements.creation.parameters import Trainable
from flowcompute.elements.destination import Destination
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.functions.callable_tables import FMOD
from flowcompute.elements.functions.host_function import HOST, TRY_HOST
from flowcompute.elements.functions.opencl_function import SourceOp
from flowcompute.elements.math import FMAX, NATIVE_EXP2, QUIET_NAN
from flowcompute.elements.op import PARAMETER, RECOMPUTE, STOP_GRADIENT, Op
from flowcompute.elements.operators import RECORDS
from flowcompute.elements.source import Source
from flowcompute.elements.streams.scan_function import KERNEL_SCAN, SCAN
from flowcompute.elements.training import ALL_RECORDS, TRAIN, Given, GivenStream
from flowcompute.graph.record_formulas import Placeholder
from flowcompute.sinks.file_sink import StoredSink
from flowcompute.sinks.folder_sink import FolderSink
from flowcompute.sinks.numbers import NumbersSink
from flowcompute.sinks.spool_sink import SpoolSink
from flowcompute.sources.chunked import ChunkedSource
from flowcompute.sources.feed_source import FeedSource
from flowcompute.sources.file_source import StoredSource
from flowcompute.sources.shuffled_source import ShuffledSource
from flowcompute.sources.spool_source import SpoolSource
from flowcompute.sources.view import SourceView
from flowcompute.tokens.token_source import TokenSource
from tests.checkpoint.elements import JOBS, TEXT
from tests.checkpoint.kept import graph_of, round_trip

BASES = {Element, Source, Destination, StoredSource, StoredSink, FolderSink, ChunkedSource, TokenSource}
TRANSPARENT = {Trainable}
"""Elements of which graphs hold the operand."""

OF_THE_PLANNER = {Placeholder, ShuffledSource, SpoolSource, SourceView, SpoolSink, NumbersSink}
"""Made for a plan, from what a job holds."""

STAND_INS = {ComputeStandIn, ConstantStandIn, SourceStandIn}
"""Stand-ins that functions are shown in place of operands; no graph holds one."""

OF_CLASSES = (HOST, TRY_HOST, SCAN, KERNEL_SCAN, TRAIN)
"""Operations whose elements have a class of their own."""

BY_PLANS = (ALL_RECORDS,)
"""Operations that planning makes, in graphs that no job holds."""

NOT_IN_GRAPHS = (FMAX, FMOD, NATIVE_EXP2, QUIET_NAN, PARAMETER, RECOMPUTE, STOP_GRADIENT)
"""What stands in users' functions or in kernels only."""


def roots_of(name: str, folder: Path) -> tuple[Element, ...]:
    with np.errstate(all="ignore"):
        made = JOBS[name](folder)
    return made if isinstance(made, tuple) else (made,)


@pytest.mark.parametrize("name", JOBS)
def test_every_job_comes_back(name: str, tmp_path: Path) -> None:
    roots = roots_of(name, tmp_path)
    texts = [TEXT for node in graph_of(*roots).nodes if isinstance(node.op, SourceOp)]
    again = round_trip(*roots, texts=texts)
    assert [type(one) for one in again] == [type(node) for node in _bound(roots)]


def _bound(roots: tuple[Element, ...]) -> list[Element]:
    graph = graph_of(*roots)
    return [graph.nodes[i].element for i in graph.roots]


def _modules() -> Iterator[types.ModuleType]:
    for found in pkgutil.walk_packages(fc.__path__, "flowcompute."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def _classes(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from _classes(one)


def test_every_class_of_elements_is_known() -> None:
    for _ in _modules():
        pass
    ours = {one for one in {Element, *_classes(Element)} if one.__module__.startswith("flowcompute.")}
    ours -= {one for one in ours if one.__module__.startswith("flowcompute.testing")}
    assert ours == set(PARTS) | BASES | TRANSPARENT | OF_THE_PLANNER | STAND_INS


def _ops(value: Any) -> Iterator[Op]:
    if isinstance(value, Op):
        yield value
    elif isinstance(value, Function):
        yield value.op
    elif isinstance(value, dict):
        for one in value.values():
            yield from _ops(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _ops(one)


def test_every_operation_can_be_rebuilt() -> None:
    elements = [module for module in _modules() if module.__name__.startswith("flowcompute.elements")]
    tables = [value for module in elements for value in vars(module).values()]
    found = {id(op): op for value in tables for op in _ops(value)}
    others = {id(op) for op in (*OF_CLASSES, *BY_PLANS, *NOT_IN_GRAPHS)}
    assert [op.kept_name for op in found.values() if op.rebuild is None and id(op) not in others] == []
    assert [op.kept_name for op in found.values() if op.rebuild and RECORDS.get(op.kept_name) is not op] == []


def test_every_operation_and_class_has_a_job(tmp_path: Path) -> None:
    nodes = [node for name in JOBS for node in graph_of(*roots_of(name, tmp_path)).nodes]
    made = {node.op.kept_name for node in nodes if node.op is not None}
    assert [tag for tag in RECORDS if tag not in made] == []
    assert {type(node.element) for node in nodes} == set(PARTS) - {FeedSource, Given, GivenStream}


def test_tags_and_operations_are_told_apart() -> None:
    assert len(RECORDS) == len({id(op) for op in RECORDS.values()})
    assert len(TAGS) == len(PARTS) + 2
    assert all(part.tag == tag for tag, part in TAGS.items())


def test_feeds() -> None:
    x = fc.feed(shape=(3,), dtype="f4", name="x")
    (again,) = round_trip(fc.cumulative_sum(x, axis=0) + fc.feed(shape=fc.Number, dtype="f2")[:, None])
    assert again.spec.length is None


def test_an_unknown_class_of_elements_is_refused() -> None:
    class Own(Compute):
        pass

    x = fc.source(np.ones(3)) + 1
    own = Own(x.op, x.inputs, x.spec)
    with pytest.raises(fc.CheckpointError) as caught:
        round_trip(own)
    assert "add: cannot keep elements of this class in a checkpoint" in str(caught.value)
    assert "Own" in str(caught.value)
    assert __file__ in str(caught.value)
