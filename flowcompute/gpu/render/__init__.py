"""Renderer of the kernel IR to OpenCL C."""

from flowcompute.gpu.render.prelude import RenderedBody
from flowcompute.gpu.render.ptx import MARK, multiply_helper
from flowcompute.gpu.render.renderer import argument_types, function_of, program_of, render

__all__ = ["MARK", "RenderedBody", "argument_types", "function_of", "multiply_helper", "program_of", "render"]
