"""Answers and conversations that go on where the file of their model has been moved."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.models.files import write_model

OPTIONS: dict[str, Any] = {"device": "numpy"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_model(tmp_path / "small.gguf", block_count=1)


@pytest.fixture
def kept(path: Path, tmp_path: Path) -> str:
    with fc.models.load(path).generate("the sing", 6, **OPTIONS) as said:
        next(said)
        return said.freeze(tmp_path / "kept")


def answer(path: Path) -> list[int]:
    with fc.models.load(path).generate("the sing", 6, **OPTIONS) as said:
        list(said)
    return said.tokens


def test_an_answer_goes_on_with_a_copy(path: Path, kept: str, tmp_path: Path) -> None:
    expected, copied = answer(path), tmp_path / "copied.gguf"
    shutil.copyfile(path, copied)
    os.utime(copied, ns=(10**18, 10**18))
    path.unlink()
    with pytest.raises(fc.CheckpointError, match=r"is not there(.|\n)*small\.gguf(.|\n)*generation\(model=path\)"):
        fc.thaw(kept).generation(**OPTIONS)
    with fc.thaw(kept).generation(model=copied, **OPTIONS) as rest:
        next(rest)
        assert rest.freeze() == kept
    # Now it is known where the file is.
    with fc.thaw(kept).generation(**OPTIONS) as rest:
        list(rest)
    assert rest.tokens == expected


def test_a_file_at_its_place_may_be_given(path: Path, kept: str) -> None:
    os.utime(path, ns=(10**18, 10**18))
    with pytest.raises(fc.CheckpointError, match="not as it was"), fc.thaw(kept).generation(**OPTIONS):
        pass
    with fc.thaw(kept).generation(model=path, **OPTIONS) as rest:
        list(rest)
    assert rest.tokens == answer(path)


@pytest.mark.parametrize("seed", [1, None])
def test_another_model_is_refused(path: Path, kept: str, tmp_path: Path, seed: int | None) -> None:
    other = tmp_path / "other.gguf"
    if seed is None:
        # One bit of one weight, and the size and the time of the file.
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        other.write_bytes(data)
        shutil.copystat(path, other)
    else:
        write_model(other, block_count=1, seed=seed)
    words = r"cannot go on with the weights in \S*other\.gguf(.|\n)*its content is another"
    with pytest.raises(fc.CheckpointError, match=words), fc.thaw(kept).generation(model=other, **OPTIONS):
        pass
    with pytest.raises(fc.CheckpointError, match=r"is not there(.|\n)*gone\.gguf"):
        fc.thaw(kept).generation(model=tmp_path / "gone.gguf", **OPTIONS)
    with pytest.raises(fc.CheckpointError, match="cannot use this value of model="):
        fc.thaw(kept).generation(model=3, **OPTIONS)  # type: ignore[arg-type]


def test_conversations_go_on_with_a_copy(path: Path, tmp_path: Path) -> None:
    expected = answer(path)
    with fc.models.load(path).conversations(2, **OPTIONS) as talks:
        talk = talks.begin("the sing", 6)
        next(talks)
        talks.freeze(tmp_path / "kept")
    path.rename(tmp_path / "moved.gguf")
    frozen = fc.thaw(tmp_path / "kept")
    with pytest.raises(fc.CheckpointError, match=r"conversations\(model=path\)"):
        frozen.conversations(**OPTIONS)
    with frozen.conversations(model=tmp_path / "moved.gguf", **OPTIONS) as talks:
        (talk,) = talks.open
        list(talks)
        talks.begin("the", 1)
        talks.freeze()
    assert talk.tokens == expected
    with fc.thaw(tmp_path / "kept").conversations(**OPTIONS) as talks:
        list(talks)


def test_a_graph_with_weights_of_its_own_goes_on(path: Path, tmp_path: Path) -> None:
    """Its model is read for texts alone."""
    table = np.eye(300, dtype=np.float32)

    def graph(_weights: Any, _metadata: Any, tokens: Any, _text: Any = None) -> Any:
        return fc.take(fc.constant(table), tokens, axis=0)

    with fc.models.load(path, graph=graph).generate([5, 6], 3, **OPTIONS) as said:
        next(said)
        kept = said.freeze(tmp_path / "kept")
    with fc.thaw(kept).generation(**OPTIONS) as rest:
        list(rest)
    assert rest.tokens == [6, 6, 6]
