"""Arrays that their owners asked to have pinned: discrete devices read and write them by themselves."""

from __future__ import annotations

import weakref

import numpy as np

from flowcompute.elements.element import Element
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError

_ASKED: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""By where their memory begins, as long as they live."""

_BLOCKS: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""As these, memory that one device has pinned for transfers: others that share a run read and write it too."""


def pinned(array: np.ndarray) -> np.ndarray:
    """Let discrete devices read and write the memory of an array by themselves, at the speed of the bus.

    It is worth it for an array that goes to a device more than once, or that results come back to
    (`fc.to_array(out=...)`). Other arrays are copied to or from pinned memory on their way.

    Pinned memory is kept from being swapped out. That begins when a device first reads or writes some of it, and ends
    with the array. It may be used as before; a constant that is made of it is no copy. Devices that compute in the
    host's memory need none of it.

    Args:
        array: one that owns its memory, such as `np.empty` and `np.array` give; of any shape, also empty, and of any
            dtype but Python's objects. `np.arange(6.0).reshape(2, 3)` is a view and owns none: give
            `np.array(...)` of it.

    Returns:
        The same array.

    Raises:
        SpecError: if it is no array, a view of something else, or a mapped file: what it sees may be gone before it
            is. Also if it holds Python objects.
    """
    if not isinstance(array, np.ndarray) or not array.flags.owndata:
        got, hint = _refused(array)
        raise SpecError(
            "cannot pin an array that does not own its memory",
            site=user_site(),
            expected="an array as np.empty, np.zeros or np.array make it",
            got=got,
            hint=hint,
        )
    if array.dtype.hasobject:
        raise SpecError(
            "cannot pin an array of Python objects",
            site=user_site(),
            expected="an array of numbers",
            got=f"dtype {array.dtype}",
            hint='give it a dtype of numbers: array.astype("float32")',
        )
    if array.nbytes:
        _ASKED[_start(array)] = array
    return array


def _refused(given: object) -> tuple[str, str]:
    """Say what came instead of an array with memory of its own, and what to do with it."""
    if isinstance(given, Element):
        name = given.name or given.label
        return f"the element {name}", "pin the array that it is made of: fc.source(fc.pinned(array))"
    if not isinstance(given, np.ndarray):
        return type(given).__name__, "make it one: fc.pinned(np.array(x))"
    if isinstance(given, np.memmap) or isinstance(given.base, np.memmap):
        return "a mapped file", "stream it, which reads it into pinned memory: fc.open(path)"
    return f"a view of {type(given.base).__name__}", (
        "pin the array that it is a view of, or a copy: fc.pinned(np.array(x))"
    )


def share_block(array: np.ndarray) -> None:
    """Let all devices pin memory that one of them has pinned, as long as the array lives, when they first use it."""
    _BLOCKS[_start(array)] = array


def owner_of(first: int, last: int) -> np.ndarray | None:
    """Return the array that is to stay pinned and holds these bytes, from one address up to another."""
    asked = _holder(_ASKED, first, last)
    return _holder(_BLOCKS, first, last) if asked is None else asked


def _holder(known: weakref.WeakValueDictionary[int, np.ndarray], first: int, last: int) -> np.ndarray | None:
    # The list is made at once: other threads may add to it meanwhile.
    arrays = (reference() for reference in known.valuerefs())
    lie_there = (one for one in arrays if one is not None and _start(one) <= first and last <= _start(one) + one.nbytes)
    return next(lie_there, None)


def stays_pinned(array: np.ndarray) -> bool:
    """Check whether a C-contiguous array lies in one that was asked to be pinned."""
    return (
        bool(_ASKED) and array.nbytes > 0 and _holder(_ASKED, _start(array), _start(array) + array.nbytes) is not None
    )


def _start(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
