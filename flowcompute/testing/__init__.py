"""Contract suites for sources and destinations that are added to flowcompute."""

from flowcompute.testing.contracts import DestinationContract, SourceContract

__all__ = ["DestinationContract", "SourceContract"]
