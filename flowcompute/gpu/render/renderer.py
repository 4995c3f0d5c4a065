"""Renderer of the kernel IR to OpenCL C. It serves both code shapes, since the IR holds the differences."""

from __future__ import annotations

from collections.abc import Iterable

from flowcompute import ir
from flowcompute.gpu.kernel_arguments import INTEGER_ARGUMENTS
from flowcompute.gpu.render.functions import call_lines
from flowcompute.gpu.render.opencl_types import (
    mask_type,
    memory_type,
    quiet_nan,
    scalar_type,
    type_bytes,
    type_of,
    var_type,
)
from flowcompute.gpu.render.prelude import LocalArray, RenderedBody
from flowcompute.gpu.render.ptx import (
    await_stage,
    begin_copies,
    copying,
    end_loop,
    fill_stages,
    free_stage,
    group_barrier,
    group_multiply,
    open_ring,
    overlapped_multiply,
    pass_steps,
    pass_turn,
    registers_of,
    ring_copies,
    stage_prepared,
    store_packed,
    take_turn,
    takes_packed,
)
from flowcompute.gpu.render.render_expressions import ExpressionRenderer, write_text
from flowcompute.gpu.render.render_look_back import handed_on
from flowcompute.gpu.render.strided_vectors import loose_vector, store_every, store_first
from flowcompute.gpu.render.subgroup_exchange import exchanged, local_arrays
from flowcompute.ir import (
    Argument,
    Kernel,
    Prefetch,
    Stmt,
    Var,
    equal,
    factor_text,
    in_lane,
    index_text,
    known_number,
)
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32

_ROUNDED = ((FLOAT32, FLOAT16), (FLOAT32, BFLOAT16), (BFLOAT16, BFLOAT16))
"""Conversions that a store of halves repeats."""


def render(kernel: Kernel) -> str:
    """Return the OpenCL C of one kernel, complete with the functions that it needs."""
    return _Renderer(kernel).text()


def render_function(kernel: Kernel) -> RenderedBody:
    """Return what the text of one kernel has inside of its frame."""
    return _Renderer(kernel).function()


