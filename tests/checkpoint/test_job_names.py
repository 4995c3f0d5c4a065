"""Names and calls in a kept job: a thawed one shows what the user wrote, and no job is another for its names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.difference import differences
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.checkpoint.job.words import JobWords
from flowcompute.graph import build_graph, draw_tree
from tests.checkpoint.kept import Store, described, graph_of

ITEMS = np.random.default_rng(5).random((60, 4)).astype(np.float32)


def job(loss: str | None = None) -> Any:
    x = fc.source(ITEMS) if loss is None else fc.source(ITEMS).named("prices")
    shares = fc.nn.softmax((x - x.mean(axis=0)) / x.std(axis=0), axis=1)
    total = shares.sum(axis=1)
    return (total if loss is None else total.named(loss)) * 2


def test_a_thawed_job_is_drawn_as_the_one_that_was_frozen() -> None:
    store, made = Store(), job("loss")
    data = described(made, store=store)
    again = rebuild_job(data, store.get)
    assert draw_tree(build_graph(again)) == draw_tree(graph_of(made))
    assert [node.name for node in build_graph(again).nodes] == [node.name for node in graph_of(made).nodes]
    assert described(*again, store=Store()) == data


def test_a_job_without_calls_is_still_rebuilt() -> None:
    """As format 1 was before calls were kept: nodes are named by their operations."""
    store, made = Store(), fc.nn.sigmoid(fc.source(ITEMS)) >> fc.to_array()
    data = described(made, store=store)
    del data["calls"]
    for node in data["nodes"]:
        node.pop("call", None)
        node.pop("step", None)
    again = rebuild_job(data, store.get)
    assert [node.name for node in build_graph(again).nodes] == ["source", "sigmoid", "to_array"]


def test_names_make_no_other_job() -> None:
    plain, named = described(job()), described(job("loss"))
    assert differences(plain, named) == []
    assert job().hash == job("loss").hash


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["calls"][0].update(name="a\nb"),
        lambda data: data["calls"][0].update(arguments=3),
        lambda data: data["calls"][0].update(site=["x"]),
        lambda data: data["calls"][0].update(more=1),
        lambda data: data.update(calls={}),
        lambda data: data["calls"].clear(),
        lambda data: data["nodes"][-2].update(call=10**6),
        lambda data: data["nodes"][-2].update(call=-1),
        lambda data: data["nodes"][-2].update(step=1),
        lambda data: data["nodes"][-2].pop("step"),
        lambda data: data["nodes"][0].update(name="a\x1b[31m"),
    ],
)
def test_calls_that_nobody_of_ours_has_written(change: Any) -> None:
    store = Store()
    data = described(job("loss"), store=store)
    change(data)
    with pytest.raises(fc.CheckpointError):
        rebuild_job(data, store.get)


def test_a_job_goes_on_under_other_names(tmp_path: Path) -> None:
    options: Any = {"device": "numpy", "progress": False, "checkpoint": tmp_path / "kept"}
    small = fc.Strategy(batch_bytes=256)
    with pytest.raises(fc.RunError, match="frozen"):
        fc.run(job(), strategy=small, on_batch=lambda run: run.freeze(), **options)
    (thawed,) = fc.thaw(tmp_path / "kept").elements()
    assert "softmax axis=1" in str(thawed)
    run = fc.run(job("loss"), **options)
    np.testing.assert_array_equal(run.value, job().resolve(device="numpy", progress=False))
    assert run.metrics["loss"].items > 0


def test_the_words_of_a_checkpoint_are_the_tree_of_the_job() -> None:
    made = job("loss")
    words = JobWords.read(described(made)).graph().splitlines()
    tree = draw_tree(graph_of(made)).splitlines()
    # Of an array that is kept the description says so.
    assert [line.partition(":")[0].replace(" (memory)", "") for line in words] == [
        line.partition(":")[0] for line in tree
    ]
    assert any("softmax axis=1: float32(60, 4) stream  test_job_names.py:" in line for line in words)
