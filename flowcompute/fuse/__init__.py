"""Fusion of nodes into regions that share a kernel, with the reasons for each boundary."""

from flowcompute.fuse.anchors import ATTENDING
from flowcompute.fuse.builder import build_regions
from flowcompute.fuse.groups import opened_views
from flowcompute.fuse.nan_bits import makes_nan
from flowcompute.fuse.producers import FusedProducers, find_producers
from flowcompute.fuse.reasons import Reason
from flowcompute.fuse.region import Access, Layout, Region
from flowcompute.fuse.sharing import FEW_ROWS, MapOutline, Sharing, outline_of, told_with_rows
from flowcompute.fuse.stencils import Stencil, find_stencils
from flowcompute.fuse.weight_tiles import WeightTiles

__all__ = [
    "ATTENDING",
    "FEW_ROWS",
    "Access",
    "FusedProducers",
    "Layout",
    "MapOutline",
    "Reason",
    "Region",
    "Sharing",
    "Stencil",
    "WeightTiles",
    "build_regions",
    "find_producers",
    "find_stencils",
    "makes_nan",
    "opened_views",
    "outline_of",
    "told_with_rows",
]
