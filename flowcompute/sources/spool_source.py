"""Source of records that an earlier pass has kept in a temporary file."""

from __future__ import annotations

import numpy as np

from flowcompute.elements import Reader, Source
from flowcompute.errors import SourceError
from flowcompute.files import Scratch, explain
from flowcompute.spec import Spec


class SpoolSource(Source):
    """Records of a temporary file. Only the planner makes it, for the passes after the one that wrote them."""

    scratch: Scratch

    def __init__(self, scratch: Scratch, spec: Spec, name: str) -> None:
        super().__init__(spec, name=name)
        self.freeze_fields(scratch=scratch)

    def must_read(self, *, mapped: bool = True) -> str | None:  # noqa: ARG002
        """Return the reason why the records are copied into buffers."""
        return "what was kept in a temporary file"

    def open(self, *, position: int = 0, mapped: bool = True) -> SpoolReader:  # noqa: ARG002
        """Start reading at record `position`."""
        return SpoolReader(self, position)


class SpoolReader(Reader):
    """Reader of a temporary file."""

    def __init__(self, source: SpoolSource, position: int) -> None:
        self.position = position
        self.element = source.name
        self._source = source

    def read(self, out: np.ndarray) -> int:
        """Fill `out` with the next records; see `Reader.read`."""
        scratch, item_bytes = self._source.scratch, self._source.spec.item_bytes
        items = min(len(out), scratch.records - self.position)
        data = out[:items].reshape(-1).view(np.uint8).data
        try:
            count = scratch.read_into(data, self.position * item_bytes)
        except OSError as error:
            text, hint = explain(error)
            raise SourceError(f"cannot read the temporary file: {text}", element=self.element, hint=hint) from error
        if count < len(data):
            raise SourceError("cannot read the temporary file: it ends before its records do", element=self.element)
        self.position += items
        return items

    def close(self) -> None:
        """Do nothing: the file belongs to the run."""
