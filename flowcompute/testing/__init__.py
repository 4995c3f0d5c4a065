"""For tests of flowcompute and of what is added to it.

Contract suites, a file layer that fails on demand, and a disk in memory that can lose what was not made durable.
"""

from flowcompute.testing.contracts import DestinationContract, SourceContract
from flowcompute.testing.disk import Disk, Step, power_cuts
from flowcompute.testing.faults import FaultyFiles, Operation
from flowcompute.testing.simulated import Crash, SimulatedFiles

__all__ = [
    "Crash",
    "DestinationContract",
    "Disk",
    "FaultyFiles",
    "Operation",
    "SimulatedFiles",
    "SourceContract",
    "Step",
    "power_cuts",
]
