"""Computing on the host with NumPy: functions of users, LAPACK, and operations record by record."""

from flowcompute.engine.host.host_call import call_host, read_only
from flowcompute.engine.host.numpy_functions import evaluate
from flowcompute.engine.host.numpy_ops import cast, elementwise

__all__ = ["call_host", "cast", "elementwise", "evaluate", "read_only"]
