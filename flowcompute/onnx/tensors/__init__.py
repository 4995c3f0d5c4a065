"""Tensors of ONNX files: their dtypes, bytes of their own, and bytes in other files."""

from flowcompute.onnx.tensors.external_data import ExternalData
from flowcompute.onnx.tensors.model_tensors import (
    External,
    NarrowTensor,
    damaged,
    no_external,
    tensor_value,
    text_of,
)
from flowcompute.onnx.tensors.onnx_types import dtype_of, number_of
from flowcompute.onnx.tensors.own_tensors import without_tensors

__all__ = [
    "External",
    "ExternalData",
    "NarrowTensor",
    "damaged",
    "dtype_of",
    "no_external",
    "number_of",
    "tensor_value",
    "text_of",
    "without_tensors",
]
