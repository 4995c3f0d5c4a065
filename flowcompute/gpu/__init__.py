"""OpenCL devices: discovery, rendering of kernels, programs, launching."""

from flowcompute.gpu.opencl_backend import OpenCLBackend

__all__ = ["OpenCLBackend"]
