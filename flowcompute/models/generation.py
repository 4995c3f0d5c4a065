"""Texts that a model writes, token by token: an ordinary flow whose records are the tokens."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from flowcompute.errors import CheckpointError, RunError, SpecError
from flowcompute.models.sampling import Sampling
from flowcompute.models.tokenizer import TextTokenizer
from flowcompute.runtime.flows import AsyncFlow, Flow, FlowOpener

Stopped = Literal["", "end", "max_tokens", "stop", "context"]

_NOT_OPEN = "cannot go on with a generation that is not open"
_HALF = "\N{REPLACEMENT CHARACTER}"
"""Text of a token that ends inside of a character."""


@dataclass
class GenerationState:
    """Progress of an answer: all that has to be kept beside the flow.

    Attributes:
        model: path of the file.
        prompt: its tokens.
        sampling: how tokens are drawn.
        max_tokens: how many at most.
        context: tokens of the prompt and the answer at most.
        stop: texts that end the answer.
        tokens: that were drawn so far.
        sent: how many of the prompt's and the drawn tokens the flow has.
        stopped: why the answer has ended.
    """

    model: str
    prompt: list[int]
    sampling: Sampling
    max_tokens: int
    context: int
    stop: list[str]
    tokens: list[int] = field(default_factory=list)
    sent: int = 0
    stopped: Stopped = ""

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, kept: object) -> Self:
        """Make it again from plain data of a checkpoint, which anybody may have written.

        Raises:
            CheckpointError: if it is none.
        """
        try:
            if not isinstance(kept, Mapping):
                raise TypeError("no generation was frozen here")
            made = cls(**{**kept, "sampling": Sampling(**kept["sampling"])})
            for numbers in (made.prompt, made.tokens, [made.sent, made.max_tokens, made.context]):
                if not isinstance(numbers, list) or any(type(one) is not int or one < 0 for one in numbers):
                    raise ValueError("other numbers than tokens")
            if not isinstance(made.model, str) or not all(isinstance(one, str) for one in made.stop):
                raise ValueError("other values than texts")
            if not 0 <= made.sent <= len(made.prompt) + len(made.tokens) or not made.prompt:
                raise ValueError(f"{made.sent} tokens sent")
        except (KeyError, TypeError, ValueError, SpecError) as error:
            raise CheckpointError("cannot go on with a generation", got=str(error)[:200]) from error
        return made


class TextGeneration:
    """An answer as it is written: a context manager, and an iterator of pieces of text, also in asyncio and trio.

    Args:
        open_flow: opens the flow from tokens to the next token, or to the scores of all.
        progress: how far it is.
        tokenizer: of the model.

    Attributes:
        tokens: that were drawn so far, without the one that ended the answer.
        text: what they say.
        stopped: "end" (the model ended it), "max_tokens", "stop" or "context"; "" while it goes on.
    """

    def __init__(
        self, open_flow: Callable[[], FlowOpener], progress: GenerationState, tokenizer: TextTokenizer
    ) -> None:
        self._open_flow = open_flow
        self._opener: FlowOpener | None = None
        self._flow: Flow | AsyncFlow | None = None
        self._progress = progress
        self._tokenizer = tokenizer
        self._told = len(self._settled())

    # -- what there is --------------------------------------------------------------------------------

    @property
    def tokens(self) -> list[int]:
        """The tokens that were drawn so far."""
        return list(self._progress.tokens)

    @property
    def text(self) -> str:
        """Text of the tokens."""
        return self._cut(self._tokenizer.decode(self._progress.tokens))

    @property
    def stopped(self) -> Stopped:
        """Reason why the answer has ended."""
        return self._progress.stopped

    def _cut(self, text: str) -> str:
        """Return a text up to the first text that ends the answer."""
        places = [place for place in (text.find(one) for one in self._progress.stop) if place >= 0]
        return text[: min(places)] if places else text

    def _settled(self) -> str:
        """Return the part of the text that no later token changes, nor takes back."""
        text = self._cut(self._tokenizer.decode(self._progress.tokens))
        if self._progress.stopped:
            return text
        text = text.rstrip(_HALF)
        held = max((_overlap(text, one) for one in self._progress.stop), default=0)
        return text[: len(text) - held]

    # -- life -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._opener = self._open_flow()
        self._flow = self._opener.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opener, self._opener, self._flow = self._opener, None, None
        if opener is not None:
            opener.__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        self._opener = self._open_flow()
        self._flow = await self._opener.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opener, self._opener, self._flow = self._opener, None, None
        if opener is not None:
            await opener.__aexit__(kind, error, trace)

    def freeze(self, path: str | os.PathLike[str]) -> str:
        """Write the answer so far, with all that the model holds, to a checkpoint; it goes on.

        `fc.thaw(path).generation()` goes on from there, on any device. The weights stay in their file.

        Raises:
            CheckpointError: if it cannot be written.
        """
        return self._plain().freeze(path, extra=self._progress.plain())

    # -- tokens ---------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            piece = self._piece()
            if piece:
                return piece
            if self._progress.stopped:
                raise StopIteration
            flow = self._plain()
            flow.send(self._to_send())
            self._take(flow.receive())

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while True:
            piece = self._piece()
            if piece:
                return piece
            if self._progress.stopped:
                raise StopAsyncIteration
            flow = self._flow
            if not isinstance(flow, AsyncFlow):
                raise RunError(_NOT_OPEN, element="generate", hint="async with model.generate(...) as said: ...")
            await flow.send(self._to_send())
            self._take(await flow.receive())

    def _plain(self) -> Flow:
        if not isinstance(self._flow, Flow):
            raise RunError(_NOT_OPEN, element="generate", hint="with model.generate(...) as said: ...")
        return self._flow

    def _to_send(self) -> np.ndarray:
        """Return the tokens that the model has not seen."""
        progress = self._progress
        known = [*progress.prompt, *progress.tokens]
        return np.asarray(known[progress.sent :], np.int32)

    def _take(self, results: Any) -> None:
        """Draw the next token from what the flow gave for the last ones."""
        progress = self._progress
        progress.sent = len(progress.prompt) + len(progress.tokens)
        last = np.asarray(results)[-1]
        token = int(last) if last.ndim == 0 else progress.sampling.draw(last, len(progress.tokens))
        if token in self._tokenizer.ends:
            progress.stopped = "end"
            return
        progress.tokens.append(token)
        if progress.stop and any(one in self._tokenizer.decode(progress.tokens) for one in progress.stop):
            progress.stopped = "stop"
        elif len(progress.tokens) >= progress.max_tokens:
            progress.stopped = "max_tokens"
        elif len(progress.prompt) + len(progress.tokens) >= progress.context:
            progress.stopped = "context"

    def _piece(self) -> str:
        """Return the text that was not told yet."""
        text = self._settled()
        piece, self._told = text[self._told :], len(text)
        return piece


def _overlap(text: str, stop: str) -> int:
    """Return how many characters at the end of a text may begin a text that ends the answer."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)


def as_stops(stop: object) -> list[str]:
    """Return the texts that end an answer.

    Raises:
        SpecError: if they are none.
    """
    texts = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) and one for one in texts):
        raise SpecError(
            "cannot stop at this", element="generate", expected="stop= as a text, or a list", got=repr(stop)
        )
    return list(texts)
