"""Looking at checkpoints: nothing is missed, nothing is run, little memory is needed, and any description is told or refused."""

from __future__ import annotations

import copy
import itertools
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.job.parts import SINKS
from flowcompute.checkpoint.job.words import JobWords
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.lock import LOCK
from flowcompute.graph.draw import draw_tree
from tests.checkpoint.kept import described, graph_of
from tests.checkpoint.scenarios import PATH, SECOND, array_of, prepared
from tests.checkpoint.test_damage import contents, damaged
from tests.checkpoint.test_job_hostile import Bases, changed, fixture_bases, node, one_of, watched
from tests.properties.cases import cases
from tests.support.disk import Disk
from tests.support.simulated_files import SimulatedFiles

__all__ = ["fixture_bases"]


def peeked(disk: Disk) -> CheckpointFolder:
    return CheckpointFolder.peek(PATH, SimulatedFiles(disk))


def test_verify_misses_no_byte() -> None:
    disk = prepared(SECOND._replace(before=2))
    with peeked(disk) as folder:
        assert folder.verify() == []
        newest, looked = folder.newest(), folder.look()
    np.testing.assert_array_equal(newest.body["array"], array_of(1))
    assert looked == newest._replace(body={**newest.body, "array": None})
    changes = {name: 0 for name, _ in contents(disk)}
    for name, data in contents(disk):
        for i in range(0, len(data), max(1, len(data) // 16)):
            rotten = bytearray(data)
            rotten[i] ^= 1 << i % 8
            with peeked(damaged(disk, name, bytes(rotten))) as folder:
                changes[name] += bool(folder.verify())
    # The part of a side file that no generation counts is nobody's, and so is the number in LOCK.
    assert [name for name, count in changes.items() if not count] == [LOCK]


def test_looking_takes_no_memory_for_arrays(tmp_path: Path) -> None:
    size = 1 << 24
    with CheckpointFolder.create(tmp_path / "kept") as folder:
        folder.commit({"state": [np.zeros(size, np.uint8)], "blob": folder.put_blob(np.ones(size, np.uint8))})
        folder.publish()
    with CheckpointFolder.peek(tmp_path / "kept") as folder:
        tracemalloc.start()
        assert folder.verify() == []
        assert folder.look().body["state"] == [None]
        assert all(one.ok for one in folder.generations())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < size // 3


def test_the_words_of_a_job_are_those_of_its_graph(bases: Bases) -> None:
    for data, bound in bases.jobs:
        words = JobWords.read(data)
        assert set(words.bound()) == set(bound)
        ends = {one.tag for one in SINKS.values()}
        sinks = [one for one in data["nodes"] if one["tag"] in ends]
        assert len(list(words.destinations())) == len(sinks)
        assert all(" once" in line for line in words.destinations())
        assert words.graph().count("(see above)") < len(words.graph().splitlines())


def test_the_tree_is_that_of_the_graph() -> None:
    x = fc.source(np.zeros((4, 3), np.float32), name="x")
    roots = ((x - x.mean(axis=0)) * 2.5 >> fc.discard(), fc.cumulative_sum(x, axis=0), fc.clip(x, 0, 1)[1:3, 0])
    told = JobWords.read(described(*roots)).graph()
    assert told.replace(" (memory)", "") == draw_tree(graph_of(*roots))


@cases(150)
@given(st.data())
def test_a_changed_description_is_told_or_refused(bases: Bases, data: st.DataObject) -> None:
    job = copy.deepcopy(one_of(data.draw, bases.jobs)[0])
    # Methods of data classes are compiled when they are first called.
    JobWords.read(job).graph()
    for _ in range(data.draw(st.integers(1, 3))):
        changed(data.draw, job)
    try:
        with watched():
            words = JobWords.read(job)
            lines = itertools.chain(words.graph().splitlines(), words.sources(), words.destinations(), words.targets())
            assert all(len(line) < 70_000 for line in lines)
            assert all(isinstance(what, str) for what in words.bound().values())
    except fc.CheckpointError as error:
        assert len(str(error)) < 4000


def test_of_a_long_chain_the_end_is_drawn() -> None:
    nodes: list[dict[str, Any]] = [node("feed", stream=True)]
    nodes += [node("compute", op="elementwise.abs", attrs={}, inputs=[i], stream=True) for i in range(5000)]
    text = JobWords.read({"nodes": nodes, "roots": [5000]}).graph()
    assert len(text) < 20_000
    assert " of 5,001 elements are left out" in text.splitlines()[-1]


@pytest.mark.parametrize("roots", [[1], [-1], None, ["0"]])
def test_roots_are_nodes(roots: object) -> None:
    with pytest.raises(fc.CheckpointError):
        JobWords.read({"nodes": [node("feed", stream=True)], "roots": roots})
