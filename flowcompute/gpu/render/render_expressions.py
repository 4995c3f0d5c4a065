"""Renderer of the kernel IR's expressions to OpenCL C, with the helper functions that they call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flowcompute import ir
from flowcompute.elements import Op
from flowcompute.elements.math import add, maximum, minimum, multiply
from flowcompute.gpu.render.cpu_functions import CPU_FUNCTIONS, CPU_TEXTS, FMA, GPU_FUNCTIONS
from flowcompute.gpu.render.opencl_types import (
    dtype_class,
    mask_type,
    memory_type,
    quiet_nan,
    scalar_type,
    type_names,
    type_of,
    var_type,
    vector,
)
from flowcompute.gpu.render.packed_words import of_words
from flowcompute.gpu.render.prelude import HELPERS
from flowcompute.gpu.render.ptx import LANES, load_packed, of_fragments, rounding_helper
from flowcompute.gpu.render.render_block_words import block_run, halves_of_run
from flowcompute.gpu.render.render_blocks import decoded
from flowcompute.gpu.render.render_generators import generated
from flowcompute.gpu.render.strided_vectors import load_every, load_first, loose_vector
from flowcompute.ir import Var, factor_text, index_text, known_number, register_dtype
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, is_float


class ExpressionRenderer:
    """Renderer of expressions. `helpers` collects the functions they need, by name, in order of first use.

    Args:
        cpu: whether kernels have one work-item in a work-group.
        unroll: iterations that are unrolled in loops of users' functions that do not say so.
        tensor: whether the device has tensor cores, and so instructions that round to half formats.
        packs: whether vectors of four numbers are loaded at once where they lie at a multiple of their size.
    """

    def __init__(self, cpu: bool, unroll: int = 1, *, tensor: bool = False, packs: bool = False) -> None:
        self.cpu = cpu
        self.tensor, self.packs = tensor, packs
        self.unroll = unroll
        self.helpers: dict[str, str] = {}

    def _load(self, load: ir.Load, var: Var) -> str:
        argument, lanes = load.argument, var.lanes
        name, dtype = argument.name, argument.dtype
        if argument.blocks is not None:
            return decoded(load, argument.blocks, var, self.helpers, self.cpu)
        if load.each is None and known_number(load.along) != 0:
            # A pointer that stays is moved out of loops by LLVM, and a part of an index that stays is not.
            name, load = f"({name} + {factor_text(load.index)})", replace(load, index=load.along, along=0)
        if load.stride == 0 or lanes == 1:
            one = self._read(name, dtype, index_text(load.index) if load.each is None else index_text(load.each, 0))
            if lanes == 1:
                return one
            return f"({var_type(var)})({one} ? -1 : 0)" if dtype == BOOL else f"({var_type(var)})({one})"
        if load.each is not None:
            return self._load_each(load, var)
        if load.count is None and load.stride == 1:
            return self._read_vector(name, dtype, index_text(load.index), lanes, aligned=load.aligned)
        place = f"{name} + ({index_text(load.index)})"
        if self.cpu and load.count is None:
            return f"{load_every(dtype, load.stride, lanes, self.helpers)}({place})"
        if self.cpu and load.count is not None and (count := known_number(load.count)) is not None:
            if load.stride == 1:
                return f"{load_first(dtype, count, lanes, self.helpers)}({place})"
            return f"{load_every(dtype, load.stride, lanes, self.helpers, count)}({place})"
        gather = self.helper("gather", dtype, lanes)
        return f"{gather}({place}, {load.stride}, {lanes if load.count is None else index_text(load.count)})"

    def _load_each(self, load: ir.Load, var: Var) -> str:
        assert load.each is not None
        reads = []
        for lane in range(var.lanes):
            one = self._read(load.argument.name, load.argument.dtype, index_text(load.each, lane))
            if load.argument.dtype == BOOL:
                one = f"({one} ? -1 : 0)"
            reads.append(one if load.count is None else f"({lane} < {factor_text(load.count)} ? {one} : 0)")
        return f"({var_type(var)})({', '.join(reads)})"

    @staticmethod
    def _read(name: str, dtype: np.dtype, index: str) -> str:
        if dtype == FLOAT16:
            return f"vload_half({index}, {name})"
        if dtype == BFLOAT16:
            return f"as_float((uint){name}[{index}] << 16)"
        return f"({name}[{index}] != 0)" if dtype == BOOL else f"{name}[{index}]"

    def _vload(self, dtype: np.dtype, place: str, lanes: int, *, aligned: bool = False) -> str:
        """Return the load of a vector from any element's address, or from one that is a multiple of its size."""
        if aligned:
            return f"*(const __global {memory_type(dtype)}{lanes} *)({place})"
        if self.packs and lanes == LANES:
            return load_packed(memory_type(dtype), dtype, place, self.helpers)
        if not self.cpu:
            return f"vload{lanes}(0, {place})"
        return f"*(const __global {loose_vector(dtype, lanes, self.helpers)} *)({place})"

    def _read_vector(self, name: str, dtype: np.dtype, index: str, lanes: int, *, aligned: bool) -> str:
        place = f"{name} + ({index})"
        if dtype == FLOAT16:
            return f"vload_half{lanes}(0, {place})"
        loaded = self._vload(dtype, place, lanes, aligned=aligned)
        if dtype == BFLOAT16:
            return f"as_float{lanes}(convert_uint{lanes}({loaded}) << (uint{lanes})(16))"
        if dtype == BOOL:
            return f"({loaded} != (uchar{lanes})(0))"
        return loaded

    def expression(self, expr: ir.Expr, var: Var) -> str:
        """Return the text of an expression whose value is `var`."""
        match expr:
            case ir.Load():
                return self._load(expr, var)
            case ir.Apply():
                return self._apply(expr, var)
            case ir.Convert():
                return self._convert(expr, var)
            case ir.ConstantValue(value):
                return literal(value, var)
            case ir.ScalarArgument(argument):
                return f"({var_type(var)})({argument.name})"
            case ir.Splat(operand):
                return self._splat(operand, var)
            case ir.Half(operand, upper):
                part = f"{operand.name}.{'hi' if upper else 'lo'}"
                return f"({part} != 0)" if var.dtype == BOOL and var.lanes == 1 else part
            case ir.ArrayItem(array, index, vector):
                return self.numbers(array, index, var) if vector else f"{array}[{index_text(index)}]"
            case ir.Picked(operands, lanes):
                every = [name for one in operands for name in _lanes(one)]
                return f"({var_type(var)})({', '.join(every[lane] for lane in lanes)})"
            case ir.Integer(value, step):
                return self._integer(index_text(value), step, var)
            case ir.Generate():
                return generated(expr, var, self.helpers, self.cpu)
            case ir.Below(count):
                return self._below(index_text(count), var)
            case ir.Combine():
                return self._combine(expr, var)
            case ir.MultiplyAdd(a, b, c):
                return self._multiply_add(a, b, c)
            case ir.BlockRun():
                return block_run(expr, self.helpers)
            case ir.HalvesOfRun():
                return halves_of_run(expr, self.helpers)
            case ir.OfWords():
                return of_words(expr, self.helpers)
            case ir.Select(mask, yes, no):
                if var.dtype == BOOL:
                    chosen = (self.mask(yes, var.mask_bytes), self.mask(no, var.mask_bytes))
                    return f"({self.mask(mask, var.mask_bytes)} ? {chosen[0]} : {chosen[1]})"
                return f"({self.mask(mask, var.dtype.itemsize)} ? {yes.name} : {no.name})"
            case ir.OfFragments():
                return of_fragments(expr, self.helpers)

    def numbers(self, array: str, index: ir.IndexLike, var: Var) -> str:
        """Return the access to a vector in an array of single numbers: local on GPUs, private on CPUs."""
        if self.cpu:
            return f"*({loose_vector(var.dtype, var.lanes, self.helpers)} *)({array} + {index_text(index)})"
        return f"*(__local {type_of(var.dtype, var.lanes, var.mask_bytes)} *)({array} + {index_text(index)})"

    @staticmethod
    def mask(var: Var, mask_bytes: int) -> str:
        """Return a mask in another width."""
        if var.lanes == 1 or var.mask_bytes == mask_bytes:
            return var.name
        return f"convert_{mask_type(mask_bytes, var.lanes)}({var.name})"

    def _splat(self, operand: Var, var: Var) -> str:
        if operand.lanes == var.lanes:
            return self.mask(operand, var.mask_bytes) if var.dtype == BOOL else operand.name
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
            words = [self.mask(o, width) if masks or not i else o.name for i, o in enumerate(operands)]
        elif expr.dtype == BOOL:
            words = [self.mask(operand, var.mask_bytes) for operand in operands]
        else:
            words = [operand.name for operand in operands]
        operands_by_letter = dict(zip("abc", words, strict=False))
        key = (op.name, expr.dtype)
        if self.cpu and (key in CPU_TEXTS or key in CPU_FUNCTIONS):
            rendered = self._cpu_text(op, expr.dtype, names, operands_by_letter)
        else:
            text = self._op_text(op, expr.dtype)
            rendered = text.format(**operands_by_letter, **names, F=self._op_helper(op, expr.dtype, names))
        if expr.rounds is not None:
            return f"{self.helper('round', expr.rounds, var.lanes)}({rendered})"
        return rendered

    def _cpu_text(self, op: Op, dtype: np.dtype, names: dict[str, str], words: dict[str, str]) -> str:
        """Return the text of an op that CPUs compute by functions of ours."""
        if (op.name, dtype) in CPU_FUNCTIONS:
            return f"{self._cpu_function(op.name, dtype, names)}({words['a']})"
        double = names["T"].replace("float", "double")
        return CPU_TEXTS[op.name, dtype].format(**words, **names, NAME=op.name, D=double)

    def _cpu_function(self, name: str, dtype: np.dtype, names: dict[str, str]) -> str:
        """Return the name of one of our functions, defined on first use."""
        full = f"fc_{name}_{names['T']}"
        if full not in self.helpers:
            body = CPU_FUNCTIONS[name, dtype]
            ours = {"FMA": self._fma(names) if "{FMA}" in body else ""}
            ours["EXP"] = self._cpu_function("exp", dtype, names) if "{EXP}" in body else ""
            body = body.strip("\n").format(**names, **ours)
            self.helpers[full] = f"static inline {names['T']} {full}({names['T']} a) {{\n{body}\n}}\n"
        return full

    def _fma(self, names: dict[str, str]) -> str:
        """Return the name of the fused multiply-add."""
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
        """Return the name of the op's helper function, defined on first use."""
        body = op.helper.get(dtype_class(dtype))
        if not self.cpu:
            body = GPU_FUNCTIONS.get((op.name, dtype), body)
        if body is None:
            return ""
        name = f"fc_{op.name}_{names['T']}"
        if name not in self.helpers:
            parameters = ", ".join(f"{names['T']} {letter}" for letter in "abc"[: op.arity])
            inner = body.strip("\n").format(**names)
            self.helpers[name] = f"static inline {names['T']} {name}({parameters}) {{\n{inner}\n}}\n"
        return name

    def helper(self, kind: str, dtype: np.dtype, lanes: int) -> str:
        """Return the name of a prelude function for a stored dtype, defined on first use."""
        name = f"fc_{kind}_{dtype.name}_{lanes}"
        if name not in self.helpers and kind == "round" and self.tensor:
            self.helpers[name] = rounding_helper(dtype, lanes, name) + "\n"
        elif name not in self.helpers:
            words = {
                "NAME": name,
                "M": memory_type(dtype),
                "V": type_of(register_dtype(dtype), lanes, 1),
                "S": "char" if dtype == BOOL else scalar_type(dtype),
                "I": vector("int", lanes),
                "U": vector("uint", lanes),
                "F": vector("float", lanes),
                "L": str(lanes),
                "READ": self._read("p", dtype, "lane * stride"),
                "WRITE": write_text("p", dtype, "lane * stride", "all[lane]"),
                "B": "uchar" if dtype == BOOL else scalar_type(dtype),
                "W": vector("uchar" if dtype == BOOL else scalar_type(dtype), lanes),
                "TRUE": "-" if dtype == BOOL else "",
            }
            if kind == "narrow":
                words |= _narrowing(dtype, lanes)
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
            wide = self.mask(operand, register_dtype(target).itemsize)
            one = f"({mask_type(register_dtype(target).itemsize, lanes)})(1)"
            return f"convert_{kind}({wide} & {one})"
        if is_float(source) and not is_float(target):
            # In practice the result of NaN depends on the device: some give 2^63 for 64-bit integers.
            zero = f"({vector(scalar_type(source), lanes)})(0)"
            number = f"{operand.name} == {operand.name} ? {operand.name} : {zero}"
            if self.cpu and register_dtype(source) == FLOAT32 and target.itemsize <= 2:
                return f"{self.helper('narrow', target, lanes)}({operand.name if target.kind == 'u' else number})"
            return f"convert_{kind}_sat({number})"
        if register_dtype(target) == target:
            return operand.name if register_dtype(source) == target else f"convert_{kind}({operand.name})"
        narrow = operand.name
        if source == FLOAT64 and target == FLOAT16:
            narrow = f"{self.helper('odd', FLOAT64, lanes)}({narrow})"
        elif register_dtype(source) != register_dtype(target):
            narrow = f"convert_{kind}({narrow})"
        return f"{self.helper('round', target, lanes)}({narrow})"

    def _combine(self, expr: ir.Combine, var: Var) -> str:
        left, right = expr.left[expr.part], expr.right[expr.part]
        if expr.op in ("argmin", "argmax"):
            return self._first_wins(expr, var)
        if expr.op in ("any", "all"):
            a, b = (self.mask(one, var.mask_bytes) for one in (left, right))
            return f"({a} {'|' if expr.op == 'any' else '&'} {b})"
        op = {"sum": add, "prod": multiply, "max": maximum, "min": minimum}[expr.op].op
        return self._apply(ir.Apply(op, (left, right), var.dtype), var)

    def _first_wins(self, expr: ir.Combine, var: Var) -> str:
        """Return one part of the better (value, index) pair: see `canonical.first_wins`."""
        (a, i), (b, k) = expr.left, expr.right
        a_name, b_name, size = a.name, b.name, a.dtype.itemsize
        if a.dtype == BOOL:
            size = a.mask_bytes
            b_name = self.mask(b, size)
            better = f"({b_name} & (!{a_name}))" if expr.op == "argmax" else f"({a_name} & (!{b_name}))"
            same = f"(!({a_name} ^ {b_name}))"
        else:
            sign = ">" if expr.op == "argmax" else "<"
            better = f"({b_name} {sign} {a_name})"
            same = f"({a_name} == {b_name})"
        if is_float(a.dtype):
            # The negated comparison also holds for a NaN. It counts unless a NaN was there before.
            at_most = "<=" if expr.op == "argmax" else ">="
            better = f"((!({b_name} {at_most} {a_name})) & ({a_name} == {a_name}))"
            same = f"({same} | (({a_name} != {a_name}) & ({b_name} != {b_name})))"
        earlier = f"({k.name} < {i.name})"
        wanted = i.dtype.itemsize if expr.part == 1 else size
        if var.lanes > 1:
            kind = mask_type(wanted, var.lanes)
            better, same = (text if wanted == size else f"convert_{kind}({text})" for text in (better, same))
            earlier = earlier if wanted == i.dtype.itemsize else f"convert_{kind}({earlier})"
        yes, no = (k.name, i.name) if expr.part == 1 else (b_name, a_name)
        chosen = better if expr.ordered else f"({better} | ({same} & {earlier}))"
        return f"({chosen} ? {yes} : {no})"

    def _multiply_add(self, a: Var, b: Var, c: Var) -> str:
        names = type_names(c.dtype, c.lanes)
        if is_float(c.dtype):
            return f"{self._fma(names)}({a.name}, {b.name}, {c.name})"
        unsigned = "as_" + names["U"]
        total = f"({names['U']})({unsigned}({a.name}) * {unsigned}({b.name}) + {unsigned}({c.name}))"
        return f"as_{names['T']}({total})"


