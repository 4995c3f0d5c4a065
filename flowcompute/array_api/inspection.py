"""Inspection of the namespace, as the standard lets libraries ask for it."""

from __future__ import annotations

import numpy as np

from flowcompute.array_api.array import DEVICE, check_device
from flowcompute.array_api.data_types import DTYPES, float64, int64, isdtype

MOST_AXES = 64
"""Axes of an array: NumPy's bound."""


class Info:
    """The answers of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, bool | int]:
        """Return what the standard leaves open.

        Boolean masks choose records of a stream only, and shapes depend on no data but for their length, so both are
        False.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": MOST_AXES}

    def default_device(self) -> str:
        """Return the only device."""
        return DEVICE

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype | None]:
        """Return the dtypes that Python's numbers become; None for complex ones, which there are not."""
        check_device("default_dtypes", device)
        return {"real floating": float64, "complex floating": None, "integral": int64, "indexing": int64}

    def devices(self) -> list[str]:
        """Return the only device, in a list."""
        return [DEVICE]

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """Return the dtypes of a kind, or of several, by their names.

        Raises:
            SpecError: if there is no such kind.
        """
        check_device("dtypes", device)
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> Info:  # noqa: N807 - the standard's name
    """Return what tells of the namespace: capabilities, devices and dtypes."""
    return Info()