class _Renderer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.cpu = kernel.work_group == 1
        # Kernels with a ring run on Hopper alone.
        self.packs = any(isinstance(statement, ir.OpenRing) for statement in kernel.body)
        self.expressions = ExpressionRenderer(
            self.cpu, kernel.knobs.function_unroll or 1, tensor=kernel.tensor, packs=self.packs
        )
        self.before_rounding: dict[ir.Var, ir.Var] = {}
        self.lines: list[str] = []
        self.depth = 1

    # -- frame --------------------------------------------------------------------------------

    def text(self) -> str:
        self._lines(f"__local {array.declared}" for array in self._locals())
        self._integers()
        self._block(self.kernel.body)
        doubles = any("double" in line for line in [*self.lines, *self.expressions.helpers.values(), self._signature()])
        head = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if doubles else []
        head.append(f"#pragma OPENCL FP_CONTRACT {'ON' if self.kernel.contract else 'OFF'}")
        parts = [*head, "", *self.expressions.helpers.values(), self._signature() + " {", *self.lines, "}"]
        return "\n".join(parts) + "\n"

    def function(self) -> RenderedBody:
        """Return the kernel without its frame."""
        self._block(self.kernel.body)
        contract, helpers = self.kernel.contract, self.expressions.helpers
        return RenderedBody(contract, self._locals(), helpers, self._parameters(), self.lines)

    def _parameters(self) -> list[str]:
        own = [self._parameter(argument) for argument in self.kernel.arguments]
        return own + [f"const long {name}" for name in INTEGER_ARGUMENTS]

    def _signature(self) -> str:
        group = f"__attribute__((reqd_work_group_size({self.kernel.work_group}, 1, 1)))"
        joined = ",\n    ".join(self._parameters())
        return f"__kernel {group}\nvoid {self.kernel.name}(\n    {joined})"

    @staticmethod
    def _parameter(argument: Argument) -> str:
        if argument.kind == "scalar":
            return f"const {scalar_type(argument.dtype)} {argument.name}"
        if argument.kind == "integer":
            return f"const long {argument.name}"
        if argument.kind == "maps":
            return f"__global uchar *{argument.name}"
        if argument.kind == "room":
            return f"__global {memory_type(argument.dtype)} *{argument.name}"
        if argument.kind == "words":
            return f"volatile __global ulong *restrict {argument.name}"
        constant = "const " if argument.kind in ("input", "carry") else ""
        return f"__global {constant}{memory_type(argument.dtype)} *restrict {argument.name}"

    def _locals(self) -> list[LocalArray]:
        """Return the local arrays, which are declared at the top of a kernel."""
        # Kernels that share a launch have the same arrays, of several sizes, and no work-group needs those of two.
        arrays: dict[str, ir.Array] = {}
        for array in _arrays(self.kernel.body):
            if array.local and (array.name not in arrays or array.size > arrays[array.name].size):
                arrays[array.name] = array
        types = {name: (one.dtype, one.lanes, one.mask_bytes) for name, one in arrays.items()}
        declared = [
            LocalArray(type_of(*types[name]), name, one.size, type_bytes(*types[name]), one.alignment)
            for name, one in arrays.items()
        ]
        exchanges = _exchanges(self.kernel.body)
        return [*declared, *dict.fromkeys(i for one in exchanges for i in local_arrays(one, self.kernel.work_group))]

    def _integers(self) -> None:
        self._line("const long gid = get_group_id(0), gsize = get_num_groups(0);")
        if self.kernel.work_group > 1:
            self._line("const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);")

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # -- statements -----------------------------------------------------------------------------

    def _block(self, body: Iterable[Stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: Stmt) -> None:
        match statement:
            case ir.Let(var, expr):
                if self.packs and isinstance(expr, ir.Convert) and (expr.source, expr.target) in _ROUNDED:
                    self.before_rounding[var] = expr.operand
                self._line(f"{var_type(var)} {var.name} = {self.expressions.expression(expr, var)};")
            case ir.CallFunction():
                for line in call_lines(statement, self.expressions):
                    self._line(line)
            case ir.Assign(var, expr):
                self.before_rounding = {key: kept for key, kept in self.before_rounding.items() if kept != var}
                self._line(f"{var.name} = {self.expressions.expression(expr, var)};")
            case ir.SetInteger(name, value, new):
                kind, text = "int " if name.narrow else "long ", index_text(value)
                self._line(f"{kind if new else ''}{name.name} = {f'(int)({text})' if name.narrow else text};")
            case ir.Store():
                self._store(statement)
            case ir.Array(name, dtype, lanes, size, local, mask_bytes, alignment):
                if not local:
                    # Runs of numbers that CPUs read as vectors would cross lines of the cache. GPUs have registers.
                    aligned = f" __attribute__((aligned({alignment})))" if self.cpu and lanes == 1 else ""
                    self._line(f"{type_of(dtype, lanes, mask_bytes)} {name}[{size}]{aligned};")
            case ir.PutItem(array, index, var, vector):
                place = self.expressions.numbers(array, index, var) if vector else f"{array}[{index_text(index)}]"
                self._line(f"{place} = {self._put(array, var)};")
            case ir.For(index, start, stop, step, body, unroll):
                if unroll:
                    turns = {ir.ROLLED: " 1", 1: ""}.get(unroll, f" {unroll}")
                    self._line(f"#pragma unroll{turns}")
                name = index.name
                increment = f"{name}++" if step == 1 else f"{name} += {index_text(step)}"
                kind = "int" if index.narrow else "long"
                begin, end = f"{kind} {name} = {index_text(start)}", f"{name} < {factor_text(stop)}"
                self._nest(f"for ({begin}; {end}; {increment}) {{", body)
            case ir.While(condition, body):
                self._nest(f"while ({index_text(condition)}) {{", body)
            case ir.If(condition, body, otherwise):
                self._nest("{" if condition is True else f"if ({index_text(condition)}) {{", body, bool(otherwise))
                if otherwise:
                    self._nest("} else {", otherwise)
            case ir.Exchange():
                for line in exchanged(statement, self.expressions.helpers):
                    self._line(line)
            case Prefetch(argument, index, written):
                place = f"(const void *)(size_t)({argument.name} + ({index_text(index)}))"
                self._line(f"__builtin_prefetch({place}, {int(written)}, 3);")
            case ir.Copying():
                self._copying(statement)
            case ir.CarryStatement():
                for line in handed_on(statement, self.expressions):
                    self._line(line)
            case ir.Alias():
                self._line(_alias(statement))
            case ir.WorkGroupBarrier():
                self._line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._line(line)

    def _copying(self, statement: ir.Copying) -> None:
        helpers = self.expressions.helpers
        match statement:
            case ir.OpenRing():
                self._lines(open_ring(statement, helpers))
            case ir.RingLoop():
                self._lines(ring_copies(statement, helpers))
                if statement.prepare:
                    self._inside(statement.prepare)
                    self._lines(stage_prepared(statement))
                self._inside(statement.work)
                self._lines(end_loop(statement))
            case ir.RingRoles(ring, copies, work):
                self._lines(begin_copies(statement))
                self.depth += 1
                self._lines(registers_of(statement, workers=False))
                self._nest(f"if (lid == {ring.workers}) {{", copies)
                self.depth -= 1
                self._line("} else {")
                self.depth += 1
                self._lines(registers_of(statement, workers=True))
                self._block(work)
                self.depth -= 1
                self._line("}")
            case ir.FillStages():
                self._lines(fill_stages(statement, helpers))
            case ir.PassSteps():
                self._line(pass_steps(statement))
            case ir.RingGroupBarrier():
                self._line(group_barrier())
            case ir.TakeTurn():
                self._line(take_turn(statement))
            case ir.PassTurn():
                self._line(pass_turn(statement))
            case ir.AwaitStage():
                self._lines(await_stage(statement))
            case ir.FreeStage():
                self._line(free_stage(statement))
            case ir.GroupMultiply():
                self._lines(group_multiply(statement, helpers))
            case ir.OverlappedMultiply():
                for lines, behind in overlapped_multiply(statement, helpers):
                    self._lines(lines)
                    self._block(behind)
            case _:
                self._line(copying(statement, helpers))

    def _inside(self, body: Iterable[Stmt]) -> None:
        self.depth += 1
        self._block(body)
        self.depth -= 1

    def _nest(self, head: str, body: Iterable[Stmt], more: bool = False) -> None:
        self._line(head)
        self._inside(body)
        if not more:
            self._line("}")

    def _put(self, array: str, var: Var) -> str:
        if var.dtype != BOOL:
            return var.name
        wanted = next(a for a in _arrays(self.kernel.body) if a.name == array)
        return self.expressions.mask(var, wanted.mask_bytes)

    def _store(self, store: ir.Store) -> None:
        if self.packs and takes_packed(store):
            # A store of halves rounds by itself and writes one NaN. Rounding before it takes instructions for nothing.
            halves = store.argument.dtype in (FLOAT16, BFLOAT16)
            value = self.before_rounding.get(store.var, store.var).name if halves else self._canonical(store)
            if store.argument.dtype == BOOL:
                value = self._bits(value, store.var, store.var.lanes)
            self._line(store_packed(store, value, self.expressions.helpers))
            return
        self._write(store, self._canonical(store), store.var.lanes)
        if store.argument.dtype == FLOAT16 and store.canonical:
            self._quiet_halves(store)

    def _quiet_halves(self, store: ir.Store) -> None:
        """Store the NaNs of float16 once more, since platforms give them different bits."""
        name, place = store.var.name, f"((__global ushort *){store.argument.name})"
        if store.var.lanes == 1:
            index = index_text(store.index) if store.each is None else index_text(store.each, 0)
            self._line(f"if ({name} != {name}) {place}[{index}] = 0x7e00;")
            return
        self._line(f"if (any({name} != {name})) {{")
        for lane in range(1 if known_number(store.count) == 1 else store.var.lanes):
            index = index_text(_of_lane(store, lane))
            exists = ""
            if store.count is not None and known_number(store.count) != 1:
                exists = f"{lane} < {factor_text(store.count)} && "
            one = f"{name}.s{lane:x}"
            self._line(f"    if ({exists}{one} != {one}) {place}[{index}] = 0x7e00;")
        self._line("}")

    def _write(self, store: ir.Store, value: str, lanes: int) -> None:
        argument, var = store.argument, store.var
        name, dtype = argument.name, argument.dtype
        if lanes > 1 and known_number(store.count) == 1:
            value, lanes = f"({value}).s0", 1
        if dtype == BOOL:
            value = self._bits(value, var, lanes)
        if lanes == 1:
            index = index_text(store.index) if store.each is None else index_text(store.each, 0)
            self._line(write_text(name, dtype, index, value) + ";")
        elif store.each is not None:
            self._store_each(store, value)
        elif store.count is None and store.stride == 1:
            self._line(self._write_vector(store, value, lanes) + ";")
        elif (known := self._known_store(store, lanes)) is not None:
            self._line(f"{known}({value}, {name} + ({index_text(store.index)}));")
        else:
            scatter = self.expressions.helper("scatter", dtype, lanes)
            count = lanes if store.count is None else index_text(store.count)
            self._line(f"{scatter}({value}, {name} + ({index_text(store.index)}), {store.stride}, {count});")

    def _known_store(self, store: ir.Store, lanes: int) -> str | None:
        """Return the function that stores a vector of constant stride and count, where there is one."""
        dtype, helpers = store.argument.dtype, self.expressions.helpers
        if self.cpu and store.count is None:
            return store_every(dtype, store.stride, lanes, helpers)
        if self.cpu and store.stride == 1 and (count := known_number(store.count)) is not None:
            return store_first(dtype, count, lanes, helpers)
        return None

    def _canonical(self, store: ir.Store) -> str:
        var = store.var
        if not store.canonical:
            return var.name
        return f"({var.name} == {var.name} ? {var.name} : ({var_type(var)})({quiet_nan(var.dtype)}))"

    @staticmethod
    def _bits(value: str, var: Var, lanes: int) -> str:
        """Return a mask as 0 and 1."""
        if lanes == 1:
            return f"(uchar)({value} ? 1 : 0)"
        one = f"({mask_type(var.mask_bytes, lanes)})(1)"
        return f"(convert_uchar{lanes}({value} & {one}))"

    def _write_vector(self, store: ir.Store, value: str, lanes: int) -> str:
        dtype = store.argument.dtype
        place = f"{store.argument.name} + ({index_text(store.index)})"
        if dtype == FLOAT16:
            return f"vstore_half{lanes}({value}, 0, {place})"
        if dtype == BFLOAT16:
            value = f"convert_ushort{lanes}(as_uint{lanes}({value}) >> (uint{lanes})(16))"
        if store.aligned:
            return f"*(__global {memory_type(dtype)}{lanes} *)({place}) = {value}"
        if self.cpu:
            return f"*(__global {loose_vector(dtype, lanes, self.expressions.helpers)} *)({place}) = {value}"
        return f"vstore{lanes}({value}, 0, {place})"

    def _store_each(self, store: ir.Store, value: str) -> None:
        assert store.each is not None
        for lane in range(store.var.lanes):
            index = index_text(store.each, lane)
            write = write_text(store.argument.name, store.argument.dtype, index, f"({value}).s{lane:x}")
            exists = None if store.count is None else f"{lane} < {factor_text(store.count)}"
            self._line(f"{write};" if exists is None else f"if ({exists}) {{ {write}; }}")


def _alias(alias: ir.Alias) -> str:
    """Return the declaration of a pointer."""
    *others, last = alias.among
    picked = "".join(f"{index_text(equal(alias.place, i))} ? {one.name} : " for i, one in enumerate(others))
    constant = "const " if last.kind == "input" else ""
    return f"__global {constant}{memory_type(last.dtype)} *{alias.argument.name} = {picked}{last.name};"


def _of_lane(store: ir.Store, lane: int) -> ir.IndexLike:
    """Return the index at which a lane is stored."""
    return store.index + lane * store.stride if store.each is None else in_lane(store.each, lane)


def _arrays(body: Iterable[Stmt]) -> Iterable[ir.Array]:
    return (statement for statement in _every(body) if isinstance(statement, ir.Array))


def _exchanges(body: Iterable[Stmt]) -> Iterable[ir.Exchange]:
    return (statement for statement in _every(body) if isinstance(statement, ir.Exchange))


def _every(body: Iterable[Stmt]) -> Iterable[Stmt]:
    for statement in body:
        yield statement
        match statement:
            case ir.For(body=inner) | ir.While(body=inner) | ir.RingLoop(work=inner):
                yield from _every(inner)
            case ir.OverlappedMultiply(behind=parts):
                for part in parts:
                    yield from _every(part)
            case ir.RingRoles(copies=copies, work=work):
                yield from _every(copies)
                yield from _every(work)
            case ir.If(body=inner, otherwise=otherwise):
                yield from _every(inner)
                yield from _every(otherwise)
