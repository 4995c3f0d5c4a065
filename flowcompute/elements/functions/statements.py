"""Types of statements: what variables hold, found by repeating until nothing changes, and the IR that follows."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements.functions.calls import Calls, Nested
from flowcompute.elements.functions.promote import WHOLE, Type, Typed, own_float
from flowcompute.elements.functions.read_source import FunctionSource, assigned_names
from flowcompute.imports import dataclass

MOST_ITEMS = 4096
"""Numbers in a local array: they are private to each number's computation, in registers where they fit."""

_WORDS: dict[type[ast.AST], str] = {
    ast.FunctionDef: "a function inside",
    ast.AsyncFunctionDef: "a function inside",
    ast.ClassDef: "a class",
    ast.Try: "try",
    ast.With: "with",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.Delete: "del",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Match: "match",
    ast.Expr: "an expression whose value goes nowhere",
}


@dataclass
class _Loop:
    """A loop around the present statement: what surely has a value where it is left."""

    left: list[set[str]] = field(default_factory=list)


def typed(
    source: FunctionSource,
    parameters: Sequence[str],
    types: Sequence[Type],
    weak_float: np.dtype | None,
    nested: Nested,
) -> tuple[ir.TypedFunction, tuple[Type, ...]]:
    """Return the function for arguments of these types, and the types of its results.

    Args:
        source: the function.
        parameters: their names.
        types: their types.
        weak_float: what Python floats are held in; found from the arguments if not given.
        nested: gives the functions that it calls.
    """
    return _Statements(source, parameters, types, weak_float or own_float(types), nested).function()


