"""Tokens that are made while texts are read are those of all texts at once, in any batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.model_files import WeightFile
from flowcompute.tokens.text_file import TextFile
from flowcompute.tokens.text_reading import IteratedTexts
from flowcompute.tokens.token_source import BYTES_A_BYTE, FileTokens, IteratedTokens
from tests.models.files import write_model
from tests.tokens.test_texts import AWKWARD, Watched, lines_of

TEXTS = ["the sing", "", "12 and\0", "ü€", "a\rb", "<|im_start|>the<|im_end|>", "in\x85g", " " * 40, "end"]


class Letters:
    """A token a character."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, text: str) -> Sequence[int]:
        """Return the numbers of the characters."""
        self.seen.append(text)
        letters: Any = np.frombuffer(text.encode("utf-32-le"), "<u4")
        return letters


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory: pytest.TempPathFactory) -> fc.models.Model:
    return fc.models.load(write_model(tmp_path_factory.mktemp("model") / "m.gguf", block_count=1))


@pytest.fixture(name="file", scope="module")
def fixture_file(model: fc.models.Model) -> WeightFile:
    return model.weights.file


def values(element: Any, **options: Any) -> Any:
    return element.resolve(device="numpy", progress=False, **options)


@pytest.mark.parametrize("pieces", [False, True])
def test_tokens_are_those_of_a_list(pieces: bool, tmp_path: Path) -> None:
    model = fc.models.load(write_model(tmp_path / "m.gguf", block_count=1, pieces=pieces))
    path = tmp_path / "t.txt"
    awkward = [AWKWARD[name] for name in ("none", "empty lines", "CRLF", "NUL", "BOM")]
    for data in (*awkward, "\n".join(TEXTS).encode()):
        path.write_bytes(data)
        want = values(model.tokens(lines_of(data)))
        for made in (fc.models.texts(path), fc.models.texts(lines_of(data)), iter(lines_of(data))):
            pairs = model.tokens(made)
            assert (pairs.dtype, pairs.spec.length, pairs.spec.shape) == (np.int32, None, (2,))
            got = values(pairs)
            assert np.array_equal(got, want), data


