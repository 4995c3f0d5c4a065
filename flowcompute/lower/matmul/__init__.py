"""Matrix products."""

from flowcompute.lower.matmul.copied_matmul import COPIED_MATMUL
from flowcompute.lower.matmul.cpu_matmul import CPU_MATMUL, strip_lanes
from flowcompute.lower.matmul.dequantized_group_matmul import DEQUANTIZED_GROUP_MATMUL
from flowcompute.lower.matmul.dequantized_matmul import DEQUANTIZED_MATMUL
from flowcompute.lower.matmul.matmul_anchor import PANEL, chosen_matrices, cut_factor
from flowcompute.lower.matmul.packed_matmul import PACKED_MATMUL
from flowcompute.lower.matmul.tensor_cores import (
    CHUNK_BYTES,
    EDGE,
    LANES,
    PITCH,
    STRIP,
    SUBGROUP,
    TENSOR_MATMUL,
    TERM_MATMUL,
    TILES,
    WARP_GROUP_MATMUL,
    WARP_GROUP_TERMS,
    WARP_GROUP_WINDOWS,
    Feed,
    FragmentReader,
    Results,
    TensorTile,
    copied_together,
    lines_along_k,
    three_terms,
)
from flowcompute.lower.matmul.thin_matmul import THIN_MATMUL
from flowcompute.lower.matmul.tiled_matmul import NEAR, TILED_MATMUL

__all__ = [
    "CHUNK_BYTES",
    "COPIED_MATMUL",
    "CPU_MATMUL",
    "DEQUANTIZED_GROUP_MATMUL",
    "DEQUANTIZED_MATMUL",
    "EDGE",
    "LANES",
    "NEAR",
    "PACKED_MATMUL",
    "PANEL",
    "PITCH",
    "STRIP",
    "SUBGROUP",
    "TENSOR_MATMUL",
    "TERM_MATMUL",
    "THIN_MATMUL",
    "TILED_MATMUL",
    "TILES",
    "WARP_GROUP_MATMUL",
    "WARP_GROUP_TERMS",
    "WARP_GROUP_WINDOWS",
    "Feed",
    "FragmentReader",
    "Results",
    "TensorTile",
    "chosen_matrices",
    "copied_together",
    "cut_factor",
    "lines_along_k",
    "strip_lanes",
    "three_terms",
]
