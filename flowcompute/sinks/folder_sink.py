"""Parts that sinks of folders share: the layout is a function of records, and old results are replaced on wish."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection

from flowcompute.elements import Element
from flowcompute.errors import SpecError
from flowcompute.files import FILES, Files, Sealed, in_the_way, roll_folder_forward
from flowcompute.sinks.file_sink import StoredSink
from flowcompute.spec import Spec


class FolderSink(StoredSink):
    """The result in a folder of files, each of so many records. `fc.save` makes it.

    Attributes:
        chunk: records in a file; None for as many as have `chunk_bytes`.
        overwrite: whether a result of that name is replaced.
        what, kind: a result of this kind in words, with its article, and without it.
        chunk_bytes, most_chunk_bytes: see `chunk`, and the most that one may have.
    """

    chunk: int | None
    overwrite: bool
    what: str
    kind: str
    chunk_bytes: int
    most_chunk_bytes: int

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        chunk: int | None = None,
        overwrite: bool = False,
        name: str | None = None,
        files: Files = FILES,
        durable: bool = True,
    ) -> None:
        super().__init__(path, name=name, files=files, durable=durable)
        self.freeze_fields(chunk=chunk, overwrite=overwrite)

    def accept(self, spec: Spec, element: Element) -> None:
        """Check the size of the files.

        Raises:
            SpecError: if they are too large.
        """
        if self.chunk is not None and self.chunk * spec.item_bytes > self.most_chunk_bytes:
            raise SpecError(
                f"cannot write such chunks to {self.what}: each is a file",
                element=self.name or self.label,
                site=self.site,
                expected=f"chunk= of at most {max(1, self.most_chunk_bytes // spec.item_bytes)} records of these items",
                got=f"{self.chunk} records",
            )
        super().accept(spec, element)

    def records_of_chunk(self, spec: Spec) -> int:
        """Return the records of a file: a function of the items alone, where nobody has said it."""
        return self.chunk or max(1, self.chunk_bytes // max(1, spec.item_bytes))

    def header(self, spec: Spec, length: int | None) -> bytes:  # noqa: ARG002 - files begin with their data
        """Return nothing: the first record is at byte 0."""
        return b""

    @abstractmethod
    def is_own(self, names: Collection[str]) -> bool:
        """Check whether a folder that holds files of these names is a result of this kind."""

    def roll_forward(self, draft: str, sealed: Sealed) -> Sealed | None:
        """Commit a complete folder that is still there, and return what is found under the target."""
        return roll_folder_forward(
            self.files, self.target, draft, sealed, replaces=self.overwrite, durable=self.durable
        )

    def in_the_way(self) -> tuple[str, str] | None:
        """Return what has the name and is not replaced: all but a result of this kind, and that without `overwrite`."""
        other = in_the_way(self.files, self.target)
        if other != "a folder":
            try:
                self.files.lstat(self.target)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return other or "a file", f"choose another name, or remove it; {self.what} is a folder"
        if self.files.is_folder(self.target):
            names = self.files.list_folder(self.target)
            if not names or (self.is_own(names) and self.overwrite):
                return None
            if self.is_own(names):
                return f"{self.what} already", f"fc.save({self.path!r}, overwrite=True) replaces it"
        return f"a folder that is no {self.kind}", "choose another name, or remove it"
