"""File layer: every read of user data and every write, rename and fsync of the package."""

from flowcompute.files.draft_names import is_draft_of, lies_in
from flowcompute.files.file_layer import (
    FILES,
    FORMATS,
    Draft,
    Files,
    Fingerprint,
    Sealed,
    Unfinished,
    explain,
    format_of,
    in_the_way,
    is_pattern,
    path_text,
    roll_forward,
    shown,
    temporary_path,
)
from flowcompute.files.foreign_json import Each, ForeignJsonError, Maybe, expect, read_json, read_json_file
from flowcompute.files.scratch import Scratch, ScratchFullError
from flowcompute.files.user_cache import TEMPORARY, cache_folder, private_folder, read_private, write_private

__all__ = [
    "FILES",
    "FORMATS",
    "TEMPORARY",
    "Draft",
    "Each",
    "Files",
    "Fingerprint",
    "ForeignJsonError",
    "Maybe",
    "Scratch",
    "ScratchFullError",
    "Sealed",
    "Unfinished",
    "cache_folder",
    "expect",
    "explain",
    "format_of",
    "in_the_way",
    "is_draft_of",
    "is_pattern",
    "lies_in",
    "path_text",
    "private_folder",
    "read_json",
    "read_json_file",
    "read_private",
    "roll_forward",
    "shown",
    "temporary_path",
    "write_private",
]
