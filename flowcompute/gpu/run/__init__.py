"""Passes on OpenCL devices: launches, carries, blocks of folds, devices that share batches."""

from flowcompute.gpu.run.gpu_executor import OpenCLExecutor
from flowcompute.gpu.run.shared_executor import SharedExecutor

__all__ = ["OpenCLExecutor", "SharedExecutor"]
