"""Tensors of a model as resident values. Nothing of a file is believed: counts are compared with bytes first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements import Constant, user_site
from flowcompute.errors import SourceError, short_repr
from flowcompute.imports import dataclass
from flowcompute.onnx.tensors.onnx_types import NARROW, dtype_of
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT8

MOST_AXES = 32
MOST_NUMBERS = 1 << 40

External = Callable[[Any, np.dtype, tuple[int, ...]], Constant]
"""Makes the value of a tensor whose numbers are in another file: given the tensor, its dtype and its shape."""


def damaged(text: str, expected: str | None = None, got: object = None) -> SourceError:
    """Return the error of a model that is not sound."""
    return SourceError(
        f"cannot read the ONNX model: {text}",
        site=user_site(),
        expected=expected,
        got=None if got is None else short_repr(got),
        hint="it was cut off, or is none that was written so: copy or export it again",
    )


def text_of(value: str | bytes) -> str:
    """Return a text of a model; protobuf gives bytes for one that is no UTF-8."""
    return value if isinstance(value, str) else value.decode(errors="replace")


@dataclass(frozen=True)
class NarrowTensor:
    """A tensor of integers of which a byte holds several.

    Attributes:
        packed: its bytes (count,), uint8.
        bits: of a number, 2 or 4.
        signed: whether they are in two's complement.
        shape: of the numbers.
    """

    packed: Constant
    bits: int
    signed: bool
    shape: tuple[int, ...]


def tensor_value(tensor: Any, external: External) -> Constant | NarrowTensor:
    """Return a tensor as a resident value.

    Args:
        tensor: an `onnx.TensorProto`.
        external: for numbers in another file.

    Raises:
        SourceError: if its numbers do not fit its shape.
        Refusal: if elements do not have its dtype.
    """
    shape = whole = checked_shape(tensor.name, tensor.dims)
    bits, signed = NARROW.get(tensor.data_type, (0, False))
    dtype = UINT8 if bits else dtype_of(tensor.data_type)
    if bits:
        shape = (-(-math.prod(whole) * bits // 8),)
    if tensor.HasField("segment"):
        raise damaged(f"tensor {short_repr(tensor.name)} is in segments")
    made = external(tensor, dtype, shape) if tensor.data_location == 1 else Constant(_numbers(tensor, dtype, shape))
    return NarrowTensor(made, bits, signed, whole) if bits else made


def checked_shape(name: str, dims: Any) -> tuple[int, ...]:
    """Return the shape of a tensor.

    Raises:
        SourceError: for too many axes or numbers, or a negative size.
    """
    shape = tuple(dims)
    if len(shape) > MOST_AXES or any(size < 0 for size in shape) or math.prod(shape) > MOST_NUMBERS:
        raise damaged(f"tensor {short_repr(name)} has a shape that no value has", "sizes from 0 on", shape)
    return shape


def _numbers(tensor: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    count = math.prod(shape)
    raw: bytes = tensor.raw_data
    if raw or tensor.HasField("raw_data"):
        if len(raw) != count * dtype.itemsize:
            raise damaged(
                f"tensor {short_repr(tensor.name)} has not the bytes of its shape",
                str(count * dtype.itemsize),
                len(raw),
            )
        numbers = np.frombuffer(raw, np.uint8 if dtype == BOOL else dtype.newbyteorder("<"))
        return (numbers != 0 if dtype == BOOL else numbers.astype(dtype, copy=False)).reshape(shape)
    stored = _stored(tensor, dtype)
    if len(stored) != count:
        raise damaged(f"tensor {short_repr(tensor.name)} has not the numbers of its shape", str(count), len(stored))
    return stored.reshape(shape)


def _stored(tensor: Any, dtype: np.dtype) -> np.ndarray:
    """Return numbers that are stored in the field of their type."""
    if dtype == FLOAT32:
        return np.array(tensor.float_data, np.float32)
    if dtype == FLOAT64:
        return np.array(tensor.double_data, np.float64)
    if dtype == INT64:
        return np.array(tensor.int64_data, np.int64)
    if dtype.kind == "u" and dtype.itemsize >= 4:
        return np.array(tensor.uint64_data, np.uint64).astype(dtype)
    wide = np.array(tensor.int32_data, np.int32)
    if dtype in (FLOAT16, BFLOAT16):
        return wide.astype(np.uint16).view(dtype)
    return wide != 0 if dtype == BOOL else wide.astype(dtype)


def no_external(tensor: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Constant:
    """Refuse a tensor in another file.

    Raises:
        SourceError: always.
    """
    del dtype, shape
    raise SourceError(
        f"cannot read tensor {short_repr(tensor.name)}, which is in another file",
        site=user_site(),
        expected="a model with all of its weights",
        hint="give the path of the model: the other file is looked for in its folder",
    )
