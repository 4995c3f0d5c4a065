"""Knobs of kernel forms: which values each can do, and what it does by itself.

No value changes a bit of an answer: knobs say who computes which number and when, never what is
added to what (`ir.reduction_order`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.ir import DeviceCapabilities
from flowcompute.ir.launches import GPU_PARTS_PER_UNIT, PARTS_PER_UNIT
from flowcompute.spec import FLOAT16
from flowcompute.strategy import KernelKnobs, Precision

CHUNK_BYTES = 64 << 10
"""Bytes that one work-item of a CPU takes: launching smaller ones costs more than it balances."""

KNOBS_BESIDE_BODIES = ("items_per_work_item", "fold_parts", "function_unroll")
"""Those that a launch reads, or who renders a kernel: its body is the same."""

ITEMS = range(1, (1 << 24) + 1)
CPU_LANES = (4, 8, 16)
TURNS = (1, 2, 4, 8)
PARTS = (4, 8, 16, 32, 64)
GPU_PARTS = (8, 16, 32, 64, 128)
GROUPS = (32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Knob:
    """A knob of a form.

    Attributes:
        name: of the field of `KernelKnobs`.
        values: that the form can do.
        default: which of them it takes by itself; None where that follows from the region.
    """

    name: str
    values: range | tuple[int, ...]
    default: int | None = None

    def on(self, capabilities: DeviceCapabilities) -> Knob:
        """Return the knob with the values that a device can do."""
        most = {"work_group": capabilities.max_work_group, "vector_width": capabilities.lanes}.get(self.name)
        if most is None:
            return self
        default = None if self.default is None else min(self.default, most)
        return Knob(self.name, tuple(value for value in self.values if value <= most), default)


@dataclass(frozen=True)
class FormKnobs:
    """The knobs of a form, for each code shape."""

    cpu: tuple[Knob, ...] = ()
    gpu: tuple[Knob, ...] = ()

    def on(self, capabilities: DeviceCapabilities) -> tuple[Knob, ...]:
        """Return the knobs on a device, with the values that it can do."""
        own = self.cpu if capabilities.code_shape == "cpu" else self.gpu
        return tuple(knob.on(capabilities) for knob in own)


CPU_VECTOR = Knob("vector_width", CPU_LANES, CPU_LANES[-1])
UNROLL = Knob("unroll", TURNS, 1)
CPU_ITEMS = Knob("items_per_work_item", ITEMS, CHUNK_BYTES // 4)
CPU_PARTS = Knob("fold_parts", PARTS, PARTS_PER_UNIT)
GPU_FOLD_PARTS = Knob("fold_parts", GPU_PARTS, GPU_PARTS_PER_UNIT)
WORK_GROUP = Knob("work_group", GROUPS, 256)

_TRIED_ITEMS = {"cpu": (1 << 12, 1 << 14, 1 << 16, 1 << 18), "gpu": (4, 8, 16, 32)}
"""Values of `items_per_work_item` that a tuner looks at."""


@dataclass(frozen=True)
class KernelStyle:
    """Wanted form of kernels on a device.

    Attributes:
        capabilities: of the device.
        wanted: knobs that are set; the others are left to each form.
        precision: as the user fixed it.
        block_terms: whether tensor cores multiply decoded numbers.
    """

    capabilities: DeviceCapabilities
    wanted: KernelKnobs = field(default_factory=KernelKnobs)
    precision: Precision = "exact"
    block_terms: bool = False

    def settled(self, knobs: FormKnobs, **defaults: int) -> KernelKnobs:
        """All knobs of a form, as wanted where it can do that, else as by default.

        Args:
            knobs: of the form.
            defaults: where they depend on more than form and device.
        """
        chosen = {}
        for knob in knobs.on(self.capabilities):
            wanted = getattr(self.wanted, knob.name)
            # Asking a range for None would look at each of its millions of numbers.
            able = wanted is not None and wanted in knob.values
            chosen[knob.name] = wanted if able else defaults.get(knob.name, knob.default)
        return KernelKnobs(**chosen)


def choices(knobs: FormKnobs, capabilities: DeviceCapabilities) -> dict[str, tuple[int, ...]]:
    """Return the knobs of a form on a device, with the few values of each that a tuner tries."""
    tried = _TRIED_ITEMS.get(capabilities.code_shape, ())
    own = knobs.on(capabilities)
    return {knob.name: tried if isinstance(knob.values, range) else knob.values for knob in own}


def written_turns(knobs: KernelKnobs) -> int:
    """Return the unroll hint of a loop: 0 for a single turn, since compilers know that best."""
    return knobs.unroll if knobs.unroll is not None and knobs.unroll > 1 else 0


def vectors_of(dtypes: Iterable[np.dtype]) -> tuple[int, ...]:
    """Return how many numbers of such dtypes a work-item of a GPU moves together, best first: 16 bytes of halves."""
    return (8, 4) if all(dtype.itemsize == FLOAT16.itemsize for dtype in dtypes) else (4,)
