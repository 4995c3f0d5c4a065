"""`flowcompute inspect` and `flowcompute run` of ONNX models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from flowcompute.cli.command import main
from tests.onnx.models import model, node, port

X = np.arange(12, dtype="f4").reshape(4, 3)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nodes = [node("Add", "x z", "sum"), node("Relu", "sum", "y"), node("Neg", "sum", "n")]
    onnx.save(model(nodes, [port("x", ("N", 3)), port("z", ("N", 3))], ["y", "n"]), "m.onnx")
    onnx.save(model([node("NonZero", "x", "y")], [port("x", ("N", 3))]), "bad.onnx")
    np.save("x.npy", X)
    np.save("z.npy", -2 * X)
    return tmp_path


def test_inspect_tells_what_a_model_is(folder: Path, capsys: Any) -> None:
    assert main(["inspect", "m.onnx"]) == 0
    said = capsys.readouterr().out
    for words in ("x float32(N, 3)", "opset 18", "3 nodes", "1 Add", "0 bytes", "missing   nothing"):
        assert words in said
    assert main(["inspect", "bad.onnx"]) == 0
    assert "nonzero_y: NonZero: not supported [length]" in capsys.readouterr().out


def test_run_reads_and_writes_files(folder: Path, capsys: Any) -> None:
    files = [
        "--input",
        "x=x.npy",
        "--input",
        "z=z.npy",
        "--input",
        "read",
        "--output",
        "y=y.npy",
        "--output",
        "n=n.npy",
    ]
    assert main(["run", "m.onnx", *files, "--device", "numpy", "--no-progress", "--memory", "48MiB"]) == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.maximum(-X, 0))
    np.testing.assert_array_equal(np.load("n.npy"), X)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m.onnx", "--input", "x.npy"], "a value for each of x, z"),
        (["m.onnx", "--input", "x=x.npy", "--input", "x=z.npy"], "NAME=FILE"),
        (["bad.onnx", "--input", "x.npy"], "nonzero_y: NonZero"),
        (["module:job", "--output", "y.npy"], "cannot give files to a job of a module"),
        (["none.onnx"], "none.onnx"),
    ],
)
def test_what_cannot_be_run_is_told(folder: Path, capsys: Any, arguments: list[str], words: str) -> None:
    assert main(["run", *arguments, "--device", "numpy", "--no-progress"]) in (1, 2)
    assert words in capsys.readouterr().err
