"""A job that was made again from data runs as the one before: in a real folder, elsewhere, with its user's lines."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.describe import describe_job
from flowcompute.checkpoint.job.difference import check_sources, differences
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.checkpoint.store.values import blob_of
from tests.checkpoint.elements import FUNCTIONS, JOBS, TEXT, elementwise
from tests.checkpoint.kept import Store, bindings, described, graph_of, round_trip

RUN = sorted(JOBS.keys() - elementwise().keys() - {"opencl", "called", "saved", "objects", "discarded"})


@pytest.mark.parametrize("name", RUN)
def test_results_have_the_same_bits(name: str, tmp_path: Path) -> None:
    with np.errstate(all="ignore"):
        made = JOBS[name](tmp_path)
        roots = made if isinstance(made, tuple) else (made,)
        again = round_trip(*roots)
        expected, got = ([one.resolve(device="numpy", progress=False)] if len(roots) == 1 else
                         fc.resolve(*group, device="numpy", progress=False)
                         for group in (roots, again) for one in [group[0]])  # fmt: skip
    for one, other in zip(expected, got, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def test_kernels_have_the_same_texts(tmp_path: Path) -> None:
    roots = [*FUNCTIONS["kernel"](tmp_path), FUNCTIONS["opencl"](tmp_path), *JOBS["attention"](tmp_path)]  # type: ignore[misc]
    again = round_trip(*roots, texts=[TEXT])
    one, other = ([kernel.source for kernel in fc.plan(*group, device="cpu").kernels] for group in (roots, again))
    assert one == other
    assert len(one) > 4


def test_a_job_in_a_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(60.0).reshape(20, 3))
    x, large = fc.open(tmp_path / "x.npy"), np.arange(30_000.0).reshape(3, 10_000)
    roots = [x @ fc.constant(large) >> fc.save(tmp_path / "y.npy"), fc.source(large[:, ::-1]).sum() >> fc.to_array()]
    graph = graph_of(*roots)
    with CheckpointFolder.create(tmp_path / "kept") as folder:
        folder.set_job(describe_job(graph, folder.put_blob))
        folder.commit({"state": 1})
        folder.publish()
    with CheckpointFolder.open(tmp_path / "kept") as folder:
        stored = folder.job()
        assert check_sources(stored) == []
        again = rebuild_job(stored, folder.get_blob)
        assert differences(stored, describe_job(graph_of(*again), lambda array: blob_of(array)[0])) == []
        assert differences(stored, described(*roots)) != []
    expected = np.load(tmp_path / "x.npy") @ large
    assert fc.resolve(*again, device="numpy", progress=False) == (str(tmp_path / "y.npy"), large.sum())
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected)


def test_paths_are_those_of_the_folder_where_the_job_was_composed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    np.save(tmp_path / "x.npy", np.arange(4.0))
    monkeypatch.chdir(tmp_path)
    data = described(fc.open("x.npy") * 2 >> fc.save("y.npy"), fc.host(abs, fc.open("x.npy"), on_error="dead_letter",
                                                                       dead_letter="bad.jsonl"))  # fmt: skip
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = rebuild_job(data, Store().get, {"abs": abs})
    assert fc.resolve(*again, device="numpy", progress=False)[0] == "y.npy"
    assert np.load(tmp_path / "y.npy").tolist() == [0, 2, 4, 6]
    assert (tmp_path / "bad.jsonl").exists()
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_path_that_is_no_text_comes_back(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/x\xff\n.npy")
    np.save(path, np.arange(4.0))
    (again,) = round_trip(fc.open(path) + 1)
    assert again.resolve(device="numpy", progress=False).tolist() == [1, 2, 3, 4]


def test_errors_of_a_job_made_again_name_the_line_that_made_it() -> None:
    def failing(batch: np.ndarray) -> np.ndarray:
        raise ValueError("bad batch")

    x = fc.source(np.arange(4.0))
    frame = inspect.currentframe()
    assert frame is not None
    line, made = frame.f_lineno, fc.host(failing, x)
    graph = graph_of(made)
    (again,) = rebuild_job(described(made), Store().get, bindings(graph))
    with pytest.raises(fc.RunError) as caught:
        again.resolve(device="numpy", progress=False)
    assert caught.value.site == (__file__, line)


def test_a_second_look_at_the_same_graph_gives_the_same_data() -> None:
    x = fc.source(np.arange(4.0))
    roots = [x.sum(), fc.host(np.sort, x), fc.scan(np.add, x, init=0.0)]
    assert described(*roots) == described(*roots)


def test_equal_arrays_in_two_sources_stay_two_sources() -> None:
    one, other = fc.source(np.arange(5000.0)), fc.source(np.arange(5000.0))
    again = round_trip(one, other)
    assert len(graph_of(*again).nodes) == 4


@pytest.mark.parametrize("value", [np.nan, -np.nan, -0.0, np.inf, 5e-324])
def test_bits_of_constants_are_kept(value: float) -> None:
    bits = np.array([value, np.frombuffer(b"\1\0\0\0\0\0\xf4\x7f", "f8")[0]])
    (again,) = round_trip(fc.constant(bits))
    kept: Any = again.inputs[0]
    assert kept.value.tobytes() == bits.tobytes()


def test_a_training_goes_on_whose_steps_read_weights_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows, first = (rng.standard_normal(shape, dtype=np.float32) for shape in ((40, 4), (5, 2)))
    held = fc.source(rng.standard_normal((4, 5), dtype=np.float32)) >> fc.save(tmp_path / "w.safetensors", key="w")
    fc.run(held, device="numpy", progress=False)

    def job() -> fc.Element:
        w = fc.weights(tmp_path / "w.safetensors")["w"]
        a = fc.parameter(first, name="a")
        loss = (fc.nn.relu(fc.source(rows) @ w) @ a).sum(axis=1).mean()
        return fc.train.fit(loss, fc.train.adam(0.1), batch=8, epochs=2)["a"]

    kept = tmp_path / "kept"
    with pytest.raises(fc.RunError, match="frozen"):
        job().run(checkpoint=kept, device="numpy", progress=False, on_batch=lambda run: run.freeze())
    os.utime(tmp_path / "w.safetensors")
    with pytest.raises(fc.CheckpointError, match=r"w\.safetensors has changed: its time of change"):
        job().run(checkpoint=kept, device="numpy", progress=False)
    run = job().run(checkpoint=kept, device="numpy", progress=False, accept_touched=True)
    np.testing.assert_array_equal(run.value, job().resolve(device="numpy", progress=False))
