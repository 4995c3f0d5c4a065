"""Blocks decoded with NumPy, from the expressions of their format."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flowcompute.elements.quantized.block_formats import BlockFormat
from flowcompute.elements.quantized.decoding import (
    AsFloat,
    Byte,
    CodebookEntry,
    Expression,
    FloatNumber,
    FromBits,
    OfFloats,
    OfWhole,
    Place,
    WholeChoice,
    WholeNumber,
    in_order,
    operands,
)
from flowcompute.spec import FLOAT32

_TOGETHER = 1 << 18
"""Numbers that are decoded together, so that what lies between stays in the cache."""

_OPERATIONS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<": np.less,
    "==": np.equal,
}


def decode(block_format: BlockFormat, raw: np.ndarray) -> np.ndarray:
    """Return the numbers of blocks.

    Args:
        block_format: of the blocks.
        raw: uint8, shape `(..., bytes)`: whole blocks on the last axis.

    Returns:
        float32, shape `(..., numbers)`.
    """
    size, numbers = block_format.block_bytes, block_format.numbers
    shape = (*raw.shape[:-1], raw.shape[-1] // size * numbers)
    blocks = raw.reshape(-1, size) if raw.size else np.empty((0, size), np.uint8)
    made = np.empty((len(blocks), numbers), FLOAT32)
    step = max(1, _TOGETHER // numbers)
    for start in range(0, len(blocks), step):
        made[start : start + step] = _decoded(block_format, blocks[start : start + step])
    return made.reshape(shape)


def _decoded(block_format: BlockFormat, blocks: np.ndarray) -> Any:
    """Evaluate the expression of a format for all places of some blocks."""
    known: list[Any] = []
    with np.errstate(all="ignore"):
        for node, of in _steps(block_format.value):
            known.append(_evaluated(node, [known[one] for one in of], blocks, block_format.numbers))
    return known[-1]


@functools.lru_cache(maxsize=64)
def _steps(value: Expression) -> tuple[tuple[Expression, tuple[int, ...]], ...]:
    """Return what is evaluated one after the other, each with the numbers of the steps that give its operands.

    It is kept: a hash of an expression goes through all that it is made of, which took longer than small blocks.
    """
    order = in_order(value)
    numbers = {node: number for number, node in enumerate(order)}
    return tuple((node, tuple(numbers[one] for one in operands(node))) for node in order)


def _evaluated(node: Expression, values: list[Any], blocks: np.ndarray, numbers: int) -> Any:
    """Return the value of an expression: a number, one for each place, or one for each block and place."""
    match node:
        case Place():
            return np.arange(numbers, dtype=np.int32)
        case WholeNumber(value):
            return np.int32(value)
        case FloatNumber(value):
            return np.float32(value)
        case Byte():
            return blocks[:, np.atleast_1d(values[0])].astype(np.int32)
        case CodebookEntry(codebook):
            return np.array(codebook.numbers, np.int32)[values[0]]
        case WholeChoice():
            return np.where(values[0] != 0, values[1], values[2])
        case AsFloat():
            return values[0].astype(np.float32)
        case FromBits(_, half):
            return values[0].astype(np.uint16).view(np.float16).astype(np.float32) if half else values[0].view(FLOAT32)
        case OfWhole(op):
            return _OPERATIONS[op](*values).astype(np.int32)
        case OfFloats(op):
            return _OPERATIONS[op](*values)
    raise AssertionError(f"an expression of another kind: {node}")
