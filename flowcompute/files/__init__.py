"""File layer: every read of user data and every write, rename and fsync of the package."""

from flowcompute.files.drafts import (
    Draft,
    EncodedParts,
    FolderDraft,
    LeftDraft,
    PartsDraft,
    Pieces,
    atomic_write_bytes,
    draft_bytes,
    find_drafts,
    in_the_way,
    is_draft_of,
    lies_in,
    may_be_draft_of,
    remove_draft,
    roll_folder_forward,
    roll_forward,
    seal_of,
)
from flowcompute.files.explained import MissingObjectError, StoreError, explain, shown
from flowcompute.files.file_layer import FILES, Files, temporary_path
from flowcompute.files.file_states import Fingerprint, Sealed, Unfinished
from flowcompute.files.file_view import FileView
from flowcompute.files.foreign_json import Each, ForeignJsonError, Maybe, expect, read_json, read_json_file
from flowcompute.files.overlaid_parts import OverlaidParts
from flowcompute.files.passing_pages import PassedPages, WrittenPages, cached_share, is_cached
from flowcompute.files.paths import (
    FOREIGN_FORMATS,
    FORMATS,
    format_of,
    is_pattern,
    is_url,
    path_text,
    without_secrets,
)
from flowcompute.files.scratch import Scratch, ScratchFullError
from flowcompute.files.sealed_store import SealedStore
from flowcompute.files.user_cache import TEMPORARY, cache_folder, private_folder, read_private, write_private

__all__ = [
    "FILES",
    "FOREIGN_FORMATS",
    "FORMATS",
    "TEMPORARY",
    "Draft",
    "Each",
    "EncodedParts",
    "FileView",
    "Files",
    "Fingerprint",
    "FolderDraft",
    "ForeignJsonError",
    "LeftDraft",
    "Maybe",
    "MissingObjectError",
    "OverlaidParts",
    "PartsDraft",
    "PassedPages",
    "Pieces",
    "Scratch",
    "ScratchFullError",
    "Sealed",
    "SealedStore",
    "StoreError",
    "Unfinished",
    "WrittenPages",
    "atomic_write_bytes",
    "cache_folder",
    "cached_share",
    "draft_bytes",
    "expect",
    "explain",
    "find_drafts",
    "format_of",
    "in_the_way",
    "is_cached",
    "is_draft_of",
    "is_pattern",
    "is_url",
    "lies_in",
    "may_be_draft_of",
    "path_text",
    "private_folder",
    "read_json",
    "read_json_file",
    "read_private",
    "remove_draft",
    "roll_folder_forward",
    "roll_forward",
    "seal_of",
    "shown",
    "temporary_path",
    "without_secrets",
    "write_private",
]
