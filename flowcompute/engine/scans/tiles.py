"""Tiles of scans by associative operations: their totals, and the carries that these add up to."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements import Kind
from flowcompute.engine.scans.host_scan import TiledScan, make_scan
from flowcompute.graph import Node
from flowcompute.ir import scan_tile

NOTHING: dict[str, Any] = {"carry": None, "runs": None, "run": None}
"""The state of a scan at the beginning of a tile, without the tiles before it."""


def is_carried(node: Node) -> bool:
    """Check whether a scan carries something from record to record."""
    return node.kind is Kind.SCAN and node.attrs.get("axis") is None


def tile_records(node: Node) -> int | None:
    """Return the records in a tile of a scan that is carried; None where it has no tiles, and goes record by record."""
    return scan_tile(node.spec.item_numbers) if isinstance(make_scan(node), TiledScan) else None


class TileTotals:
    """What a scan carries at the end of each tile, of the totals of tiles in their order."""

    def __init__(self, node: Node) -> None:
        scan = make_scan(node)
        assert isinstance(scan, TiledScan), "other scans have no tiles"
        self._scan = scan
        own = scan.unknown()
        self._total, self._inside = own["runs"], own["run"]

    def take(self, total: np.ndarray) -> None:
        """Add the total of the next tile.

        Raises:
            ValueError: if it is no total of this scan.
        """
        self._scan.take_tile(_like(total, self._total))

    def at(self, inside: dict[str, Any]) -> dict[str, Any]:
        """Return the state of the scan within the next tile.

        Args:
            inside: the state there without the tiles before it.

        Raises:
            ValueError: if it is no state of this scan.
        """
        runs, run = inside["runs"], inside["run"]
        return {
            "carry": self._scan.snapshot()["carry"],
            "runs": None if runs is None else _like(runs, self._total),
            "run": None if run is None else _like(run, self._inside),
        }


def unknown_state(node: Node) -> dict[str, Any]:
    """Return the state of a scan within a tile whose results nobody looks at."""
    scan = make_scan(node)
    return scan.unknown() if isinstance(scan, TiledScan) else scan.snapshot()


def _like(array: np.ndarray, own: np.ndarray) -> np.ndarray:
    if (array.dtype, array.shape) != (own.dtype, own.shape):
        raise ValueError(f"{array.dtype}{array.shape} of a scan in place of {own.dtype}{own.shape}")
    return array
