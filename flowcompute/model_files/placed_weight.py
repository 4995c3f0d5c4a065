"""Numbers at a place in a file that another file tells: the external data of a model."""

from __future__ import annotations

import math

import numpy as np

from flowcompute.elements import user_site
from flowcompute.errors import SourceError
from flowcompute.files import FILES, shown
from flowcompute.model_files.weight import Weight, WeightFile
from flowcompute.sources import absolute, probe
from flowcompute.sources.safetensors import Tensor


def open_weight_file(path: str) -> WeightFile:
    """Open a file of weights without a header.

    Raises:
        SourceError: if it cannot be read.
    """
    where = absolute(path, None)
    with probe(where, element=None, site=user_site(), files=FILES) as (_, fingerprint):
        return WeightFile(where, fingerprint, FILES)


class PlacedWeight(Weight):
    """A tensor at a place in a file, little-endian and in C order, as a resident value. Its numbers stay in the file.

    Args:
        file: what holds it.
        name: of the tensor.
        dtype, shape: of the tensor.
        offset: of its first byte in the file.

    Raises:
        SourceError: if it lies outside of the file, or the file has changed.
    """

    def __init__(self, file: WeightFile, name: str, dtype: np.dtype, shape: tuple[int, ...], offset: int) -> None:
        size = math.prod(shape) * dtype.itemsize
        if offset < 0 or offset + size > file.fingerprint.size:
            raise SourceError(
                f"cannot read tensor {name!r} of {shown(file.path)}: it lies outside of the file",
                site=user_site(),
                expected=f"{size} bytes within {file.fingerprint.size}",
                got=f"from byte {offset} on",
                hint="the file was cut off, or belongs to another model",
            )
        super().__init__(file, Tensor(name, dtype.name, shape, offset, size), dtype, shape)
