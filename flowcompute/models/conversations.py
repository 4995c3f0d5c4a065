"""Several conversations in one flow: each step gives the model the next tokens of all of them as one batch."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from flowcompute.elements.streams import MOST_SLOTS
from flowcompute.errors import CheckpointError, SpecError
from flowcompute.models.answer import Answer, GenerationState, last_marked
from flowcompute.models.flow_holder import FlowHolder
from flowcompute.models.sampling import Sampling
from flowcompute.tokens import TextTokenizer

if TYPE_CHECKING:
    from flowcompute.runtime.flows import FlowOpener

_TURNS = 1 << 20
"""Neighbouring texts of a slot need other numbers; these come again."""


class Conversation(Answer):
    """A conversation: a prompt, and the answer as far as it is written.

    Args:
        number: of the conversation.
        progress: how far its answer is.
        tokenizer: of the model.
        told: characters of the answer that a loop has been given.

    Attributes:
        number: which one it is, from 0, in the order in which they have begun.
        tokens: of the answer so far.
        text: what they say.
        stopped: "end" (the model ended it), "max_tokens", "stop", "context" or "closed"; "" while it goes on.
    """

    def __init__(self, number: int, progress: GenerationState, tokenizer: TextTokenizer, told: int = 0) -> None:
        super().__init__(progress, tokenizer)
        self.number, self._told = number, told

    def __repr__(self) -> str:
        return f"<Conversation {self.number}: {len(self.tokens)} tokens{self.stopped and ', '}{self.stopped}>"

    def close(self) -> None:
        """End the answer; another conversation takes its slot."""
        self._progress.stopped = self._progress.stopped or "closed"

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"number": self.number, "told": self._told, **self._progress.plain()}

    @classmethod
    def of(cls, kept: Mapping[str, Any], tokenizer: TextTokenizer) -> Self:
        """Make it again from plain data, which anybody may have written.

        Raises:
            CheckpointError: if it is none.
            KeyError, TypeError, ValueError: likewise.
        """
        rest = dict(kept)
        number, told = rest.pop("number"), rest.pop("told")
        made = cls(number, GenerationState.of(rest), tokenizer)
        if any(type(one) is not int or one < 0 for one in (number, told)) or told > len(made.text):
            raise ValueError(f"conversation {number!r}, of which {told!r} characters are told")
        if not made.stopped and not made.unsent():
            raise ValueError(f"conversation {number!r} goes on after no token")
        made._told = told
        return made

    def unsent(self) -> list[int]:
        """Return the tokens that the model has not seen."""
        return self._to_send()

    def take(self, last: Any) -> None:
        """Draw the next token from what the flow gave for the last one."""
        self._take(last)

    def piece(self) -> str:
        """Return the text that was not told yet."""
        return self._piece()


class Conversations(FlowHolder):
    """Conversations that share a flow: a context manager, and an iterator of (conversation, piece of text).

    A conversation takes a slot, with its own keys and values on the device. Where all slots are taken it waits. Its
    tokens are those that it has where it is alone.

    Args:
        open_flow: opens the flow from pairs (token, text) to next tokens, or to the scores of all.
        tokenizer: of the model.
        sampling: how tokens are drawn; each conversation has its own seed.
        model: path of the file.
        context: tokens of a conversation at most.
        slots: how many conversations are written at once.
        marked: whether records of the flow end with a mark, which is 1 where scores are asked for.

    Attributes:
        open: conversations that go on or wait, in the order in which they have begun.
        slots: how many are written at once.
    """

    _example = "model.conversations(...) as talks"

    def __init__(
        self,
        open_flow: Callable[[], FlowOpener],
        tokenizer: TextTokenizer,
        sampling: Sampling,
        model: str,
        context: int,
        slots: int,
        *,
        marked: bool,
    ) -> None:
        super().__init__(open_flow)
        self.slots = slots
        self._marked = marked
        self._tokenizer, self._sampling, self._model, self._context = tokenizer, sampling, model, context
        self._begun = 0
        self._waiting: list[Conversation] = []
        self._places: list[Conversation | None] = [None] * slots
        self._turns = [0] * slots

    def __repr__(self) -> str:
        return f"<Conversations: {self._begun} begun, {len(self.open)} open, {self.slots} slots>"

    @property
    def open(self) -> list[Conversation]:
        """Conversations that go on or wait, in the order in which they have begun."""
        held = [one for one in (*self._places, *self._waiting) if one is not None and not one.stopped]
        return sorted(held, key=lambda one: one.number)

    def begin(
        self,
        prompt: str | Sequence[int],
        max_tokens: int = 256,
        *,
        seed: int = 0,
        stop: str | Sequence[str] | None = None,
    ) -> Conversation:
        """Begin a conversation, also while others go on. It is written as soon as a slot is free.

        Args:
            prompt: a text, or tokens.
            max_tokens: of the answer.
            seed: of its random numbers.
            stop: texts that end the answer, and are no part of it.

        Raises:
            SpecError: if an argument makes no sense, or the prompt fills the context.
        """
        drawing = self._sampling
        progress = GenerationState.begin(
            self._tokenizer,
            self._model,
            prompt,
            max_tokens,
            Sampling(drawing.temperature, drawing.top_k, drawing.top_p, seed),
            self._context,
            stop,
            marked=self._marked,
        )
        if len(progress.prompt) >= self._context:
            raise SpecError(
                "cannot go on with this prompt",
                element="generate",
                expected=f"fewer tokens than context={self._context}",
                got=f"{len(progress.prompt)} tokens",
            )
        made = Conversation(self._begun, progress, self._tokenizer)
        self._begun += 1
        self._waiting.append(made)
        return made

    def freeze(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write all conversations that are open, with all that the model holds of them; they go on.

        `fc.thaw(path).conversations()` goes on from there, on any device, with those conversations in `open`.

        Args:
            path: of the checkpoint; None for the one that this goes on from.

        Raises:
            CheckpointError: if it cannot be written.
        """
        return self._plain().freeze(path, extra=self._kept())

    async def afreeze(self, path: str | os.PathLike[str] | None = None) -> str:
        """Freeze as `freeze`, where they are open by `async with`."""
        return await self._asynchronous().freeze(path, extra=self._kept())

    # -- steps ----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[Conversation, str]]:
        return self

    def __next__(self) -> tuple[Conversation, str]:
        while (found := self._untold()) is None:
            batch = self._batch()
            if batch is None:
                raise StopIteration
            flow = self._plain()
            flow.send(batch)
            self._take(flow.receive())
        return found

    def __aiter__(self) -> AsyncIterator[tuple[Conversation, str]]:
        return self

    async def __anext__(self) -> tuple[Conversation, str]:
        while (found := self._untold()) is None:
            batch = self._batch()
            if batch is None:
                raise StopAsyncIteration
            await self._sent(batch, self._take)
        return found

    def _untold(self) -> tuple[Conversation, str] | None:
        """Return a piece of text that was not told yet, with its conversation."""
        pieces = ((held, held.piece()) for held in self._places if held is not None)
        return next(((held, piece) for held, piece in pieces if piece), None)

    def _batch(self) -> np.ndarray | None:
        """Return the tokens that the model has not seen, with the numbers of their texts; None where there are none.

        Slots of answers that have ended, and are told, are given to those that wait.
        """
        for slot, held in enumerate(self._places):
            if held is not None and held.stopped:
                self._places[slot] = None
        self._waiting = [one for one in self._waiting if not one.stopped]
        for slot, held in enumerate(self._places):
            if held is None and self._waiting:
                self._places[slot] = self._waiting.pop(0)
                self._turns[slot] = (self._turns[slot] + 1) % _TURNS
        texts = []
        for slot, held in enumerate(self._places):
            if held is not None:
                tokens = np.asarray(held.unsent(), np.int32)
                text = np.full_like(tokens, self._turns[slot] * self.slots + slot)
                texts.append(np.stack([tokens, text, last_marked(len(tokens))], axis=1))
        return np.concatenate(texts)[:, : 3 if self._marked else 2] if texts else None

    def _take(self, results: Any) -> None:
        """Draw the next token of each conversation from what the flow gave for its last one."""
        end, results = 0, np.asarray(results)
        for held in self._places:
            if held is None:
                continue
            end += 1 if self._marked else len(held.unsent())
            if not held.stopped:
                held.take(results[end - 1])

    # -- checkpoints ----------------------------------------------------------------------------------

    def _kept(self) -> dict[str, Any]:
        """Return as plain data what has to be kept beside the flow."""
        return {
            "conversations": [None if one is None else one.plain() for one in self._places],
            "waiting": [one.plain() for one in self._waiting],
            "turns": list(self._turns),
            "begun": self._begun,
            "model": self._model,
            "context": self._context,
            "marked": self._marked,
            "sampling": asdict(self._sampling),
        }

    @classmethod
    def of(
        cls, kept: object, open_flow: Callable[[], FlowOpener], tokenizer_of: Callable[[str], TextTokenizer]
    ) -> Self:
        """Make them again from plain data of a checkpoint, which anybody may have written.

        Raises:
            CheckpointError: if it is none.
        """
        try:
            if not isinstance(kept, Mapping):
                raise TypeError("no conversations were frozen here")
            places, waiting, turns = (kept[name] for name in ("conversations", "waiting", "turns"))
            model, begun, context = (kept[name] for name in ("model", "begun", "context"))
            if not isinstance(places, list) or not isinstance(waiting, list) or not isinstance(turns, list):
                raise TypeError("other values than lists")
            marked = kept.get("marked", False)
            if type(marked) is not bool:
                raise TypeError("another mark than a truth value")
            if any(type(one) is not int or one < 0 for one in (*turns, begun, context)) or max(turns) >= _TURNS:
                raise ValueError("other numbers than counts")
            if not 1 <= len(places) == len(turns) <= MOST_SLOTS or not isinstance(model, str):
                raise ValueError(f"{len(places)} conversations, {len(turns)} turns")
            tokenizer = tokenizer_of(model)
            made = cls(open_flow, tokenizer, Sampling(**kept["sampling"]), model, context, len(places), marked=marked)
            made._begun, made._turns = begun, list(turns)
            made._places = [None if one is None else Conversation.of(one, tokenizer) for one in places]
            made._waiting = [Conversation.of(one, tokenizer) for one in waiting]
        except (KeyError, TypeError, ValueError, SpecError) as error:
            raise CheckpointError("cannot go on with conversations", got=str(error)[:200]) from error
        return made
