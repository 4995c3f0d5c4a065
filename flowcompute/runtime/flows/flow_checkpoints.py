"""Keeps what a flow holds in a checkpoint."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.elements import user_site
from flowcompute.errors import CheckpointError
from flowcompute.files import FILES
from flowcompute.imports import LateModule
from flowcompute.runtime.checkpoints import (
    check_alike,
    check_job,
    create_folder,
    freezing_path,
    sound_state,
)
from flowcompute.runtime.flows.flow_core import FlowCore

if TYPE_CHECKING:
    from flowcompute.checkpoint import job as jobs
    from flowcompute.checkpoint import store
else:
    jobs = LateModule("flowcompute.checkpoint.job")
    store = LateModule("flowcompute.checkpoint.store")

DEEPEST = 16
"""Levels of lists and dicts that are kept beside a flow."""


class FlowCheckpoints:
    """The checkpoint of one flow, if it has one.

    Args:
        core: the flow.
        path: of its checkpoint, absolute; None for none so far.
        moved: weights that lie elsewhere than that checkpoint says; None for none.
    """

    def __init__(self, core: FlowCore, path: str | None, moved: jobs.MovedWeights | None = None) -> None:
        self._core = core
        self._path = path
        self._moved = moved
        self._folder: store.CheckpointFolder | None = None
        self._site = user_site()

    def open(self) -> None:
        """Take the checkpoint that is there, and go on from it.

        Raises:
            CheckpointError: if it belongs to another flow, is in use, or cannot be used.
        """
        if self._path is None or not store.CheckpointFolder.exists(self._path, FILES):
            return
        folder = store.CheckpointFolder.open(self._path, FILES)
        folder.site = self._site
        try:
            body = folder.newest().body
            job = jobs.KeptJob.read(folder.job())
            if self._moved is not None:
                job = replace(job, graph=self._moved.placed(job.graph))
            check_job(job, self._core.plan, self._path, self._site, self._core.mode)
            with sound_state(self._path):
                check_alike(self._core.snapshot()["executor"], body["flow"]["executor"])
                self._core.restore(body["flow"])
        except BaseException:
            folder.close()
            raise
        self._folder = folder

    def freeze(self, path: str | os.PathLike[str] | None, extra: Any = None) -> str:
        """Commit what the flow holds now; see `Flow.freeze`."""
        _check_plain(extra)
        target = freezing_path(self._path, path, "flow")
        state = self._core.snapshot()
        created = self._folder is None
        if self._folder is None:
            self._folder, _ = create_folder(target, FILES, self._core.plan, self._core.mode)
            self._folder.site = self._site
        try:
            items = sum(self._core.sent.values())
            progress = {"items": items, "total_items": None, "bytes_read": 0, "seconds": 0.0}
            beside = {} if extra is None else {"extra": extra}
            self._folder.commit({"done": False, "progress": progress, "flow": state, **beside})
            if created:
                self._folder.publish()
        except BaseException:
            if created:
                self.close()
            raise
        self._path = target
        return target

    def close(self) -> None:
        """Give the checkpoint back; it stays for the next flow."""
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.close()


def _check_plain(extra: Any) -> None:
    """Check that what is kept beside a flow is plain data.

    Raises:
        CheckpointError: if it is not.
    """
    waiting = [(extra, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > DEEPEST:
            raise CheckpointError("cannot keep this beside the flow", expected=f"at most {DEEPEST} levels", got="more")
        if isinstance(one, dict) and all(isinstance(key, str) for key in one):
            waiting += [(value, depth + 1) for value in one.values()]
        elif isinstance(one, list):
            waiting += [(value, depth + 1) for value in one]
        elif one is not None and type(one) not in (bool, int, float, str, bytes, np.ndarray):
            raise CheckpointError(
                "cannot keep this beside the flow",
                expected="numbers, texts, bytes, arrays, and lists and dicts (by text) of them",
                got=type(one).__name__,
            )
