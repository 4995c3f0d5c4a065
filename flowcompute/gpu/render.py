"""Kernel IR to OpenCL C. One renderer for both code shapes; what differs is in the IR."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flowcompute.elements.arithmetic import add, maximum, minimum, multiply
from flowcompute.elements.op import Op
from flowcompute.gpu.functions import CPU_FUNCTIONS, CPU_TEXTS, FMA
from flowcompute.gpu.prelude import HELPERS
from flowcompute.gpu.types import (
    dtype_class,
    mask_type,
    memory_type,
    scalar_type,
    type_names,
    type_of,
    var_type,
    vector,
)
from flowcompute.planner import kernel as ir
from flowcompute.planner.kernel import Argument, Kernel, Stmt, Var, register_dtype
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT64, INT64, is_float

INTEGER_ARGUMENTS = ("n", "chunk", "blocks", "first", "phase")
"""Every kernel's last parameters: numbers or rows, how many a work-item takes, blocks of a
fold, index of the batch's first record, and its offset in its block."""


def render(kernel: Kernel) -> str:
    """The OpenCL C of one kernel, complete with what it needs."""
    return _Renderer(kernel).text()


class _Renderer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.cpu = kernel.work_group == 1
        self.helpers: dict[str, str] = {}
        self.lines: list[str] = []
        self.depth = 1

    # -- frame --------------------------------------------------------------------------------

    def text(self) -> str:
        self._locals()
        self._integers()
        self._block(self.kernel.body)
        doubles = any("double" in line for line in [*self.lines, *self.helpers.values(), self._signature()])
        head = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if doubles else []
        head.append(f"#pragma OPENCL FP_CONTRACT {'ON' if self.kernel.contract else 'OFF'}")
        parts = [*head, "", *self.helpers.values(), self._signature() + " {", *self.lines, "}"]
        return "\n".join(parts) + "\n"

    def _signature(self) -> str:
        parameters = [self._parameter(argument) for argument in self.kernel.arguments]
        parameters += [f"const long {name}" for name in INTEGER_ARGUMENTS]
        group = f"__attribute__((reqd_work_group_size({self.kernel.work_group}, 1, 1)))"
        joined = ",\n    ".join(parameters)
        return f"__kernel {group}\nvoid {self.kernel.name}(\n    {joined})"

    @staticmethod
    def _parameter(argument: Argument) -> str:
        if argument.kind == "scalar":
            return f"const {scalar_type(argument.dtype)} {argument.name}"
        constant = "const " if argument.kind in ("input", "carry") else ""
        return f"__global {constant}{memory_type(argument.dtype)} *restrict {argument.name}"

    def _locals(self) -> None:
        """Local arrays are declared at the top of a kernel."""
        for array in _arrays(self.kernel.body):
            if array.local:
                kind = type_of(array.dtype, array.lanes, array.mask_bytes)
                self._line(f"__local {kind} {array.name}[{array.size}];")

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
                self._line(f"{var_type(var)} {var.name} = {self.expression(expr, var)};")
            case ir.Assign(var, expr):
                self._line(f"{var.name} = {self.expression(expr, var)};")
            case ir.SetInteger(name, text, new):
                self._line(f"{'long ' if new else ''}{name} = {text};")
            case ir.Store():
                self._store(statement)
            case ir.Array(name, dtype, lanes, size, local, mask_bytes):
                if not local:
                    self._line(f"{type_of(dtype, lanes, mask_bytes)} {name}[{size}];")
            case ir.Put(array, index, var):
                self._line(f"{array}[{index}] = {self._put(array, var)};")
            case ir.For(index, start, stop, step, body):
                increment = f"{index}++" if step == "1" else f"{index} += {step}"
                self._nest(f"for (long {index} = {start}; {index} < {stop}; {increment}) {{", body)
            case ir.While(condition, body):
                self._nest(f"while ({condition}) {{", body)
            case ir.If(condition, body, otherwise):
                self._nest("{" if condition == "1" else f"if ({condition}) {{", body, bool(otherwise))
                if otherwise:
                    self._nest("} else {", otherwise)
            case ir.Barrier():
                self._line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")

    def _nest(self, head: str, body: Iterable[Stmt], more: bool = False) -> None:
        self._line(head)
        self.depth += 1
        self._block(body)
        self.depth -= 1
        if not more:
            self._line("}")

    def _put(self, array: str, var: Var) -> str:
        if var.dtype != BOOL:
            return var.name
        wanted = next(a for a in _arrays(self.kernel.body) if a.name == array)
        return self._mask(var, wanted.mask_bytes)

    # -- memory ---------------------------------------------------------------------------------

    def _load(self, load: ir.Load, var: Var) -> str:
        argument, lanes = load.argument, var.lanes
        name, dtype = argument.name, argument.dtype
        if load.stride == 0 or lanes == 1:
            one = self._read(name, dtype, load.index if load.each is None else load.each.format(lane=0))
            if lanes == 1:
                return one
            return f"({var_type(var)})({one} ? -1 : 0)" if dtype == BOOL else f"({var_type(var)})({one})"
        if load.each is not None:
            return self._load_each(load, var)
        if load.count is None and load.stride == 1:
            return self._read_vector(name, dtype, load.index, lanes)
        gather = self._helper("gather", dtype, lanes)
        return f"{gather}({name} + ({load.index}), {load.stride}, {load.count or lanes})"

    def _load_each(self, load: ir.Load, var: Var) -> str:
        assert load.each is not None
        reads = []
        for lane in range(var.lanes):
            one = self._read(load.argument.name, load.argument.dtype, load.each.format(lane=lane))
            if load.argument.dtype == BOOL:
                one = f"({one} ? -1 : 0)"
            reads.append(one if load.count is None else f"({lane} < {load.count} ? {one} : 0)")
        return f"({var_type(var)})({', '.join(reads)})"

    @staticmethod
    def _read(name: str, dtype: np.dtype, index: str) -> str:
        if dtype == FLOAT16:
            return f"vload_half({index}, {name})"
        if dtype == BFLOAT16:
            return f"as_float((uint){name}[{index}] << 16)"
        return f"({name}[{index}] != 0)" if dtype == BOOL else f"{name}[{index}]"

    def _vload(self, dtype: np.dtype, place: str, lanes: int) -> str:
        """A vector from any element's address. On CPUs through a pointer: PoCL's vload is a call."""
        if not self.cpu:
            return f"vload{lanes}(0, {place})"
        return f"*(const __global {self._helper('loose', dtype, lanes)} *)({place})"

    def _read_vector(self, name: str, dtype: np.dtype, index: str, lanes: int) -> str:
        place = f"{name} + ({index})"
        if dtype == FLOAT16:
            return f"vload_half{lanes}(0, {place})"
        if dtype == BFLOAT16:
            return f"as_float{lanes}(convert_uint{lanes}({self._vload(dtype, place, lanes)}) << (uint{lanes})(16))"
        if dtype == BOOL:
            return f"({self._vload(dtype, place, lanes)} != (uchar{lanes})(0))"
        return self._vload(dtype, place, lanes)

    def _store(self, store: ir.Store) -> None:
        argument, var = store.argument, store.var
        name, dtype, lanes = argument.name, argument.dtype, var.lanes
        value = self._canonical(store)
        if lanes > 1 and store.count == "1":
            value, lanes = f"({value}).s0", 1
        if dtype == BOOL:
            value = self._bits(value, var, lanes)
        if lanes == 1:
            index = store.index if store.each is None else store.each.format(lane=0)
            self._line(self._write(name, dtype, index, value) + ";")
        elif store.each is not None:
            self._store_each(store, value)
        elif store.count is None and store.stride == 1:
            self._line(self._write_vector(name, dtype, store.index, value, lanes) + ";")
        else:
            scatter = self._helper("scatter", dtype, lanes)
            self._line(f"{scatter}({value}, {name} + ({store.index}), {store.stride}, {store.count or lanes});")

    def _canonical(self, store: ir.Store) -> str:
        var = store.var
        if not store.canonical:
            return var.name
        return f"({var.name} == {var.name} ? {var.name} : ({var_type(var)})(NAN))"

    @staticmethod
    def _bits(value: str, var: Var, lanes: int) -> str:
        """A mask as 0 and 1."""
        if lanes == 1:
            return f"(uchar)({value} ? 1 : 0)"
        one = f"({mask_type(var.mask_bytes, lanes)})(1)"
        return f"(convert_uchar{lanes}({value} & {one}))"

    @staticmethod
    def _write(name: str, dtype: np.dtype, index: str, value: str) -> str:
        if dtype == FLOAT16:
            return f"vstore_half({value}, {index}, {name})"
        if dtype == BFLOAT16:
            return f"{name}[{index}] = (ushort)(as_uint({value}) >> 16)"
        return f"{name}[{index}] = {value}"

    def _write_vector(self, name: str, dtype: np.dtype, index: str, value: str, lanes: int) -> str:
        place = f"{name} + ({index})"
        if dtype == FLOAT16:
            return f"vstore_half{lanes}({value}, 0, {place})"
        if dtype == BFLOAT16:
            value = f"convert_ushort{lanes}(as_uint{lanes}({value}) >> (uint{lanes})(16))"
        if self.cpu:
            return f"*(__global {self._helper('loose', dtype, lanes)} *)({place}) = {value}"
        return f"vstore{lanes}({value}, 0, {place})"

    def _store_each(self, store: ir.Store, value: str) -> None:
        assert store.each is not None
        for lane in range(store.var.lanes):
            index = store.each.format(lane=lane)
            write = self._write(store.argument.name, store.argument.dtype, index, f"({value}).s{lane:x}")
            self._line(f"{write};" if store.count is None else f"if ({lane} < {store.count}) {{ {write}; }}")

    # -- values ---------------------------------------------------------------------------------

    def expression(self, expr: ir.Expr, var: Var) -> str:
        """The text of an expression that gives `var`."""
        match expr:
            case ir.Load():
                return self._load(expr, var)
            case ir.Apply():
                return self._apply(expr, var)
            case ir.Convert():
                return self._convert(expr, var)
            case ir.Number(value):
                return literal(value, var)
            case ir.ScalarArgument(argument):
                return f"({var_type(var)})({argument.name})"
            case ir.Splat(operand):
                return self._splat(operand, var)
            case ir.Half(operand, upper):
                part = f"{operand.name}.{'hi' if upper else 'lo'}"
                return f"({part} != 0)" if var.dtype == BOOL and var.lanes == 1 else part
            case ir.Item(array, index):
                return f"{array}[{index}]"
            case ir.Integer(text, step):
                return self._integer(text, step, var)
            case ir.Below(count):
                return self._below(count, var)
            case ir.Combine():
                return self._combine(expr, var)
            case ir.MultiplyAdd(a, b, c):
                return self._multiply_add(a, b, c)
            case ir.Select(mask, yes, no):
                if var.dtype == BOOL:
                    chosen = (self._mask(yes, var.mask_bytes), self._mask(no, var.mask_bytes))
                    return f"({self._mask(mask, var.mask_bytes)} ? {chosen[0]} : {chosen[1]})"
                return f"({self._mask(mask, var.dtype.itemsize)} ? {yes.name} : {no.name})"

    @staticmethod
    def _mask(var: Var, mask_bytes: int) -> str:
        """A mask in another width."""
        if var.lanes == 1 or var.mask_bytes == mask_bytes:
            return var.name
        return f"convert_{mask_type(mask_bytes, var.lanes)}({var.name})"

    def _splat(self, operand: Var, var: Var) -> str:
        if operand.lanes == var.lanes:
            return self._mask(operand, var.mask_bytes) if var.dtype == BOOL else operand.name
        one = operand.name if operand.lanes == 1 else f"{operand.name}.s0"
        if var.dtype == BOOL:
            return f"({one} != 0)" if var.lanes == 1 else f"({var_type(var)})({one} ? -1 : 0)"
        return one if var.lanes == 1 else f"({var_type(var)})({one})"

    @staticmethod
    def _integer(text: str, step: int, var: Var) -> str:
        if var.lanes == 1:
            return f"(long)({text})"
        lanes = ", ".join(str(step * lane) for lane in range(var.lanes))
        base = f"({var_type(var)})((long)({text}))"
        return base if step == 0 else f"{base} + ({var_type(var)})({lanes})"

    @staticmethod
    def _below(count: str, var: Var) -> str:
        if var.lanes == 1:
            return f"(0 < ({count}))"
        kind = var_type(var)
        lanes = ", ".join(map(str, range(var.lanes)))
        scalar = kind.rstrip("0123456789")
        return f"(({kind})({lanes}) < ({kind})(({scalar})({count})))"

    def _apply(self, expr: ir.Apply, var: Var) -> str:
        op, operands = expr.op, expr.operands
        names = type_names(expr.dtype, operands[-1].lanes)
        if op.name == "where":
            width = var.mask_bytes if expr.dtype == BOOL else expr.dtype.itemsize
            masks = expr.dtype == BOOL
            words = [self._mask(o, width) if masks or not i else o.name for i, o in enumerate(operands)]
        elif expr.dtype == BOOL:
            words = [self._mask(operand, var.mask_bytes) for operand in operands]
        else:
            words = [operand.name for operand in operands]
        operands_by_letter = dict(zip("abc", words, strict=False))
        if self.cpu and is_float(expr.dtype) and (op.name in CPU_TEXTS or (op.name, expr.dtype) in CPU_FUNCTIONS):
            rendered = self._cpu_text(op, expr.dtype, names, operands_by_letter)
        else:
            text = self._op_text(op, expr.dtype)
            rendered = text.format(**operands_by_letter, **names, F=self._op_helper(op, expr.dtype, names))
        if expr.rounds is not None:
            return f"{self._helper('round', expr.rounds, var.lanes)}({rendered})"
        return rendered

    def _cpu_text(self, op: Op, dtype: np.dtype, names: dict[str, str], words: dict[str, str]) -> str:
        """The text of an op that CPUs compute by functions of ours."""
        if op.name not in CPU_TEXTS:
            return f"{self._cpu_function(op.name, dtype, names)}({words['a']})"
        base, text = CPU_TEXTS[op.name]
        function = ""
        if base:
            function = self._cpu_function(base, dtype, names) if (base, dtype) in CPU_FUNCTIONS else base
        size_mask = "0x7fffffff" if dtype.itemsize == 4 else "0x7fffffffffffffffL"
        return text.format(**words, **names, EXP=function, SIZE_MASK=size_mask)

    def _cpu_function(self, name: str, dtype: np.dtype, names: dict[str, str]) -> str:
        """The name of one of our functions, defined on first use."""
        full = f"fc_{name}_{names['T']}"
        if full not in self.helpers:
            fused = self._fma(names)
            body = CPU_FUNCTIONS[name, dtype].strip("\n").format(**names, FMA=fused)
            self.helpers[full] = f"static inline {names['T']} {full}({names['T']} a) {{\n{body}\n}}\n"
        return full

    def _fma(self, names: dict[str, str]) -> str:
        """The name of the fused multiply-add."""
        if not self.cpu:
            return "fma"
        name = f"fc_fma_{names['T']}"
        self.helpers.setdefault(name, FMA.format(**names, NAME=name).strip("\n") + "\n")
        return name

    @staticmethod
    def _op_text(op: Op, dtype: np.dtype) -> str:
        kind = dtype_class(dtype)
        for key in (kind, "any"):
            if key in op.text:
                return op.text[key]
        return f"{op.name}({', '.join('{' + letter + '}' for letter in 'abc'[: op.arity])})"

    def _op_helper(self, op: Op, dtype: np.dtype, names: dict[str, str]) -> str:
        """The name of the op's helper function, defined on first use."""
        body = op.helper.get(dtype_class(dtype))
        if body is None:
            return ""
        name = f"fc_{op.name}_{names['T']}"
        if name not in self.helpers:
            parameters = ", ".join(f"{names['T']} {letter}" for letter in "abc"[: op.arity])
            inner = body.strip("\n").format(**names)
            self.helpers[name] = f"static inline {names['T']} {name}({parameters}) {{\n{inner}\n}}\n"
        return name

    def _helper(self, kind: str, dtype: np.dtype, lanes: int) -> str:
        """The name of a prelude function for a stored dtype, defined on first use."""
        name = f"fc_{kind}_{dtype.name}_{lanes}"
        if name not in self.helpers:
            words = {
                "NAME": name,
                "M": memory_type(dtype),
                "V": type_of(register_dtype(dtype), lanes, 1),
                "S": "char" if dtype == BOOL else scalar_type(dtype),
                "I": vector("int", lanes),
                "U": vector("uint", lanes),
                "A": vector(memory_type(dtype), lanes),
                "ALIGN": str(dtype.itemsize),
                "F": vector("float", lanes),
                "L": str(lanes),
                "READ": self._read("p", dtype, "lane * stride"),
                "WRITE": self._write("p", dtype, "lane * stride", "all[lane]"),
                "B": "uchar" if dtype == BOOL else scalar_type(dtype),
                "W": vector("uchar" if dtype == BOOL else scalar_type(dtype), lanes),
                "TRUE": "-" if dtype == BOOL else "",
            }
            template = HELPERS[kind] if kind != "round" else HELPERS[f"round_{dtype.name}"]
            for key, word in words.items():
                template = template.replace(f"@{key}@", word)
            self.helpers[name] = template.strip("\n") + "\n"
        return name

    def _convert(self, expr: ir.Convert, var: Var) -> str:
        operand, source, target = expr.operand, expr.source, expr.target
        lanes = var.lanes
        if target == BOOL:
            if source == BOOL:
                return operand.name
            zero = vector(scalar_type(source), lanes)
            return f"({operand.name} != ({zero})(0))"
        kind = vector(scalar_type(target), lanes)
        if source == BOOL:
            wide = self._mask(operand, register_dtype(target).itemsize)
            one = f"({mask_type(register_dtype(target).itemsize, lanes)})(1)"
            return f"convert_{kind}({wide} & {one})"
        if is_float(source) and not is_float(target):
            return f"convert_{kind}_sat({operand.name})"
        if register_dtype(target) == target:
            return operand.name if register_dtype(source) == target else f"convert_{kind}({operand.name})"
        narrow = operand.name
        if source == FLOAT64 and target == FLOAT16:
            narrow = f"{self._helper('odd', FLOAT64, lanes)}({narrow})"
        elif register_dtype(source) != register_dtype(target):
            narrow = f"convert_{kind}({narrow})"
        return f"{self._helper('round', target, lanes)}({narrow})"

    def _combine(self, expr: ir.Combine, var: Var) -> str:
        left, right = expr.left[expr.part], expr.right[expr.part]
        if expr.op in ("argmin", "argmax"):
            return self._first_wins(expr, var)
        if expr.op in ("any", "all"):
            a, b = (self._mask(one, var.mask_bytes) for one in (left, right))
            return f"({a} {'|' if expr.op == 'any' else '&'} {b})"
        op = {"sum": add, "prod": multiply, "max": maximum, "min": minimum}[expr.op].op
        return self._apply(ir.Apply(op, (left, right), var.dtype), var)

    def _first_wins(self, expr: ir.Combine, var: Var) -> str:
        """The part of whichever (value, index) pair is better: see `canonical.first_wins`."""
        (a, i), (b, k) = expr.left, expr.right
        a_name, b_name, size = a.name, b.name, a.dtype.itemsize
        if a.dtype == BOOL:
            size = a.mask_bytes
            b_name = self._mask(b, size)
            better = f"({b_name} & (!{a_name}))" if expr.op == "argmax" else f"({a_name} & (!{b_name}))"
            same = f"(!({a_name} ^ {b_name}))"
        else:
            sign = ">" if expr.op == "argmax" else "<"
            better = f"({b_name} {sign} {a_name})"
            same = f"({a_name} == {b_name})"
        if is_float(a.dtype):
            better = f"({better} | (({b_name} != {b_name}) & ({a_name} == {a_name})))"
            same = f"({same} | (({a_name} != {a_name}) & ({b_name} != {b_name})))"
        earlier = f"({k.name} < {i.name})"
        wanted = INT64.itemsize if expr.part == 1 else size
        if var.lanes > 1:
            kind = mask_type(wanted, var.lanes)
            better, same = (text if wanted == size else f"convert_{kind}({text})" for text in (better, same))
            earlier = earlier if wanted == INT64.itemsize else f"convert_{kind}({earlier})"
        yes, no = (k.name, i.name) if expr.part == 1 else (b_name, a_name)
        return f"(({better} | ({same} & {earlier})) ? {yes} : {no})"

    def _multiply_add(self, a: Var, b: Var, c: Var) -> str:
        names = type_names(c.dtype, c.lanes)
        if is_float(c.dtype):
            return f"{self._fma(names)}({a.name}, {b.name}, {c.name})"
        unsigned = "as_" + names["U"]
        total = f"({names['U']})({unsigned}({a.name}) * {unsigned}({b.name}) + {unsigned}({c.name}))"
        return f"as_{names['T']}({total})"


