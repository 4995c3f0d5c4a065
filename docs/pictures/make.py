"""Draws the pictures of docs/fusion.md from plans of its formulas: `python docs/pictures/make.py [FOLDER]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element


def rows() -> Element:
    """A stream of rows of 1024 numbers; nothing is read for a plan."""
    return fc.source(np.broadcast_to(np.float32(1), (100_000, 1024)), name="x")


def softmax() -> list[Element]:
    """A softmax with a scale, written by hand."""
    y = rows() * 0.125
    e = fc.exp(y - y.max(axis=1, keepdims=True))
    return [e / e.sum(axis=1, keepdims=True)]


def dense() -> list[Element]:
    """A dense layer of a network, and how large its results are."""
    x = rows()
    w = fc.constant(np.ones((1024, 1024), np.float32), name="w")
    b = fc.constant(np.ones(1024, np.float32), name="b")
    h = fc.nn.gelu(fc.nn.rms_norm(x) @ w + b) + x
    return [h, (h * h).sum(axis=1)]


def standardised() -> list[Element]:
    """A statistic of all records that each record needs, and a count of what it says."""
    x = rows()
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return [z, (fc.abs(z) > 3).sum(axis=0)]


PICTURES: dict[str, Callable[[], list[Element]]] = {"softmax": softmax, "dense": dense, "standardised": standardised}


def main(folder: Path) -> None:
    """Write `NAME.svg` for each picture."""
    for name, formula in PICTURES.items():
        (folder / f"{name}.svg").write_text(fc.plan(*formula(), device="cpu").svg())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
