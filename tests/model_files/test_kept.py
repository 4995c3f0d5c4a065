"""Checkpoints keep path and fingerprint of a file of weights, and none of its bytes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.job.difference import check_sources, differences
from flowcompute.checkpoint.job.rebuild import rebuild_job
from tests.checkpoint.kept import Store, described
from tests.model_files.files import gguf_bytes, gguf_file, safetensors_file, settle, tensor

X = np.ones((6, 512), np.float32)


def product(path: Path) -> fc.Element:
    weights = fc.weights(path)
    return fc.source(X) @ weights["Q4_0"].T * weights["f32"].max()


def test_a_job_has_the_path_and_no_bytes(tmp_path: Path) -> None:
    path, store = gguf_file(tmp_path), Store()
    data = described(product(path), store=store)
    assert not store.arrays
    kept = [node for node in data["nodes"] if node["tag"] == "weight"]
    assert [(node["tensor"], node["raw"], node["file"]["path"]) for node in kept] == [
        ("Q4_0", True, str(path)),
        ("f32", False, str(path)),
    ]
    (again,) = rebuild_job(data, store.get)
    assert np.array_equal(again.resolve(), product(path).resolve())
    assert not differences(data, described(product(path)))


def test_large_weights_need_not_be_given_again(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    head = gguf_bytes(tensor("w", (32, 1 << 21), 8, 0), tensors=1)
    with path.open("wb") as f:
        f.write(head)
        f.truncate(len(head) + (34 << 21))
    data = described(fc.source(X[:, :32]) @ fc.weights(settle(path))["w"].T)
    (again,) = rebuild_job(data, Store().get)
    assert again.spec.shape == (1 << 21,)


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = gguf_file(tmp_path)
    data = described(product(path))
    with path.open("r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"\x07")
    settle(path)
    assert any("its content is another" in line for line in check_sources(data))
    with pytest.raises(fc.CheckpointError, match="not as it was when the job was frozen"):
        rebuild_job(data, Store().get)
    path.unlink()
    with pytest.raises(fc.CheckpointError, match=r"all\.gguf"):
        rebuild_job(data, Store().get)


@pytest.mark.parametrize(
    ("key", "value"), [("tensor", "nothing"), ("tensor", 3), ("raw", False), ("raw", 1), ("file", {}), ("file", 3)]
)
def test_descriptions_that_are_not_sound_are_refused(key: str, value: object, tmp_path: Path) -> None:
    data = described(fc.weights(gguf_file(tmp_path))["Q4_0"] + 1)
    node = next(node for node in data["nodes"] if node["tag"] == "weight")
    node[key] = value
    with pytest.raises(fc.CheckpointError):
        rebuild_job(data, Store().get)


def test_a_frozen_run_goes_on(tmp_path: Path) -> None:
    folder, paths = tmp_path / "kept", (gguf_file(tmp_path), safetensors_file(tmp_path))
    rows = np.random.default_rng(0).standard_normal((4000, 512), dtype=np.float32)
    np.save(tmp_path / "rows.npy", rows)
    numbers = fc.weights(paths[1])["f32"][0]
    job = (fc.open(tmp_path / "rows.npy") @ fc.weights(paths[0])["IQ4_NL"].T).sum(axis=0) + numbers[0]
    expected = job.resolve(device="numpy")
    fc.run(job >> fc.save(tmp_path / "sums.npy"), checkpoint=folder, device="numpy", progress=False)
    assert sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) < 1 << 16
    assert np.array_equal(np.load(tmp_path / "sums.npy"), expected)
