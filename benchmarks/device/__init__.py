"""Kernels in the memory of one device."""
