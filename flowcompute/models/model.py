"""Language models in GGUF files, as functions from a stream of tokens to a stream of scores."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.elements import Element, nn
from flowcompute.elements.arguments import whole
from flowcompute.elements.axes import stack
from flowcompute.elements.functions import kernel
from flowcompute.elements.math import argmax, where
from flowcompute.elements.streams import MOST_SLOTS, scan
from flowcompute.errors import FlowError, SourceError, SpecError, short_repr
from flowcompute.files import path_text
from flowcompute.imports import LateModule, without_collector
from flowcompute.model_files import weights
from flowcompute.models.answer import GenerationState
from flowcompute.models.architectures import architecture_of, head
from flowcompute.models.chat_template import chat_prompt
from flowcompute.models.conversations import Conversations
from flowcompute.models.generation import TextGeneration
from flowcompute.models.sampling import Sampling
from flowcompute.sources import feed, source
from flowcompute.strategy import Precision
from flowcompute.tokens import TextTokenizer, tokens_of

if TYPE_CHECKING:
    from flowcompute import flow
else:
    flow = LateModule("flowcompute.flow")

GraphFunction = Callable[..., Element]
"""`graph(weights, metadata, tokens, text)` gives the scores of the next token; `slots=` and `context=` may be asked of
it, too."""

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
        self.weights = without_collector(weights)(self.path)
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
        return without_collector(TextTokenizer)(self.metadata, self.path)

    # -- streams --------------------------------------------------------------------------------------

    def tokens(self, texts: Sequence[str] | Iterable[str]) -> Element:
        """Return a stream of pairs (token, number of its text), int32, of all texts one after the other.

        Args:
            texts: a list, whose tokens are made at once. Of `fc.models.texts(path)`, or of another iterable, they are
                made while the stream is read; its length is not known before.

        Raises:
            SpecError: if these are no texts.
        """
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise SpecError(
                "cannot take these texts",
                element="tokens",
                expected="a list of texts, an iterable of them, or fc.models.texts(path)",
                got=short_repr(texts),
            )
        if not isinstance(texts, Sequence):
            return tokens_of(texts, self.tokenizer, self.weights.file)
        found = [np.asarray(self.tokenizer.encode(text), np.int32) for text in texts]
        numbers = np.repeat(np.arange(len(found), dtype=np.int32), [len(one) for one in found])
        tokens = np.concatenate([np.zeros(0, np.int32), *found])
        return source(np.stack([tokens, numbers], axis=1), name="tokens")

    def logits(self, tokens: Element, *, slots: int = 1, context: int | None = None) -> Element:
        """Return for each token the scores of all tokens as the next one, float32.

        Args:
            tokens: a stream of integers, or of pairs (token, text). A text ends where its number changes.
            slots: texts that may be open at once, their tokens in any order. Text t is kept in slot `t % slots`, and
                ends where another one of that slot begins.
            context: tokens of a text at most; None for what the file says.

        Raises:
            SpecError: if it is another stream, or a graph of yours takes neither `slots=` nor `context=`.
            SourceError: if the architecture of the file keeps one text at a time, and there are several slots.
        """
        if self._graph is not None:
            token, text = _parts(tokens)
            limits: dict[str, Any] = _limits(slots, context)
            if limits == {"slots": 1, "context": None}:
                limits = {}
            _require_limits(self._graph, limits)
            return self._graph(self.weights, self.metadata, token, text, **limits)
        return self.scores(self.states(tokens, slots=slots, context=context))

    def states(self, tokens: Element, *, slots: int = 1, context: int | None = None) -> Element:
        """Return for each token the vector that its scores are made of; see `logits`.

        Raises:
            SpecError: if the model has a graph of yours, whose vectors are not known.
        """
        if self._graph is not None:
            raise SpecError(
                "cannot give the states of a graph of yours", element="states", hint="take them from your function"
            )
        return self._made(self._built_in.states, *_parts(tokens), **_limits(slots, context))

    def scores(self, states: Element) -> Element:
        """Return the scores of all tokens as the next one, float32 (N, tokens), for vectors that `states` gave.

        Of a part of the vectors, `model.scores(model.states(tokens)[mask])` has the bits of that part of `logits`. The
        last product is of all the vocabulary, so it is worth leaving out where nobody reads it.

        Raises:
            SpecError: if the model has a graph of yours, or these are other vectors.
        """
        if self._graph is not None:
            raise SpecError("cannot give the scores of a graph of yours", element="scores", hint="use model.logits")
        if not isinstance(states, Element) or states.dtype != np.float32 or states.ndim != 2:
            got = str(getattr(states, "spec", type(states).__name__))
            raise SpecError("cannot score these vectors", element="scores", expected="what states() gives", got=got)
        return self._made(head, states)

    @without_collector
    def _made(self, graph: Callable[..., Element], *operands: Element | None, **limits: Any) -> Element:
        """Return what a function of the architecture makes of the file, which nobody has checked.

        Raises:
            SourceError: if the file lacks something, or says what no model can be.
        """
        try:
            return graph(self.weights, self.metadata, *operands, **limits)
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

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **options: Any,
    ) -> str:
        """Return the prompt of a chat, by the template of the file: what `apply_chat_template` of transformers writes.

        A token that the template begins with is left out where `encode` puts it before each text.

        Args:
            messages: such as `[{"role": "user", "content": "Hello"}]`. Those of the model may hold `tool_calls`, and
                those of role "tool" what a call gave.
            tools: JSON schemas of the functions that the model may ask for.
            documents: that the answer is to rest on, such as `{"title": "A", "text": "B"}`.
            add_generation_prompt: whether the prompt ends where an answer of the model begins.
            options: other variables of the template, such as `enable_thinking=False`.

        Raises:
            SourceError: if the file has no template, or it fails, or takes too long or too much memory.
            SpecError: if an argument is of another kind, or is what JSON cannot say, or the template does not read it.
        """
        return chat_prompt(
            self.metadata,
            self.path,
            self.tokenizer,
            messages,
            tools=tools,
            documents=documents,
            begins_answer=add_generation_prompt,
            options=options,
        )

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
        context: int | None = None,
        device: str = "auto",
        precision: Precision = "exact",
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
            context: tokens at most, prompt and answer; None for what the file says. The memory for so many keys and
                values is counted in the plan. A discrete device takes it as the text grows.
            device: as for `fc.run`.
            precision: as for `fc.run`. With "tf32x3" tensor cores multiply weights in blocks: conversations share them.

        Raises:
            SpecError: if an argument makes no sense, or the prompt has no token or does not fit the context.
        """
        most = self._context_of("generate", context)
        sampling = Sampling(temperature, top_k, top_p, seed)
        scores, marked = self._fed_scores(context=context)
        progress = GenerationState.begin(
            self.tokenizer, self.path, prompt, max_tokens, sampling, most, stop, marked=marked
        )
        next_token = scores if temperature else argmax(scores, axis=1)
        options: Any = {"device": device, "precision": precision}
        return TextGeneration(lambda: flow.open_flow(next_token, **options), progress, self.tokenizer)

    def conversations(
        self,
        slots: int = 8,
        *,
        context: int | None = None,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        device: str = "auto",
        precision: Precision = "exact",
    ) -> Conversations:
        """Return several conversations that are written at once, as batches of one flow.

        `with model.conversations(8) as talks:` opens it. `talks.begin(prompt)` adds a conversation at any time, and
        `for talk, piece in talks:` writes all of them. Weights are read once a step for all.

        Args:
            slots: how many are written at once; others wait.
            context: tokens of each at most, prompt and answer; None for what the file says. The memory for so many keys
                and values of each slot is counted in the plan.
            temperature: as for `generate`, as are the others.
            top_p: as for `generate`.
            top_k: as for `generate`.
            device: as for `fc.run`.
            precision: as for `fc.run`. With "tf32x3" tensor cores multiply weights in blocks: conversations share them.

        Raises:
            SpecError: if an argument makes no sense.
            SourceError: if the architecture of the file keeps one text at a time, as Mamba does.
        """
        context = self._context_of("conversations", context)
        slots = whole("conversations", "slots", slots, 1, MOST_SLOTS)
        scores, marked = self._fed_scores(slots=slots, context=context)
        next_token = scores if temperature else argmax(scores, axis=1)
        return Conversations(
            lambda: flow.open_flow(next_token, device=device, precision=precision),
            self.tokenizer,
            Sampling(temperature, top_k, top_p),
            self.path,
            context,
            slots,
            marked=marked,
        )

    def _context_of(self, what: str, context: int | None) -> int:
        """Return the tokens of a text at most: what the user asks for, or what the file says.

        Raises:
            SpecError: if it is asked for more than the model knows.
        """
        return self.context if context is None else whole(what, "context", context, 2, self.context)

    def _fed_scores(self, *, slots: int | None = None, context: int | None) -> tuple[Element, bool]:
        """Return the scores of what is fed, and whether each record ends with a mark.

        Records are tokens, or pairs (token, text) where there are `slots`. Only marked ones have scores: the product
        with the vocabulary is not computed for a prompt. A graph of a user gives the scores of all, without marks.
        """
        most = 1 if slots is None else slots
        if self._graph is not None:
            tokens = feed((2,) if slots else (), dtype="int32", name="tokens")
            return self.logits(tokens, slots=most, context=context), False
        sent: Any = feed((3 if slots else 2,), dtype="int32", name="tokens")
        states: Any = self.states(sent[:, :2] if slots else sent[:, 0], slots=most, context=context)
        return self.scores(states[sent[:, -1] != 0]), True


def load(path: str | os.PathLike[str], graph: GraphFunction | None = None) -> Model:
    """Open a language model in a GGUF file; see `Model`."""
    return Model(path, graph)


def _limits(slots: int, context: int | None) -> dict[str, int | None]:
    """Return how much of texts is kept, as a graph takes it.

    Raises:
        SpecError: if it makes no sense.
    """
    slots = whole("logits", "slots", slots, 1, MOST_SLOTS)
    return {"slots": slots, "context": None if context is None else whole("logits", "context", context, 1)}


def _require_limits(graph: GraphFunction, limits: Mapping[str, Any]) -> None:
    """Refuse a function of a user that cannot be told how much of texts is kept.

    Raises:
        SpecError: if it takes no such arguments.
    """
    takes = inspect.signature(graph).parameters
    if not limits.keys() <= takes.keys() and not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        raise SpecError(
            "cannot keep several texts apart with this graph",
            element="logits",
            expected="a function (weights, metadata, tokens, text, slots=1, context=None)",
            got=f"({', '.join(takes)})",
            hint="hand slots= on to fc.nn.position and to fc.nn.self_attention, and context= to the latter",
        )


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
