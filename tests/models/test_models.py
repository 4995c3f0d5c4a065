"""Language models of small GGUF files against float64, in all the ways to run them."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.cli import main
from flowcompute.models.sampling import Sampling, likeliest
from tests.models.files import CONTROL, Exact, vocabulary, write_model
from tests.support.slow import compiled_but, slow_but

TEXTS = ["the sing and the 12", "", "a", "<|im_start|>user\nother things<|im_end|>", "in and 121 the"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "small.gguf")


@pytest.fixture(scope="module")
def exact(path: Path) -> Exact:
    return Exact(path)


@pytest.fixture
def model(path: Path) -> fc.models.Model:
    return fc.models.load(path)


def stream(tokens: list[int]) -> Any:
    return fc.source(np.asarray(tokens, np.int32))


# -- streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", slow_but(["numpy"], ["numpy", "cpu"]))
def test_scores_are_those_of_exact_maths(model: fc.models.Model, exact: Exact, device: str) -> None:
    tokens = list(np.random.default_rng(1).integers(0, len(vocabulary()), 70))
    scores = model.logits(stream(tokens))
    assert (scores.shape, scores.dtype) == ((70, len(vocabulary())), np.float32)
    np.testing.assert_allclose(scores.resolve(device=device, progress=False), exact.logits(tokens), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_1", "Q5_0"])
@pytest.mark.parametrize("tied", [False, True])
def test_types_of_weights(tmp_path: Path, kind: str, tied: bool) -> None:
    path = write_model(tmp_path / "model.gguf", kind=kind, tied=tied, head_count=2, head_count_kv=1, block_count=1)
    tokens = [5, 60, 7, 7, 200, 3]
    scores = fc.models.load(path).logits(stream(tokens)).resolve(device="numpy", progress=False)
    np.testing.assert_allclose(scores, Exact(path).logits(tokens), atol=2e-3)


@pytest.mark.slow
def test_batches_change_no_bit(model: fc.models.Model, exact: Exact) -> None:
    tokens = list(np.random.default_rng(2).integers(0, len(vocabulary()), 90))
    losses = model.losses(stream(tokens))
    every = [
        losses.resolve(device="cpu", strategy=fc.Strategy(batch_bytes=size), progress=False)
        for size in (1 << 22, 1 << 14, 1 << 12)
    ]
    assert {one.tobytes() for one in every} == {every[0].tobytes()}
    assert every[0][0] == 0
    np.testing.assert_allclose(every[0], exact.losses(tokens), atol=5e-3)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_no_text_sees_another(model: fc.models.Model, exact: Exact, device: str) -> None:
    pairs = model.tokens(TEXTS * 2)
    assert pairs.shape[1:] == (2,)
    losses = fc.segment_sum(model.losses(pairs), pairs[:, 1], 2 * len(TEXTS)).resolve(device=device, progress=False)
    alone = [exact.losses(model.tokenizer.encode(text)).sum() if text else 0 for text in TEXTS]
    np.testing.assert_allclose(losses, alone * 2, atol=2e-2)


def test_a_flow_gives_the_bits_of_all_at_once(model: fc.models.Model) -> None:
    tokens = np.random.default_rng(3).integers(0, len(vocabulary()), 40).astype(np.int32)
    whole = model.logits(fc.source(tokens)).resolve(device="cpu", progress=False)
    with model.logits(fc.feed(dtype="int32")).flow(device="cpu") as flow:
        parts = []
        for piece in np.split(tokens, [1, 2, 2, 30]):
            flow.send(piece)
            parts.append(flow.receive())
    assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_a_graph_of_the_user_takes_the_place_of_the_built_in_one(path: Path) -> None:
    seen: list[Any] = []

    def graph(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None) -> Any:
        seen.append((meta["general.architecture"], text))
        return fc.take(w["token_embd.weight"], tokens, axis=0) @ w["output.weight"].T

    model = fc.models.load(path, graph=graph)
    assert model.logits(stream([1, 2, 3])).resolve(device="numpy", progress=False).shape == (3, len(vocabulary()))
    assert seen == [("llama", None)]
    with pytest.raises(fc.SpecError, match="cannot give the states of a graph of yours"):
        model.states(stream([1, 2, 3]))


def test_scores_are_made_of_states(model: fc.models.Model) -> None:
    tokens = stream([9, 8, 7])
    states = model.states(tokens).resolve(device="numpy", progress=False)
    head = model.weights["output.weight"].resolve(device="numpy", progress=False)
    scores = model.logits(tokens).resolve(device="numpy", progress=False)
    np.testing.assert_allclose(states @ head.T, scores, atol=1e-4)


def test_scores_of_some_states_are_those_of_all(model: fc.models.Model) -> None:
    tokens = np.random.default_rng(6).integers(0, len(vocabulary()), 70).astype(np.int32)
    wanted = np.random.default_rng(7).random(70) < 0.3
    every = model.logits(fc.source(tokens)).resolve(device="cpu", progress=False)
    states: Any = model.states(fc.source(tokens))
    some = model.scores(states[fc.source(wanted)]).resolve(device="cpu", progress=False)
    assert some.tobytes() == every[wanted].tobytes()
    for bad in (states[:, None], states.astype("f8"), states.sum(axis=0), None):
        with pytest.raises(fc.SpecError, match="score these vectors"):
            model.scores(bad)


# -- texts --------------------------------------------------------------------------------------------


def test_the_likeliest_tokens_are_written(model: fc.models.Model, exact: Exact) -> None:
    prompt = model.tokenizer.encode("the sing")
    expected = list(itertools.takewhile(lambda token: token not in model.tokenizer.ends, exact.greedy(prompt, 12)))
    with model.generate("the sing", max_tokens=12, device="cpu") as said:
        text = "".join(said)
    assert said.tokens == expected
    assert said.text == text == model.tokenizer.decode(expected)
    assert said.stopped == ("max_tokens" if len(expected) == 12 else "end")


def test_draws_hang_on_their_seed_alone(model: fc.models.Model) -> None:
    def drawn(seed: int) -> list[int]:
        with model.generate("a", 12, temperature=1.5, top_p=0.9, seed=seed, device="numpy") as said:
            list(said)
        return said.tokens

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(4)}) > 1


EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.5, -3.5]


@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=40), st.integers(1, 45), st.sampled_from("efd"))
def test_the_likeliest_are_those_of_a_stable_sort(numbers: list[float], count: int, kind: str) -> None:
    scores = np.array(numbers, kind)
    wanted = np.argsort(-scores, kind="stable")[:count]
    np.testing.assert_array_equal(likeliest(scores, count), wanted)


def test_frequencies_of_draws() -> None:
    scores = np.log(np.array([0.1, 0.6, 0.25, 0.05])).astype(np.float32)
    counts = np.bincount([Sampling(1.0, seed=3).draw(scores, t) for t in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(counts, [0.1, 0.6, 0.25, 0.05], atol=0.03)
    assert {Sampling(1.0, top_k=2, seed=3).draw(scores, t) for t in range(200)} == {1, 2}
    assert {Sampling(1.0, top_p=0.7, seed=3).draw(scores, t) for t in range(200)} == {1, 2}
    assert {Sampling(1.0, top_p=0.6, seed=3).draw(scores, t) for t in range(200)} == {1}
    assert Sampling().draw(scores, 5) == 1


def test_a_text_that_ends_the_answer_is_no_part_of_it(model: fc.models.Model) -> None:
    with model.generate("the sing", 40, device="numpy") as said:
        whole = "".join(said)
    assert len(whole) > 8
    stop = whole[5:7]
    said = model.generate("the sing", 40, stop=[stop, "never there"], device="numpy")
    assert repr(said) == "<TextGeneration not begun; with model.generate(...) as said: ...>"
    with said:
        pieces = list(said)
    assert repr(said) == f"<TextGeneration {len(said.tokens)} tokens, stop>"
    assert said.stopped == "stop"
    assert "".join(pieces) == said.text == whole[: whole.index(stop)]


def test_a_full_context_ends_the_answer(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", context_length=12, block_count=1)
    with fc.models.load(path).generate([5, 6, 7], 40, temperature=2.0, device="numpy") as said:
        list(said)
    assert said.stopped in ("context", "end")
    assert 3 + len(said.tokens) <= 12


def test_the_context_is_what_is_asked_for(model: fc.models.Model) -> None:
    options: dict[str, Any] = {"temperature": 1.1, "seed": 4, "device": "numpy"}
    with model.generate([5, 6, 7], 40, **options) as whole:
        list(whole)
    assert len(whole.tokens) > 9
    with model.generate([5, 6, 7], 40, context=12, **options) as said:
        list(said)
    assert (said.stopped, said.tokens) == ("context", whole.tokens[:9])

    def counted(context: int) -> int:
        feed: Any = fc.feed(dtype="int32")
        return int(model.logits(feed, context=context).plan(device="numpy").memory.host_bytes)

    assert counted(12) < counted(model.context)


def test_a_graph_of_the_user_writes_texts_as_well(path: Path) -> None:
    own = fc.models.load(path)

    def graph(w: Mapping[str, Any], meta: Mapping[str, Any], tokens: Any, text: Any = None, **limits: Any) -> Any:
        return own.logits(tokens if text is None else fc.stack([tokens, text], axis=1), **limits)

    def written(model: fc.models.Model) -> tuple[list[int], list[list[int]]]:
        with model.generate("the sing", 6, context=40, device="numpy") as said:
            list(said)
        with model.conversations(2, context=40, device="numpy") as talks:
            every = [talks.begin(text, 4) for text in ("the sing", "a", "12")]
            list(talks)
        return said.tokens, [one.tokens for one in every]

    assert written(fc.models.load(path, graph=graph)) == written(own)


def test_it_is_written_in_asyncio_as_well(model: fc.models.Model) -> None:
    async def written() -> tuple[str, list[int]]:
        async with model.generate("the sing", 6, device="numpy") as said:
            return "".join([piece async for piece in said]), said.tokens

    text, tokens = asyncio.run(written())
    with model.generate("the sing", 6, device="numpy") as said:
        assert "".join(said) == text
    assert said.tokens == tokens


@pytest.mark.parametrize("drawn", compiled_but([1], [0, 1, 5]))
def test_a_frozen_answer_goes_on_in_another_process(model: fc.models.Model, tmp_path: Path, drawn: int) -> None:
    options: dict[str, Any] = {"temperature": 1.2, "seed": 5, "device": "numpy"}
    with model.generate("the sing", 12, **options) as said:
        list(said)
    expected = said.tokens
    assert len(expected) > drawn
    with model.generate("the sing", 12, **options) as said:
        first = [piece for _, piece in zip(range(drawn), said, strict=False)]
        said.freeze(tmp_path / "kept")
    code = (
        "import sys, flowcompute as fc\n"
        "with fc.thaw(sys.argv[1]).generation(device='numpy') as said: rest = list(said)\n"
        "print(repr((said.tokens, ''.join(rest))))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tokens, rest = eval(done.stdout)
    assert tokens == expected
    assert "".join(first) + rest == model.tokenizer.decode(expected)


def test_a_thawed_answer_is_frozen_again_without_a_path(model: fc.models.Model, tmp_path: Path) -> None:
    with model.generate("the sing", 6, device="numpy") as said:
        with pytest.raises(fc.CheckpointError, match="no checkpoint of its own"):
            said.freeze()
        next(said)
        kept = said.freeze(tmp_path / "kept")
        list(said)
    with fc.thaw(kept).generation(device="numpy") as rest:
        next(rest)
        with pytest.raises(fc.CheckpointError, match="keeps its checkpoint elsewhere"):
            rest.freeze(tmp_path / "elsewhere")
        assert rest.freeze() == kept
    with fc.thaw(kept).generation(device="numpy") as rest:
        list(rest)
    assert rest.tokens == said.tokens


def test_an_answer_of_an_earlier_version_goes_on(path: Path, tmp_path: Path) -> None:
    """Flows took tokens without marks then, as those of a graph of the user still do."""
    own = fc.models.load(path)
    graph = fc.models.load(path, graph=lambda w, meta, tokens, text=None: own.logits(tokens))
    with graph.generate("the sing", 8, device="numpy") as said:
        next(said)
        said.freeze(tmp_path / "kept")
        list(said)
    frozen = fc.thaw(tmp_path / "kept")
    frozen.extra = {name: value for name, value in frozen.extra.items() if name != "marked"}
    with frozen.generation(device="numpy") as rest:
        list(rest)
    assert rest.tokens == said.tokens


@pytest.mark.parametrize(
    "damage",
    [
        {"prompt": []},
        {"tokens": [-1]},
        {"sent": 10**6},
        {"sent": "a"},
        {"model": 5},
        {"stop": [3]},
        {"sampling": {"temperature": "hot"}},
        {"sampling": None},
        {"unknown": 1},
        {"marked": 1},
    ],
)
def test_what_was_kept_is_not_believed(model: fc.models.Model, tmp_path: Path, damage: dict[str, Any]) -> None:
    with model.generate("a", 3, device="numpy") as said:
        said.freeze(tmp_path / "kept")
    frozen = fc.thaw(tmp_path / "kept")
    frozen.extra = {**frozen.extra, **damage}
    with pytest.raises(fc.CheckpointError, match="go on with a generation"):
        frozen.generation(device="numpy")
    frozen.extra = None
    with pytest.raises(fc.CheckpointError, match="no generation"):
        frozen.generation()


# -- tokens -------------------------------------------------------------------------------------------


def test_texts_come_back(model: fc.models.Model) -> None:
    for text in (*TEXTS, "naïve \N{EN DASH} q", "🙂👩\u200d👩", "\t\n\n  x", "\x00\x7f"):
        tokens = model.tokenizer.encode(text)
        assert model.tokenizer.decode(tokens) == text
    assert model.tokenizer.encode("<|im_end|>") == [CONTROL.index("<|im_end|>")]
    with pytest.raises(fc.SpecError, match="decode this token"):
        model.tokenizer.decode([10**6])
    with pytest.raises(fc.SpecError, match="a text"):
        model.tokenizer.encode(5)  # type: ignore[arg-type]


def test_an_unknown_cut_into_words_is_named(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", pre="of-tomorrow")
    with pytest.raises(fc.SourceError, match="of-tomorrow"):
        fc.models.load(path).tokenizer  # noqa: B018


def test_a_chat_is_written_by_the_template_of_the_file(model: fc.models.Model) -> None:
    prompt = model.chat([{"role": "user", "content": "Hi"}])
    assert prompt == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert model.tokenizer.encode(prompt)[0] == CONTROL.index("<|im_start|>")


# -- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": 1.5}, "top_k"),
        ({"seed": -1}, "seed"),
        ({"stop": [""]}, "stop="),
        ({"stop": 5}, "stop="),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [10**6]}, "prompt"),
        ({"prompt": [5] * 9, "context": 8}, "context=8"),
        ({"context": 1}, "context="),
        ({"context": 2.0}, "context="),
        ({"context": 10**6}, "context="),
    ],
)
def test_arguments_that_make_no_sense(model: fc.models.Model, options: dict[str, Any], words: str) -> None:
    with pytest.raises(fc.SpecError, match=words):
        model.generate(**{"prompt": "a", **options})


def test_other_streams_are_refused(model: fc.models.Model) -> None:
    for tokens in (
        fc.source(np.zeros(3, "f4")),
        fc.source(np.zeros((3, 3), "i4")),
        fc.constant(np.zeros(3, "i4")),
        [1],
    ):
        with pytest.raises(fc.SpecError, match="tokens"):
            model.logits(tokens)
    with pytest.raises(fc.SpecError, match="texts"):
        model.tokens("one")


def test_a_generation_is_used_inside_of_its_block(model: fc.models.Model) -> None:
    said = model.generate("a", 2, device="numpy")
    with pytest.raises(fc.RunError, match="not open"):
        next(said)


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", architecture="of-tomorrow")
    with pytest.raises(fc.SourceError, match="of-tomorrow"):
        fc.models.load(path)
    # What is here is no architecture by its name alone.
    path = write_model(tmp_path / "other.gguf", architecture="tokenizer")
    with pytest.raises(fc.SourceError, match="tokenizer"):
        fc.models.load(path)


@pytest.mark.parametrize(
    "lie", [{"block_count": 10**6}, {"head_count": 0}, {"head_count": 3}, {"head_count_kv": 0}, {"context_length": 0}]
)
def test_a_file_that_lies_about_its_model_is_refused(model: fc.models.Model, lie: dict[str, Any]) -> None:
    (name,) = lie
    names = {"head_count": "attention.head_count", "head_count_kv": "attention.head_count_kv"}
    model.metadata = {**model.metadata, f"llama.{names.get(name, name)}": lie[name]}
    with pytest.raises(fc.FlowError):
        model.logits(stream([1, 2]))


@pytest.mark.parametrize("name", ["llama.attention.head_count", "llama.block_count"])
@pytest.mark.parametrize("value", [None, "four", 2.5, [4]])
def test_metadata_of_other_types_is_refused(model: fc.models.Model, name: str, value: Any) -> None:
    model.metadata = {key: one for key, one in model.metadata.items() if key != name}
    if value is not None:
        model.metadata[name] = value
    with pytest.raises(fc.FlowError):
        model.logits(stream([1, 2]))


# -- command line -------------------------------------------------------------------------------------


def test_the_command_writes_the_answer(model: fc.models.Model, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with model.generate("the sing", 5, device="numpy") as said:
        text = "".join(said)
    assert main(["generate", str(path), "-p", "the sing", "-n", "5", "--device", "numpy"]) == 0
    assert capsys.readouterr().out == text + "\n"
    assert main(["generate", str(path), "-p", "Hi", "-n", "1", "--chat", "--device", "numpy"]) == 0
    assert main(["generate", str(path), "-p", "Hi", "--temperature", "-1"]) == 2
    assert main(["generate", str(path), "-p", "the sing", "--context", "1"]) == 2


def test_the_command_describes_the_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("llama", "Q4_0", "Q8_0", "F32", "llama.context_length = 128"))
