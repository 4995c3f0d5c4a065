"""Scans and recurrences on the host, and what they carry."""

from flowcompute.engine.scans.carry import Carry, Scan
from flowcompute.engine.scans.host_scan import make_scan
from flowcompute.engine.scans.key_value_cache import KeyValueCache
from flowcompute.engine.scans.recurrences import carried, carries_of
from flowcompute.engine.scans.slot_cache import SlotCache

__all__ = ["Carry", "KeyValueCache", "Scan", "SlotCache", "carried", "carries_of", "make_scan"]
