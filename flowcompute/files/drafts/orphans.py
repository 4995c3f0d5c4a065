"""Drafts that processes have left behind: which there are, and how they are removed."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Literal

from flowcompute.files.drafts.folder_draft import draft_bytes
from flowcompute.files.file_layer import FILES, Files
from flowcompute.imports import dataclass

_NAME = re.compile(r"\..+\.(?P<token>[0-9a-f]{16})(?P<job>(-letters)?-[0-9]+)?\.partial", re.DOTALL)

_PIECE = re.compile(r"c(\.[0-9]+)*|zarr\.json|part-[0-9]{10}\.parquet|\.rows-[0-9]+")
"""Names of files in a draft that is a folder."""

Fate = Literal["left behind", "in use", "kept for a checkpoint", "of unknown state"]


@dataclass(frozen=True)
class LeftDraft:
    """A draft in a folder.

    Attributes:
        path: of the file or folder.
        size: in bytes, of a folder those of its files.
        fate: "left behind" by a process that has ended, or "in use". Else "kept for a checkpoint" that may go on with
            it, or "of unknown state" where the file system has no locks.
        inode: tells the file from a later one of its name.
    """

    path: str
    size: int
    fate: Fate
    inode: int


def find_drafts(folder: str, given_up: str | None = None, files: Files = FILES) -> list[LeftDraft]:
    """Return the drafts in a folder, in the order of their names: files and folders of this user, under names of ours.

    Args:
        folder: where they lie; folders in it are not looked at.
        given_up: the token of a job that nobody goes on with.
        files: the file layer.

    Raises:
        OSError: if the folder cannot be read.
    """
    found = []
    for name in files.list_folder(folder):
        match = _NAME.fullmatch(name)
        path = os.path.join(folder, name)
        if match is None:
            continue
        try:
            status = files.lstat(path)
        except FileNotFoundError:
            continue
        is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if status.st_uid != os.geteuid() or not (is_file or _is_draft_of_ours(path, status, files)):
            continue
        kept = match["job"] is not None and match["token"] != given_up
        fate: Fate = "kept for a checkpoint" if kept else _fate(path, status.st_ino, files, remove=False)
        try:
            size = draft_bytes(files, path)
        except FileNotFoundError:
            continue
        found.append(LeftDraft(path, size, fate, status.st_ino))
    return found


def _is_draft_of_ours(path: str, status: os.stat_result, files: Files) -> bool:
    """Check whether a folder holds files of an array or a table alone, and at least one of them."""
    if not stat.S_ISDIR(status.st_mode):
        return False
    try:
        names = files.list_folder(path)
        plain = all(stat.S_ISREG(files.lstat(os.path.join(path, name)).st_mode) for name in names)
    except OSError:
        return False
    return bool(names) and plain and all(_PIECE.fullmatch(name) for name in names)


def remove_draft(draft: LeftDraft, files: Files = FILES) -> bool:
    """Remove a draft that was left behind, and return whether it was; it stays if a process has taken it meanwhile.

    Raises:
        OSError: if it cannot be removed.
    """
    return draft.fate == "left behind" and _fate(draft.path, draft.inode, files, remove=True) == "left behind"


def _fate(path: str, inode: int, files: Files, *, remove: bool) -> Fate:
    """Ask for the lock that a living process holds, and remove the file while nobody else can have it."""
    try:
        handle = files.open_folder(path) if files.is_folder(path) else files.open_update(path)
    except FileNotFoundError:
        return "in use"
    except OSError:
        return "of unknown state"
    try:
        if files.status(handle).st_ino != inode or not files.lock(handle):
            return "in use"
        if remove:
            files.remove_tree(path)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        return "of unknown state"
    finally:
        files.close(handle)
    return "left behind"
