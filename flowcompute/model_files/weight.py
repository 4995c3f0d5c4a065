"""A tensor of a file as a resident value, which stays in the file."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from flowcompute.elements import Constant, Element, user_site
from flowcompute.errors import SourceError
from flowcompute.files import Files, Fingerprint, OverlaidParts, is_cached, shown
from flowcompute.sources import changed, source_errors, why_not_mapped
from flowcompute.sources.safetensors import Tensor
from flowcompute.spec import BOOL, UINT8, Spec


class WeightFile:
    """A file of weights, in the state in which its header was read.

    It is mapped at the first use, unless that is risky; see `StoredSource.must_read`. Then each tensor is read into
    memory at its first use.

    Attributes:
        path: the file, as an absolute path.
        fingerprint: its state.
        files: the file layer.
    """

    def __init__(self, path: str, fingerprint: Fingerprint, files: Files) -> None:
        self.path, self.fingerprint, self.files = path, fingerprint, files
        self._mapped: np.ndarray | None = None
        self._mapping: mmap.mmap | None = None
        self._handle = -1
        self._read_alone: set[int] = set()

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """The file in its state: equal for two that are read alike."""
        # Each graph asks for that of each tensor, and a path takes a call of the system for each folder in it.
        state = self.fingerprint
        return (os.path.realpath(self.path), state.inode, state.device, state.size, state.mtime_ns)

    def check(self, element: str | None = None) -> None:
        """Check that the file is in its state.

        Raises:
            SourceError: if it is not, or is not there.
        """
        with source_errors("look at", self.path, element=element, site=user_site()):
            now = Fingerprint.of(self.files.stat(self.path))
        if now != self.fingerprint:
            raise changed(self.path, self.fingerprint, now, element=element, site=user_site())

    def bytes_of(self, tensor: Tensor) -> tuple[np.ndarray, bool]:
        """Return the bytes of a tensor, read-only, and whether they are mapped.

        Raises:
            SourceError: if the file cannot be read, or has changed.
        """
        begin, end = tensor.offset, tensor.offset + tensor.size_bytes
        if self._mapped is not None:
            return self._mapped[begin:end], True
        with source_errors("open", self.path, element=tensor.name, site=user_site()):
            handle = self.files.open_read(self.path)
        with contextlib.ExitStack() as stack:
            stack.callback(self.files.close, handle)
            with source_errors("read", self.path, element=tensor.name, site=user_site()):
                status = self.files.status(handle)
                if (now := Fingerprint.of(status)) != self.fingerprint:
                    raise changed(self.path, self.fingerprint, now, element=tensor.name, site=user_site())
                if why_not_mapped(self.path, status) is None:
                    self._mapping = self.files.map_read(handle, status.st_size)
                    self._mapped = np.frombuffer(self._mapping, np.uint8)
                    self._handle = handle
                    weakref.finalize(self, stack.pop_all().close)
                    return self._mapped[begin:end], True
                data = np.empty(tensor.size_bytes, np.uint8)
                count = self.files.read_into(handle, memoryview(data.data), begin)
        if count < len(data):
            raise SourceError(f"cannot read {shown(self.path)}: it ends before tensor {tensor.name!r} does")
        return data, False

    def let_go(self, tensor: Tensor) -> None:
        """Let the pages of a tensor go that was copied; whoever still reads there has them mapped again."""
        if self._mapping is not None:
            self.files.drop_pages(self._mapping, tensor.offset, tensor.offset + tensor.size_bytes)

    def read_ahead(self, tensor: Tensor, parts: int = 1, wanted: Sequence[int] = (0,)) -> None:
        """Let the system read some of the equal parts of a mapped tensor; of several, no page beside those."""
        if self._mapping is None:
            return
        if parts > 1 and tensor.offset not in self._read_alone:
            self._read_alone.add(tensor.offset)
            self.files.read_alone(self._mapping, tensor.offset, tensor.offset + tensor.size_bytes)
        for part in wanted:
            self.files.read_ahead(self._mapping, *_part(tensor, parts, part))

    def is_cached(self, tensor: Tensor, parts: int, part: int) -> bool:
        """Check whether one of the equal parts of a mapped tensor is in the system's cache; True where nobody says."""
        if self._mapping is None:
            return True
        begin, end = _part(tensor, parts, part)
        # Pages at the ends are shared with neighbours.
        return is_cached(self._mapping, (begin + end) // 2, (begin + end) // 2 + 1)

    def uncache(self, tensor: Tensor, parts: int, part: int) -> None:
        """Let one of the equal parts of a mapped tensor leave the system's cache; whoever reads there has it again."""
        if self._mapping is None:
            return
        begin, end = _part(tensor, parts, part)
        self.files.drop_pages(self._mapping, begin, end)
        self.files.let_go(self._handle, begin, end)

    def open_direct(self) -> int:
        """Open the file for reads past the system's cache.

        Raises:
            OSError: if there is no way, or the file is another one now.
        """
        with contextlib.ExitStack() as stack:
            handle = self.files.open_direct(self.path)
            stack.callback(self.files.close, handle)
            if Fingerprint.of(self.files.status(handle)) != self.fingerprint:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), self.path)
            stack.pop_all()
        return handle

    def overlay(
        self, overlaid: OverlaidParts, direct: int, tensor: Tensor, parts: int, part: int
    ) -> Callable[[], None] | None:
        """Return what reads one of the equal parts of a tensor past the system's cache; see `OverlaidParts.begin`.

        Args:
            overlaid: whose memory takes it.
            direct: from `open_direct`.
            tensor, parts, part: which one.

        Returns:
            None where there is no room, or the file is not mapped.
        """
        if self._mapping is None:
            return None
        return overlaid.begin(self._mapping, self._handle, direct, *_part(tensor, parts, part))


