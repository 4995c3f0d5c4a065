"""Scans and recurrences on the host, and what they carry."""

from flowcompute.engine.scans.cache_places import CachePlaces
from flowcompute.engine.scans.carry import Carry, Scan
from flowcompute.engine.scans.host_scan import make_scan
from flowcompute.engine.scans.key_value_cache import KeyValueCache
from flowcompute.engine.scans.recurrences import carried, carries_of
from flowcompute.engine.scans.slot_cache import SlotCache
from flowcompute.engine.scans.tiles import NOTHING, TileTotals, is_carried, tile_records, unknown_state

__all__ = [
    "NOTHING",
    "CachePlaces",
    "Carry",
    "KeyValueCache",
    "Scan",
    "SlotCache",
    "TileTotals",
    "carried",
    "carries_of",
    "is_carried",
    "make_scan",
    "tile_records",
    "unknown_state",
]
