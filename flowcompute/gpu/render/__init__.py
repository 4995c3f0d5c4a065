"""Renderer of the kernel IR to OpenCL C."""

from flowcompute.gpu.render.ptx import MARK, multiply_helper
from flowcompute.gpu.render.renderer import argument_types, program_of, render

__all__ = ["MARK", "argument_types", "multiply_helper", "program_of", "render"]
