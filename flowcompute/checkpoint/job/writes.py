"""The files that a job from a checkpoint would write, and whether it may without being told so.

The folder may be somebody else's: whoever made it chose the paths in it. Files that a job has begun are proof that it
ran here as this user, since nobody else can have put them there. A name in the folder is none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowcompute.checkpoint.job.fields import MOST_NODES, Fields
from flowcompute.files import FILES, Files, Sealed, is_draft_of, lies_in, seal_of, shown
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Write:
    """A file that a job makes.

    Attributes:
        target: its absolute path.
        draft: the path of the unfinished file; None where none was begun.
        doubt: why it is not written unless somebody allows it; None where it may be.
    """

    target: str
    draft: str | None
    doubt: str | None

    def __str__(self) -> str:
        draft = "" if self.draft is None else f", begun as {shown(self.draft)}"
        doubt = "" if self.doubt is None else f": {self.doubt}, so that it needs --allow"
        return f"{shown(self.target)}{draft}{doubt}"


def find_writes(
    targets: Sequence[str], token: str, body: Mapping[str, Any], allow: tuple[str, ...] = (), files: Files = FILES
) -> list[Write]:
    """Return a job's files in the order of their targets, and who may be surprised by each.

    Args:
        targets: absolute paths of the files that the job makes.
        token: of the job, which names its drafts.
        body: of the generation that it goes on from; empty for none.
        allow: folders whose files may be replaced.
        files: the file layer.

    Raises:
        CheckpointError: if the body is none of a job.
    """
    states = list(_states(token, body))
    done = bool(states) and Fields(body, "a generation").flag("done")
    found = []
    for target in targets:
        own = next(((state, draft) for name, state, draft in states if is_draft_of(draft, target, name)), None)
        state, draft = (None, None) if own is None else own
        doubt = None if lies_in(target, allow) else _doubt(target, draft, state if done else None, files)
        found.append(Write(target, draft, doubt))
    return found


def _states(token: str, body: Mapping[str, Any]) -> Iterator[tuple[str, Fields, str]]:
    """Yield the name, the state and the draft of each result that was begun."""
    fields = Fields(body, "a generation")
    for key, between in (("sinks", "-"), ("letters", "-letters-")):
        if key in fields:
            for i, state in enumerate(fields.items(key, MOST_NODES)):
                if isinstance(state, Mapping) and "draft" in state:
                    one = Fields(state, "a result")
                    yield f"{token}{between}{i}", one, one.text("draft")


def _doubt(target: str, draft: str | None, finished: Fields | None, files: Files) -> str | None:
    """Return why this file is not to be written without leave, or None.

    Args:
        target: the file.
        draft: its unfinished file, which the checkpoint names as this job would.
        finished: its state in a job that is done; None where the job goes on.
        files: the file layer.
    """
    if draft is not None and _is_ours(draft, files):
        return None
    there = _status(target, files)
    if there is None:
        return "its name or folder is hidden" if _is_hidden(target) else None
    if finished is not None:
        sealed = Sealed(finished.whole("size"), finished.whole("mtime_ns", least=-(1 << 63)))
        # Nothing is written: either it is what the job has made, or that is told.
        return None if draft is None or _status(draft, files) is None or _is_sealed(target, sealed, files) else _FOREIGN
    return _FOREIGN


_FOREIGN = "there is a file that this job has not begun"


def _is_ours(path: str, files: Files) -> bool:
    """Check whether a regular file of this user lies there, under no second name, or a folder."""
    status = _status(path, files)
    if status is None or status.st_uid != os.geteuid():
        return False
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)


def _is_sealed(path: str, sealed: Sealed, files: Files) -> bool:
    """Check whether a finished result lies there."""
    try:
        return seal_of(files, path) == sealed
    except OSError:
        return False


def _is_hidden(path: str) -> bool:
    """Check whether programs may read this file unasked, as they do those in a home folder whose names have a dot."""
    folder, name = os.path.split(path)
    return any(part.startswith(".") for part in (*os.path.realpath(folder).split(os.sep), name))


def _status(path: str, files: Files) -> os.stat_result | None:
    try:
        return files.lstat(path)
    except (OSError, ValueError):
        return None
