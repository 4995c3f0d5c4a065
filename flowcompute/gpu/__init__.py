"""OpenCL devices: discovery, rendering of kernels, programs, launching."""
