"""Trainings that are frozen, resumed and thawed: the bits of one in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import CheckpointError, RunError
from tests.train.problems import X, Y, loss, weights

OPTIONS: dict[str, Any] = {"device": "numpy", "progress": False}


def job(folder: Path, rate: float = 0.05, batch: int = 20) -> tuple[Any, ...]:
    """Return a training from files, to files, and a measure of what came of it."""
    if not (folder / "x.npy").exists():
        np.save(folder / "x.npy", X)
        np.save(folder / "y.npy", Y)
    w, b = weights()
    x, y = fc.open(folder / "x.npy"), fc.open(folder / "y.npy")
    adam = fc.train.adam(fc.train.cosine(rate, steps=9, warmup=2))
    trained = fc.train.fit(loss(x, y, w, b, 0.25), adam, batch=batch, epochs=3)
    right = trained.apply((fc.argmax(x @ w + b, axis=1) == y).astype("float32").mean())
    return trained["w"], trained.losses >> fc.save(folder / "losses.npy"), right


def value_bytes(values: tuple[Any, ...]) -> list[bytes]:
    return [Path(one).read_bytes() if isinstance(one, str) else np.asarray(one).tobytes() for one in values]


def freeze(folder: Path, steps: int, **options: Any) -> bool:
    """Freeze a job after so many steps; whether it was still running then."""

    def watch(run: fc.Run) -> None:
        if run.progress.items >= steps:
            run.freeze()

    try:
        fc.run(*job(folder), checkpoint=folder / "kept", on_batch=watch, **OPTIONS, **options)
    except RunError as error:
        assert "was frozen" in str(error)
        return True
    return False


@pytest.mark.parametrize("stops", [(1,), (2, 3, 5, 8), (9,), (1, 4, 10)])
def test_a_resumed_training_has_the_bits_of_one_in_one_go(stops: tuple[int, ...], tmp_path: Path) -> None:
    whole = value_bytes(fc.run(*job(tmp_path), **OPTIONS).values)
    (tmp_path / "losses.npy").unlink()
    for steps in stops:
        assert freeze(tmp_path, steps)
    again = fc.run(*job(tmp_path), checkpoint=tmp_path / "kept", memory="2MiB", **OPTIONS)
    assert value_bytes(again.values) == whole


def test_it_goes_on_without_the_program(tmp_path: Path) -> None:
    whole = value_bytes(fc.run(*job(tmp_path), **OPTIONS).values)
    (tmp_path / "losses.npy").unlink()
    assert freeze(tmp_path, 4)
    frozen = fc.thaw(tmp_path / "kept")
    assert not frozen.done
    assert value_bytes(frozen.resolve(**OPTIONS)) == whole


@pytest.mark.compiles
def test_kernels_resume_to_their_bits(tmp_path: Path) -> None:
    options = {**OPTIONS, "device": "cpu"}
    whole = value_bytes(fc.run(*job(tmp_path), **options).values)
    (tmp_path / "losses.npy").unlink()
    with pytest.raises(RunError, match="frozen"):
        fc.run(
            *job(tmp_path),
            checkpoint=tmp_path / "kept",
            on_batch=lambda run: run.freeze() if run.progress.items == 5 else None,
            **options,
        )
    assert value_bytes(fc.run(*job(tmp_path), checkpoint=tmp_path / "kept", **options).values) == whole


def test_another_training_is_told_as_such(tmp_path: Path) -> None:
    assert freeze(tmp_path, 3)
    with pytest.raises(CheckpointError) as error:
        fc.run(*job(tmp_path, rate=0.03125), checkpoint=tmp_path / "kept", **OPTIONS)
    assert "is 0.03125" in str(error.value)
    assert str(error.value).count("belongs to a job") == 1
    with pytest.raises(CheckpointError, match="batch is 10, and was 20"):
        fc.run(*job(tmp_path, batch=10), checkpoint=tmp_path / "kept", **OPTIONS)


def test_other_records_are_told_as_such(tmp_path: Path) -> None:
    assert freeze(tmp_path, 3)
    np.save(tmp_path / "x.npy", X + 1)
    with pytest.raises(CheckpointError, match=r"x\.npy"):
        fc.run(*job(tmp_path), checkpoint=tmp_path / "kept", **OPTIONS)
    with pytest.raises(CheckpointError, match=r"x\.npy"):
        fc.thaw(tmp_path / "kept").resolve(**OPTIONS)
