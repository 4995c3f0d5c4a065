"""How an operation is made again from its operands and attributes: by the very function that users call, where one is.

A maker gives the Compute that the function would make now. Whoever asks compares it with what was
kept (operation, operands, attributes, spec), so that what no function makes is refused. Makers
without such a function check what the function would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.fields import Fields, refuse
from flowcompute.elements import Attrs, Compute, Op
from flowcompute.spec import BFLOAT16, FLOAT16, Spec, Stream


@dataclass(frozen=True)
class Kept:
    """What is known of a Compute that is made again.

    Attributes:
        op: its operation.
        inputs: its operands, made already.
        attrs: its attributes, to be taken one by one.
        spec: what it is said to have. Only what operands and attributes do not say is taken from here.
    """

    op: Op
    inputs: tuple[Any, ...]
    attrs: Fields
    spec: Spec

    def one(self) -> Any:
        """The only operand."""
        return self.operands(1)[0]

    def operands(self, *counts: int) -> tuple[Any, ...]:
        """The operands, as many as one of these counts."""
        if len(self.inputs) not in counts:
            refuse("has another number of operands", expected=" or ".join(map(str, counts)), got=len(self.inputs))
        return self.inputs

    def stream(self) -> Any:
        """The only operand, a stream."""
        return self.streams(1)[0]

    def streams(self, *counts: int) -> tuple[Any, ...]:
        """The operands, all of them streams."""
        if not all(one.spec.is_stream for one in self.operands(*counts)):
            refuse("takes streams", got=", ".join(str(one.spec) for one in self.inputs))
        return self.inputs

    def compute(
        self, dtype: np.dtype, shape: tuple[int, ...], stream: Stream | None = None, attrs: Attrs | None = None
    ) -> Compute:
        """The Compute of this spec and these attributes."""
        return Compute(self.op, self.inputs, Spec(dtype, shape, stream), attrs)


Maker = Callable[[Kept], Any]


def require(sound: bool, what: str) -> None:
    """Raise CheckpointError unless it is so."""
    if not sound:
        refuse(f"{what}: this does not fit its operands")


def counted_axis(kept: Kept, axis: int | None) -> int:
    """An axis of items as users count it; None is the stream."""
    return 0 if axis is None else axis + kept.inputs[0].spec.is_stream


HALF = (FLOAT16, BFLOAT16)
"""Dtypes that are computed in float32."""
