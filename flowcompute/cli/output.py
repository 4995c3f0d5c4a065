"""Files that commands write."""

from __future__ import annotations

from flowcompute.errors import DestinationError
from flowcompute.files import FILES, explain, shown


def write_text(path: str, text: str) -> None:
    """Write a whole file.

    Raises:
        DestinationError: if it cannot be written.
    """
    try:
        FILES.atomic_write_bytes(path, text.encode())
    except OSError as error:
        said, hint = explain(error)
        raise DestinationError(f"cannot write {shown(path)}: {said}", hint=hint) from error
