"""What a run tells others while it works: Prometheus, JSON lines, a trace. It only reads, and drives nothing."""

from flowcompute.observe.observers import Log, Observe, Observers
from flowcompute.observe.report_page import write_report

__all__ = ["Log", "Observe", "Observers", "write_report"]
