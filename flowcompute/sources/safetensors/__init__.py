"""Safetensors files: their headers, and arrays of them as streams."""

from flowcompute.sources.safetensors.header import DTYPES, read_safetensors
from flowcompute.sources.safetensors.safetensors_source import SafetensorsSource
from flowcompute.sources.safetensors.tensors import (
    MOST_BYTES,
    ReadAt,
    Tensor,
    WeightsHeader,
    WeightsHeaderError,
    check_places,
    checked_numbers,
    refuse,
)

__all__ = [
    "DTYPES",
    "MOST_BYTES",
    "ReadAt",
    "SafetensorsSource",
    "Tensor",
    "WeightsHeader",
    "WeightsHeaderError",
    "check_places",
    "checked_numbers",
    "read_safetensors",
    "refuse",
]
