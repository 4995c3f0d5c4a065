"""The tensors that the header of a file of weights names, and the checks that every header goes through."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from flowcompute.errors import SourceError, short_repr
from flowcompute.imports import dataclass

MOST_AXES = 8
MOST_BYTES = 1 << 63
"""Sizes and places are below this."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file.

    Attributes:
        name: its name.
        type: name of its type in the format of the file, such as "Q4_K" or "BF16".
        shape: its shape as an array.
        offset: of its first byte in the file.
        size_bytes: its bytes.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int


@dataclass(frozen=True)
class WeightsHeader:
    """Header of a file of weights.

    Attributes:
        metadata: by key: numbers, text, lists of text, and arrays of numbers.
        tensors: in the order of the file.
    """

    metadata: Mapping[str, Any]
    tensors: tuple[Tensor, ...]


class ReadAt(Protocol):
    """A function that reads bytes of a file."""

    def __call__(self, offset: int, count: int) -> bytes:
        """Return `count` bytes from `offset`, fewer only at the end of the file."""


ReadHeader = Callable[[ReadAt, int], WeightsHeader]
"""Reads the header of a file, of which it is given the bytes and the size. Raises WeightsHeaderError."""


class WeightsHeaderError(Exception):
    """A header that is not sound: what is wrong, what was expected, and what was found."""

    def __init__(self, message: str, *, expected: str | None = None, got: object = None) -> None:
        super().__init__(message)
        self.message, self.expected = message, expected
        self.got = got if isinstance(got, str | None) else short_repr(got)

    def of_file(self, path: str, site: Any) -> SourceError:
        """Return the error that users see."""
        hint = "it was cut off, or is none that was written so: copy or download it again"
        return SourceError(
            f"cannot read {path}: {self.message}", site=site, expected=self.expected, got=self.got, hint=hint
        )


def refuse(message: str, *, expected: str | None = None, got: object = None) -> NoReturn:
    """Raise WeightsHeaderError."""
    raise WeightsHeaderError(message, expected=expected, got=got)


def checked_numbers(name: str, shape: Sequence[int]) -> int:
    """Return the count of numbers of a tensor.

    Raises:
        WeightsHeaderError: if there are too many axes or numbers.
    """
    if len(shape) > MOST_AXES:
        refuse(f"tensor {short_repr(name)} has too many axes", expected=f"at most {MOST_AXES}", got=len(shape))
    numbers = math.prod(shape)
    if numbers >= MOST_BYTES or any(size >= MOST_BYTES for size in shape):
        refuse(f"tensor {short_repr(name)} has more numbers than any file", expected="fewer than 2**63", got=str(shape))
    return numbers


def check_places(tensors: Sequence[Tensor], begin: int, size_bytes: int) -> None:
    """Check that all tensors lie behind the header and inside of the file, and that none overlap.

    Args:
        tensors: of the file.
        begin: the first byte behind the header.
        size_bytes: of the file.

    Raises:
        WeightsHeaderError: naming the tensor.
    """
    end, before = begin, "the header"
    for tensor in sorted(tensors, key=lambda one: (one.offset, one.size_bytes)):
        if tensor.offset < end and (tensor.size_bytes or tensor.offset < begin):
            refuse(
                f"tensor {short_repr(tensor.name)} overlaps {before}",
                expected=f"byte {end} or later",
                got=tensor.offset,
            )
        if tensor.offset + tensor.size_bytes > size_bytes:
            refuse(
                f"it ends before tensor {short_repr(tensor.name)} does",
                expected=f"{tensor.offset + tensor.size_bytes} bytes",
                got=f"{size_bytes} bytes",
            )
        if tensor.size_bytes:
            end, before = tensor.offset + tensor.size_bytes, f"tensor {short_repr(tensor.name)}"
