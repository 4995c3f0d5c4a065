"""Streams in another order: `fc.shuffle`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.alignment import ALONG, common_length
from flowcompute.elements.arguments import whole
from flowcompute.elements.axes import CUT, SECTION
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.generated import Generator, Permutation
from flowcompute.elements.op import MOST, KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.elements.source import Source
from flowcompute.elements.streams.spooling import SPOOL
from flowcompute.errors import SpecError

WINDOW_BLOCKS = 64
"""Blocks whose records are mixed where `window=` is left out."""

MOST_EPOCHS = 1 << 32

_MAPS = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW)
"""Operations whose records depend on the same records of their operands alone."""


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _rebuild(kept: KeptOp) -> Compute:
    attrs = kept.attrs
    x = kept.stream()
    block = attrs.whole("block", 1)
    order = attrs.whole("seed", 0, (1 << 64) - 1), attrs.whole("epoch", 0, MOST_EPOCHS - 1), block
    return _shuffled(x, *order, attrs.whole("window", 1), inverse=attrs.flag("inverse"))


SHUFFLE = Op("shuffle", 1, Kind.REBATCH, np.asarray, _kept, arithmetic=False, rebuild=_rebuild)


@public
def shuffle(*streams: Operand, seed: int, epoch: int = 0, block: int = 1, window: int | None = None) -> Any:
    """Return streams in a random order, the same for all of them.

    The order is a function of the arguments and the number of records, and any part of it is known by itself. So
    nothing is stored, batches change nothing, and a resumed job goes on in the same order. Records are read where they
    lie, those of a batch in the order of the file: streams must be files, arrays, or maps of them.

    Args:
        streams: one or more streams of equal, known length.
        seed: from 0 to 2^64 - 1.
        epoch: from 0 to 2^32 - 1; each has an order of its own.
        block: neighbouring records that stay together. 1 permutes all records; more are fewer places to read at.
        window: records, in the order of the blocks, that are mixed with each other. 1 mixes none; by default
            64 blocks, and 1 for blocks of one record.

    Returns:
        The stream, or a tuple of as many as were given.

    Raises:
        SpecError: if a stream cannot be read at any record: one that is read once, as an iterator, or whose length is
            unknown, as a selection; or one whose records depend on others, as a scan. Save these to a file first.
    """
    if not streams:
        raise SpecError("cannot shuffle nothing", element="shuffle", site=user_site(), expected="at least one stream")
    elements = [_stream(one) for one in streams]
    order = (
        whole("shuffle", "seed", seed, 0, (1 << 64) - 1),
        whole("shuffle", "epoch", epoch, 0, MOST_EPOCHS - 1),
        whole("shuffle", "block", block, 1),
    )
    default = 1 if order[-1] == 1 else min(order[-1] * WINDOW_BLOCKS, MOST - 1)
    mixed = default if window is None else whole("shuffle", "window", window, 1)
    common_length("shuffle", elements)
    made = tuple(_shuffled(one, *order, mixed) for one in elements)
    return made[0] if len(made) == 1 else made


def unshuffle(x: Element, shuffled: Compute) -> Compute:
    """Return a stream in the order that `shuffled` had before it was shuffled."""
    attrs = shuffled.attrs
    return _shuffled(x, attrs["seed"], attrs["epoch"], attrs["block"], attrs["window"], inverse=not attrs["inverse"])


def order_of(shuffled: Compute) -> Permutation:
    """Return the order of a shuffled stream. Where its attribute `inverse` is true it is undone."""
    attrs, length = shuffled.attrs, shuffled.spec.length
    assert length is not None
    return Permutation(attrs["seed"], attrs["epoch"], length, attrs["block"], attrs["window"])


def _shuffled(x: Any, seed: int, epoch: int, block: int, window: int, *, inverse: bool = False) -> Compute:
    _check_any_record(x)
    attrs = {"seed": seed, "epoch": epoch, "block": block, "window": window, "inverse": inverse}
    return Compute(SHUFFLE, (x,), x.spec, attrs)


def _stream(x: Operand) -> Any:
    element = as_element(x, "shuffle")
    if not element.spec.is_stream:
        raise SpecError(
            "cannot shuffle what is no stream",
            element="shuffle",
            site=user_site(),
            expected="a stream",
            got=str(element.spec),
            hint="fc.source(array) is a stream along axis 0",
        )
    return element


def _check_any_record(x: Element) -> None:
    """Check that any record of a stream can be had without the records before it.

    Raises:
        SpecError: if it cannot, with the element that is in the way.
    """
    todo, seen = [(x, False)], {(id(x), False)}
    while todo:
        element, in_runs = todo.pop()
        if not element.spec.is_stream:
            continue
        reason = _in_the_way(element, in_runs)
        if reason is not None:
            raise SpecError(
                f"cannot shuffle this stream: {reason}",
                element=element.name or element.base_name,
                site=element.site or user_site(),
                expected="files, arrays, and maps of their records",
                got=str(element.spec),
                hint="shuffle before it, or save it to a file first and shuffle that: fc.shuffle(fc.open(path), ...)",
            )
        below = in_runs or (isinstance(element, Compute) and element.op is CUT)
        new = [one for one in element.inputs if (id(one), below) not in seen]
        seen.update((id(one), below) for one in new)
        todo += [(one, below) for one in new]


def _in_the_way(element: Element, in_runs: bool) -> str | None:
    """Return why records of an element cannot be had at any place of their operands, or None.

    Args:
        element: a stream.
        in_runs: whether runs of its records are wanted.
    """
    if element.spec.length is None:
        return "its length is unknown"
    if isinstance(element, Source):
        return None if element.rereadable and element.seekable else "it can be read only once, in order"
    if not isinstance(element, Compute) or isinstance(element.op, Generator):
        return "it is made in order"
    if element.op in (SECTION, SHUFFLE) or (element.op is CUT and element.attrs["tail"] in ("error", "drop")):
        return None
    if element.op is ALONG:
        return None if isinstance(element.inputs[0], Constant) else "it is computed and cut along the stream"
    if element.op is SPOOL:
        return "it is kept for a later pass, in order"
    if element.op.kind is Kind.ELEMENTWISE or (element.op.kind in _MAPS and not in_runs):
        return None
    return (
        f"{element.base_name} takes several records, or has a state"
        if element.op.kind not in _MAPS
        else ("it is computed of whole items and then cut")
    )
