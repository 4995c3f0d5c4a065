"""Several conversations in one flow: each says what it says where it is alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from tests.models.architecture_files import METADATA, write_architecture
from tests.models.files import write_model
from tests.support.slow import compiled_but, slow_but

PROMPTS = ["the sing", "a", "in and 121 the", "other things user", "12"]
ALL = range(len(PROMPTS))
Said = tuple[list[int], str, str]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "small.gguf")


@pytest.fixture
def model(path: Path) -> fc.models.Model:
    return fc.models.load(path)


def alone(model: fc.models.Model, number: int, **options: Any) -> Said:
    with model.generate(PROMPTS[number], 4 + 2 * number, seed=number, **options) as said:
        list(said)
    return said.tokens, said.text, said.stopped


def begun(talks: Any, numbers: Any = ALL) -> list[Any]:
    return [talks.begin(PROMPTS[number], 4 + 2 * number, seed=number) for number in numbers]


def said(talk: Any) -> Said:
    return talk.tokens, talk.text, talk.stopped


@pytest.mark.parametrize(
    "case", compiled_but(["cpu 8 0", "numpy 3 1.3"], ["cpu 3 1.3", "cpu 8 0", "numpy 1 0", "numpy 3 1.3"])
)
def test_each_says_what_it_says_alone(model: fc.models.Model, case: str) -> None:
    device, slots, temperature = case.split()
    options: dict[str, Any] = {"temperature": float(temperature)}
    expected = [alone(model, number, device=device, **options) for number in range(len(PROMPTS))]
    told: dict[int, str] = {}
    with model.conversations(int(slots), device=device, **options) as talks:
        every = begun(talks, range(4))
        for talk, piece in talks:
            told[talk.number] = told.get(talk.number, "") + piece
            if talk.number == 1 and len(every) == 4:
                # More begin while others are written.
                every += begun(talks, range(4, len(PROMPTS)))
        assert not talks.open
    assert [said(talk) for talk in every] == expected
    assert [told.get(talk.number, "") for talk in every] == [text for _, text, _ in expected]


def test_an_answer_is_decoded_once_a_token(model: fc.models.Model) -> None:
    """It was decoded for each piece of any conversation, as long as it was."""
    tokenizer = type(model.tokenizer)
    with (
        mock.patch.object(tokenizer, "decode", autospec=True, side_effect=tokenizer.decode) as decode,
        model.conversations(4, device="numpy") as talks,
    ):
        every = begun(talks, range(4))
        decode.reset_mock()
        assert repr(talks) == "<Conversations: 4 begun, 4 open, 4 slots>"
        assert sum(1 for _ in talks) > 8
        # Once with no token, and once more where it has ended.
        assert decode.call_count <= sum(len(talk.tokens) + 2 for talk in every)


def test_a_text_of_its_scores_is_that_alone(model: fc.models.Model) -> None:
    rng = np.random.default_rng(3)
    text = rng.permutation(np.repeat([0, 1, 2], [9, 5, 12])).astype(np.int32)
    pairs = np.stack([rng.integers(0, 200, len(text)).astype(np.int32), text], axis=1)
    whole = model.logits(fc.source(pairs), slots=3).resolve(device="cpu", progress=False)
    for one in range(3):
        own = model.logits(fc.source(pairs[text == one, 0])).resolve(device="cpu", progress=False)
        assert own.tobytes() == whole[text == one].tobytes()


def names() -> list[Any]:
    return slow_but(["gemma3"], sorted(METADATA))


@pytest.mark.parametrize("name", names())
def test_architectures_keep_texts_apart(name: str, tmp_path: Path) -> None:
    model = fc.models.load(write_architecture(tmp_path / "model.gguf", name))
    pairs = np.array([(5, 0), (9, 1), (7, 1), (6, 0), (8, 1)], np.int32)
    if name == "mamba":
        with pytest.raises(fc.SourceError, match="one text at a time"):
            model.logits(fc.source(pairs), slots=2)
        return
    whole = model.states(fc.source(pairs), slots=2).resolve(device="numpy", progress=False)
    for one in range(2):
        own = model.states(fc.source(pairs[pairs[:, 1] == one, 0])).resolve(device="numpy", progress=False)
        assert own.tobytes() == whole[pairs[:, 1] == one].tobytes()


@pytest.mark.parametrize("stop_at", slow_but([6], [0, 6, 15]))
def test_frozen_conversations_all_go_on(model: fc.models.Model, tmp_path: Path, stop_at: int) -> None:
    options: dict[str, Any] = {"temperature": 1.1, "device": "numpy"}
    told: dict[int, str] = {}

    def note(talk: Any, piece: str) -> None:
        told[talk.number] = told.get(talk.number, "") + piece

    with model.conversations(3, **options) as talks:
        every = begun(talks)
        for _, (talk, piece) in zip(range(stop_at), talks, strict=False):
            note(talk, piece)
        talks.freeze(tmp_path / "kept")
        done = [said(talk) for talk in every]
    with fc.thaw(tmp_path / "kept").conversations(device="numpy") as talks:
        rest = {talk.number: talk for talk in talks.open}
        assert talks.freeze() == str(tmp_path / "kept")
        later = talks.begin(PROMPTS[0], 4, seed=0)
        assert later.number == len(PROMPTS)
        for talk, piece in talks:
            note(talk, piece)
    expected = [alone(model, number, **options) for number in range(len(PROMPTS))]
    found = [said(rest[number]) if number in rest else done[number] for number in range(len(PROMPTS))]
    assert found == expected
    assert said(later) == expected[0]
    assert [told.get(number, "") for number in range(len(PROMPTS))] == [text for _, text, _ in expected]


def test_a_closed_conversation_leaves_its_slot(model: fc.models.Model) -> None:
    with model.conversations(1, device="numpy") as talks:
        first, second = begun(talks, [4, 1])
        next(talks)
        first.close()
        list(talks)
    assert first.stopped == "closed"
    assert said(second) == alone(model, 1, device="numpy")
    second.close()
    assert second.stopped != "closed"


def test_they_are_written_in_asyncio_as_well(model: fc.models.Model) -> None:
    async def written() -> list[Said]:
        async with model.conversations(2, device="numpy") as talks:
            every = begun(talks, range(3))
            async for _ in talks:
                pass
        return [said(talk) for talk in every]

    assert asyncio.run(written()) == [alone(model, number, device="numpy") for number in range(3)]


def test_a_full_context_ends_one_conversation_alone(model: fc.models.Model) -> None:
    with model.conversations(2, context=16, temperature=2.0, device="numpy") as talks:
        long, short = talks.begin([5] * 12, 99, seed=1), talks.begin([5], 3, seed=2)
        with pytest.raises(fc.SpecError, match="context=16"):
            talks.begin([5] * 16)
        list(talks)
    assert long.stopped in ("context", "end")
    assert len(long.tokens) <= 4
    assert short.stopped in ("max_tokens", "end")


@pytest.mark.parametrize(
    ("options", "words"),
    [({"slots": 0}, "slots"), ({"slots": 2.0}, "slots"), ({"context": 1}, "context"), ({"context": 10**6}, "context")],
)
def test_arguments_that_make_no_sense_together(model: fc.models.Model, options: dict[str, Any], words: str) -> None:
    with pytest.raises(fc.SpecError, match=words):
        model.conversations(**options)


def test_a_graph_that_keeps_one_text_is_told_apart(path: Path) -> None:
    def old(w: Any, meta: Any, tokens: Any, text: Any = None) -> Any:
        return fc.take(w["token_embd.weight"], tokens, axis=0) @ w["output.weight"].T

    def new(w: Any, meta: Any, tokens: Any, text: Any = None, **limits: Any) -> Any:
        assert limits == {"slots": 2, "context": 20}
        return old(w, meta, tokens, text)

    with pytest.raises(fc.SpecError, match="slots=1, context=None"):
        fc.models.load(path, graph=old).conversations(2, context=20)
    fc.models.load(path, graph=new).conversations(2, context=20)


def test_a_closed_flow_writes_nothing(model: fc.models.Model) -> None:
    talks = model.conversations(2, device="numpy")
    talks.begin("a")
    with pytest.raises(fc.RunError, match="not open"):
        next(talks)


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no slots": lambda kept: kept | {"conversations": [], "turns": []},
    "too many slots": lambda kept: kept | {"conversations": [None] * 5000, "turns": [0] * 5000},
    "other turns": lambda kept: kept | {"turns": [0]},
    "turns that are texts": lambda kept: kept | {"turns": ["a", "b"]},
    "endless turns": lambda kept: kept | {"turns": [1 << 40, 0]},
    "no model": lambda kept: kept | {"model": 5},
    "no sampling": lambda kept: kept | {"sampling": {"temperature": "hot"}},
    "a conversation that is none": lambda kept: kept | {"conversations": [5, None]},
    "a number that is none": lambda kept: kept | {"waiting": [kept["waiting"][0] | {"number": -1}]},
    "more told than said": lambda kept: kept | {"waiting": [kept["waiting"][0] | {"told": 10**6}]},
    "nothing to go on after": lambda kept: kept | {"waiting": [kept["waiting"][0] | {"sent": 2}]},
    "a mark that is none": lambda kept: kept | {"marked": 1},
    "something missing": lambda kept: {name: kept[name] for name in kept if name != "begun"},
    "a list": lambda kept: [kept],
    "nothing": lambda _: None,
}


@pytest.fixture(scope="module")
def frozen(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = tmp_path_factory.mktemp("kept") / "talks"
    with fc.models.load(path).conversations(2, device="numpy") as talks:
        talks.begin([5, 6])
        talks.freeze(kept)
    return kept


@pytest.mark.parametrize("name", DAMAGES)
def test_kept_conversations_are_not_believed(frozen: Path, name: str) -> None:
    kept = fc.thaw(frozen)
    kept.extra = DAMAGES[name](dict(kept.extra))
    with pytest.raises(fc.CheckpointError, match="go on with"):
        kept.conversations(device="numpy")
