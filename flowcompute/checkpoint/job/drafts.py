"""The files outside a checkpoint's folder that the job goes on with, or has made."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flowcompute.checkpoint.job.fields import MOST_NODES, Fields
from flowcompute.files import FILES, Files, Sealed, draft_bytes, explain, seal_of, shown, temporary_path


def check_drafts(body: Mapping[str, Any], token: str, targets: Iterable[str], files: Files = FILES) -> list[str]:
    """Check the results of a job: a line for each fault.

    Args:
        body: of the generation.
        token: of the job, which names its drafts.
        targets: absolute paths of the files that the job makes.
        files: the file layer.

    Raises:
        CheckpointError: if the body is none of a job.
    """
    fields = Fields(body, "a generation")
    if "flow" in fields:
        # Results of a flow are handed over, not written.
        return []
    done = fields.flag("done")
    named = {f"{token}-{i}": state for i, state in enumerate(fields.items("sinks", MOST_NODES))}
    named |= {f"{token}-letters-{i}": state for i, state in enumerate(fields.items("letters", MOST_NODES))}
    known = tuple(targets)
    lines: list[str] = []
    for own, state in named.items():
        if isinstance(state, Mapping) and "draft" in state:
            lines += _problems(Fields(state, "a result"), own, known, done=done, files=files)
    return lines


def _problems(state: Fields, token: str, targets: tuple[str, ...], *, done: bool, files: Files) -> Iterator[str]:
    draft = state.text("draft")
    if not done:
        least = state.whole("bytes")
        size, said = _unfinished(files, draft)
        if size is None or size < least:
            yield f"the unfinished result {shown(draft)} {said}; at least {least:,} bytes are kept of it"
        return
    sealed = Sealed(state.whole("size"), state.whole("mtime_ns", least=-(1 << 63)))
    target = next((one for one in targets if temporary_path(one, token) == draft), None)
    # It has its name, unless nobody lived to give it: whoever resumes the job does.
    places = [path for path in (target, draft) if path is not None]
    if sealed not in [_sealed(files, path) for path in places]:
        yield f"the result {shown(target or draft)} is not what the job has written: {_found(files, places[0])}"


def _unfinished(files: Files, path: str) -> tuple[int | None, str]:
    """Return the size of a draft, and its state in words; whoever goes on with it follows no link."""
    try:
        status = files.lstat(path)
    except OSError as error:
        return None, f"cannot be found: {explain(error)[0]}"
    if stat.S_ISREG(status.st_mode):
        return status.st_size, _has(status.st_size)
    if stat.S_ISDIR(status.st_mode):
        size = draft_bytes(files, path)
        return size, _has(size)
    return None, "is a link, or no file"


def _found(files: Files, path: str) -> str:
    try:
        return _has(seal_of(files, path).size)
    except OSError as error:
        return f"cannot be found: {explain(error)[0]}"


def _has(size: int) -> str:
    return f"has {size:,} bytes"


def _sealed(files: Files, path: str) -> Sealed | None:
    try:
        return seal_of(files, path)
    except OSError:
        return None
