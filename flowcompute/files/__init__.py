"""File layer: every read of user data and every write, rename and fsync of the package."""

from flowcompute.files.file_layer import (
    FILES,
    FOREIGN_FORMATS,
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
from flowcompute.files.scratch import Scratch, ScratchFullError
from flowcompute.files.user_cache import TEMPORARY, cache_folder, private_folder, read_private, write_private

__all__ = [
    "FILES",
    "FOREIGN_FORMATS",
    "FORMATS",
    "TEMPORARY",
    "Draft",
    "Files",
    "Fingerprint",
    "Scratch",
    "ScratchFullError",
    "Sealed",
    "Unfinished",
    "cache_folder",
    "explain",
    "format_of",
    "in_the_way",
    "is_pattern",
    "path_text",
    "private_folder",
    "read_private",
    "roll_forward",
    "shown",
    "temporary_path",
    "write_private",
]
