"""Folds of a pass on a device: blocks that kernels reduce, and states that lie there until the end."""

from flowcompute.gpu.run.folds.device_merges import DeviceMerges
from flowcompute.gpu.run.folds.device_products import DeviceProducts
from flowcompute.gpu.run.folds.device_segments import DeviceSegments
from flowcompute.gpu.run.folds.fold_blocks import FoldBlocks
from flowcompute.gpu.run.folds.fold_device import FoldDevice, KeptForFolds
from flowcompute.gpu.run.folds.record_products import RecordProducts

__all__ = [
    "DeviceMerges",
    "DeviceProducts",
    "DeviceSegments",
    "FoldBlocks",
    "FoldDevice",
    "KeptForFolds",
    "RecordProducts",
]
