"""Results in files of plain numbers without a header."""

from __future__ import annotations

from flowcompute.sinks.file_sink import StoredSink
from flowcompute.spec import Spec


class RawSink(StoredSink):
    """The result as numbers in C order and this machine's byte order, record after record. `fc.save` makes it."""

    takes_regions = True

    def header(self, spec: Spec, length: int | None) -> bytes:  # noqa: ARG002
        """Return no bytes: a raw file has no header."""
        return b""
