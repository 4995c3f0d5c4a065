"""Levels of Parquet's pages: to which record a number belongs, and whether it is there.

The format is that of apache/parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid". A run of a few
bytes may stand for any number of levels. So levels are checked run by run, and never expanded as a whole.
"""

from __future__ import annotations

import numpy as np

from flowcompute.sources.columnar.parquet_pages import read_varint
from flowcompute.sources.columnar.table_file import ColumnarError

_STEP = 1 << 16
"""Packed levels that are looked at a time."""
_ALL = {1: b"\xff", 2: b"\xaa", 3: b"\xff"}
"""Bytes of packed levels that are all the most, by that: a bit each up to 1, else two."""


def check_lists(levels: bytes, count: int, number: int, item: int) -> None:
    """Check that lists have one size: that a record begins at each multiple of it, and nowhere else.

    Writers repeat the same bytes from record to record. What was checked once is compared from there on.

    Args:
        levels: repetition levels of a page, which are 0 where a record begins, else 1.
        count: of the page.
        number: of the first among those of all pages.
        item: the size of the lists.

    Raises:
        ColumnarError: if a list has another size, or the levels are damaged.
    """
    at, stop = 0, number + count
    mark = (at, number)
    while number < stop:
        level, run, begin, at = _run(levels, at, 1, stop - number)
        within = number % item
        if level is None:
            fits = _packed_fit(levels[begin:at], run, number, item)
        elif level == 0:
            fits = within == 0 and (run == 1 or item == 1)
        else:
            fits = level == 1 and within > 0 and within + run <= item
        if not fits:
            raise ColumnarError("a record has more numbers than its type, or fewer")
        number += run
        if number % item == mark[1] % item:
            at, number = _repeated(levels, mark, (at, number), stop)
            mark = (at, number)


def _packed_fit(packed: bytes, count: int, number: int, item: int) -> bool:
    for begin in range(0, count, _STEP):
        some = min(_STEP, count - begin)
        levels = np.unpackbits(
            np.frombuffer(packed, np.uint8, -(-some // 8), begin // 8), count=some, bitorder="little"
        )
        if ((np.arange(number + begin, number + begin + some) % item != 0) != levels).any():
            return False
    return True


def _repeated(levels: bytes, begin: tuple[int, int], end: tuple[int, int], stop: int) -> tuple[int, int]:
    """Return the place and the number behind all that repeats the levels between two places."""
    (at, number), (size, numbers) = end, (end[0] - begin[0], end[1] - begin[1])
    period, times = levels[begin[0] : end[0]], 1
    while times:
        same = number + times * numbers <= stop and levels.startswith(period * times, at)
        if same:
            at, number = at + times * size, number + times * numbers
        times = 2 * times if same else times // 2
    return at, number


def all_present(levels: bytes, most: int, count: int) -> bool:
    """Check whether so many definition levels are all `most`, from 1 to 3: then no number is null.

    Raises:
        ColumnarError: if they are damaged.
    """
    at = number = 0
    bits = most.bit_length()
    while number < count:
        level, run, begin, at = _run(levels, at, bits, count - number)
        if level is None:
            whole, rest = divmod(run * bits, 8)
            mask = (1 << rest) - 1
            if levels[begin : begin + whole] != _ALL[most] * whole:
                return False
            if rest and (levels[begin + whole] ^ _ALL[most][0]) & mask:
                return False
        elif level != most:
            return False
        number += run
    return True


def _run(levels: bytes, at: int, bits: int, left: int) -> tuple[int | None, int, int, int]:
    """Return a run of levels.

    Args:
        levels: all of a page.
        at: where the run begins.
        bits: of a level.
        left: the most that the page has from here on.

    Returns:
        the level, or None where levels are packed; how many there are, of those that are left; the places of what is
        packed and of the next run.
    """
    try:
        said, begin = read_varint(levels, at)
        if said & 1:
            end = min(begin + (said >> 1) * bits, len(levels))
            level, run = None, (end - begin) * 8 // bits
        else:
            level, run, end = levels[begin], said >> 1, begin + 1
    except IndexError:
        raise ColumnarError("it is damaged: the levels of a page end too early") from None
    if not run:
        raise ColumnarError("it is damaged: the levels of a page have an empty run")
    return level, min(run, left), begin, end
