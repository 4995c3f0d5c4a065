"""Emission of a region's nodes as kernel statements at a point of a loop nest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import field

import numpy as np

from flowcompute.elements import CAST, Constant, Kind
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.elements.generated import Generator
from flowcompute.elements.math import QUIET_NAN
from flowcompute.elements.quantized import BlockFormat, Dequantize
from flowcompute.function_ir import stored
from flowcompute.fuse import Access, Region, makes_nan
from flowcompute.graph import Graph, Node, is_literal
from flowcompute.imports import dataclass
from flowcompute.ir import (
    CHUNK,
    GID,
    GSIZE,
    Apply,
    Argument,
    ArgumentKind,
    CallFunction,
    ConditionLike,
    ConstantValue,
    Convert,
    Expr,
    For,
    Generate,
    IndexLike,
    IsSet,
    Let,
    Load,
    N,
    Name,
    ScalarArgument,
    SetInteger,
    Splat,
    Stmt,
    Store,
    Var,
    choose,
    index_min,
    register_dtype,
)
from flowcompute.spec import BOOL, UINT8, is_float

Key = int | Access

_PREFIXES: dict[ArgumentKind, str] = {
    "input": "in",
    "output": "out",
    "partial": "part",
    "merged": "node",
    "carry": "carry",
    "state": "state",
    "words": "words",
    "maps": "maps",
    "room": "room",
    "scalar": "s",
    "integer": "at",
}
"""Names of parameters, in their order in the kernel: pointers first, then scalars."""

START, STOP = Name("start"), Name("stop")
"""The range of a CPU's work-item."""
CHUNK_RANGE: tuple[Stmt, ...] = (SetInteger(START, GID * CHUNK), SetInteger(STOP, index_min(N, START + CHUNK)))
"""Declarations of `START` and `STOP`: each work-item takes `chunk` of `n` rows or numbers."""


@dataclass
class Arguments:
    """Parameters of a kernel, created when first needed, and named by kind and position.

    Attributes:
        items: the parameters.
        place: of the kernel among those that share a launch; the names of the first one are those of a kernel alone.
    """

    items: list[Argument] = field(default_factory=list)
    place: int = 0

    def get(
        self,
        kind: ArgumentKind,
        dtype: np.dtype,
        value: int,
        part: int = 0,
        period: int = 0,
        blocks: BlockFormat | None = None,
        numbers: int = 0,
    ) -> Argument:
        """Return the parameter for this use of a value."""
        use = (kind, value, part, period, blocks)
        for argument in self.items:
            if (argument.kind, argument.value, argument.part, argument.period, argument.blocks) == use:
                return argument
        count = sum(argument.kind == kind for argument in self.items)
        among = f"_{self.place}" if self.place else ""
        argument = Argument(f"{_PREFIXES[kind]}{count}{among}", kind, dtype, value, part, period, blocks, numbers)
        self.items.append(argument)
        return argument

    def input(self, graph: Graph, region: Region, value: int) -> Argument:
        """Return the parameter that a value is loaded from: of what a region decodes, the blocks."""
        node = graph.nodes[value]
        if isinstance(node.op, Dequantize) and value in region.nodes:
            return self.get("input", UINT8, node.inputs[0], blocks=node.op.block_format)
        return self.get("input", node.spec.dtype, value)

    def ordered(self) -> tuple[Argument, ...]:
        """Return the parameters, pointers first, then scalars."""
        order = list(_PREFIXES)
        return tuple(sorted(self.items, key=lambda argument: order.index(argument.kind)))


