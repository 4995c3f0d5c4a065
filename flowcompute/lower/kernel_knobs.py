"""Which kernels have which knobs: for each family the values that it can do, and what it does by itself.

No value changes a bit of an answer: knobs say who computes which number and when, never what is
added to what (`ir.reduction_order`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flowcompute.elements.functions import TURNS
from flowcompute.ir import DeviceCapabilities, Family
from flowcompute.strategy import KernelKnobs, Precision

if TYPE_CHECKING:
    from flowcompute.ir import Kernel


CHUNK_BYTES = 64 << 10
"""What one work-item of a CPU takes: launching smaller ones costs more than it balances."""

PARTS_PER_UNIT = 16
"""Work-items for each compute unit of a CPU, when there is so much work."""

GPU_PARTS_PER_UNIT = 64
"""As many work-groups of a GPU: more than run at once, so that those that wait keep the memory busy."""

KNOBS_BESIDE_BODIES = ("items_per_work_item", "fold_parts", "function_unroll")
"""Those that a launch reads, or who renders a kernel: its body is the same."""

_ITEMS = range(1, (1 << 24) + 1)
_CPU_LANES = (4, 8, 16)
_TURNS = (1, 2, 4, 8)
_TILES = (16, 32, 64, 128)
_PARTS = (4, 8, 16, 32, 64)
_GPU_PARTS = (8, 16, 32, 64, 128)
_GROUPS = (32, 64, 128, 256, 512, 1024)

_TABLE: Mapping[tuple[str, Family], Mapping[str, range | tuple[int, ...]]] = {
    ("cpu", "map"): {"vector_width": _CPU_LANES, "unroll": _TURNS, "items_per_work_item": _ITEMS},
    ("cpu", "numbers"): {"vector_width": _CPU_LANES, "fold_parts": _PARTS},
    ("cpu", "rows"): {"vector_width": _CPU_LANES, "unroll": _TURNS, "items_per_work_item": _ITEMS},
    ("cpu", "short rows"): {"vector_width": _CPU_LANES, "items_per_work_item": _ITEMS},
    ("cpu", "columns"): {"vector_width": _CPU_LANES, "unroll": _TURNS, "fold_parts": _PARTS},
    ("cpu", "matmul"): {"tile_rows": (2, 4, 8), "tile_columns": (16, 32, 64)},
    ("cpu", "attention"): {"tile_rows": (2, 4, 8), "block_rows": (16, 32, 64, 128)},
    ("cpu", "scan"): {"vector_width": _CPU_LANES, "tile_rows": (2, 4, 8, 16)},
    ("cpu", "wide scan"): {"vector_width": _CPU_LANES},
    ("cpu", "walk"): {"vector_width": _CPU_LANES},
    ("gpu", "map"): {
        "vector_width": (2, 4, 8),
        "unroll": _TURNS,
        "work_group": _GROUPS,
        "items_per_work_item": _ITEMS,
    },
    ("gpu", "numbers"): {"work_group": _GROUPS, "fold_parts": _GPU_PARTS},
    ("gpu", "rows"): {"work_group": _GROUPS},
    ("gpu", "team rows"): {"work_group": _GROUPS},
    ("gpu", "long rows"): {"team_blocks": (1, 2)},
    ("gpu", "matmul"): {"tile_rows": _TILES, "tile_columns": _TILES},
    ("gpu", "attention"): {"work_group": (128, 256), "block_rows": (16, 32, 64, 128)},
    ("gpu", "tensor attention"): {"work_group": (128, 256), "block_rows": (64, 128)},
    ("gpu", "scan"): {"work_group": (64, 128, 256, 512, 1024), "unroll": (4, 8, 16)},
    ("gpu", "number scan"): {"unroll": (2, 4, 8)},
    ("gpu", "column scan"): {"work_group": (128, 256, 512, 1024), "tile_columns": (8, 16, 32)},
    ("gpu", "walk"): {"work_group": (32, 64, 128, 256)},
    ("gpu", "tiled walk"): {"work_group": (32, 64, 128), "tile_columns": (16, 32, 64)},
    ("gpu", "columns"): {"work_group": _GROUPS, "unroll": (*_TURNS, 16), "fold_parts": _GPU_PARTS},
}

_TRIED_ITEMS = {"cpu": (1 << 12, 1 << 14, 1 << 16, 1 << 18), "gpu": (4, 8, 16, 32)}
"""Values of `items_per_work_item` that a tuner looks at."""


@dataclass(frozen=True)
class KernelStyle:
    """What kernels are to look like on a device.

    Attributes:
        capabilities: of the device.
        wanted: knobs that are set; the others are left to each family.
        precision: as the user fixed it.
    """

    capabilities: DeviceCapabilities
    wanted: KernelKnobs = field(default_factory=KernelKnobs)
    precision: Precision = "exact"

    def settled(self, family: Family, **defaults: int) -> KernelKnobs:
        """All knobs of a family, as wanted where it can do that, else as by default.

        Args:
            family: of the kernel.
            defaults: where they depend on more than family and device.
        """
        chosen = {}
        for name, values in choices(family, self.capabilities).items():
            wanted = getattr(self.wanted, name)
            # Asking a range for None would look at each of its millions of numbers.
            able = wanted is not None and wanted in values
            chosen[name] = wanted if able else {**_defaults(family, self.capabilities), **defaults}[name]
        return KernelKnobs(**chosen)


def choices(family: Family, capabilities: DeviceCapabilities) -> dict[str, range | tuple[int, ...]]:
    """The knobs of a family on a device, and the values that it can do."""
    knobs = dict(_TABLE.get((capabilities.code_shape, family), {}))
    if "work_group" in knobs:
        knobs["work_group"] = tuple(size for size in knobs["work_group"] if size <= capabilities.max_work_group)
    if "vector_width" in knobs:
        knobs["vector_width"] = tuple(width for width in knobs["vector_width"] if width <= capabilities.lanes)
    return knobs


def candidates(kernel: Kernel, capabilities: DeviceCapabilities) -> dict[str, tuple[int, ...]]:
    """The knobs that a kernel has on a device: those of its family, with few values each, and of its functions."""
    tried = _TRIED_ITEMS.get(capabilities.code_shape, ())
    own = choices(kernel.family, capabilities)
    found = {name: tried if isinstance(values, range) else values for name, values in own.items()}
    return found if kernel.knobs.function_unroll is None else {**found, "function_unroll": TURNS}


def written_turns(knobs: KernelKnobs) -> int:
    """What a loop is told of `unroll`: nothing where one turn is written out, since compilers know that best."""
    return knobs.unroll if knobs.unroll is not None and knobs.unroll > 1 else 0


def _defaults(family: Family, capabilities: DeviceCapabilities) -> dict[str, int]:
    if capabilities.code_shape == "cpu":
        items = CHUNK_BYTES // 4
        return {
            "vector_width": capabilities.lanes,
            "unroll": 1,
            "items_per_work_item": items,
            "fold_parts": PARTS_PER_UNIT,
        }
    # Columns of GPUs: so many records are loaded at once. Maps: on an H200 two turns are 1 to 3 % faster than one.
    unroll, group, items = {"columns": (8, 256, 4), "map": (2, 512, 16)}.get(family, (1, 256, 4))
    return {
        "vector_width": 4,
        "unroll": unroll,
        "work_group": min(group, capabilities.max_work_group),
        "items_per_work_item": items,
        "fold_parts": GPU_PARTS_PER_UNIT,
        "team_blocks": 1,
    }
