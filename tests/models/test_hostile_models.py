"""Sound files of models that lie: each answers, or is refused by an error of ours, with little work and memory."""

from __future__ import annotations

import resource
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.cli import main
from flowcompute.model_files.gguf_header import TENSOR_TYPES
from tests.model_files.files import gguf_bytes, tensor, text
from tests.models.architecture_files import METADATA, write_architecture
from tests.models.files import write_model
from tests.properties.cases import cases

CODES = {name: code for code, name in TENSOR_TYPES.items()}
MOST_BYTES = 256 << 20

Tensors = dict[str, tuple[str, tuple[int, ...], bytes]]
"""Type, shape and bytes by name."""

MORE_KEYS = (
    "attention.key_length", "attention.sliding_window", "attention.sliding_window_pattern", "expert_count",
    "expert_used_count", "expert_gating_func", "expert_weights_norm", "expert_weights_scale", "rope.dimension_count",
    "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length", "final_logit_softcapping",
)  # fmt: skip
TOKENIZER_KEYS = ("scores", "add_bos_token", "add_space_prefix", "unknown_token_id", "eot_token_id", "token_type")

VALUES: list[Any] = [
    0, 1, -1, 3, 16, 64, 512, (1 << 24) - 1, 1 << 24, 1 << 31, 1 << 62, -(1 << 63), (1 << 64) - 1,
    0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf"), True, False,
    "", "x", "yarn", "longrope", "llama", "gpt2", "{% for %}", "a\udcff", [], ["a"], ["a b"], ["\udcff"],
    np.arange(0), np.arange(3), np.array([True]), np.array([np.nan]),
]  # fmt: skip


def value_bytes(value: Any) -> bytes:
    """A value of metadata by its type."""
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<IQ", 10, value) if value >= 1 << 63 else struct.pack("<Iq", 11, value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value.encode(errors="surrogateescape"))
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(
            text(one.encode(errors="surrogateescape")) for one in value
        )
    code = {"b": 7, "i": 11, "u": 10, "f": 12}[value.dtype.kind]
    wide = value if value.dtype.kind == "b" else value.astype(f"{value.dtype.kind}8")
    return struct.pack("<IIQ", 9, code, value.size) + wide.tobytes()


def file_bytes(metadata: Mapping[str, Any], tensors: Tensors) -> bytes:
    """A sound file of these."""
    head, data = [text(key) + value_bytes(value) for key, value in metadata.items()], b""
    for name, (kind, shape, raw) in tensors.items():
        head.append(tensor(name, shape[::-1], CODES[kind], len(data)))
        data += raw + bytes(-len(raw) % 32)
    return gguf_bytes(*head, keys=len(metadata), tensors=len(tensors)) + data


class Known(list[tuple[dict[str, Any], Tensors]]):
    """Models, which nobody wants to see in a report."""

    def __repr__(self) -> str:
        return "models"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Metadata and tensors of a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    paths = [write_model(folder / "bytes.gguf"), *(write_architecture(folder / f"{one}.gguf", one) for one in METADATA)]
    found = Known()
    for path in paths:
        weights = fc.weights(path)
        raw = {name: np.asarray(weights.raw(name).value).tobytes() for name in weights}
        shapes = {name: weights.raw(name).tensor.shape for name in weights}
        found.append((dict(weights.metadata), {one: (weights.types[one], shapes[one], raw[one]) for one in weights}))
    return found


def answered(path: Path) -> bool:
    """Whether a model answers; an error of ours is none."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        model = fc.models.load(path)
        model.tokenizer.decode(model.tokenizer.encode("a b <|im_start|>"))
        with np.errstate(all="ignore"), model.generate("a", 2, device="numpy") as said:
            list(said)
    except fc.FlowError as error:
        assert len(str(error)) < 3000
        return False
    finally:
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_BYTES >> 10
    return True


def test_files_by_hand_answer(models: Known, tmp_path: Path) -> None:
    for metadata, tensors in models:
        path = tmp_path / "model.gguf"
        path.write_bytes(file_bytes(metadata, tensors))
        assert answered(path), metadata["general.architecture"]


PLACES = st.integers(0, 999)
"""The place of a key, a tensor or a model, modulo how many there are."""


@pytest.mark.slow
@cases(200)
@given(which=PLACES, lies=st.lists(st.tuples(PLACES, st.sampled_from(range(len(VALUES)))), min_size=1, max_size=3))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_metadata_that_lie_are_refused(
    models: Known, tmp_path_factory: pytest.TempPathFactory, which: int, lies: list[tuple[int, int]]
) -> None:
    metadata, tensors = models[which % len(models)]
    name = metadata["general.architecture"]
    keys = [*metadata, *(f"{name}.{one}" for one in MORE_KEYS), *(f"tokenizer.ggml.{one}" for one in TOKENIZER_KEYS)]
    changes = {keys[place % len(keys)]: VALUES[value] for place, value in lies}
    path = tmp_path_factory.getbasetemp() / "lies.gguf"
    path.write_bytes(file_bytes({**metadata, **changes}, tensors))
    answered(path)


@cases(50)
@given(which=PLACES, place=PLACES, other=PLACES, kind=st.integers(0, 5), noise=st.binary(min_size=8, max_size=8))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tensors_that_lie_are_refused(
    models: Known, tmp_path_factory: pytest.TempPathFactory, which: int, place: int, other: int, kind: int, noise: bytes
) -> None:
    metadata, tensors = models[which % len(models)]
    names = list(tensors)
    name = names[place % len(names)]
    type_, shape, raw = tensors[name]
    lies: list[tuple[str, tuple[int, ...], bytes] | None] = [
        None,
        tensors[names[other % len(names)]],
        ("I32" if type_ == "F32" else type_, shape, raw),
        (type_, (1, *shape), raw),
        (type_, (0, shape[-1]), b""),
        (type_, shape, noise * (len(raw) // 8) + raw[len(raw) // 8 * 8 :]),
    ]
    lie = lies[kind]
    changed = {one: own for one, own in tensors.items() if one != name} | ({} if lie is None else {name: lie})
    path = tmp_path_factory.getbasetemp() / "lies.gguf"
    path.write_bytes(file_bytes(metadata, changed))
    answered(path)


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\udcff\n", 5, ["a"], "long" * 1000])
def test_what_a_file_is_described_by_is_printable(
    models: Known, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: Any
) -> None:
    metadata, tensors = models[0]
    lies = {"general.architecture": name, "general.name": name, "key\x1b[31m\n": 1}
    path = tmp_path / "model.gguf"
    path.write_bytes(file_bytes({**metadata, **lies}, tensors))
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() and len(line) < 200 for line in out.splitlines())
    assert r"'key\x1b[31m\n' = 1" in out


def test_prompts_that_utf8_cannot_say_are_refused(models: Known, tmp_path: Path) -> None:
    metadata, tensors = models[0]
    path = tmp_path / "model.gguf"
    path.write_bytes(file_bytes({**metadata, "tokenizer.chat_template": "{{ messages[0].content }}\udcff"}, tensors))
    model = fc.models.load(path)
    prompt = model.chat([{"role": "user", "content": "Hi"}])
    with pytest.raises(fc.SpecError, match=r"UTF-8 can say(.|\n)*at character 2"):
        model.generate(prompt, 1)
