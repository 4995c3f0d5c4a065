"""OpenCL devices: discovery, rendering of kernels, programs, launching."""

from flowcompute.gpu.backend import OpenCLBackend

__all__ = ["OpenCLBackend"]
