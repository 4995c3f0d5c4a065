"""Passes on OpenCL devices: launches, carries, blocks of folds, devices that share batches."""

from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.run.shared_batches import SharedBatches

__all__ = ["OpenCLRunner", "SharedBatches"]
