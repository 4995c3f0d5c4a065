"""Drafts: files and folders that are written under another name, and committed or discarded as a whole."""

from flowcompute.files.drafts.draft_names import is_draft_of, lies_in, may_be_draft_of
from flowcompute.files.drafts.file_draft import Draft, atomic_write_bytes, in_the_way, roll_forward
from flowcompute.files.drafts.folder_draft import FolderDraft, Pieces, draft_bytes, roll_folder_forward, seal_of
from flowcompute.files.drafts.orphans import LeftDraft, find_drafts, remove_draft
from flowcompute.files.drafts.parts_draft import EncodedParts, PartsDraft

__all__ = [
    "Draft",
    "EncodedParts",
    "FolderDraft",
    "LeftDraft",
    "PartsDraft",
    "Pieces",
    "atomic_write_bytes",
    "draft_bytes",
    "find_drafts",
    "in_the_way",
    "is_draft_of",
    "lies_in",
    "may_be_draft_of",
    "remove_draft",
    "roll_folder_forward",
    "roll_forward",
    "seal_of",
]
