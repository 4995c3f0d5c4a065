"""Language models: what a GGUF file holds as graphs over streams of tokens, and texts that they write."""

from flowcompute.models.generation import TextGeneration
from flowcompute.models.model import Model, go_on, load

__all__ = ["Model", "TextGeneration", "go_on", "load"]
