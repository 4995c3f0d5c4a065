"""Language models in GGUF files, as functions from a stream of tokens to a stream of scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from flowcompute.elements import Element, nn
from flowcompute.elements.axes import stack
from flowcompute.elements.functions import kernel
from flowcompute.elements.math import argmax, where
from flowcompute.elements.streams import scan
from flowcompute.errors import FlowError, SourceError, SpecError
from flowcompute.files import path_text
from flowcompute.flow import open_flow as open_flow_of
from flowcompute.model_files import weights
from flowcompute.models._jinja2 import rendered
from flowcompute.models.architectures import architecture_of
from flowcompute.models.generation import GenerationState, TextGeneration, as_stops
from flowcompute.models.sampling import Sampling
from flowcompute.models.tokenizer import TextTokenizer
from flowcompute.runtime.flows import FlowOpener
from flowcompute.sources import feed, source

GraphFunction = Callable[[Mapping[str, Any], Mapping[str, Any], Element, Element | None], Element]
"""`graph(weights, metadata, tokens, text)` gives the scores of the next token."""

_CONTEXT = 4096
"""Tokens of a text where the file does not say how many."""


class Model:
    """A language model. Its header and vocabulary are read; its weights stay in the file.

    Args:
        path: of a GGUF file.
        graph: makes the scores out of weights, metadata, tokens and texts; None for what the file's architecture says.

    Attributes:
        path: of the file, absolute.
        weights: elements of the file's tensors by name.
        metadata: of the file.

    Raises:
        SourceError: if the file is damaged, or names an architecture that is not known.
    """

    def __init__(self, path: str | os.PathLike[str], graph: GraphFunction | None = None) -> None:
        self.path = os.path.abspath(path_text(path))
        self.weights = weights(self.path)
        self.metadata: Mapping[str, Any] = self.weights.metadata
        self._graph = graph
        if graph is None:
            self._built_in = architecture_of(self.architecture, self.path)

    def __repr__(self) -> str:
        return f"<Model {self.architecture}: {os.path.basename(self.path)}, {len(self.weights)} tensors>"

    @property
    def architecture(self) -> str:
        """Name of the architecture, as the file has it."""
        name = self.metadata.get("general.architecture")
        if not isinstance(name, str):
            raise SourceError(
                "cannot find an architecture", element=self.path, expected="a file with general.architecture"
            )
        return name

    @property
    def context(self) -> int:
        """Tokens of a text at most."""
        length = self.metadata.get(f"{self.architecture}.context_length", _CONTEXT)
        return length if isinstance(length, int) and length > 0 else _CONTEXT

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """Tokenizer of the model's vocabulary."""
        return TextTokenizer(self.metadata, self.path)

    # -- streams --------------------------------------------------------------------------------------

    def tokens(self, texts: Sequence[str]) -> Element:
        """Return a stream of pairs (token, number of its text), int32, of all texts one after the other.

        Raises:
            SpecError: if these are no texts.
        """
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise SpecError(
                "cannot take these texts", element="tokens", expected="a list of texts", got=repr(texts)[:80]
            )
        found = [np.asarray(self.tokenizer.encode(text), np.int32) for text in texts]
        numbers = np.repeat(np.arange(len(found), dtype=np.int32), [len(one) for one in found])
        tokens = np.concatenate([np.zeros(0, np.int32), *found])
        return source(np.stack([tokens, numbers], axis=1), name="tokens")

    def logits(self, tokens: Element) -> Element:
        """Return for each token the scores of all tokens as the next one, float32.

        Args:
            tokens: a stream of integers, or of pairs (token, text). A text ends where its number changes.

        Raises:
            SpecError: if it is another stream.
        """
        token, text = _parts(tokens)
        if self._graph is not None:
            return self._graph(self.weights, self.metadata, token, text)
        return self._made(self._built_in.graph, token, text)

    def states(self, tokens: Element) -> Element:
        """Return for each token the vector that its scores are made of; see `logits`.

        Raises:
            SpecError: if the model has a graph of yours, whose vectors are not known.
        """
        if self._graph is not None:
            raise SpecError(
                "cannot give the states of a graph of yours", element="states", hint="take them from your function"
            )
        token, text = _parts(tokens)
        return self._made(self._built_in.states, token, text)

    def _made(self, graph: GraphFunction, token: Element, text: Element | None) -> Element:
        """Return what a function of the architecture makes of the file, which nobody has checked.

        Raises:
            SourceError: if the file lacks something, or says what no model can be.
        """
        try:
            return graph(self.weights, self.metadata, token, text)
        except SpecError as error:
            # What operations refuse here is what the file says.
            raise SourceError(
                f"cannot make the graph of the model: {error.element or 'an operation'}: {error.message}",
                element=self.path,
                expected=error.expected,
                got=error.got,
            ) from error
        except FlowError as error:
            error.element = error.element or self.path
            raise
        except KeyError as error:
            raise SourceError("cannot make the graph of the model", element=self.path, expected=str(error)) from error
        except (ArithmeticError, TypeError, ValueError) as error:
            raise SourceError("cannot make the graph of the model", element=self.path, got=str(error)[:200]) from error

    def losses(self, tokens: Element) -> Element:
        """Return -log p of each token after those before it in its text, float32; 0 for the first one of a text.

        Args:
            tokens: as for `logits`.
        """
        token, text = _parts(tokens)
        zeros: Any = token * 0 if text is None else text
        is_first = nn.position(token, text=zeros) == 0
        # The scores of a token are those after the token before. What stands before a text is a text of its own.
        before, apart = _previous(token), 2 * zeros.astype("int32") + is_first
        scores: Any = self.logits(stack([before, apart], axis=1))
        is_own = np.arange(scores.shape[1], dtype=np.int32) == token[:, None].astype("int32")
        own = where(is_own, scores, np.float32(0)).sum(axis=1)
        return where(is_first, np.float32(0), nn.logsumexp(scores, axis=1) - own)

    # -- texts ----------------------------------------------------------------------------------------

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt of a chat, by the template of the file.

        Args:
            messages: such as `[{"role": "user", "content": "Hello"}]`.

        Raises:
            SourceError: if the file has no template, or it fails.
        """
        template = self.metadata.get("tokenizer.chat_template")
        if not isinstance(template, str):
            raise SourceError("cannot find a template for chats", element=self.path, hint="give the whole prompt")
        tokens = {
            name: self.tokenizer.piece(number)
            for name, number in (
                (f"{one}_token", self.metadata.get(f"tokenizer.ggml.{one}_token_id")) for one in ("bos", "eos")
            )
            if isinstance(number, int) and 0 <= number < len(self.tokenizer)
        }
        return rendered(template, self.path, messages=list(messages), add_generation_prompt=True, **tokens)

    def generate(
        self,
        prompt: str | Sequence[int],
        max_tokens: int = 256,
        *,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int = 0,
        stop: str | Sequence[str] | None = None,
        device: str = "auto",
    ) -> TextGeneration:
        """Return an answer that is written while it is read: `with model.generate(text) as said: print(*said)`.

        Args:
            prompt: a text, or tokens.
            max_tokens: of the answer.
            temperature: divides the scores before a token is drawn; 0 takes the likeliest.
            top_p: only the likeliest tokens take part, until their probabilities reach it.
            top_k: so many of the likeliest tokens take part; 0 for all.
            seed: of the random numbers.
            stop: texts that end the answer, and are no part of it.
            device: as for `fc.run`.

        Raises:
            SpecError: if an argument makes no sense, or the prompt has no token.
        """
        tokens = self.tokenizer.encode(prompt) if isinstance(prompt, str) else [int(one) for one in prompt]
        if not tokens or any(not 0 <= one < len(self.tokenizer) for one in tokens):
            raise SpecError(
                "cannot go on with this prompt",
                element="generate",
                expected="tokens of the model",
                got=repr(prompt)[:80],
            )
        if type(max_tokens) is not int or max_tokens < 1:
            raise SpecError(
                "cannot write so many tokens", element="generate", expected="max_tokens >= 1", got=repr(max_tokens)
            )
        sampling = Sampling(temperature, top_k, top_p, seed)
        progress = GenerationState(self.path, tokens, sampling, max_tokens, self.context, as_stops(stop))
        scores = self.logits(feed(dtype="int32", name="tokens"))
        next_token = scores if temperature else argmax(scores, axis=1)
        return TextGeneration(lambda: open_flow_of(next_token, device=device), progress, self.tokenizer)


def load(path: str | os.PathLike[str], graph: GraphFunction | None = None) -> Model:
    """Open a language model in a GGUF file; see `Model`."""
    return Model(path, graph)


def go_on(extra: object, open_flow: Callable[[], FlowOpener]) -> TextGeneration:
    """Return the rest of an answer.

    Args:
        extra: what `TextGeneration.freeze` has kept beside the flow.
        open_flow: opens the flow that was frozen.

    Raises:
        CheckpointError: if it kept something else.
    """
    progress = GenerationState.of(extra)
    return TextGeneration(open_flow, progress, TextTokenizer(weights(progress.model).metadata, progress.model))


def _parts(tokens: Element) -> tuple[Any, Any]:
    """Return the tokens of a stream, and the numbers of their texts or None."""
    if not isinstance(tokens, Element) or not tokens.spec.is_stream or tokens.dtype.kind not in "iu":
        got = str(getattr(tokens, "spec", type(tokens).__name__))
        raise SpecError("cannot read these tokens", element="tokens", expected="a stream of integers", got=got)
    if tokens.spec.shape == ():
        return tokens, None
    if tokens.spec.shape != (2,):
        raise SpecError(
            "cannot read these tokens",
            element="tokens",
            expected="tokens, or pairs (token, text)",
            got=str(tokens.spec),
        )
    pairs: Any = tokens
    return pairs[:, 0], pairs[:, 1]


def _shifted(last: Any, before: Any, token: Any) -> Any:  # noqa: ARG001 - the second carry is the result
    return token, last


def _previous(tokens: Any) -> Any:
    """Return a stream of the integers before each one; 0 before the first."""
    _, before = scan(kernel(_shifted), tokens.astype("int32"), init=(np.int32(0), np.int32(0)))
    return before
