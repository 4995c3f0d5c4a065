"""Texts that a model writes, token by token: an ordinary flow whose records are the tokens."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.models.answer import Answer, GenerationState, last_marked
from flowcompute.models.flow_holder import FlowHolder
from flowcompute.tokens import TextTokenizer

if TYPE_CHECKING:
    from flowcompute.runtime.flows import FlowOpener


class TextGeneration(FlowHolder, Answer):
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

    _example = "model.generate(...) as said"

    def __init__(
        self, open_flow: Callable[[], FlowOpener], progress: GenerationState, tokenizer: TextTokenizer
    ) -> None:
        FlowHolder.__init__(self, open_flow)
        Answer.__init__(self, progress, tokenizer)

    def __repr__(self) -> str:
        begun = f"{len(self.tokens)} tokens{', ' if self.stopped else ''}{self.stopped}"
        return f"<TextGeneration {begun if self.tokens else f'not begun; with {self._example}: ...'}>"

    def freeze(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the answer so far, with all that the model holds, to a checkpoint; it goes on.

        `fc.thaw(path).generation()` goes on from there, on any device. The weights stay in their file.

        Args:
            path: of the checkpoint; None for the one that this goes on from.

        Raises:
            CheckpointError: if it cannot be written.
        """
        return self._plain().freeze(path, extra=self._progress.plain())

    async def afreeze(self, path: str | os.PathLike[str] | None = None) -> str:
        """Freeze as `freeze`, where it is open by `async with`."""
        return await self._asynchronous().freeze(path, extra=self._progress.plain())

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
            flow.send(self._records())
            self._take(np.asarray(flow.receive())[-1])

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while True:
            piece = self._piece()
            if piece:
                return piece
            if self._progress.stopped:
                raise StopAsyncIteration
            await self._sent(self._records(), lambda made: self._take(made[-1]))

    def _records(self) -> np.ndarray:
        """Return what the flow is sent: tokens that the model has not seen, the last of them marked."""
        tokens = np.asarray(self._to_send(), np.int32)
        return np.stack([tokens, last_marked(len(tokens))], axis=1) if self._progress.marked else tokens
