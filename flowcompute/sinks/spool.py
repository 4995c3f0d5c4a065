"""Keeps a stream in a temporary file for later passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.destination import Destination, Writer
from flowcompute.elements.element import Element
from flowcompute.errors import DestinationError
from flowcompute.files import explain
from flowcompute.scratch import Scratch, ScratchFullError
from flowcompute.spec import Spec


class SpoolSink(Destination):
    """Writes a temporary file. Only made by the planner."""

    scratch: Scratch

    def __init__(self, scratch: Scratch, element: Element, name: str) -> None:
        super().__init__(element.spec, (element,), name=name)
        self.freeze_fields(scratch=scratch, site=element.site)

    def open(self, spec: Spec) -> SpoolWriter:
        """Make the file.

        Raises:
            DestinationError: if there can be none.
        """
        del spec
        return SpoolWriter(self)


class SpoolWriter(Writer):
    """Writes a temporary file, which vanishes when the run commits or aborts."""

    def __init__(self, sink: SpoolSink) -> None:
        self._sink = sink
        self._scratch = sink.scratch
        try:
            self._scratch.begin()
        except OSError as error:
            raise self._failed(error) from error

    def write(self, array: np.ndarray, start: int) -> None:
        """Append records; see `Writer.write`."""
        try:
            self._scratch.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, len(array))
        except ScratchFullError:
            raise DestinationError(
                "the temporary file would outgrow its limit",
                element=self._sink.name,
                site=self._sink.site,
                records=(start, start + len(array)),
                expected=f"at most {self._scratch.limit_bytes} bytes in {self._scratch.folder}",
                got=f"{self._scratch.size_bytes + array.nbytes} bytes and perhaps more to come",
                hint="fc.spool(x, folder=..., limit=...) on a larger disk",
            ) from None
        except OSError as error:
            raise self._failed(error) from error

    def commit(self) -> Any:
        """The run is over: nothing needs the file any more."""
        self._scratch.close()

    def abort(self) -> None:
        """Give the bytes back."""
        self._scratch.close()

    def _failed(self, error: OSError) -> DestinationError:
        text, hint = explain(error)
        message = f"cannot write a temporary file in {self._scratch.folder}: {text}"
        return DestinationError(message, element=self._sink.name, site=self._sink.site, hint=hint)
