"""For tests of flowcompute and of what is added to it: contract suites, and a file layer that fails on demand."""

from flowcompute.testing.contracts import DestinationContract, SourceContract
from flowcompute.testing.faults import FaultyFiles, Operation

__all__ = ["DestinationContract", "FaultyFiles", "Operation", "SourceContract"]
