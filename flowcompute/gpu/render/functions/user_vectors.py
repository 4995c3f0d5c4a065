"""Writer of users' functions of vectors, as statements under masks.

Lanes take different paths through a function, so statements are executed for all lanes under a mask. Both
branches of an `if` run one after the other. A loop runs until no lane is left in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowcompute import function_ir as user
from flowcompute.gpu.render.functions.user_writer import FunctionWriter, Mask
from flowcompute.gpu.render.opencl_types import var_type
from flowcompute.gpu.render.render_expressions import literal
from flowcompute.ir import Var
from flowcompute.spec import BOOL

_NO_LANES = Var("", BOOL, 0)
"""Placeholder of a mask where no lane arrives."""


class VectorWriter(FunctionWriter):
    """Writer of statements under masks."""

    def body(self) -> None:
        """Write the statements. Results are gathered where lanes return at different places."""
        self.left: list[Var] = []
        self.next: list[Var] = []
        self.early = any(isinstance(part, user.Return) for s in self.function.body[:-1] for part in _own(s)) or not (
            isinstance(self.function.body[-1], user.Return)
        )
        live = Var("live", BOOL, self.lanes, self.width) if self.loops else None
        if self.early or live is not None:
            for result in self.results:
                self.line(f"{var_type(result)} {result.name} = ({var_type(result)})(0);")
        self.early = self.early or live is not None
        self._block(self.function.body, live)
        if self.early:
            for i, result in enumerate(self.results[1:], 1):
                self.line(f"*p{i} = {result.name};")
            self.line(f"return {self.results[0].name};")

    def _block(self, body: Sequence[user.Stmt], mask: Mask) -> Mask:
        """Write statements where the mask holds, and return the mask of the lanes that reach their end."""
        for statement in body:
            mask = self._statement(statement, mask)
        return mask

    def _assign(self, target: Var, value: Var, mask: Mask) -> None:
        new = self.as_held(value)
        if mask is not None:
            wide = self.expressions.mask(mask, self.width if target.dtype == BOOL else target.dtype.itemsize)
            new = f"({wide} ? {new} : {target.name})"
        self.line(f"{target.name} = {new};")

    def _statement(self, statement: user.Stmt, mask: Mask) -> Mask:
        match statement:
            case user.Set(name, value):
                self._assign(self.held(name), self.value(value, mask), mask)
            case user.SetAll(names, call):
                for name, result in zip(names, self.call(call, mask), strict=True):
                    self._assign(self.held(name), result, mask)
            case user.Fill(array, value):
                filled = self.value(value, mask)
                self.open(f"for (int place = 0; place < {self.variables[array].size}; place++)")
                self._assign(self._register(filled.dtype, f"{self._name(array)}[place]"), filled, mask)
                self.close()
            case user.PutAt(array, index, value):
                self._put(array, index, self.value(value, mask), mask)
            case user.Branch(condition, body, otherwise):
                return self._branch(self.value(condition, mask), body, otherwise, mask)
            case user.WhileLoop():
                return self._while(statement, mask)
            case user.ForRange():
                return self._for(statement, mask)
            case user.Leave() | user.Next():
                gone = (self.left if isinstance(statement, user.Leave) else self.next)[-1]
                self.line(f"{gone.name} = {gone.name} | {self.words(mask or self.everywhere())};")
                return _NO_LANES
            case user.Return(values):
                self._return([self.value(value, mask) for value in values], mask)
                return _NO_LANES
        return mask

    def _return(self, values: Sequence[Var], mask: Mask) -> None:
        if self.early:
            for result, value in zip(self.results, values, strict=True):
                self._assign(result, value, mask)
            return
        for i, value in enumerate(values[1:], 1):
            self.line(f"*p{i} = {self.as_held(value)};")
        self.line(f"return {self.as_held(values[0])};")

    def _put(self, array: str, index: user.Expr, value: Var, mask: Mask) -> None:
        place, same = self.place(array, index, mask)
        if same:
            self._assign(self._register(value.dtype, f"{self._name(array)}[{place}]"), value, mask)
            return
        new = self.let(self._register(value.dtype), self.as_held(value))
        there = None if mask is None else self.let(self._register(BOOL), self.words(mask))
        for lane, target in enumerate(self.each(array, place)):
            put = f"{target} = {new.name}.s{lane:x};"
            self.line(put if there is None else f"if ({there.name}.s{lane:x}) {put}")

    def _branch(self, chosen: Var, body: Sequence[user.Stmt], otherwise: Sequence[user.Stmt], mask: Mask) -> Mask:
        chosen = self.let(self._register(BOOL), self.words(chosen))
        jumps = any(
            isinstance(part, user.Return | user.Leave | user.Next) for s in (*body, *otherwise) for part in _own(s)
        )
        yes = self.both(mask, chosen)
        after = self._block(body, yes)
        if not otherwise and not jumps:
            return mask
        no = self.both(mask, chosen, negated=True)
        after_other = self._block(otherwise, no)
        if after == yes and after_other == no:
            return mask
        if after is _NO_LANES or after_other is _NO_LANES:
            return after_other if after is _NO_LANES else after
        assert after is not None
        assert after_other is not None
        return self.let(self._register(BOOL), f"({self.words(after)} | {self.words(after_other)})")

    def _enter(self, body: Sequence[user.Stmt], mask: Mask) -> tuple[Var, Var, bool]:
        """Return masks of the lanes in a loop and of those that have left it by `break`, and whether it returns."""
        live = self.let(self._register(BOOL), self.words(mask or self.everywhere()))
        left = self.let(self._register(BOOL), literal(False, live))
        self.left.append(left)
        returns = any(isinstance(part, user.Return) for s in body for part in _own(s))
        return live, left, returns

    def _round(self, body: Sequence[user.Stmt], live: Var) -> None:
        """Write one iteration of a loop, and update the mask of the lanes in it."""
        self.next.append(self.let(self._register(BOOL), literal(False, live)))
        after = self._block(body, live)
        again = self.next.pop().name
        self.line(
            f"{live.name} = {again};" if after is _NO_LANES else f"{live.name} = {self.words(after or live)} | {again};"
        )

    def _while(self, loop: user.WhileLoop, mask: Mask) -> Mask:
        live, left, returns = self._enter(loop.body, mask)
        self.open("while (1)")
        goes_on = self.let(self._register(BOOL), self.words(self.value(loop.condition, live)))
        self.line(f"{left.name} = {left.name} | ({live.name} & (!{goes_on.name}));")
        self.line(f"{live.name} = {live.name} & {goes_on.name};")
        self.line(f"if (!any({live.name})) break;")
        self._round(loop.body, live)
        self._block(loop.step, live)
        self.close()
        self.left.pop()
        return left if returns else mask

    def _for(self, loop: user.ForRange, mask: Mask) -> Mask:
        if not _jumps(loop.body):
            self.open_counted(loop)
            self._block(loop.body, mask)
            self.close()
            return mask
        live, left, returns = self._enter(loop.body, mask)
        self.open_counted(loop)
        self.line(f"if (!any({live.name})) break;")
        self._round(loop.body, live)
        self.close()
        self.left.pop()
        return self.let(self._register(BOOL), f"({live.name} | {left.name})") if returns else mask


def _own(statement: user.Stmt) -> Iterator[user.Stmt]:
    """Yield a statement and those in it, but not those of called functions."""
    yield statement
    match statement:
        case user.Branch(body=body, otherwise=other):
            inner: Sequence[user.Stmt] = (*body, *other)
        case user.WhileLoop(body=inner) | user.ForRange(body=inner):
            pass
        case _:
            inner = ()
    for part in inner:
        yield from _own(part)


def _jumps(body: Sequence[user.Stmt]) -> bool:
    return any(isinstance(part, user.Return | user.Leave | user.Next) for s in body for part in _own(s))
