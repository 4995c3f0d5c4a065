"""Renderer of the kernel IR to OpenCL C."""

from flowcompute.gpu.render.renderer import argument_types, program_of, render
from flowcompute.gpu.render.tensor_ptx import multiply_helper

__all__ = ["argument_types", "multiply_helper", "program_of", "render"]
