"""`fc.dequantize`: blocks of quantised numbers as float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.math import positive
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.quantized.block_formats import BLOCK_FORMATS, BlockFormat
from flowcompute.elements.quantized.numpy_decoding import decode
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.imports import dataclass, difflib
from flowcompute.spec import FLOAT32, UINT8, Spec

COST = 8
"""Instructions for a number where blocks lie along the loop: cheap enough to be computed again at each load."""


@dataclass(frozen=True, repr=False)
class Dequantize(Op):
    """The element-wise operation that decodes the numbers of blocks.

    Its operand is read from memory as it is stored, at the places that the decoding of a number asks for. A kernel
    therefore reads the result as if it were in memory: each load of a number decodes it.

    Attributes:
        block_format: of the blocks.
    """

    block_format: BlockFormat = field(default_factory=lambda: BLOCK_FORMATS["F32"], hash=False)

    @property
    def kept_name(self) -> str:
        """The name of this operation in kept jobs, with that of its format."""
        return f"{super().kept_name}.{self.block_format.name}"


def _never_called(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("the function checks the operand, and the result is float32")


def _rebuild(kept: KeptOp) -> Any:
    assert isinstance(kept.op, Dequantize)
    kept.require(kept.attrs.take("type") == kept.op.block_format.name, "the format of its blocks")
    return dequantize(kept.one(), kept.op.block_format.name)


def _numpy(block_format: BlockFormat) -> Callable[..., np.ndarray]:
    return partial(decode, block_format)


DEQUANTIZE: dict[str, Dequantize] = {
    name: Dequantize(
        "dequantize", 1, Kind.ELEMENTWISE, _numpy(block_format), _never_called, cost=COST,
        doc=f"The numbers of {name} blocks.", rebuild=_rebuild, block_format=block_format,
    )
    for name, block_format in BLOCK_FORMATS.items()
}  # fmt: skip
"""The operation of each format, by the format's name."""

_MOVED = ("permute_dims", "broadcast_to", "index", "windows", "reshape")


@public
def dequantize(raw: Operand, type: str) -> Compute:
    """Decode blocks of quantised numbers, as `gguf.quants.dequantize` does, bit for bit.

    Nothing is stored for a matrix product: its loads decode. Nor is anything stored for an element-wise operation of a
    stream. NaNs are the canonical one.

    Args:
        raw: uint8, a stream or resident, shape `(..., bytes)`: whole blocks on the last axis.
        type: name of their format in GGUF, such as "Q4_0", "Q6_K", "IQ4_XS" or "BF16".

    Returns:
        float32, shape `(..., numbers)`. A block of `n` numbers in `b` bytes gives `bytes / b * n` of them.

    Raises:
        SpecError: if the format is not known, or the last axis holds no whole blocks.
        SpecTypeError: if `raw` is not uint8.

    Source:
        The layouts and the arithmetic are those of `ggml-quants.c` of https://github.com/ggml-org/ggml.
    """
    if not isinstance(type, str) or type not in BLOCK_FORMATS:
        near = difflib.get_close_matches(type.upper(), BLOCK_FORMATS, 3, 0.5) if isinstance(type, str) else []
        raise SpecError(
            "cannot decode blocks of this type",
            element="dequantize",
            site=user_site(),
            expected=", ".join(BLOCK_FORMATS),
            got=short_repr(type),
            hint=f"did you mean {' or '.join(near)}" if near else None,
        )
    block_format, element = BLOCK_FORMATS[type], as_element(raw, "dequantize")
    size = block_format.block_bytes
    if element.dtype != UINT8:
        raise SpecTypeError(
            f"cannot decode blocks of {element.dtype.name}",
            element="dequantize",
            site=user_site(),
            expected="the bytes of the blocks, as uint8",
            got=str(element.spec),
            hint="array.view(numpy.uint8) has the bytes of an array",
        )
    if not element.spec.shape or element.spec.shape[-1] % size:
        raise SpecError(
            f"cannot decode {type} from rows that are no whole blocks",
            element="dequantize",
            site=user_site(),
            expected=f"a last axis whose length is a multiple of {size} bytes ({block_format.numbers} numbers)",
            got=str(element.spec),
        )
    shape = (*element.spec.shape[:-1], element.spec.shape[-1] // size * block_format.numbers)
    spec = Spec(FLOAT32, shape, element.spec.stream)
    return Compute(DEQUANTIZE[type], (_in_memory(element),), spec, {"type": type})


def _in_memory(raw: Element) -> Element:
    """Return blocks whose bytes are neighbours in memory: what strides show of a stream is stored."""
    strided = isinstance(raw, Compute) and (raw.op.kind is Kind.WINDOW or raw.op.name in _MOVED)
    return positive(raw) if strided and raw.spec.is_stream else raw