def _lanes(var: Var) -> list[str]:
    """Return the numbers of a vector, or the single number."""
    return [var.name] if var.lanes == 1 else [f"{var.name}.s{lane:x}" for lane in range(var.lanes)]


def _narrowing(dtype: np.dtype, lanes: int) -> dict[str, str]:
    """Return the limits of an integer of 8 or 16 bits, and how it is made of a float `x` within them."""
    limits = np.iinfo(dtype)
    packed = f"convert_{vector('int', lanes)}(x)"
    for narrower in ["short"] * (dtype.itemsize == 1) + [scalar_type(dtype)]:
        packed = f"convert_{vector(narrower, lanes)}_sat({packed})"
    return {"LEAST": f"{limits.min}.0f", "MOST": f"{limits.max}.0f", "PACKED": packed}


def write_text(name: str, dtype: np.dtype, index: str, value: str) -> str:
    """Return the statement that stores one number."""
    if dtype == FLOAT16:
        return f"vstore_half({value}, {index}, {name})"
    if dtype == BFLOAT16:
        return f"{name}[{index}] = (ushort)(as_uint({value}) >> 16)"
    return f"{name}[{index}] = {value}"


def literal(value: object, var: Var) -> str:
    """Return a number as text that is read back exactly."""
    kind = var_type(var)
    if var.dtype == BOOL:
        return f"({kind})({(-1 if var.lanes > 1 else 1) if value else 0})"
    if is_float(var.dtype):
        number = float(value)  # type: ignore[arg-type]
        if np.isnan(number):
            text = quiet_nan(var.dtype)
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