class Scope:
    """Straight-line sequence of statements, whose values are known in every scope inside it."""

    def __init__(self, names: itertools.count[int], parent: Scope | None = None, lanes: int | None = None) -> None:
        self.names = names
        self.parent = parent
        inherited = 1 if parent is None else parent.lanes
        self.lanes: int = inherited if lanes is None else lanes
        self.statements: list[Stmt] = []
        self.known: dict[Key, Var] = {}

    def inner(self, lanes: int | None = None) -> Scope:
        """Return a scope inside this one."""
        return Scope(self.names, self, lanes)

    def beside(self, lanes: int | None = None) -> Scope:
        """Return a scope that appends to this one's statements, but keeps values of its own."""
        scope = Scope(self.names, self, lanes)
        scope.statements = self.statements
        return scope

    def find(self, key: Key) -> Var | None:
        """Return the value of a node or access, if already computed here or outside."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.known:
                return scope.known[key]
            scope = scope.parent
        return None

    def fresh(self, dtype: np.dtype, lanes: int, mask_bytes: int = 0) -> Var:
        """Return a variable of a new name."""
        return Var(f"v{next(self.names)}", dtype, lanes, mask_bytes if dtype == BOOL else 0)

    def let(self, expr: Expr, dtype: np.dtype, lanes: int | None = None, mask_bytes: int = 0) -> Var:
        """Declare a value."""
        var = self.fresh(dtype, self.lanes if lanes is None else lanes, mask_bytes)
        self.statements.append(Let(var, expr))
        return var

    def name(self, prefix: str) -> Name:
        """Return a new name of an integer, which a loop or `SetInteger` declares."""
        return Name(f"{prefix}{next(self.names)}")

    def integer(self, value: IndexLike) -> IndexLike:
        """Declare an integer, unless it is already one name or number."""
        return self._declared(value, narrow=False)

    def narrow(self, value: IndexLike) -> IndexLike:
        """Declare an integer of 32 bits, which takes half of the registers."""
        return self._declared(value, narrow=True)

    def flag(self, condition: ConditionLike, *, narrow: bool = False) -> ConditionLike:
        """Declare a condition, so that it is computed once; as an integer of 32 bits if `narrow`."""
        if isinstance(condition, bool | IsSet):
            return condition
        name = Name(f"i{next(self.names)}", narrow)
        self.statements.append(SetInteger(name, condition))
        return IsSet(name)

    def _declared(self, value: IndexLike, *, narrow: bool) -> IndexLike:
        if isinstance(value, int | Name):
            return value
        name = Name(f"i{next(self.names)}", narrow)
        self.statements.append(SetInteger(name, value))
        return name

    def add(self, *statements: Stmt) -> None:
        """Append statements."""
        self.statements.extend(statements)


class Point:
    """Point in the loop nest at which values of the region are available.

    Subclasses define how an access is loaded (`load`) and to which scope a node belongs (`home`).
    Everything else is common.
    """

    count: IndexLike | None = None
    """Number of valid lanes, where that may be fewer than all."""

    def __init__(self, graph: Graph, region: Region, arguments: Arguments, scope: Scope) -> None:
        self.graph = graph
        self.region = region
        self.arguments = arguments
        self.scope = scope
        self.members = set(region.nodes)

    def load(self, access: Access) -> Var:
        """Emit the load of a value that the region reads."""
        raise NotImplementedError

    def position(self, node: Node) -> tuple[IndexLike, int, IndexLike | None]:
        """Return the positions of a generated stream's numbers: the first, the step between lanes, and of each lane."""
        raise NotImplementedError

    def home(self, key: Key) -> Point:
        """Return the point at which a node or access is computed: this one, or an outer one if it is constant here."""
        del key
        return self

    def value(self, key: Key) -> Var:
        """Return the value of a node or access here, with the lanes of this point."""
        home = self.home(key)
        var = home.scope.find(key) or home.compute_first(key)
        if var.lanes != self.scope.lanes:
            spread = self.scope.find(_spread_key(key))
            if spread is None:
                spread = self.scope.let(Splat(var), var.dtype, mask_bytes=var.mask_bytes)
                self.scope.known[_spread_key(key)] = spread
            return spread
        return var

    def operands(self, key: Key) -> tuple[Key, ...]:
        """Return what `compute` takes the values of."""
        if isinstance(key, Access) or isinstance(self.graph.nodes[key].op, Generator | Dequantize):
            return ()
        return self.region.reads[key]

    def accesses(self, outputs: Iterable[Key], is_varying: Callable[[Key], bool]) -> list[Access]:
        """Return the accesses that some outputs depend on.

        Args:
            outputs: nodes of the region.
            is_varying: tells whether a node or access is followed; what others depend on is left out.
        """
        seen: dict[Key, None] = {}
        todo = [*outputs]
        while todo:
            if (key := todo.pop()) not in seen and is_varying(key):
                seen[key] = None
                todo.extend(self.operands(key))
        return [key for key in seen if isinstance(key, Access)]

    def compute_first(self, key: Key) -> Var:
        """Compute a value at this very point, after all that it depends on. A region may be deeper than Python's stack.

        The statements are in the order of a recursion through `value`.
        """
        stack = [(self, key, iter(self.operands(key)))]
        while True:
            point, one, operands = stack[-1]
            operand = next(operands, None)
            if operand is not None:
                home = point.home(operand)
                if home.scope.find(operand) is None:
                    stack.append((home, operand, iter(home.operands(operand))))
                else:
                    point.value(operand)
                continue
            var = point.scope.known[one] = point.compute(one)
            stack.pop()
            if not stack:
                return var
            stack[-1][0].value(one)

    def compute(self, key: Key) -> Var:
        """Emit the computation of a value at this very point."""
        if isinstance(key, Access):
            element = self.graph.nodes[key.value].element
            if isinstance(element, Constant) and element.value.ndim == 0:
                return self._scalar(key.value, element)
            return self.load(key)
        node = self.graph.nodes[key]
        assert node.kind is Kind.ELEMENTWISE, "reductions are made known before they are used"
        if isinstance(node.op, Generator):
            return self._generated(node, node.op)
        if isinstance(node.op, Dequantize):
            return self.load(Access(key, self.region.layouts[key]))
        assert node.op is not None
        moves = key in self.region.exposed and not makes_nan(node)
        at = self.value_in_memory if node.op.reads_sign or moves else self.value
        operands = tuple(at(operand) for operand in self.region.reads[key])
        if isinstance(node.op, UserOp):
            return self._user_result(node, node.op, operands)
        if isinstance(node.op, SourceOp):
            return self._hand_written(node, node.op, operands)
        return self._apply(node, operands)

    def value_in_memory(self, key: Key) -> Var:
        """Return a value here, whose NaNs have the bits that they would have if it were stored."""
        var = self.value(key)
        if isinstance(key, Access) or not is_float(var.dtype) or not makes_nan(self.graph.nodes[key]):
            return var
        known = self.scope.find(_memory_key(key))
        if known is None or known.lanes != self.scope.lanes:
            known = self.scope.let(Apply(QUIET_NAN, (var,), var.dtype), var.dtype)
            self.scope.known[_memory_key(key)] = known
        return known

    def _scalar(self, value: int, element: Constant) -> Var:
        dtype = register_dtype(element.dtype)
        if is_literal(element.value) or element.dtype == BOOL:
            return self.scope.let(ConstantValue(element.value[()].item()), dtype, mask_bytes=1)
        return self.scope.let(ScalarArgument(self.arguments.get("scalar", element.dtype, value)), dtype)

    def _generated(self, node: Node, op: Generator) -> Var:
        # Numbers that are literals elsewhere are arguments here, so that one kernel text serves every seed.
        operands = (self.arguments.get("scalar", self.graph.nodes[i].spec.dtype, i) for i in node.inputs)
        return self.scope.let(Generate(op, *self.position(node), tuple(operands)), node.spec.dtype)

    def _user_result(self, node: Node, op: UserOp, operands: tuple[Var, ...]) -> Var:
        """Return one result of a user's function, which returns all of them at once."""
        given = self.scope.find(_results_key(node.id))
        if given is not None:
            return given
        twins = {
            twin.op.result: twin.id
            for twin in map(self.graph.nodes.__getitem__, self.region.nodes)
            if isinstance(twin.op, UserOp)
            and twin.op.function == op.function
            and self.region.reads[twin.id] == self.region.reads[node.id]
        }
        dtypes = [register_dtype(stored(name)) for name in op.function.results]
        results = tuple(self.scope.fresh(dtype, self.scope.lanes, dtype.itemsize) for dtype in dtypes)
        self.scope.add(CallFunction(results, op, operands, self.count))
        for result, twin_id in twins.items():
            self.scope.known[_results_key(twin_id)] = results[result]
        return results[op.result]

    def _hand_written(self, node: Node, op: SourceOp, operands: tuple[Var, ...]) -> Var:
        stored_dtype = node.spec.dtype
        dtype = register_dtype(stored_dtype)
        var = self.scope.fresh(dtype, self.scope.lanes, dtype.itemsize)
        rounds = stored_dtype if dtype != stored_dtype else None
        self.scope.add(CallFunction((var,), op, operands, self.count, rounds))
        return var

    def _apply(self, node: Node, operands: tuple[Var, ...]) -> Var:
        result = node.spec.dtype
        assert node.op is not None
        source = self.graph.nodes[node.inputs[-1]].spec.dtype
        mask_bytes = max([operand.mask_bytes for operand in operands] + [0])
        if node.op is CAST:
            mask_bytes = mask_bytes or register_dtype(source).itemsize
            return self.scope.let(Convert(operands[0], source, result), register_dtype(result), mask_bytes=mask_bytes)
        if source != BOOL:
            mask_bytes = register_dtype(source).itemsize
        rounds = result if register_dtype(result) != result else None
        expr = Apply(node.op, operands, register_dtype(source), rounds)
        return self.scope.let(expr, register_dtype(result), mask_bytes=mask_bytes)

    def store(
        self,
        value: int,
        index: IndexLike,
        stride: int = 1,
        count: IndexLike | None = None,
        each: IndexLike | None = None,
        *,
        aligned: bool = False,
    ) -> None:
        """Store a node's value into its output."""
        node = self.graph.nodes[value]
        argument = self.arguments.get("output", node.spec.dtype, value)
        var = self.value(value)
        canonical = is_float(node.spec.dtype) and makes_nan(node)
        self.scope.add(Store(argument, index, var, stride, count, canonical, each, aligned))


