"""Flows that are frozen and opened again hold what they held, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import CheckpointError, RunError
from tests.runtime.feeding import X, feed


def roots() -> list[fc.Element]:
    """Streams and folds that hold something: a scan, a window, a selection, a remainder."""
    x = feed()
    return [
        fc.cumulative_sum(x, axis=0),
        fc.window(x, 3).mean(axis=1),
        x[x[:, 0] > 0],
        fc.cut(x, 4, tail="drop").sum(axis=1),
        x.var(axis=0),
        fc.histogram(x[:, 1], bins=5, range=(-3, 3))[0],
    ]


def total(flow: Any, parts: list[np.ndarray]) -> list[bytes]:
    for part in parts:
        flow.send(part)
    return [np.asarray(value).tobytes() for value in flow.resolve()]


@pytest.mark.parametrize("mode", ["cumulative", "reset"])
def test_a_flow_goes_on_where_it_was_frozen(tmp_path: Path, mode: Any) -> None:
    parts = [X[:7], X[7:8], X[8:23], X[23:23], X[23:60]]
    with fc.open_flow(*roots(), mode=mode, device="numpy") as flow:
        whole = total(flow, parts)
    path = tmp_path / "ckpt"
    for done, part in enumerate(parts):
        with fc.open_flow(*roots(), mode=mode, device="numpy", checkpoint=path) as flow:
            assert flow.sent == {"feed": sum(map(len, parts[:done]))}
            flow.send(part)
            assert flow.freeze() == str(path)
            flow.send(X)  # lost: it came after the freeze
    with fc.thaw(path).flow(device="numpy") as flow:
        assert total(flow, []) == whole
    if mode == "reset":
        return
    with fc.open_flow(*roots(), mode=mode, device="numpy", checkpoint=path) as flow:
        assert total(flow, []) == whole


def test_results_that_wait_are_kept(tmp_path: Path) -> None:
    with (feed() * 2).flow(device="numpy") as flow:
        flow.send(X[:5])
        flow.send(X[5:6])
        np.testing.assert_array_equal(flow.receive(), X[:5] * 2)
        flow.freeze(tmp_path / "ckpt")
        np.testing.assert_array_equal(flow.receive(), X[5:6] * 2)
    with fc.thaw(tmp_path / "ckpt").flow(device="numpy") as flow:
        np.testing.assert_array_equal(flow.receive(), X[5:6] * 2)
        with pytest.raises(RunError, match="nothing to receive"):
            flow.receive()


def test_a_flow_may_be_thawed_on_another_backend(tmp_path: Path) -> None:
    x = feed()
    job = [x.sum(axis=0), x.max(axis=0), (x * x).sum()]
    whole = None
    for device in ("numpy", "cpu"):
        with fc.open_flow(*job, device=device) as flow:
            flow.send(X[:30])
            flow.freeze(tmp_path / device)
            flow.send(X[30:])
            values = [np.asarray(value).tobytes() for value in flow.resolve()]
        assert whole in (None, values)
        whole = values
    for device, other in (("numpy", "cpu"), ("cpu", "numpy")):
        with pytest.warns(fc.CheckpointWarning, match="was made on") as said:
            flow = fc.thaw(tmp_path / device).flow(device=other).__enter__()
        assert said[0].filename == __file__
        with flow:
            flow.send(X[30:])
            assert [np.asarray(value).tobytes() for value in flow.resolve()] == whole


async def test_in_trio(tmp_path: Path) -> None:
    async with feed().sum(axis=0).flow(mode="cumulative", device="numpy") as flow:
        await flow.send(X[:9])
        await flow.freeze(tmp_path / "ckpt")
    async with fc.thaw(tmp_path / "ckpt").flow(device="numpy") as flow:
        assert flow.sent == {"feed": 9}
        await flow.send(X[9:])
        np.testing.assert_allclose(await flow.resolve(), X.sum(axis=0), rtol=1e-6)


def test_what_cannot_be_frozen_or_thawed(tmp_path: Path) -> None:
    x = feed()
    with x.sum(axis=0).flow(device="numpy") as flow:
        with pytest.raises(CheckpointError, match=r"no checkpoint of its own(.|\n)*flow.freeze\(path\)"):
            flow.freeze()
        flow.freeze(tmp_path / "a")
        with pytest.raises(CheckpointError, match="keeps its checkpoint elsewhere"):
            flow.freeze(tmp_path / "b")
        with pytest.raises(CheckpointError, match="as a path"):
            flow.freeze(b"a")  # type: ignore[arg-type]
        with (
            pytest.raises(CheckpointError, match=r"in use|owned|process"),
            x.sum(axis=0).flow(device="numpy", checkpoint=tmp_path / "a"),
        ):
            pass
    with (
        pytest.raises(CheckpointError, match=r"not this one any more(.|\n)*sum"),
        x.max(axis=0).flow(device="numpy", checkpoint=tmp_path / "a", mode="reset"),
    ):
        pass
    with (
        pytest.raises(CheckpointError, match="a flow in 'reset' mode and is a flow in 'cumulative' mode"),
        x.sum(axis=0).flow(device="numpy", checkpoint=tmp_path / "a", mode="cumulative"),
    ):
        pass
    with pytest.raises(CheckpointError, match=r"frozen.flow\(\)"):
        fc.thaw(tmp_path / "a").resolve()
    for kept in ({"mode": "reset"}, {"precision": "fast"}, {"checkpoint": "b"}):
        with pytest.raises(CheckpointError, match=f"cannot choose {next(iter(kept))} again"):
            fc.thaw(tmp_path / "a").flow(**kept)
