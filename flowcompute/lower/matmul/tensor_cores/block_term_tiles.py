"""Cuts of products by terms of rows: k into parts and chunks, and a tile into what its sub-groups compute."""

from __future__ import annotations

import math

from flowcompute.elements.quantized import factors_of
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format

SLICES = 4
"""Parts of k whose sums are added at the end. They are part of the order of the sum."""
CHUNK = 256
"""Most numbers of a column in a step by which parts of k grow, if blocks are small; so in the order of the sum."""
PIECES = (16, 8, 4)
"""Bytes that are copied at once."""


@dataclass(frozen=True)
class Chunks:
    """Parts in which k is summed up.

    Attributes:
        blocks: of a chunk.
        piece: bytes that are copied at once.
        slice: numbers of one of `SLICES`; the last ones may have fewer.
    """

    blocks: int
    piece: int
    slice: int


@dataclass(frozen=True)
class Geometry:
    """Geometry of the tile that a work-group computes; no bit depends on it.

    Attributes:
        parts: sub-groups that share columns: 1, 2 or `SLICES`.
        tall: instructions across the columns of a sub-group.
        stages: chunks of a ring: one is multiplied while others are on their way.
        slots: chunks of rows in local memory: with two of them one is multiplied while the next one is made.
        chunk: most numbers of a column in a chunk.
    """

    parts: int
    tall: int
    stages: int
    slots: int
    chunk: int


def chunks_of(graph: Graph, one: MatmulAnchor, most: int = CHUNK) -> Chunks | None:
    """Return how k is cut; None where a number is no scale times a whole number, or columns are no whole blocks.

    Args:
        graph: the graph.
        one: the product.
        most: numbers of a chunk, if blocks are small.
    """
    found = block_format(graph, one.node.inputs[1])
    numbers, size = found.numbers, found.block_bytes
    lies = one.b.lies
    begins = (lies.offset, lies.record, one.b.columns.stride, one.inner, *lies.strides[: one.b.stack])
    if factors_of(found) is None or not one.inner or any(place % numbers for place in begins):
        return None
    count = one.inner // numbers
    step = math.gcd(count, max(2, CHUNK // numbers))
    blocks = math.gcd(count, max(2, most // numbers))
    apart = math.gcd(*(place // numbers * size for place in begins))
    piece = next((each for each in PIECES if math.gcd(apart, blocks * size) % each == 0), None)
    if piece is None:
        return None
    return Chunks(blocks, piece, -(-count // (SLICES * step)) * step * numbers)
