"""Matrix products by tensor cores, and the tiles, fragments and results that attention shares with them."""

from flowcompute.lower.matmul.tensor_cores.block_terms import TERM_MATMUL
from flowcompute.lower.matmul.tensor_cores.tensor_matmul import TENSOR_MATMUL
from flowcompute.lower.matmul.tensor_cores.tensor_results import LANES, PITCH, STRIP, Results
from flowcompute.lower.matmul.tensor_cores.tensor_tile import (
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
from flowcompute.lower.matmul.tensor_cores.warp_group_matmul import WARP_GROUP_MATMUL
from flowcompute.lower.matmul.tensor_cores.warp_group_terms import WARP_GROUP_TERMS
from flowcompute.lower.matmul.tensor_cores.warp_group_windows import WARP_GROUP_WINDOWS

__all__ = [
    "CHUNK_BYTES",
    "EDGE",
    "LANES",
    "PITCH",
    "STRIP",
    "SUBGROUP",
    "TENSOR_MATMUL",
    "TERM_MATMUL",
    "TILES",
    "WARP_GROUP_MATMUL",
    "WARP_GROUP_TERMS",
    "WARP_GROUP_WINDOWS",
    "Feed",
    "FragmentReader",
    "Results",
    "TensorTile",
    "copied_together",
    "lines_along_k",
    "three_terms",
]
