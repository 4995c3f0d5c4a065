"""Strategy (what may be tuned) and Config (what the user fixes)."""

from flowcompute.strategy.config import Config, default_memory_bytes, parse_bytes
from flowcompute.strategy.knobs import KERNEL_KNOBS, KernelKnobs
from flowcompute.strategy.strategy import Strategy

__all__ = ["KERNEL_KNOBS", "Config", "KernelKnobs", "Strategy", "default_memory_bytes", "parse_bytes"]