class Weight(Constant):
    """A tensor of a file as a resident value. Its numbers are where they are: in the mapped file.

    Attributes:
        file: what holds it.
        tensor: its place there.
    """

    file: WeightFile
    tensor: Tensor
    _mapped: bool

    def __init__(self, file: WeightFile, tensor: Tensor, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        data, mapped = file.bytes_of(tensor)
        if dtype == BOOL and data.size and data.max() > 1:
            raise SourceError(
                f"cannot read tensor {tensor.name!r} of {shown(file.path)}: it holds a byte that is not a bool",
                site=user_site(),
                expected="0 or 1",
                got=str(data.max()),
            )
        value = data.view(dtype).reshape(shape)
        if not value.flags.aligned:
            # Kernels read aligned numbers only.
            value, mapped = value.copy(), False
            file.let_go(tensor)
        value.setflags(write=False)
        Element.__init__(self, Spec(dtype, shape))
        self.freeze_fields(value=value, file=file, tensor=tensor, _mapped=mapped)

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry of axis 0."""
        return self.value.nbytes // max(self.spec.shape[0], 1)

    def read_ahead(self, entries: Sequence[int] | None) -> None:
        """Let the system read these entries of axis 0 of a mapped tensor, or all, before kernels do."""
        if self._mapped and entries is None:
            self.file.read_ahead(self.tensor)
        elif self._mapped and entries is not None:
            self.file.read_ahead(self.tensor, self.spec.shape[0], entries)

    def is_cached(self, entry: int) -> bool:
        """Check whether an entry of axis 0 is in the system's cache; True where it is not mapped, or nobody says."""
        return not self._mapped or self.file.is_cached(self.tensor, self.spec.shape[0], entry)

    def let_go(self, entry: int) -> None:
        """Let an entry of axis 0 of a mapped tensor leave the system's cache; whoever reads it has it read again."""
        if self._mapped:
            self.file.uncache(self.tensor, self.spec.shape[0], entry)

    def overlay(self, overlaid: OverlaidParts, direct: int, entry: int) -> Callable[[], None] | None:
        """Return what reads an entry of axis 0 past the system's cache; see `WeightFile.overlay`."""
        return self.file.overlay(overlaid, direct, self.tensor, self.spec.shape[0], entry) if self._mapped else None

    @property
    def identity(self) -> tuple[object, ...]:
        """The file in its state, and the place in it."""
        return (*self.file.identity, self.tensor.offset)

    @property
    def memory_bytes(self) -> int:
        """Bytes beyond those that the system maps, and can drop."""
        return 0 if self._mapped else self.value.nbytes

    def check(self) -> None:
        """Check that the file has not changed; see `WeightFile.check`."""
        self.file.check(self.name or self.label)

    @property
    def is_raw(self) -> bool:
        """Flag that these are the bytes of the tensor, and not its numbers."""
        return self.dtype == UINT8 and self.tensor.type != "U8"

    @property
    def label(self) -> str:
        """The tensor's name."""
        return self.tensor.name

    def __deepcopy__(self, memo: Any) -> Weight:
        return self


def _part(tensor: Tensor, parts: int, part: int) -> tuple[int, int]:
    """Return where one of the equal parts of a tensor begins and ends in its file, in bytes."""
    size = tensor.size_bytes // parts
    return tensor.offset + part * size, tensor.offset + (part + 1) * size
