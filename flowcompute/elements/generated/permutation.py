"""Orders of records: keyed permutations, of which any position can be computed by itself.

A permutation of 0 to n - 1 is a Feistel network over pairs (l, r) of numbers below s, the least number with s * s >= n
(Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). A round makes (r, (l + f(r)) mod s) of (l, r), with
f(r) = mix(r + key) and `mix` the last step of SplitMix64 (Steele, Lea and Flood, 2014). A number that leaves the range
is permuted again until it is back. At last 0 and 1 change places if a bit of the keys is set: with an odd s all else
is an even permutation. The keys are words of Philox4x32-10 of the seed; see `_keys`.
"""

from __future__ import annotations

import math

import numpy as np

from flowcompute.elements.generated.philox import philox
from flowcompute.imports import dataclass

ROUNDS = 8
_KEY_BLOCKS = ROUNDS // 2 + 1
_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_BLOCKS, _RECORDS = 0, 1
"""Subject of a permutation: blocks of the stream, or records of a window."""


@dataclass(frozen=True)
class Permutation:
    """The order of the records of one epoch. It is a function of its fields alone, and never changes.

    Blocks of `block` neighbouring records are permuted; the last one may be short. Of the records in that order each
    run of `window` is permuted by itself.

    Attributes:
        seed: from 0 to 2^64 - 1.
        epoch: from 0 to 2^32 - 1.
        length: number of records.
        block: records of a block; 1 permutes all records freely.
        window: records of a run that is permuted; 1 for none.
    """

    seed: int
    epoch: int
    length: int
    block: int = 1
    window: int = 1

    def records(self, positions: np.ndarray) -> np.ndarray:
        """Return which records stand at positions of the order.

        Args:
            positions: integers from 0 to `length` - 1, in any order.

        Returns:
            int64 of the same length.
        """
        places = positions.astype(np.uint64)
        if self.window > 1:
            places = self._in_windows(places, inverse=False)
        return self._of_blocks(places).astype(np.int64)

    def positions(self, records: np.ndarray) -> np.ndarray:
        """Return where records stand in the order: the inverse of `records`.

        Args:
            records: integers from 0 to `length` - 1, in any order.

        Returns:
            int64 of the same length.
        """
        places = self._to_blocks(records.astype(np.uint64))
        if self.window > 1:
            places = self._in_windows(places, inverse=True)
        return places.astype(np.int64)

    # -- windows ------------------------------------------------------------------------------

    def _in_windows(self, places: np.ndarray, *, inverse: bool) -> np.ndarray:
        """Permute places inside of their windows. The last window may be short, and is permuted over fewer records."""
        size = np.uint64(self.window)
        number = places // size
        begin = number * size
        inside = places - begin
        short = self.length % self.window
        whole = np.ones(len(places), bool) if not short else begin + size <= np.uint64(self.length)
        out = np.empty_like(places)
        for chosen, count in ((whole, self.window), (~whole, short)):
            if chosen.any():
                windows, which = np.unique(number[chosen], return_inverse=True)
                keys = _keys(self.seed, self.epoch, _RECORDS, windows)[:, which]
                out[chosen] = begin[chosen] + _permuted(inside[chosen], count, keys, inverse=inverse)
        return out

    # -- blocks -------------------------------------------------------------------------------

    def _block_keys(self) -> np.ndarray:
        return _keys(self.seed, self.epoch, _BLOCKS, np.zeros(1, np.uint64))

    def _of_blocks(self, places: np.ndarray) -> np.ndarray:
        """Return the records at places of the permuted blocks."""
        count, keys = -(-self.length // self.block), self._block_keys()
        if self.block == 1:
            return _permuted(places, count, keys, inverse=False)
        size, gap, short_at = np.uint64(self.block), np.uint64(-self.length % self.block), self._short_at(count, keys)
        # Behind the short block all places are as if it were whole.
        places = np.where(places < short_at * size + (size - gap), places, places + gap)
        return _permuted(places // size, count, keys, inverse=False) * size + places % size

    def _to_blocks(self, records: np.ndarray) -> np.ndarray:
        """Return the places of records among the permuted blocks."""
        count, keys = -(-self.length // self.block), self._block_keys()
        if self.block == 1:
            return _permuted(records, count, keys, inverse=True)
        size, gap, short_at = np.uint64(self.block), np.uint64(-self.length % self.block), self._short_at(count, keys)
        at = _permuted(records // size, count, keys, inverse=True)
        return at * size + records % size - np.where(at > short_at, gap, np.uint64(0))

    def _short_at(self, count: int, keys: np.ndarray) -> np.uint64:
        """Return where the last block, which may be short, stands among the permuted ones."""
        last = np.array([max(0, count - 1)], np.uint64)
        return np.uint64(_permuted(last, max(1, count), keys, inverse=True)[0])


def _permuted(values: np.ndarray, count: int, keys: np.ndarray, *, inverse: bool) -> np.ndarray:
    """Permute values below `count`.

    Args:
        values: as uint64.
        count: their number, 1 or more where there are values.
        keys: as `_keys` gives them, of one column for all values or one for each.
        inverse: whether the permutation is undone.
    """
    if count <= 1:
        return values.copy()
    side = np.uint64(math.isqrt(count - 1) + 1)
    rounds, swapped = keys[:ROUNDS], keys[ROUNDS] & np.uint64(1)
    out = np.where(values < 2, values ^ swapped, values) if inverse else values
    out = _network(out, side, rounds, inverse=inverse)
    outside = np.flatnonzero(out >= count)
    while len(outside):
        own = rounds if rounds.shape[1] == 1 else rounds[:, outside]
        out[outside] = _network(out[outside], side, own, inverse=inverse)
        outside = outside[out[outside] >= count]
    return out if inverse else np.where(out < 2, out ^ swapped, out)


def _network(values: np.ndarray, side: np.uint64, keys: np.ndarray, *, inverse: bool) -> np.ndarray:
    left: np.ndarray = values // side
    right: np.ndarray = values % side
    if inverse:
        for key in keys[::-1]:
            left, right = (right + side - _mixed(left + key) % side) % side, left
    else:
        for key in keys:
            left, right = right, (left + _mixed(right + key) % side) % side
    found: np.ndarray = left * side + right
    return found


def _mixed(words: np.ndarray) -> np.ndarray:
    """Return words of 64 bits, each of whose bits depends on all bits of one that was given."""
    once = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    twice: np.ndarray = (once ^ (once >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = twice ^ (twice >> np.uint64(31))
    return mixed


def _keys(seed: int, epoch: int, purpose: int, windows: np.ndarray) -> np.ndarray:
    """Return the keys for each window: a row for each round and one more, a column for each window.

    Block b of Philox has the counter (b + 5 purpose, epoch, lower half of the window's number, 1 + upper half), b from
    0 to 4. Its words w0 to w3 are the keys w0 + 2^32 w1 and w2 + 2^32 w3 of rounds 2b and 2b + 1; the lowest bit of
    the first key of block 4 swaps. `fc.random` has counters that end in 0: the same seed gives unrelated numbers there.
    """
    low, high = windows & _WORD, (windows >> _HALF) + np.uint64(1)
    rows: list[np.ndarray] = []
    for block in range(_KEY_BLOCKS):
        number = np.full_like(low, block + purpose * _KEY_BLOCKS)
        a, b, c, d = philox((number, np.full_like(low, epoch), low, high), seed)
        rows += [a | (b << _HALF), c | (d << _HALF)]
    return np.stack(rows[: ROUNDS + 1])