class _Statements(Calls):
    def __init__(
        self,
        source: FunctionSource,
        parameters: Sequence[str],
        types: Sequence[Type],
        weak_float: np.dtype,
        nested: Nested,
    ) -> None:
        super().__init__(source, weak_float, nested)
        self.given = tuple(types)
        self.locals = assigned_names(source.tree)
        self.parameters = {
            name: Typed(ir.Parameter(i, kind.computed), kind)
            for i, (name, kind) in enumerate(zip(parameters, types, strict=True))
        }
        self.results: tuple[Type, ...] = ()
        self.changed = True
        self.loops: list[_Loop] = []
        self.made: dict[str, ir.Variable] = {}

    def function(self) -> tuple[ir.TypedFunction, tuple[Type, ...]]:
        """Type the body until no variable's type changes."""
        body: tuple[ir.Stmt, ...] = ()
        while self.changed:
            self.changed = False
            self.made = {}
            self.assigned = set()
            start = [self._set(self.source.tree, name, self.parameters[name]) for name in self._set_parameters()]
            body = (*start, *self.block(self.source.tree.body))
        if self.assigned is not None:
            raise self.source.error(
                self.source.tree, "cannot end without a result", expected="a return on every way through it"
            )
        variables = [ir.Variable(name, kind.computed) for name, kind in self.types.items()]
        variables += [ir.Variable(name, kind.computed, size) for name, (kind, size) in self.arrays.items()]
        given = tuple(kind.dtype.name for kind in self.given)
        results = tuple(kind.dtype.name for kind in self.results)
        return ir.TypedFunction(self.source.name, given, (*variables, *self.made.values()), body, results), self.results

    def _set_parameters(self) -> list[str]:
        return [name for name in self.parameters if name in self.locals]

    def block(self, body: Sequence[ast.stmt]) -> tuple[ir.Stmt, ...]:
        """Translate statements; what stands behind a return is never reached."""
        made: list[ir.Stmt] = []
        for statement in body:
            if self.assigned is None:
                break
            made += self.statement(statement)
        return tuple(made)

    def statement(self, node: ast.stmt) -> list[ir.Stmt]:
        """Translate one statement."""
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return []
            case ast.Assign(targets=targets, value=value):
                return [made for target in targets for made in self._assign(target, value)]
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                to = self.source.outside(annotation)
                if to not in (int, float, bool) and not (isinstance(to, type) and issubclass(to, np.generic)):
                    raise self.source.error(
                        node,
                        f"cannot use {self.source.text(annotation)} as a type of numbers",
                        expected="float, int, np.float32",
                    )
                return [self._set(node, name, self.converted(node, to, self.value(value)))]
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                read = ast.copy_location(ast.Name(name, ast.Load()), target)
                return [self._set(node, name, self.binary(node, type(op), self.value(read), self.value(value)))]
            case ast.AugAssign(target=ast.Subscript(value=array, slice=index) as target, op=op, value=value):
                read_item = ast.copy_location(ast.Subscript(array, index, ast.Load()), target)
                return [self._put(target, self.binary(node, type(op), self.value(read_item), self.value(value)))]
            case ast.If():
                return self._if(node)
            case ast.While(orelse=[]):
                return self._while(node)
            case ast.For(target=ast.Name(), orelse=[]):
                return self._for(node)
            case ast.Break():
                assert self.assigned is not None
                self.loops[-1].left.append(self.assigned)
                self.assigned = None
                return [ir.Leave()]
            case ast.Continue():
                self.assigned = None
                return [ir.Next()]
            case ast.Return():
                return self._return(node)
        what = _WORDS.get(type(node), self.source.text(node))
        raise self.source.error(
            node, f"cannot use {what} in a kernel", expected="assignments, if, while, for over range(...), return"
        )

    # -- variables ----------------------------------------------------------------------------

    def _set(self, node: ast.AST, name: str, value: Typed) -> ir.Stmt:
        if name in self.arrays:
            raise self.source.error(node, f"cannot make {name!r} a number: it is an array")
        kind = value.type if name not in self.types else self.joined(node, self.types[name], value.type)
        if self.types.get(name) != kind:
            self.types[name], self.changed = kind, True
        assert self.assigned is not None
        self.assigned = self.assigned | {name}
        return ir.Set(name, self.cast(node, value, kind))

    def _hidden(self, name: str, dtype: str, counter: bool = False) -> str:
        """Return a variable that the user does not see."""
        own = f"{name}_{len(self.made)}"
        while own in self.locals or own in self.parameters:
            own += "_"
        self.made[own] = ir.Variable(own, dtype, counter=counter)
        return own

    def _assign(self, target: ast.expr, value: ast.expr) -> list[ir.Stmt]:
        match target, value:
            case ast.Name(id=name), ast.List():
                return self._listed(value, name, value.elts)
            case ast.Name(id=name), ast.BinOp(left=ast.List(elts=[one]), op=ast.Mult(), right=count):
                return self._filled(value, name, one, count)
            case ast.Name(id=name), _:
                return [self._set(target, name, self.value(value))]
            case ast.Subscript(), _:
                return [self._put(target, self.value(value))]
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                return self._together(targets, [self.value(one) for one in values])
            case ast.Tuple(elts=targets), ast.Call():
                return self._unpacked(value, targets)
        raise self.source.error(
            target, f"cannot assign to {self.source.text(target)}", expected="a name, a name for each result, or a[i]"
        )

    def _together(self, targets: Sequence[ast.expr], values: Sequence[Typed]) -> list[ir.Stmt]:
        """Translate a tuple of assignments: all values are computed before any is set."""
        names = [self._hidden("value", value.type.computed) for value in values]
        first: list[ir.Stmt] = [ir.Set(name, value.expr) for name, value in zip(names, values, strict=True)]
        held = [
            Typed(ir.Local(name, value.type.computed), value.type) for name, value in zip(names, values, strict=True)
        ]
        return first + [self._store(target, value) for target, value in zip(targets, held, strict=True)]

    def _store(self, target: ast.expr, value: Typed) -> ir.Stmt:
        if isinstance(target, ast.Name):
            return self._set(target, target.id, value)
        return self._put(target, value)

    def _unpacked(self, node: ast.Call, targets: Sequence[ast.expr]) -> list[ir.Stmt]:
        function = self.called(node)
        if not hasattr(function, "specialised"):
            raise self.source.error(
                node, f"cannot unpack {self.source.text(node.func)}, which gives one number, into {len(targets)}"
            )
        call, kinds = self.user_call(node, function, [self.value(argument) for argument in node.args])
        if len(kinds) != len(targets):
            raise self.source.error(
                node,
                f"cannot unpack {self.source.text(node.func)}, which gives {len(kinds)} results",
                got=f"{len(targets)} names",
            )
        names = tuple(self._hidden("result", kind.computed) for kind in kinds)
        held = [Typed(ir.Local(name, kind.computed), kind) for name, kind in zip(names, kinds, strict=True)]
        return [ir.SetAll(names, call), *(self._store(target, one) for target, one in zip(targets, held, strict=True))]

    # -- arrays -------------------------------------------------------------------------------

    def _array(self, node: ast.AST, name: str, size: int, kinds: Sequence[Type]) -> Type:
        """Declare an array, or widen what it holds."""
        if name in self.types or name in self.parameters:
            raise self.source.error(node, f"cannot make {name!r} an array: it is a number")
        if not 0 < size <= MOST_ITEMS:
            raise self.source.error(
                node, "cannot hold an array of this size", expected=f"1 to {MOST_ITEMS} numbers", got=str(size)
            )
        kind, earlier = self.arrays.get(name, (kinds[0], size))
        if earlier != size:
            raise self.source.error(node, f"cannot resize {name!r} from {earlier} numbers to {size}")
        for other in kinds:
            kind = self.joined(node, kind, other)
        if self.arrays.get(name) != (kind, size):
            self.arrays[name], self.changed = (kind, size), True
        return kind

    def _filled(self, node: ast.AST, name: str, one: ast.expr, count: ast.expr) -> list[ir.Stmt]:
        size = self.value(count).known
        if not isinstance(size, int) or isinstance(size, bool):
            raise self.source.error(
                node,
                "cannot make an array whose size is not known when the kernel is made",
                got=self.source.text(count),
            )
        value = self.value(one)
        kind = self._array(node, name, size, [value.type])
        assert self.assigned is not None
        self.assigned = self.assigned | {name}
        return [ir.Fill(name, self.cast(node, value, kind))]

    def _listed(self, node: ast.AST, name: str, items: Sequence[ast.expr]) -> list[ir.Stmt]:
        values = [self.value(item) for item in items]
        if not values:
            raise self.source.error(
                node, "cannot make an array of no numbers", hint="give its first numbers: [0.0] * 4"
            )
        kind = self._array(node, name, len(values), [value.type for value in values])
        held = [self._hidden("item", kind.computed) for _ in values]
        first: list[ir.Stmt] = [
            ir.Set(own, self.cast(node, value, kind)) for own, value in zip(held, values, strict=True)
        ]
        assert self.assigned is not None
        self.assigned = self.assigned | {name}
        return first + [
            ir.PutAt(name, ir.NumberLiteral(i, "int64"), ir.Local(own, kind.computed)) for i, own in enumerate(held)
        ]

    def _put(self, target: ast.expr, value: Typed) -> ir.Stmt:
        match target:
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self.arrays:
                kind, size = self.arrays[name]
                self.check_assigned(target, name)
                kind = self._array(target, name, size, [value.type])
                return ir.PutAt(name, self.index(target, index, size), self.cast(target, value, kind))
        raise self.source.error(
            target, f"cannot assign to {self.source.text(target)}", expected="a name, or a number of a local array"
        )

    # -- control ------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> list[ir.Stmt]:
        condition = self.truth(node.test, self.value(node.test))
        if isinstance(condition, ir.NumberLiteral):
            return list(self.block(node.body if condition.value else node.orelse))
        before = self.assigned
        body = self.block(node.body)
        after, self.assigned = self.assigned, before
        otherwise = self.block(node.orelse)
        if self.assigned is None or after is None:
            self.assigned = after if self.assigned is None else self.assigned
        else:
            self.assigned = self.assigned & after
        return [ir.Branch(condition, body, otherwise)]

    def _looped(self, body: Sequence[ast.stmt], ends: bool) -> tuple[ir.Stmt, ...]:
        """Translate the body of a loop; known behind it is what was before, or at every break of an endless one."""
        before = self.assigned
        assert before is not None
        self.loops.append(_Loop())
        made = self.block(body)
        left = self.loops.pop().left
        self.assigned = before if ends else set.intersection(*left) if left else None
        return made

    def _while(self, node: ast.While) -> list[ir.Stmt]:
        condition = self.truth(node.test, self.value(node.test))
        if isinstance(condition, ir.NumberLiteral) and not condition.value:
            return []
        return [ir.WhileLoop(condition, self._looped(node.body, ends=not isinstance(condition, ir.NumberLiteral)))]

    def _for(self, node: ast.For) -> list[ir.Stmt]:
        assert isinstance(node.target, ast.Name)
        start, stop, step = self._range(node.iter)
        name = node.target.id
        known = start.known, stop.known
        if isinstance(known[0], int) and isinstance(known[1], int):
            return self._counted_loop(node, name, range(known[0], known[1], step))
        limit, place = self._hidden("stop", "int64"), self._hidden("next", "int64")
        here = ir.Local(place, "int64")
        test = ir.Operation("less" if step > 0 else "greater", (here, ir.Local(limit, "int64")), "bool")
        first: list[ir.Stmt] = [
            ir.Set(place, self.cast(node, start, WHOLE)),
            ir.Set(limit, self.cast(node, stop, WHOLE)),
        ]
        before = self.assigned
        own = self._set(node.target, name, Typed(here, WHOLE))
        body = (own, *self._looped(node.body, ends=True))
        self.assigned = before
        forward = ir.Set(place, ir.Operation("add", (here, ir.NumberLiteral(step, "int64")), "int64"))
        return [*first, ir.WhileLoop(test, body, (forward,))]

    def _range(self, node: ast.expr) -> tuple[Typed, Typed, int]:
        match node:
            case ast.Call(args=arguments, keywords=[]) if self.called(node) is range and 0 < len(arguments) < 4:
                values = [self.value(argument) for argument in arguments]
                if any(value.type.dtype.kind not in "iu" for value in values):
                    raise self.source.error(
                        node,
                        "cannot loop over a range of what is no integer",
                        got=", ".join(str(v.type) for v in values),
                    )
                step = values[2].known if len(values) == 3 else 1
                if not isinstance(step, int) or step == 0:
                    raise self.source.error(node, "cannot loop by a step that is 0 or not known")
                zero = self.number(node, 0)
                return (values[0], values[1], step) if len(values) > 1 else (zero, values[0], step)
        raise self.source.error(
            node,
            "cannot loop over this",
            got=self.source.text(node),
            hint="for i in range(len(a)): ... a[i] of a local array; each argument is a single number, so reductions "
            "such as x.sum(axis=1) stand outside",
        )

    def _counted_loop(self, node: ast.For, name: str, steps: range) -> list[ir.Stmt]:
        """Translate a loop whose numbers are known: its counter is the same for all, so arrays are indexed directly."""
        if not steps:
            return []
        counter = self._hidden(name, "int64", counter=True)
        body = [*node.body]
        inside = [part for statement in body for part in ast.walk(statement)]
        before = self.assigned
        own: list[ir.Stmt] = []
        if any(isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store) for part in inside):
            own = [self._set(node.target, name, Typed(ir.Local(counter, "int64"), WHOLE))]
        else:
            reads = sum(_reads(part, name) for part in ast.walk(self.source.tree))
            if reads > sum(_reads(part, name) for part in inside):
                own = [self._set(node.target, name, Typed(ir.Local(counter, "int64"), WHOLE))]
            self.counters[name] = counter
        # It runs at least once, but a break may come first.
        made = (*own, *self._looped(body, ends=True))
        self.counters.pop(name, None)
        self.assigned = before if not own or before is None else before | {name}
        return [ir.ForRange(counter, steps.start, steps.stop, steps.step, made)]

    def _return(self, node: ast.Return) -> list[ir.Stmt]:
        match node.value:
            case None:
                raise self.source.error(node, "cannot return nothing", expected="a number, or several")
            case ast.Tuple(elts=items):
                values = [self.value(item) for item in items]
            case single:
                values = self._returned(single)
        if self.results and len(values) != len(self.results):
            raise self.source.error(
                node,
                "cannot return different numbers of results",
                expected=str(len(self.results)),
                got=str(len(values)),
            )
        if not values:
            raise self.source.error(node, "cannot return nothing", expected="a number, or several")
        earlier = self.results or tuple(value.type for value in values)
        kinds = tuple(self.joined(node, kind, value.type) for kind, value in zip(earlier, values, strict=True))
        if kinds != self.results:
            self.results, self.changed = kinds, True
        self.assigned = None
        return [ir.Return(tuple(self.cast(node, value, kind) for value, kind in zip(values, kinds, strict=True)))]

    def _returned(self, node: ast.expr) -> list[Typed]:
        return [self.value(node)]


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
