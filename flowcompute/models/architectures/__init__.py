"""Architectures of language models: each is one file here, found by what a model's file says."""

from flowcompute.models.architectures.by_name import Architecture, architecture_of
from flowcompute.models.architectures.layers import head

__all__ = ["Architecture", "architecture_of", "head"]