def _results_key(value: int) -> Access:
    """Return the key under which a result of a function with several is kept until it is used."""
    return Access(value, (-4,))


def _memory_key(value: int) -> Access:
    """Return the key under which a value is kept with the NaNs that it has in memory."""
    return Access(value, (-5,))


def _spread_key(key: Key) -> Access:
    """Return the key of the splat of an outer value."""
    return Access(key.value, (-1, *key.layout)) if isinstance(key, Access) else Access(key, (-2,))


def loaded(scope: Scope, load: Load) -> Var:
    """Emit a load; half formats arrive as float32, bools as masks of one byte."""
    return scope.let(load, load.argument.loaded_dtype, mask_bytes=1)


def loads_of(graph: Graph, region: Region) -> set[Access]:
    """Return what the kernel of a region loads. What it decodes counts as if it were in memory."""
    found: set[Access] = set()
    for i, operands in region.reads.items():
        if isinstance(graph.nodes[i].op, Dequantize):
            found.add(Access(i, region.layouts[i]))
        else:
            found.update(operand for operand in operands if isinstance(operand, Access))
    return found


def units_loop(index: Name, count: IndexLike, cpu: bool, body: tuple[Stmt, ...]) -> list[Stmt]:
    """Return a loop over blocks: ranges of `chunk` for work-items (CPU), strided for work-groups (GPU)."""
    if not cpu:
        return [For(index, GID, count, GSIZE, body)]
    limit, stop = Name("limit"), (GID + 1) * CHUNK
    return [SetInteger(limit, choose(stop < count, stop, count)), For(index, GID * CHUNK, limit, 1, body)]
