"""The formulas of `exact.py` against llama.cpp. `scripts/nightly` installs it and runs this; see the marker `peer`.

Tokens are not compared: llama.cpp rounds what quantized weights are multiplied by to eight bits, and takes GELU from a
table of halves. Of plain weights all 512 scores are compared.
"""

from __future__ import annotations

import importlib.util
import json
import re
import string
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.models.architecture_files import METADATA, write_architecture
from tests.models.exact import exact_logits
from tests.models.files import write_model
from tests.models.test_architectures import TOKENS, VARIANTS
from tests.models.test_chats_with_tools import ASK, CALLED, MARKED, NOW

pytestmark = pytest.mark.peer

PREFIXES = (1, 2, 8, 9, 17, 40)
"""Lengths of texts: around a window of 8, and more than one token behind it."""


def peer_of(path: Path) -> Any:
    """Return llama.cpp's server for a file."""
    assert importlib.util.find_spec("xllamacpp"), "scripts/nightly installs what this needs: pip install xllamacpp"
    import xllamacpp  # noqa: PLC0415

    options = xllamacpp.CommonParams()
    options.model.path = str(path)
    options.n_ctx, options.n_parallel, options.warmup = 256, 1, False
    options.cpuparams.n_threads = 1
    # By default it keeps keys and values as halves.
    options.cache_type_k = options.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    options.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return xllamacpp.Server(options)


def asked_of(server: Any, route: str, **body: Any) -> dict[str, Any]:
    """Return what llama.cpp's server answers to a request."""
    request = urllib.request.Request(
        f"{server.listening_address}/{route}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        made: dict[str, Any] = json.load(answer)
        return made


def peer_log_p(path: Path, prefixes: tuple[int, ...]) -> np.ndarray:
    """Log-probabilities of the token after each prefix of `TOKENS`, by llama.cpp."""
    server = peer_of(path)
    made = np.full((len(prefixes), 512), np.nan)
    for row, length in zip(made, prefixes, strict=True):
        asked: dict[str, Any] = {"prompt": TOKENS[:length], "n_predict": 1, "temperature": 0.0, "cache_prompt": False}
        answer = server.handle_completions({**asked, "logprobs": 512, "n_probs": 512})
        for one in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
            row[one["id"]] = one["logprob"]
    return made


def exact_log_p(path: Path, prefixes: tuple[int, ...]) -> np.ndarray:
    scores = exact_logits(path, TOKENS)[np.array(prefixes) - 1]
    scores = scores - scores.max(axis=-1, keepdims=True)
    made: np.ndarray = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return made


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in METADATA), *VARIANTS])
def test_formulas_are_those_of_llama_cpp(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    path = write_architecture(tmp_path / "model.gguf", name, **options)
    tolerance = 5e-3 if name == "gemma3" else 1e-4
    np.testing.assert_allclose(exact_log_p(path, PREFIXES), peer_log_p(path, PREFIXES), atol=tolerance)


@pytest.mark.parametrize("name", [name for name in METADATA if "expert_count" not in METADATA[name]])
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_quantized_files_are_read_alike(tmp_path: Path, name: str, kind: str) -> None:
    """Mixtures are left out: a rounded router chooses another expert now and then."""
    path = write_architecture(tmp_path / "model.gguf", name, kind=kind)
    exact, peer = (of(path, (1, 9, 40)) for of in (exact_log_p, peer_log_p))
    assert np.abs(exact - peer).max() < 1.0
    assert np.ptp(exact, axis=1).min() > 4


def test_answers_and_chats_are_those_of_llama_cpp(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", pieces=True, block_count=1, kind="F32")
    model, server = fc.models.load(path), peer_of(path)
    texts = []
    for prompt in ("the sing", *string.ascii_lowercase):
        asked = {"prompt": prompt, "n_predict": 4, "temperature": 0.0, "cache_prompt": False}
        texts.append(server.handle_completions(asked)["choices"][0]["text"])
        with model.generate(prompt, 4, device="numpy") as said:
            # The peer tells no control tokens.
            assert re.sub("<s>|</s>|<unk>", "", "".join(said)) == texts[-1]
    assert any(one.startswith(" ") for one in texts)
    messages = [{"role": "user", "content": "the sing"}]
    answer = server.handle_chat_completions({"messages": messages, "max_tokens": 1})
    assert answer["usage"]["prompt_tokens"] == len(model.tokenizer.encode(model.chat(messages)))


@pytest.mark.parametrize(
    ("messages", "options"),
    [(CALLED, {"tools": [NOW]}), ([ASK], {"tools": [NOW]}), ([ASK], {"enable_thinking": False}), ([ASK], {})],
)
def test_chats_with_tools_are_written_alike(tmp_path: Path, messages: list[Any], options: dict[str, Any]) -> None:
    path = write_model(tmp_path / "model.gguf", block_count=1, template=MARKED, context_length=512)
    tools = {name: own for name, own in options.items() if name == "tools"}
    variables = {name: own for name, own in options.items() if name != "tools"}
    answer = asked_of(peer_of(path), "apply-template", messages=messages, chat_template_kwargs=variables, **tools)
    assert fc.models.load(path).chat(messages, **options) == answer["prompt"]
