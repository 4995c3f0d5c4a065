"""Places of records in their texts, where a text is told by its number and several texts may be open at once.

With `slots` of them, text t is kept in slot `t % slots`. A slot holds one text at a time: it begins anew at a record
whose number differs from that of the slot's record before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.compute import Compute
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.spec import INT64, Spec

MOST_SLOTS = 1 << 10
"""Most texts that are open at once."""

POSITION, SLOT, COUNT = range(3)
"""Columns of a place: the position in the text, the slot, and how many records the slot had before."""


class OpenTexts:
    """The texts that are open after some records.

    Attributes:
        numbers: of the last text of each slot, in 64 bits.
        next: the position of a further record of each.
        counts: records that each slot has had.
    """

    def __init__(self, slots: int, dtype: np.dtype) -> None:
        self.numbers = np.zeros(slots, np.uint64 if dtype.kind == "u" else np.int64)
        self.next = np.zeros(slots, np.int64)
        self.counts = np.zeros(slots, np.int64)

    def place(self, texts: np.ndarray, out: np.ndarray) -> None:
        """Compute the places (N, 3) of the records with these texts, and go on behind them."""
        if not len(texts):
            return
        texts = texts.astype(self.numbers.dtype)
        slots = (texts % self.numbers.dtype.type(len(self.numbers))).astype(np.int64)
        # Records of a slot side by side, in their order.
        order = np.argsort(slots, kind="stable")
        own, named, index = slots[order], texts[order], np.arange(len(order))
        enters = np.concatenate([[True], own[1:] != own[:-1]])
        before = np.concatenate([named[:1], named[:-1]])
        before[enters] = self.numbers[own[enters]]
        begins = named != before
        # A run of one text in a slot counts on from where the slot was, or from 0.
        first = np.maximum.accumulate(np.where(enters | begins, index, 0))
        entered = np.maximum.accumulate(np.where(enters, index, 0))
        position = index - first + np.where(begins[first], 0, self.next[own])
        count = index - entered + self.counts[own]
        for column, numbers in ((POSITION, position), (SLOT, own), (COUNT, count)):
            out[order, column] = numbers
        leaves = np.concatenate([enters[1:], [True]])
        self.numbers[own[leaves]] = named[leaves]
        self.next[own[leaves]] = position[leaves] + 1
        self.counts[own[leaves]] = count[leaves] + 1


def _declared(*_: object) -> Any:
    raise AssertionError("scans state their dtypes themselves")


def _places_of(texts: np.ndarray, **_: Any) -> np.ndarray:
    raise AssertionError(f"the places of {len(texts)} records are counted along the stream")


def _rebuild(kept: KeptOp) -> Compute:
    kept.require(kept.attrs.take("axis") is None, "a scan along the stream")
    text = kept.stream()
    kept.require(text.spec.shape == () and text.dtype.kind in "iu", "a stream of single integers")
    return text_places(text, kept.attrs.whole("slots", 1, MOST_SLOTS))


TEXT_PLACES = Op(
    "text_places", 1, Kind.SCAN, _places_of, _declared, cost=10, doc="Places of records in their texts.",
    rebuild=_rebuild,
)  # fmt: skip


def text_places(text: Any, slots: int = 1) -> Compute:
    """Return for each record its position in its text, its slot, and how many records the slot had before: (N, 3).

    Args:
        text: a stream of single integers, the numbers of texts.
        slots: texts that may be open at once.
    """
    return Compute(TEXT_PLACES, (text,), Spec(INT64, (3,), text.spec.stream), {"axis": None, "slots": slots})
