"""Answers and conversations that go on from a checkpoint, with the file of their model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flowcompute.errors import CheckpointError
from flowcompute.files import path_text, shown
from flowcompute.model_files import weights
from flowcompute.models.answer import GenerationState
from flowcompute.models.conversations import Conversations
from flowcompute.models.generation import TextGeneration
from flowcompute.tokens import TextTokenizer

if TYPE_CHECKING:
    from flowcompute.runtime.flows import FlowOpener


def go_on(
    extra: object, open_flow: Callable[[str], FlowOpener], model: str | os.PathLike[str] | None
) -> TextGeneration:
    """Return the rest of an answer.

    Args:
        extra: what `TextGeneration.freeze` has kept beside the flow.
        open_flow: opens the flow that was frozen, with the weights in a file.
        model: that file; None for where it was.

    Raises:
        CheckpointError: if it kept something else, or the file is not there.
    """
    progress = GenerationState.of(_moved(extra, model))
    return TextGeneration(lambda: open_flow(progress.model), progress, _tokenizer_in(progress.model))


def go_on_together(
    extra: object, open_flow: Callable[[str], FlowOpener], model: str | os.PathLike[str] | None
) -> Conversations:
    """Return the rest of several conversations; see `go_on`.

    Raises:
        CheckpointError: if something else was kept, or the file is not there.
    """
    kept: Any = _moved(extra, model)
    return Conversations.of(kept, lambda: open_flow(kept["model"]), _tokenizer_in)


def _moved(extra: object, model: str | os.PathLike[str] | None) -> object:
    """Return what was kept beside a flow, of a model that is in this file now.

    Raises:
        CheckpointError: if that is no path.
    """
    if model is None or not isinstance(extra, Mapping):
        return extra
    try:
        return {**extra, "model": os.path.abspath(path_text(model))}
    except ValueError as error:
        raise CheckpointError("cannot use this value of model=", expected="a path", got=str(error)) from None


def _tokenizer_in(path: str) -> TextTokenizer:
    if not os.path.exists(path):
        raise CheckpointError(
            "cannot go on: the file of the model is not there",
            expected="the file with which it was frozen",
            got=shown(path),
            hint="say where it is now: thawed.generation(model=path), or thawed.conversations(model=path)",
        )
    return TextTokenizer(weights(path).metadata, path)
