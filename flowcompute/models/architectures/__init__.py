"""Architectures of language models: each is one file here, found by what a model's file says."""

from flowcompute.models.architectures.by_name import Architecture, architecture_of

__all__ = ["Architecture", "architecture_of"]
