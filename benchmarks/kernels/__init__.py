"""Kernels from memory to memory on a CPU, beside other libraries."""
