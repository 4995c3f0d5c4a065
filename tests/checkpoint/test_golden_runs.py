"""A run and a flow that were frozen by format 1 still go on: the folders in golden_runs/ are never written again.

They were made once by `FLOWCOMPUTE_GOLDEN=write`. What stages keep of themselves has names, and these must last.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.kept import KeptJob
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.lock import LOCK
from flowcompute.errors import CheckpointError, RunError, Site
from flowcompute.graph.graph import build_graph

GOLDEN = Path(__file__).parent / "golden_runs" / "format-1"
DATA = (np.arange(256, dtype="f4") % 23 - 11).reshape(64, 4)
SMALL = fc.Strategy(batch_bytes=128)


def states(x: Any) -> list[Any]:
    """Something of each kind that holds a state."""
    return [
        fc.cumulative_sum(x, axis=0),
        fc.ema(x[:, 0], alpha=0.5),
        fc.window(x, 3, pad="edge").sum(axis=1),
        x[x[:, 1] > 0][:, 2],
        fc.cut(x, 5, tail="drop").max(axis=1),
        x.sum(axis=0),
        x.argmin(axis=0),
        fc.histogram(x[:, 3], bins=5, range=(-12, 12))[0],
        fc.top_k(x[:, 1], 3)[0],
    ]


def run_job() -> list[Any]:
    x = fc.source(DATA, name="x")
    kept = fc.spool(x[:, :2] * 2)
    made = [*states(x), x - x.mean(axis=0), kept - kept.min(axis=0)]
    return [one >> fc.to_array() for one in made]


def flow_job() -> list[Any]:
    return [one >> fc.to_array() for one in states(fc.feed(shape=(4,), dtype="float32", name="x"))]


def values_of(values: Any) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in values]


def made_nowhere(roots: list[Any]) -> list[Any]:
    """The same, without the places of this machine."""
    for place, node in enumerate(build_graph(roots).nodes):
        node.element.freeze_fields(site=Site("job.py", place))
    return roots


def write() -> None:
    GOLDEN.mkdir(parents=True)

    def in_the_second_pass(run: fc.Run) -> None:
        if run.progress.items > 80:
            run.freeze(GOLDEN / "run")

    with pytest.raises(RunError, match="was frozen"):
        fc.run(*made_nowhere(run_job()), device="numpy", progress=False, strategy=SMALL, on_batch=in_the_second_pass)
    with fc.open_flow(*made_nowhere(flow_job()), mode="cumulative", device="numpy") as flow:
        flow.send(DATA[:30])
        flow.freeze(GOLDEN / "flow")
    for name in ("run", "flow"):
        (GOLDEN / name / LOCK).unlink()


if os.environ.get("FLOWCOMPUTE_GOLDEN") == "write" and not GOLDEN.exists():
    write()


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy: going on writes."""
    shutil.copytree(GOLDEN, tmp_path / "golden")
    return tmp_path / "golden"


# They were made with some version of NumPy, which is part of the kind of device.
@pytest.mark.filterwarnings("ignore::flowcompute.errors.CheckpointWarning")
def test_a_run_of_format_1_goes_on(golden: Path) -> None:
    assert 80 < fc.thaw(golden / "run").progress.items < 128
    expected = values_of(fc.resolve(*run_job(), device="numpy", progress=False))
    run = fc.thaw(golden / "run").run(device="numpy", progress=False)
    assert values_of(run.values) == expected
    assert run.launches < fc.run(*run_job(), device="numpy", progress=False, strategy=SMALL).launches


@pytest.mark.filterwarnings("ignore::flowcompute.errors.CheckpointWarning")
def test_a_flow_of_format_1_goes_on(golden: Path) -> None:
    with fc.open_flow(*flow_job(), mode="cumulative", device="numpy") as flow:
        flow.send(DATA)
        expected = values_of(flow.resolve())
    with fc.thaw(golden / "flow").flow(device="numpy") as flow:
        assert flow.sent == {"x": 30}
        flow.send(DATA[30:])
        assert values_of(flow.resolve()) == expected


def test_a_job_of_format_1_keeps_the_order_of_its_convolutions(golden: Path) -> None:
    with CheckpointFolder.peek(golden / "run") as folder:
        job = folder.job()
    assert not KeptJob.read(job).shaping.half_windows
    assert KeptJob.read({**job, "half_windows": True}).shaping.half_windows


def test_a_job_of_format_1_keeps_the_order_of_its_products(golden: Path) -> None:
    with CheckpointFolder.peek(golden / "run") as folder:
        job = folder.job()
    assert KeptJob.read(job).shaping.product_order == 1
    assert KeptJob.read({**job, "product_order": 2}).shaping.product_order == 2
    for wrong in (0, 3, "two"):
        with pytest.raises(CheckpointError, match="product_order"):
            KeptJob.read({**job, "product_order": wrong})
    assert not KeptJob.read(job).shaping.block_terms
    assert KeptJob.read({**job, "block_terms": True}).shaping.block_terms


PROGRESS = {"items": 90, "total_items": 128, "bytes_read": 1440, "seconds": 0.5}
WRONG = {
    "token": [5, "../../up", "", None],
    "graph": [5, None, []],
    "order": ["one", -1],
    "kind": [5],
    "precision": ["vague", None, []],
    "float64": [1, None],
    "fused": ["yes"],
    "piece_bytes": ["few", 0, -1],
    "flow": ["sometimes", 5],
}


@pytest.mark.parametrize(("entry", "value"), [(entry, value) for entry, wrong in WRONG.items() for value in wrong])
def test_what_says_wrong_things_of_its_job_is_refused(golden: Path, tmp_path: Path, entry: str, value: Any) -> None:
    with CheckpointFolder.peek(golden / "run") as folder:
        job = folder.job()
    assert job.keys() == WRONG.keys()
    with CheckpointFolder.create(tmp_path / "copy") as folder:
        folder.set_job({**job, entry: value})
        folder.commit({"done": False, "progress": PROGRESS})
        folder.publish()
    with pytest.raises(CheckpointError, match=rf"{entry}(.|\n)*do +restore the checkpoint"):
        fc.thaw(tmp_path / "copy")
    with pytest.raises(CheckpointError, match=entry):
        fc.resolve(*run_job(), checkpoint=tmp_path / "copy", device="numpy", progress=False)


@pytest.mark.filterwarnings("ignore::flowcompute.errors.CheckpointWarning")
@pytest.mark.parametrize("wrong", [{}, {"done": 1}, {"progress": 5}, {"progress": {}}], ids=str)
def test_a_state_that_does_not_say_how_far_it_is_is_refused(golden: Path, wrong: dict[str, Any]) -> None:
    with CheckpointFolder.open(golden / "run") as folder:
        folder.commit({**folder.newest().body, **wrong} if wrong else {})
    with pytest.raises(CheckpointError, match=r"done|progress|items"):
        fc.thaw(golden / "run")
    with pytest.raises(CheckpointError, match=r"done|progress|items"):
        fc.resolve(*run_job(), checkpoint=golden / "run", device="numpy", progress=False)
