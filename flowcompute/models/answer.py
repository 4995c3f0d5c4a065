"""Answers of a model while they are written: their tokens, their text, and why they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Literal, Self

import numpy as np

from flowcompute.elements import user_site
from flowcompute.elements.arguments import is_whole, several, whole
from flowcompute.errors import CheckpointError, SpecError, short_repr
from flowcompute.imports import dataclass
from flowcompute.models.sampling import Sampling
from flowcompute.tokens import MOST_TOKENS, TextTokenizer

Stopped = Literal["", "end", "max_tokens", "stop", "context", "closed"]

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
        marked: whether the flow takes each token with a mark, which is 1 where its scores are asked for.
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
    marked: bool = False

    @classmethod
    def begin(
        cls,
        tokenizer: TextTokenizer,
        model: str,
        prompt: str | Sequence[int],
        max_tokens: int,
        sampling: Sampling,
        context: int,
        stop: str | Sequence[str] | None,
        *,
        marked: bool,
    ) -> Self:
        """Return the beginning of an answer.

        Raises:
            SpecError: if an argument makes no sense, or the prompt has no token or more than the context.
        """
        if isinstance(prompt, str):
            tokens = tokenizer.encode(prompt)
        else:
            tokens = several("generate", "prompt", prompt, "a text, or tokens of the model", MOST_TOKENS)
        if not tokens or any(not is_whole(one) or not 0 <= one < len(tokenizer) for one in tokens):
            raise SpecError(
                "cannot go on with this prompt",
                element="generate",
                site=user_site(),
                expected=f"tokens from 0 to {len(tokenizer) - 1}" if tokens else "at least one token",
                got=short_repr(prompt),
                hint=None if tokens else "begin with some text",
            )
        if len(tokens) > context:
            raise SpecError(
                "cannot go on with this prompt",
                element="generate",
                site=user_site(),
                expected=f"at most context={context} tokens",
                got=f"{len(tokens)} tokens",
            )
        tokens, max_tokens = [int(one) for one in tokens], whole("generate", "max_tokens", max_tokens, 1)
        return cls(model, tokens, sampling, max_tokens, context, as_stops(stop), marked=marked)

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
            if type(made.marked) is not bool:
                raise TypeError("another mark than a truth value")
            if not 0 <= made.sent <= len(made.prompt) + len(made.tokens) or not made.prompt:
                raise ValueError(f"{made.sent} tokens sent")
        except (KeyError, TypeError, ValueError, SpecError) as error:
            raise CheckpointError("cannot go on with a generation", got=str(error)[:200]) from error
        return made


class Answer:
    """An answer as far as it is written.

    Args:
        progress: how far it is.
        tokenizer: of the model.

    Attributes:
        tokens: that were drawn so far, without the one that ended the answer.
        text: what they say.
        stopped: "end" (the model ended it), "max_tokens", "stop", "context" or "closed"; "" while it goes on.
    """

    def __init__(self, progress: GenerationState, tokenizer: TextTokenizer) -> None:
        self._progress = progress
        self._tokenizer = tokenizer
        self._told = len(self._settled())
        self._asked: tuple[int, Stopped] | None = None

    @property
    def tokens(self) -> list[int]:
        """The tokens that were drawn so far."""
        return list(self._progress.tokens)

    @property
    def text(self) -> str:
        """Text of the tokens."""
        return self._cut(self._said())

    @property
    def stopped(self) -> Stopped:
        """Reason why the answer has ended."""
        return self._progress.stopped

    def _said(self) -> str:
        """Return the text of all tokens that were drawn, which goes on with the prompt."""
        return self._tokenizer.decode(self._progress.tokens, continued=True)

    def _cut(self, text: str) -> str:
        """Return a text up to the first text that ends the answer."""
        places = [place for place in (text.find(one) for one in self._progress.stop) if place >= 0]
        return text[: min(places)] if places else text

    def _settled(self) -> str:
        """Return the part of the text that no later token changes, nor takes back."""
        text = self._cut(self._said())
        if self._progress.stopped:
            return text
        text = text.rstrip(_HALF)
        held = max((_overlap(text, one) for one in self._progress.stop), default=0)
        return text[: len(text) - held]

    def _to_send(self) -> list[int]:
        """Return the tokens that the model has not seen."""
        progress = self._progress
        return [*progress.prompt, *progress.tokens][progress.sent :]

    def _take(self, last: Any) -> None:
        """Draw the next token from what the flow gave for the last one: a token, or the scores of all."""
        progress = self._progress
        progress.sent = len(progress.prompt) + len(progress.tokens)
        last = np.asarray(last)
        token = int(last) if last.ndim == 0 else progress.sampling.draw(last, len(progress.tokens))
        if token in self._tokenizer.ends:
            progress.stopped = "end"
            return
        progress.tokens.append(token)
        said = self._said() if progress.stop else ""
        if any(one in said for one in progress.stop):
            progress.stopped = "stop"
        elif len(progress.tokens) >= progress.max_tokens:
            progress.stopped = "max_tokens"
        elif len(progress.prompt) + len(progress.tokens) >= progress.context:
            progress.stopped = "context"

    def _piece(self) -> str:
        """Return the text that was not told yet."""
        progress = self._progress
        asked = len(progress.tokens), progress.stopped
        if asked == self._asked:
            # Loops over conversations ask each of them for each piece, and all tokens are decoded for an answer.
            return ""
        self._asked, text = asked, self._settled()
        piece, self._told = text[self._told :], len(text)
        return piece


def _overlap(text: str, stop: str) -> int:
    """Return how many characters at the end of a text may begin a text that ends the answer."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)


def last_marked(count: int) -> np.ndarray:
    """Return marks of so many tokens, int32: 1 for the last one, whose scores are asked for, else 0."""
    marks = np.zeros(count, np.int32)
    marks[-1:] = 1
    return marks


def as_stops(stop: object) -> list[str]:
    """Return the texts that end an answer.

    Raises:
        SpecError: if they are none.
    """
    texts = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) and one for one in texts):
        raise SpecError(
            "cannot stop at this",
            element="generate",
            site=user_site(),
            expected="stop= as a text, or a list of texts, none of which is empty",
            got=short_repr(stop),
        )
    return list(texts)