@pytest.mark.slow
def test_losses_are_those_of_a_list(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(TEXTS), newline="")
    texts = fc.models.texts(path)

    def scores(pairs: Any) -> tuple[Any, ...]:
        losses = model.losses(pairs)
        return losses, fc.segment_sum(losses, pairs[:, 1], texts.count())

    want = fc.resolve(*scores(model.tokens(TEXTS)), device="numpy", progress=False)
    for batch in (7, 100):
        strategy = fc.Strategy(batch_bytes=8 * batch)
        got = fc.resolve(*scores(model.tokens(texts)), device="numpy", progress=False, strategy=strategy)
        for one, other in zip(got, want, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("batch", [1, 2, 7, 1000])
def test_any_batches_and_any_begin(batch: int, file: WeightFile) -> None:
    texts = ["abc", "", "d", "", "", "efghij", "k"]
    want = np.array([(ord(letter), i) for i, text in enumerate(texts) for letter in text], np.int32)
    source = IteratedTokens(IteratedTexts(texts), Letters(), file)
    for position in range(len(want) + 1):
        reader = source.open(position=position)
        found = []
        while True:
            out = np.full((batch, 2), -1, np.int32)
            count = reader.read(out)
            assert (out[count:] == -1).all()
            found.append(out[:count])
            if count < batch:
                break
        assert np.array_equal(np.concatenate(found), want[position:])
        assert reader.position == len(want)
        assert reader.read(out) == 0
        reader.close()
        reader.close()
    for wrong in (-1, len(want) + 1, 10**15):
        with pytest.raises(fc.SourceError, match="cannot start reading"):
            source.open(position=wrong).read(np.empty((1, 2), np.int32))


def test_a_text_of_ten_megabytes(file: WeightFile, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"ab\n" + b"x" * 10_000_000 + b"\nc")
    pairs: Any = FileTokens(TextFile(path, None, 10_000_000), Letters(), file)
    counts = fc.bincount(pairs[:, 1], 3)
    assert values(counts).tolist() == [2, 10_000_000, 1]
    assert pairs.held_bytes > BYTES_A_BYTE * 10_000_000
    with pytest.raises(fc.PlanError, match="memory"):
        fc.plan(counts, memory="100MiB", device="numpy")


def test_what_one_text_takes_is_counted(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("the")
    for longest, read in ((1000, 1 << 19), (50_000, 1 << 19)):
        plan = fc.plan(model.tokens(fc.models.texts(path, longest=longest)), device="numpy")
        assert dict(plan.memory.items)["tokens (chunks)"] == 288 * longest + read


def test_errors_close_the_file(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"the\nsing\xff\n")
    files = Watched()
    texts = TextFile(path, files=files)
    with pytest.raises(fc.SourceError, match=r"tokens: cannot take line 2 of .*t\.txt: it is not UTF-8") as caught:
        values(model.tokens(texts))
    first = len(model.tokenizer.encode("the"))
    assert caught.value.records == (first, first + 1)
    assert not files.open
    path.write_bytes(b"the\n")
    with pytest.raises(fc.SourceError, match="the file changed since it was opened"):
        values(model.tokens(texts))
    assert not files.open


def test_what_utf8_cannot_say_is_named(model: fc.models.Model) -> None:
    with pytest.raises(fc.SourceError, match="cannot turn text 1 into tokens") as caught:
        values(model.tokens(fc.models.texts(["the", "a\ud800"])))
    assert caught.value.expected == "a text that UTF-8 can say"


def test_what_is_no_text_is_refused(model: fc.models.Model) -> None:
    for wrong in ("the", b"the", 3, None):
        with pytest.raises(fc.SpecError, match="cannot take these texts"):
            model.tokens(wrong)  # type: ignore[arg-type]


def test_a_generator_is_read_once(model: fc.models.Model, tmp_path: Path) -> None:
    def yields() -> Iterator[str]:
        yield from TEXTS

    pairs: Any = model.tokens(yields())
    with pytest.raises(fc.PlanError, match="read a source twice"):
        values(pairs[:, 0] - pairs[:, 0].max())
    with pytest.raises(fc.PlanError, match="can be read only once"):
        values(pairs, checkpoint=tmp_path / "kept")
    assert np.array_equal(values(pairs), values(model.tokens(TEXTS)))


def test_a_stream_is_read_twice_where_a_formula_needs_it(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(TEXTS), newline="")
    found, want = (
        values(pairs[:, 0] - pairs[:, 0].max()) for pairs in (model.tokens(fc.models.texts(path)), model.tokens(TEXTS))
    )
    assert np.array_equal(found, want)


def test_equal_streams_are_read_once(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("the\nsing")
    first, second = (model.tokens(fc.models.texts(path)) for _ in range(2))
    assert len(fc.plan(first + second, device="numpy").passes[0].sources) == 1


def test_a_job_does_not_replace_its_texts(model: fc.models.Model, tmp_path: Path) -> None:
    path = tmp_path / "t.raw"
    path.write_text("the\nsing")
    pairs = model.tokens(fc.models.texts(path)) >> fc.save(path)
    with pytest.raises(fc.PlanError, match="cannot replace a file that the job reads"):
        fc.run(pairs, device="numpy", progress=False, checkpoint=tmp_path / "kept")


def test_few_places_are_kept_and_near_ones_are_near(file: WeightFile) -> None:
    texts = ["x" * 1024] * 2000
    source = IteratedTokens(IteratedTexts(texts), Letters(), file)
    reader = source.open()
    out = np.empty((50_000, 2), np.int32)
    while reader.read(out) == len(out):
        # The way back to a place is short beside the way that was read since.
        for position in range(0, reader.position, 9999):
            place = reader.place_of(position)
            assert place["record"] == place["text"] * 1024
            assert 0 <= position - place["record"] <= 2048 + (reader.position - position) // 2
    assert len(reader._noted) <= 64
    reader.close()
