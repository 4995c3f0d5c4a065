"""Regions that share a launch, though each keeps a loop nest of its own."""

from flowcompute.fuse.sharing.alike_maps import MapOutline, outline_of
from flowcompute.fuse.sharing.row_makers import FEW_ROWS, told_with_rows
from flowcompute.fuse.sharing.shared_launches import Sharing, share_launches

__all__ = ["FEW_ROWS", "MapOutline", "Sharing", "outline_of", "share_launches", "told_with_rows"]
