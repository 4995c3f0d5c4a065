"""Draws the pictures of README and of docs/fusion.md: `python docs/pictures/make.py [FOLDER]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element


def rows() -> Element:
    """Return a stream of rows of 1024 numbers; nothing is read for a plan."""
    return fc.source(np.broadcast_to(np.float32(1), (100_000, 1024)), name="x")


def softmax() -> list[Element]:
    """Return a softmax with a scale, written by hand."""
    y = rows() * 0.125
    e = fc.exp(y - y.max(axis=1, keepdims=True))
    return [e / e.sum(axis=1, keepdims=True)]


def dense() -> list[Element]:
    """Return a dense layer of a network, and how large its results are."""
    x = rows()
    w = fc.constant(np.ones((1024, 1024), np.float32), name="w")
    b = fc.constant(np.ones(1024, np.float32), name="b")
    h = fc.nn.gelu(fc.nn.rms_norm(x) @ w + b) + x
    return [h, (h * h).sum(axis=1)]


def standardised() -> list[Element]:
    """Return a statistic of all records that each record needs, and a count of what it says."""
    x = rows()
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return [z, (fc.abs(z) > 3).sum(axis=0)]


PICTURES: dict[str, Callable[[], list[Element]]] = {"softmax": softmax, "dense": dense, "standardised": standardised}


BOXES = [
    ("file, array", "or iterable"),
    ("input", "buffer"),
    ("one fused", "kernel"),
    ("output", "buffer"),
    ("file, array", "or callback"),
]
ARROWS = ["read", "upload", "download", "write"]


def path_of_a_batch() -> str:
    """Draw the way of a batch from source to sink, and the credit that returns."""
    wide, high, gap, top = 112, 56, 74, 20
    width, height = len(BOXES) * wide + len(ARROWS) * gap + 20, 150
    style = "text{font:14px sans-serif;text-anchor:middle;fill:#222}rect,path{fill:#fff;stroke:#555;stroke-width:1.5}"
    tip = '<marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{style}.tip{{fill:#555;stroke:none}}</style>",
        f'<defs>{tip}<path class="tip" d="M0 0L9 4L0 8z"/></marker></defs>',
        f'<rect width="{width}" height="{height}" style="stroke:none"/>',
    ]
    middle = top + high // 2
    for i, (first, second) in enumerate(BOXES):
        x = 10 + i * (wide + gap)
        fill = ' style="fill:#e3eefc"' if i == len(BOXES) // 2 else ""
        lines.append(f'<rect x="{x}" y="{top}" width="{wide}" height="{high}" rx="6"{fill}/>')
        lines += [f'<text x="{x + wide // 2}" y="{y}">{text}</text>' for text, y in ((first, 44), (second, 62))]
    for i, text in enumerate(ARROWS):
        x = 10 + wide + i * (wide + gap)
        lines.append(f'<path d="M{x} {middle}H{x + gap - 2}" marker-end="url(#tip)"/>')
        lines.append(f'<text x="{x + gap // 2}" y="{middle - 8}">{text}</text>')
    left, right = (10 + i * (wide + gap) + wide // 2 for i in (1, 3))
    back = f"M{right} {top + high}V112H{left}V{top + high + 2}"
    lines.append(f'<path d="{back}" style="fill:none" stroke-dasharray="5 4" marker-end="url(#tip)"/>')
    lines.append(f'<text x="{(left + right) // 2}" y="132">credit: a buffer returns when its batch is written</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(folder: Path) -> None:
    """Write `NAME.svg` for each picture."""
    (folder / "batch.svg").write_text(path_of_a_batch())
    for name, formula in PICTURES.items():
        (folder / f"{name}.svg").write_text(fc.plan(*formula(), device="cpu").svg())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