def literal(value: object, var: Var) -> str:
    """A number as text that means exactly it."""
    kind = var_type(var)
    if var.dtype == BOOL:
        return f"({kind})({(-1 if var.lanes > 1 else 1) if value else 0})"
    if is_float(var.dtype):
        number = float(value)  # type: ignore[arg-type]
        if np.isnan(number):
            text = "NAN"
        elif np.isinf(number):
            text = "-INFINITY" if number < 0 else "INFINITY"
        else:
            text = number.hex() + ("" if var.dtype == FLOAT64 else "f")
        return f"({kind})({text})"
    whole = int(value)  # type: ignore[call-overload]
    if whole == np.iinfo(np.int64).min:
        text = "-9223372036854775807L - 1L"
    else:
        text = f"{whole}{'UL' if var.dtype.kind == 'u' else 'L'}"
    return f"({kind})(({scalar_type(var.dtype)})({text}))"


def _arrays(body: Iterable[Stmt]) -> Iterable[ir.Array]:
    for statement in body:
        match statement:
            case ir.Array():
                yield statement
            case ir.For(body=inner) | ir.While(body=inner):
                yield from _arrays(inner)
            case ir.If(body=inner, otherwise=otherwise):
                yield from _arrays(inner)
                yield from _arrays(otherwise)
