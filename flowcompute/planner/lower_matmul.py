"""The matrix product: correct and blocked for the cache; a tile of four rows by one vector of columns.

Sums run over k in panels of `PANEL`, in order inside a panel and panel by panel, whatever
the tile: that order belongs to the op.
"""

from __future__ import annotations

import itertools
import math

from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Traits
from flowcompute.planner.emit import Arguments, Scope, loaded
from flowcompute.planner.kernel import (
    Assign,
    Combine,
    For,
    If,
    Kernel,
    Load,
    MultiplyAdd,
    Number,
    SetInteger,
    Splat,
    Stmt,
    Store,
    Var,
)
from flowcompute.planner.region import Region
from flowcompute.spec import Spec, is_float

PANEL = 512
TILE_ROWS = 4
ROWS_PER_ITEM = 64
GROUP = 64


class MatmulLowering:
    """Lowers one product: C[s, i, j] = sum over k of A[s, i, k] * B[s, k, j]."""

    def __init__(self, graph: Graph, region: Region, traits: Traits) -> None:
        self.region = region
        node = graph.nodes[region.nodes[0]]
        self.left, self.right = (graph.nodes[i].spec for i in node.inputs)
        self.spec = node.spec
        self.cpu = traits.code_shape == "cpu"
        self.lanes = traits.lanes if self.cpu else 1
        self.names = itertools.count()
        arguments = Arguments()
        self.a = arguments.get("input", self.left.dtype, node.inputs[0])
        self.b = arguments.get("input", self.right.dtype, node.inputs[1])
        self.c = arguments.get("output", self.spec.dtype, node.id)
        self.arguments = arguments
        self.stream_rows = self.left.is_stream and self.left.ndim == 2
        self.inner = self.left.shape[-1]
        self.columns = self.right.shape[-1]
        vector = self.left.ndim == 1
        self.height = 1 if vector or self.stream_rows else self.left.shape[-2]
        own = len(self.spec.shape) - (1 if vector or self.stream_rows else 2)
        self.stack = self.spec.shape[:own]

    def lower(self, name: str) -> Kernel:
        """The kernel; its work counts row tiles (CPU) or single results (GPU)."""
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            tuple(self._cpu_body() if self.cpu else self._gpu_body()),
            work="matmul",
            work_group=1 if self.cpu else GROUP,
            units=self.units,
            lanes=self.lanes,
        )

    @property
    def units(self) -> int:
        """Rows of the result in one record."""
        return math.prod(self.stack) * self.height

    def _offsets(self) -> list[Stmt]:
        """Where the row's matrices begin: integers `matrix`, `row`, `at_a`, `at_b`."""
        stack = math.prod(self.stack)
        return [
            SetInteger("record", f"r / {self.units}" if self.units > 1 else "r"),
            SetInteger("within", f"r % {self.units}" if self.units > 1 else "0"),
            SetInteger("row", f"within % {self.height}"),
            SetInteger("matrix", f"within / {self.height}" if stack > 1 else "0"),
            SetInteger("at_a", self._base(self.left, 1 if self.stream_rows else 2) + f" + row * {self.inner}"),
            SetInteger("at_b", self._base(self.right, 2)),
            SetInteger("at_c", f"r * {self.columns}"),
        ]

    def _base(self, spec: Spec, own: int) -> str:
        """Offset of the operand's matrix, broadcast over stacks."""
        shape = spec.shape[: max(0, len(spec.shape) - own)]
        step = math.prod(spec.shape[len(shape) :])
        terms = []
        for back in range(1, len(shape) + 1):
            below = math.prod(self.stack[len(self.stack) - back + 1 :])
            if shape[-back] != 1:
                terms.append(f"(matrix / {below} % {self.stack[-back]}) * {step}")
            step *= shape[-back]
        if spec.is_stream:
            terms.append(f"record * {spec.item_numbers}")
        return " + ".join(terms) or "0"

    @property
    def _shared(self) -> bool:
        """Whether consecutive rows of the result multiply the same matrix, so that a tile of them can."""
        return self.stream_rows or (not self.right.is_stream and math.prod(self.right.shape[:-2]) == 1)

    # -- CPU ------------------------------------------------------------------------------------

    def _cpu_body(self) -> list[Stmt]:
        columns = self.columns
        whole = columns - columns % self.lanes
        per_item: list[Stmt] = []
        if whole:
            per_item.append(For("j", "0", str(whole), str(self.lanes), tuple(self._panels(None))))
        if columns % self.lanes:
            per_item.append(If("1", (SetInteger("j", str(whole)), *self._panels(str(columns % self.lanes)))))
        return [SetInteger("start", "gid * chunk"), SetInteger("stop", "min(n, start + chunk)"), *per_item]

    def _panels(self, count: str | None) -> list[Stmt]:
        """One strip of columns: panel by panel, tiles of rows inside, so that the panel stays in cache."""
        rows: list[Stmt] = []
        if self._shared and not self.region_split:
            rows.append(SetInteger("tiled", f"start + (stop - start) / {TILE_ROWS} * {TILE_ROWS}"))
            rows.append(For("r", "start", "tiled", str(TILE_ROWS), tuple(self._tile(TILE_ROWS, count))))
            rows.append(For("r", "tiled", "stop", "1", tuple(self._tile(1, count))))
        else:
            rows.append(For("r", "start", "stop", "1", tuple(self._tile(1, count))))
        bounds = SetInteger("until", f"min((long){self.inner}, panel + {PANEL})")
        stop = str(max(self.inner, 1))
        return [For("panel", "0", stop, str(PANEL), (bounds, *rows))]

    @property
    def region_split(self) -> bool:
        """Whether four consecutive rows may lie in different places of the left operand (stacks broadcast)."""
        return not self.stream_rows and math.prod(self.left.shape[:-2]) != math.prod(self.stack)

    def _tile(self, rows: int, count: str | None) -> list[Stmt]:
        scope = Scope(self.names, lanes=self.lanes)
        totals = [self._zero(scope) for _ in range(rows)]
        inner = Scope(self.names, scope)
        b = loaded(inner, Load(self.b, f"at_b + k * {self.columns} + j", 1, count))
        for row, total in enumerate(totals):
            a = loaded(inner, Load(self.a, f"at_a + {row * self.inner} + k", 0))
            inner.add(Assign(total, Splat(inner.let(MultiplyAdd(a, b, total), total.dtype))))
        scope.add(For("k", "panel", "until", "1", tuple(inner.statements)))
        for row, total in enumerate(totals):
            self._add_panel(scope, total, f"at_c + {row * self.columns} + j", count)
        return [*self._offsets(), *scope.statements]

    def _zero(self, scope: Scope) -> Var:
        return scope.let(Number(-0.0 if is_float(self.spec.dtype) and self.inner else 0), self.spec.dtype)

    def _add_panel(self, scope: Scope, total: Var, index: str, count: str | None) -> None:
        """The first panel is stored, later ones are added to what is there."""
        later = scope.inner()
        before = loaded(later, Load(self.c, index, 1, count))
        added = later.let(Combine("sum", (before,), (total,), 0), total.dtype)
        later.add(self._store(index, added, count))
        scope.add(If("panel == 0", (self._store(index, total, count),), tuple(later.statements)))

    def _store(self, index: str, var: Var, count: str | None) -> Store:
        return Store(self.c, index, var, 1, count, canonical=is_float(self.spec.dtype))

    # -- GPU ------------------------------------------------------------------------------------

    def _gpu_body(self) -> list[Stmt]:
        """One result a work-item; neighbours share rows of B."""
        scope = Scope(self.names, lanes=1)
        panel = Scope(self.names, scope)
        total = self._zero(panel)
        inner = Scope(self.names, panel)
        a = loaded(inner, Load(self.a, "at_a + k", 1))
        b = loaded(inner, Load(self.b, f"at_b + k * {self.columns} + j", 1))
        inner.add(Assign(total, Splat(inner.let(MultiplyAdd(a, b, total), total.dtype))))
        panel.add(SetInteger("until", f"min((long){self.inner}, panel + {PANEL})"))
        panel.add(For("k", "panel", "until", "1", tuple(inner.statements)))
        self._add_panel(panel, total, "at_c + j", None)
        body = [
            SetInteger("r", f"u / {self.columns}"),
            SetInteger("j", f"u % {self.columns}"),
            *self._offsets(),
            For("panel", "0", str(max(self.inner, 1)), str(PANEL), tuple(panel.statements)),
        ]
        return [For("u", "wid", f"n * {self.columns}", "wsize", tuple(body))]
