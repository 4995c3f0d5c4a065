"""`fc.weights`: the tensors of a GGUF or safetensors file, by name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from flowcompute.elements import Element, user_site
from flowcompute.elements.quantized import BLOCK_FORMATS, dequantize
from flowcompute.errors import SourceError
from flowcompute.files import FILES, shown
from flowcompute.model_files import gguf_header
from flowcompute.model_files.gguf_header import MAGIC, read_gguf
from flowcompute.model_files.weight import Weight, WeightFile
from flowcompute.sources import absolute, probe
from flowcompute.sources.safetensors import DTYPES, Tensor, WeightsHeader, WeightsHeaderError, read_safetensors
from flowcompute.spec import FLOAT32, UINT8


class NamedWeights(Mapping[str, Element]):
    """The tensors of a file of weights, by name and in the order of the file. `fc.weights` makes it.

    A tensor in blocks is decoded where it is loaded, as float32; see `fc.dequantize`.

    Attributes:
        path: the file, as an absolute path.
        format: "gguf" or "safetensors".
        metadata: what the file says of itself, by key: numbers, text, lists of text, arrays of numbers.
        types: name of each tensor's type in the format of the file, such as "Q4_K".
        file: where they lie, in its state.
    """

    def __init__(self, file: WeightFile, format: str, header: WeightsHeader) -> None:
        self.path = file.path
        self.format = format
        self.metadata: Mapping[str, Any] = MappingProxyType(dict(header.metadata))
        self.types: Mapping[str, str] = MappingProxyType({one.name: one.type for one in header.tensors})
        self.file = file
        self._tensors = {one.name: one for one in header.tensors}
        self._made: dict[tuple[str, bool], Element] = {}

    def __getitem__(self, name: str) -> Element:
        """Return a tensor as a resident element.

        Its dtype is float32 for all block formats of GGUF, half formats included, and otherwise that of the file.

        Raises:
            KeyError: if there is none of this name.
            SourceError: if its type is none that elements have, or the file has changed.
        """
        if (name, False) not in self._made:
            self._made[name, False] = self._element(self._tensors[name])
        return self._made[name, False]

    def raw(self, name: str) -> Element:
        """Return the bytes of a tensor as a resident element: uint8, those of a row on its last axis.

        `fc.dequantize(weights.raw(name), weights.types[name])` is what `weights[name]` is of a tensor in blocks.

        Raises:
            KeyError: if there is none of this name.
            SourceError: if the file has changed.
        """
        if (name, True) not in self._made:
            tensor = self._tensors[name]
            rows, last = tensor.shape[:-1], math.prod(tensor.shape[-1:])
            # A row of no tensor without numbers can be told from its bytes.
            row_bytes = tensor.size_bytes // math.prod(rows) if tensor.size_bytes else self._bytes_of(tensor.type, last)
            self._made[name, True] = Weight(self.file, tensor, UINT8, (*rows, row_bytes))
        return self._made[name, True]

    def __contains__(self, name: object) -> bool:
        # That of `Mapping` makes an element to see whether it is there.
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<NamedWeights {shown(self.path)}: {len(self)} tensors>"

    def _element(self, tensor: Tensor) -> Element:
        if self.format == "gguf" and tensor.type in BLOCK_FORMATS and tensor.type != "F32":
            return dequantize(self.raw(tensor.name), tensor.type)
        dtype = self._dtype(tensor)
        if dtype is None:
            raise SourceError(
                f"cannot make an element of tensor {tensor.name!r} of {shown(self.path)}",
                site=user_site(),
                expected=", ".join(DTYPES),
                got=tensor.type,
                hint=f"weights.raw({tensor.name!r}) has its bytes",
            )
        return Weight(self.file, tensor, dtype, tensor.shape)

    def _bytes_of(self, type: str, numbers: int) -> int:
        """Return the bytes of a row of numbers."""
        if self.format == "gguf" and type in BLOCK_FORMATS:
            return numbers // BLOCK_FORMATS[type].numbers * BLOCK_FORMATS[type].block_bytes
        return 0

    def _dtype(self, tensor: Tensor) -> np.dtype | None:
        if self.format == "safetensors":
            return DTYPES.get(tensor.type)
        return FLOAT32 if tensor.type == "F32" else np.dtype(gguf_header.NUMBERS[tensor.type])


def weights(path: str | os.PathLike[str]) -> NamedWeights:
    """Open a file of weights: GGUF (versions 2 and 3, little-endian) or safetensors. Only its header is read.

    The weights stay in the file. Devices in the host's memory read them in the mapped file, others are given them once,
    or as they are needed. A file that was changed in the last two seconds, or that others may write to, is read into
    memory. It is read tensor by tensor as they are asked for. Checkpoints keep the path and a fingerprint of the file.

    Args:
        path: the file.

    Returns:
        A mapping from names to resident elements, with `metadata`, `types` and `raw`.

    Raises:
        SourceError: if the file cannot be read, or is none of these, or its header is not sound.
        SpecError: if `path` is no path.
    """
    where = absolute(path, None)
    with probe(where, element=None, site=user_site(), files=FILES) as (handle, fingerprint):

        def read(offset: int, count: int) -> bytes:
            data = bytearray(count)
            return bytes(data[: FILES.read_into(handle, memoryview(data), offset)])

        try:
            is_gguf = read(0, len(MAGIC)) == MAGIC
            if not is_gguf and read(8, 1) not in (b"{", b""):
                begin, expected = read(0, 9), "a file that begins with b'GGUF', or with a length and b'{'"
                raise WeightsHeaderError("it is neither GGUF nor safetensors", expected=expected, got=repr(begin))
            header = (read_gguf if is_gguf else read_safetensors)(read, fingerprint.size)
        except WeightsHeaderError as error:
            raise error.of_file(shown(where), user_site()) from None
    return NamedWeights(WeightFile(where, fingerprint, FILES), "gguf" if is_gguf else "safetensors", header)
