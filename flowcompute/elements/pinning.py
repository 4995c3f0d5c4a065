"""Arrays that their owners asked to have pinned: discrete devices read and write them by themselves."""

from __future__ import annotations

import threading
import weakref

import numpy as np

from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError


class _Asked:
    """Arrays by the places where they lie; those that are gone are forgotten."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, weakref.ref[np.ndarray]]] = {}
        self._lock = threading.Lock()

    def add(self, array: np.ndarray) -> None:
        start = array.ctypes.data
        with self._lock:
            gone = [place for place, (_, owner) in self._places.items() if owner() is None]
            for place in gone:
                del self._places[place]
            self._places[start] = start + array.nbytes, weakref.ref(array)

    def owner(self, first: int, last: int) -> np.ndarray | None:
        for start, (stop, owner) in tuple(self._places.items()):
            if start <= first and last <= stop and (array := owner()) is not None:
                return array
        return None


_ASKED = _Asked()


def pinned(array: np.ndarray) -> np.ndarray:
    """Let discrete devices read and write the memory of an array by themselves, at the speed of the bus.

    Worth it for an array that goes to a device more than once, or that results come back to
    (`fc.to_array(out=...)`): other arrays are copied to or from pinned memory on their way. Its memory is pinned,
    that is kept from being swapped out, when a device first reads or writes some of it, and let go with the array.
    It may be used as before. Devices that compute in the host's memory need none of it.

    Args:
        array: one that owns its memory, such as `np.empty` and `np.array` give; of any dtype and shape.

    Returns:
        The same array.

    Raises:
        SpecError: if it is a view of something else, or a mapped file: what it sees may be gone before it is.
    """
    if not isinstance(array, np.ndarray) or not array.flags.owndata:
        raise SpecError(
            "only an array that owns its memory can be pinned",
            site=user_site(),
            expected="an array as np.empty, np.zeros or np.array make it",
            got=f"a view of {type(array.base).__name__}" if isinstance(array, np.ndarray) else type(array).__name__,
            hint="pin the array that it is a view of, or a copy: fc.pinned(np.array(x))",
        )
    if array.nbytes:
        _ASKED.add(array)
    return array


def owner_of(first: int, last: int) -> np.ndarray | None:
    """The array that was asked to be pinned and holds these bytes, from one address up to another."""
    return _ASKED.owner(first, last)
