"""Hyperparameters of a model, read from its file by type and range: nobody has checked the file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.errors import SourceError, short_repr

MOST = 1 << 24
"""Largest whole number that a model needs."""


class Hyperparameters:
    """The metadata of a model, whose keys begin with the name of its architecture.

    Args:
        metadata: of a GGUF file.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        self._begin = f"{metadata['general.architecture']}."

    def __contains__(self, key: str) -> bool:
        return self._begin + key in self._metadata

    def whole(self, key: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """Return a whole number.

        Args:
            key: behind the name of the architecture.
            default: where the file does not say it; None where it must.
            least, most: the range.

        Raises:
            SourceError: if it is missing, of another type, or out of range.
        """
        value = self._value(key, default)
        if type(value) is not int or not least <= value <= most:
            raise self._refusal(key, f"a whole number from {least} to {most}", value)
        return value

    def real(self, key: str, default: float | None = None, *, least: float = 0.0) -> float:
        """Return a finite number, `least` or more.

        Raises:
            SourceError: if it is missing, of another type, or out of range.
        """
        value = self._value(key, default)
        if type(value) not in (int, float) or not least <= value < math.inf:
            raise self._refusal(key, f"a finite number from {least:g}", value)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return a truth value.

        Raises:
            SourceError: if it is of another type.
        """
        value = self._value(key, default)
        if type(value) is not bool:
            raise self._refusal(key, "true or false", value)
        return value

    def flags(self, key: str, layers: int, period: int) -> list[bool]:
        """Return a truth value for each layer: those of the file, or False for the last layer of each period.

        Args:
            key: holds the truth values, or the period.
            layers: how many there are.
            period: where the file does not say it.

        Raises:
            SourceError: if it is of another type, or has another length.
        """
        value = self._value(key, period)
        if type(value) is int and 1 <= value <= MOST:
            return [i % value < value - 1 for i in range(layers)]
        given = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(given, list | tuple) or len(given) != layers or any(type(one) is not bool for one in given):
            raise self._refusal(key, f"a period from 1, or {layers} truth values", value)
        return list(given)

    def one_of(self, key: str, default: str, words: Sequence[str]) -> str:
        """Return one of these words.

        Raises:
            SourceError: if it is another value.
        """
        value = self._value(key, default)
        if value not in words:
            raise self._refusal(key, " or ".join(words), value)
        return str(value)

    def refuse(self, key: str) -> None:
        """Check that the file does not say this, or says 0 or false.

        Raises:
            SourceError: if it does: the answers would not be those of the model.
        """
        value = self._value(key, 0)
        if type(value) not in (bool, int, float) or value:
            raise self._refusal(key, "none: this is not supported", value)

    def _value(self, key: str, default: Any) -> Any:
        name = self._begin + key
        if name not in self._metadata and default is None:
            raise SourceError(f"cannot make the graph of the model: {name} is missing", expected=f"{name} in the file")
        return self._metadata.get(name, default)

    def _refusal(self, key: str, expected: str, value: Any) -> SourceError:
        return SourceError(
            f"cannot make the graph of the model with this {self._begin}{key}", expected=expected, got=short_repr(value)
        )
