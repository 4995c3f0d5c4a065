"""Rewrites of reductions: those over no axes, and those of whole values."""

from flowcompute.rewrite.reductions.idle_reductions import replace_idle_reductions
from flowcompute.rewrite.reductions.whole_reductions import split_whole_reductions

__all__ = ["replace_idle_reductions", "split_whole_reductions"]
