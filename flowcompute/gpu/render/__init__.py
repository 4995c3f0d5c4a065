"""Renderer of the kernel IR to OpenCL C."""

from flowcompute.gpu.render.cpu_functions import FMA
from flowcompute.gpu.render.prelude import RenderedBody
from flowcompute.gpu.render.ptx import MARK, multiply_helper
from flowcompute.gpu.render.renderer import render, render_function

__all__ = ["FMA", "MARK", "RenderedBody", "multiply_helper", "render", "render_function"]
