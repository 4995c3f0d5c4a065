"""A job over texts that ended anywhere goes on in the text that it was in, and reads none of those before again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.files.file_layer import FILES
from flowcompute.tokens import text_file, token_source
from flowcompute.tokens.text_file import LineReader
from flowcompute.tokens.text_reading import IteratedReader
from tests.models.files import write_model

TEXTS = [f"the sing {i}" + " and" * (i % 7) if i % 5 else "" for i in range(300)]
SMALL = fc.Strategy(batch_bytes=8 * 64)


class Anew:
    """Texts that can be iterated over again."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)


class Killed(Exception):
    """The end of a process, as far as its files know."""


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory: pytest.TempPathFactory) -> fc.models.Model:
    return fc.models.load(write_model(tmp_path_factory.mktemp("model") / "m.gguf", block_count=1))


@pytest.fixture(name="seen")
def fixture_seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Numbers of the texts that were turned into tokens, and begins of what was read of the file."""
    seen: dict[str, list[int]] = {"texts": [], "offsets": []}
    monkeypatch.setattr(token_source, "_NOTED", 16)
    monkeypatch.setattr(text_file, "_READ_BYTES", 256)
    for reader in (LineReader, IteratedReader):

        def read_text(self: Any, plain: Any = reader.read_text) -> str | None:
            text: str | None = plain(self)
            if text is not None:
                seen["texts"].append(self.place.text - 1)
            return text

        monkeypatch.setattr(reader, "read_text", read_text)
    read_more = LineReader._read_more

    def read(self: Any) -> None:
        seen["offsets"].append(self.place.offset - self._used + len(self._buffer))
        read_more(self)

    monkeypatch.setattr(LineReader, "_read_more", read)
    return seen


def written(folder: Path, kind: str) -> tuple[Any, int]:
    """Texts as somebody may have them, and the bytes of their file."""
    if kind == "iterable":
        return fc.models.texts(Anew(TEXTS), longest=1000), 0
    path = folder / f"t.{kind}"
    lines = [json.dumps({"text": one}) if kind == "jsonl" else one for one in TEXTS]
    path.write_text("\n".join(lines))
    os.utime(path, (1e9, 1e9))
    return fc.models.texts(path, "text" if kind == "jsonl" else None, longest=1000), path.stat().st_size


def job(model: fc.models.Model, texts: Any, folder: Path) -> tuple[Any, ...]:
    pairs: Any = model.tokens(texts)
    return pairs >> fc.save(folder / "y.npy"), fc.segment_sum(pairs[:, 0], pairs[:, 1], len(TEXTS))


def stop_after(batches: int, freeze: bool = False) -> Any:
    """What ends a run after so many batches."""
    left = [batches]

    def after(run: fc.Run) -> None:
        left[0] -= 1
        if left[0] == 0 and freeze:
            run.freeze()
        elif left[0] == 0:
            raise Killed

    return after


def run(roots: tuple[Any, ...], **options: Any) -> Any:
    return fc.run(*roots, device="numpy", progress=False, strategy=SMALL, **options)


@pytest.mark.parametrize("kind", ["txt", "jsonl", "iterable"])
def test_a_job_that_ended_anywhere_goes_on(
    kind: str, model: fc.models.Model, seen: dict[str, list[int]], tmp_path: Path
) -> None:
    texts, size = written(tmp_path, kind)
    want = model.tokens(TEXTS).resolve(device="numpy", progress=False)
    sums = np.bincount(want[:, 1], want[:, 0], len(TEXTS))
    for batches, freeze in ((1, True), (2, True), (30, True), (1, False), (2, False), (30, False)):
        folder = tmp_path / f"{kind}-{batches}-{freeze}"
        folder.mkdir()
        kept = {"checkpoint": folder / "kept", "checkpoint_every": "2KiB"}
        with pytest.raises(Exception, match=r"Killed|raised|was frozen"):
            run(job(model, texts, folder), on_batch=stop_after(batches, freeze), **kept)
        for found in seen.values():
            found.clear()
        done = run(job(model, texts, folder), **kept)
        assert np.load(done.values[0]).tobytes() == want.tobytes()
        assert np.array_equal(done.values[1], sums)
        read, offsets = seen["texts"], seen["offsets"]
        assert read == [*range(read[0], len(TEXTS))], "each text is read once"
        if freeze:
            # At a cut a few texts are read again, of those that the last batch ended in.
            first = int(want[64 * batches - 1, 1])
            assert first - 16 <= read[0] <= first
        if freeze and offsets:
            assert offsets == sorted(set(offsets)), "each part of the file is read once"
            assert batches < 30 or offsets[0] > size // 4


def test_iterated_texts_are_drawn_and_not_tokenised(
    model: fc.models.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_source, "_NOTED", 16)
    texts = fc.models.texts(Anew(TEXTS), longest=1000)
    roots, kept = job(model, texts, tmp_path), {"checkpoint": tmp_path / "kept", "checkpoint_every": "2KiB"}
    with pytest.raises(fc.RunError, match="was frozen"):
        run(roots, on_batch=stop_after(30, freeze=True), **kept)
    encoded: list[str] = []
    encode = model.tokenizer.encode

    def noted(text: str) -> list[int]:
        encoded.append(text)
        return encode(text)

    monkeypatch.setattr(model.tokenizer, "encode", noted)
    run(job(model, texts, tmp_path), **kept)
    assert len(encoded) < 200
    assert encoded == TEXTS[-len(encoded) :]


@pytest.mark.parametrize("kind", ["txt", "jsonl", "iterable"])
def test_a_frozen_job_is_thawed_without_its_program(
    kind: str, model: fc.models.Model, seen: dict[str, list[int]], tmp_path: Path
) -> None:
    texts, _ = written(tmp_path, kind)
    with pytest.raises(fc.RunError, match="was frozen"):
        run(job(model, texts, tmp_path), on_batch=stop_after(20, freeze=True), checkpoint=tmp_path / "kept")
    (state,) = places(tmp_path / "kept").values()
    assert state.keys() == {"record", "text", "offset"}
    assert state["text"] > 50
    seen["texts"].clear()
    if kind == "iterable":
        with pytest.raises(fc.CheckpointError, match=r"tokens \(iterable\)"):
            fc.thaw(tmp_path / "kept").resolve()
        with pytest.raises(fc.CheckpointError, match="cannot go on with these texts"):
            fc.thaw(tmp_path / "kept", bind={"tokens": 3}).resolve()
    thawed = fc.thaw(tmp_path / "kept", bind={"tokens": Anew(TEXTS)} if kind == "iterable" else None)
    path, sums = thawed.resolve(device="numpy", progress=False, strategy=SMALL)
    want = model.tokens(TEXTS).resolve(device="numpy", progress=False)
    assert np.load(path).tobytes() == want.tobytes()
    assert np.array_equal(sums, np.bincount(want[:, 1], want[:, 0], len(TEXTS)))
    assert kind == "iterable" or seen["texts"][0] == state["text"]


def places(path: Path) -> dict[str, Any]:
    """What a checkpoint keeps of where its sources are."""
    with CheckpointFolder.peek(str(path), FILES) as folder:
        kept: dict[str, Any] = folder.newest().body["places"]
        return kept


def test_a_job_without_texts_keeps_no_places(tmp_path: Path) -> None:
    with pytest.raises(fc.RunError, match="was frozen"):
        run((fc.range(1000) * 2,), on_batch=stop_after(2, freeze=True), checkpoint=tmp_path / "kept")
    with CheckpointFolder.peek(str(tmp_path / "kept"), FILES) as folder:
        assert "places" not in folder.newest().body


def test_changed_texts_are_refused(model: fc.models.Model, tmp_path: Path) -> None:
    texts, _ = written(tmp_path, "txt")
    path, kept = Path(texts.path), tmp_path / "kept"
    with pytest.raises(fc.RunError, match="was frozen"):
        run(job(model, texts, tmp_path), on_batch=stop_after(5, freeze=True), checkpoint=kept)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"sing 1", b"sang 1"))
    os.utime(path, (1e9, 1e9))
    again = job(model, fc.models.texts(path, longest=1000), tmp_path)
    with pytest.raises(fc.CheckpointError, match=r"t\.txt has changed: its content is another"):
        run(again, checkpoint=kept)
    with pytest.raises(fc.CheckpointError, match="not as it was when the job was frozen"):
        fc.thaw(kept).resolve()
    path.write_bytes(before)
    os.utime(path, (1e9, 1e9))
    for options in ({"longest": 999}, {"longest": 1000, "key": "text"}):
        other = job(model, fc.models.texts(path, **options), tmp_path)
        with pytest.raises(fc.CheckpointError, match="belongs to a job that is not this one"):
            run(other, checkpoint=kept)
    run(job(model, fc.models.texts(path, longest=1000), tmp_path), checkpoint=kept)


@pytest.mark.parametrize(
    "changed",
    [
        {"record": 10**6}, {"record": -1}, {"record": None}, {"text": -1}, {"text": 10**6}, {"text": "1"},
        {"offset": 10**9}, {"offset": 3}, {"offset": -1}, {"offset": 2.0}, None,
    ],
)  # fmt: skip
def test_places_that_no_reader_gave_are_refused(
    changed: dict[str, Any] | None, model: fc.models.Model, seen: dict[str, list[int]], tmp_path: Path
) -> None:
    assert not seen["texts"]
    texts, _ = written(tmp_path, "txt")
    with pytest.raises(fc.RunError, match="was frozen"):
        run(job(model, texts, tmp_path), on_batch=stop_after(20, freeze=True), checkpoint=tmp_path / "kept")
    with CheckpointFolder.open(str(tmp_path / "kept"), FILES) as folder:
        body = dict(folder.newest().body)
        ((source, place),) = body["places"].items()
        body["places"] = {source: 3 if changed is None else {**place, **changed}}
        folder.commit(body)
    with pytest.raises(fc.CheckpointError, match="is not one that this job can have"):
        run(job(model, texts, tmp_path), checkpoint=tmp_path / "kept")


@pytest.mark.slow
def test_losses_go_on_with_equal_bits(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(TEXTS[:12]))

    def scores(texts: Any) -> tuple[Any, ...]:
        pairs: Any = model.tokens(texts)
        losses = model.losses(pairs)
        return losses, fc.segment_sum(losses, pairs[:, 1], 12)

    want = run(scores(TEXTS[:12])).values
    texts = fc.models.texts(path, longest=1000)
    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": "2KiB"}
    with pytest.raises(fc.RunError, match="was frozen"):
        run(scores(texts), on_batch=stop_after(2, freeze=True), **kept)
    got = run(scores(texts), **kept).values
    for one, other in zip(got, want, strict=True):
        assert one.tobytes() == other.tobytes()
