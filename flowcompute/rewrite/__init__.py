"""Rewrites from graph to graph, before fusion: lookups, views, masks, split items, parts, orders, passes, clocks."""

from flowcompute.rewrite.clocks import ClockNodes, Entry, find_clocks
from flowcompute.rewrite.copied_views import store_copied_views
from flowcompute.rewrite.idle_casts import drop_idle_casts
from flowcompute.rewrite.item_splitting import split_items
from flowcompute.rewrite.joined_pads import join_pads
from flowcompute.rewrite.lookups import move_lookups
from flowcompute.rewrite.masks import fold_selected
from flowcompute.rewrite.parts import move_parts_to_sources
from flowcompute.rewrite.passes import PassNodes, find_passes, levels_of
from flowcompute.rewrite.products import (
    ImageWindows,
    image_windows,
    multiply_all_records,
    multiply_bytes,
    multiply_halves,
    share_repeated_matrices,
    view_small_matrices,
)
from flowcompute.rewrite.recomputing import recompute_values
from flowcompute.rewrite.reductions import replace_idle_reductions, split_whole_reductions
from flowcompute.rewrite.shuffles import move_shuffles_to_sources
from flowcompute.rewrite.small_windows import replace_small_windows
from flowcompute.rewrite.source_parts import source_of
from flowcompute.rewrite.views import move_views

__all__ = [
    "ClockNodes",
    "Entry",
    "ImageWindows",
    "PassNodes",
    "drop_idle_casts",
    "find_clocks",
    "find_passes",
    "fold_selected",
    "image_windows",
    "join_pads",
    "levels_of",
    "move_lookups",
    "move_parts_to_sources",
    "move_shuffles_to_sources",
    "move_views",
    "multiply_all_records",
    "multiply_bytes",
    "multiply_halves",
    "recompute_values",
    "replace_idle_reductions",
    "replace_small_windows",
    "share_repeated_matrices",
    "source_of",
    "split_items",
    "split_whole_reductions",
    "store_copied_views",
    "view_small_matrices",
]
