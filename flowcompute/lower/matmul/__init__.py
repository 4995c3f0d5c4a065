"""Matrix products."""

from flowcompute.lower.matmul.cpu_matmul import ROWS_PER_ITEM, MatmulLowering
from flowcompute.lower.matmul.matmul_anchor import PANEL, cut_factor
from flowcompute.lower.matmul.packed_matmul import lower_dot_matmul
from flowcompute.lower.matmul.tensor_matmul import lower_tensor_matmul
from flowcompute.lower.matmul.tensor_results import LANES, PITCH, Results
from flowcompute.lower.matmul.tensor_tile import (
    CHUNK_BYTES,
    EDGE,
    SUBGROUP,
    TILES,
    Feed,
    FragmentReader,
    TensorTile,
    copied_together,
    lines_along_k,
    three_terms,
)
from flowcompute.lower.matmul.thin_matmul import lower_thin_matmul
from flowcompute.lower.matmul.tile_sizes import NEAR, strip_lanes
from flowcompute.lower.matmul.tiled_matmul import TiledMatmulLowering

__all__ = [
    "CHUNK_BYTES",
    "EDGE",
    "LANES",
    "NEAR",
    "PANEL",
    "PITCH",
    "ROWS_PER_ITEM",
    "SUBGROUP",
    "TILES",
    "Feed",
    "FragmentReader",
    "MatmulLowering",
    "Results",
    "TensorTile",
    "TiledMatmulLowering",
    "copied_together",
    "cut_factor",
    "lines_along_k",
    "lower_dot_matmul",
    "lower_tensor_matmul",
    "lower_thin_matmul",
    "strip_lanes",
    "three_terms",
]
