"""`fc.opencl`: functions written by hand in OpenCL C as element-wise operations."""

from __future__ import annotations

import re
from dataclasses import field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from flowcompute.elements.alignment import broadcast
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.functions.own_gradient import Gradient, checked_gradient
from flowcompute.elements.op import Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import KernelError, SpecError, short_repr
from flowcompute.imports import dataclass, hashlib
from flowcompute.spec import Spec, parse_dtype

_UNSEEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_WORD = re.compile(r"\.?\d(?:[eEpP][+-]|[\w.])*|[A-Za-z_]\w*")
"""Numbers with their suffixes, as 1.f, and names (C11 6.4.8)."""
_DEFINITION = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^()]*)\)\s*\{")
_COST = 50


def _not_here(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("OpenCL C has no dtype rule and no meaning outside a device")


@dataclass(frozen=True, repr=False)
class SourceOp(Op):
    """A function in OpenCL C, called for each number.

    Attributes:
        source: OpenCL C in which each function that it defines has a name of its own in all programs.
        entry: the function that is called.
        vjp: the gradient that its user gave it; None for none.
    """

    made_by_call: ClassVar[bool] = True

    source: str = ""
    entry: str = ""
    vjp: Gradient | None = field(default=None, hash=False, compare=False)

    @property
    def float64(self) -> bool:
        """True where it says that it computes in float64."""
        return "double" in self.source


def opencl(
    source: str,
    *inputs: Operand,
    dtype: npt.DTypeLike | None = None,
    name: str | None = None,
    vjp: Gradient | None = None,
) -> Compute:
    """Make a function of OpenCL C, called for each number and fused like a built-in.

    `fc.opencl("float f(float x, float y) { return x * native_exp(y); }", x, y)`

    Args:
        source: OpenCL C that defines the function, after others that it may call. The last function
            defined is the one that is called, once for each number. It must have no side effects.
        inputs: its arguments, which broadcast. Each is passed in its own dtype's C type (half
            formats as float, bool as int) and converted to the parameter's as C does.
        dtype: of the result; by default that of the first input. Half formats are rounded from
            float; bool is true where the function gives no 0.
        name: name of the element; what the function is called in C by default.
        vjp: its gradient, for `fc.grad`: a function of the operands and the cotangent of the result, all of them
            elements. It returns one cotangent for each operand, or None for 0.

    Raises:
        KernelError: if the source defines no function of so many parameters. What the device's
            compiler says against it is a KernelError when programs are built.
        SpecError: without inputs, if they do not broadcast, or if `vjp` cannot be called.
    """
    entry, parameters, functions = _parsed(source)
    if len(inputs) != parameters or not inputs:
        raise KernelError(
            "cannot take so many inputs",
            element=name or entry,
            site=user_site(),
            expected=f"{parameters}, as {entry} has parameters" if parameters else "a function with parameters",
            got=str(len(inputs)),
        )
    elements = [as_element(one, entry) for one in inputs]
    try:
        result = elements[0].dtype if dtype is None else parse_dtype(dtype)
    except TypeError as error:
        raise SpecError(str(error), element=name or entry, site=user_site()) from error
    digest = hashlib.blake2b(source.encode(), digest_size=8).hexdigest()
    own = _renamed(source, functions, digest)
    op = SourceOp(
        entry,
        len(inputs),
        Kind.ELEMENTWISE,
        _not_here,
        _not_here,
        cost=_COST,
        source=own,
        entry=f"{entry}_{digest}",
        vjp=None if vjp is None else checked_gradient(vjp, name or entry),
    )
    aligned, shape, stream = broadcast(entry, elements)
    return Compute(op, tuple(aligned), Spec(result, shape, stream), {"source": digest}, name=name)


def _parsed(source: str) -> tuple[str, int, list[str]]:
    """Return the last function that a source defines, how many parameters it has, and all that it defines."""
    if not isinstance(source, str):
        raise KernelError("cannot read this as a source", element="opencl", site=user_site(), got=short_repr(source))
    seen = _UNSEEN.sub(" ", source)
    found: list[tuple[str, str]] = []
    depth, start = 0, 0
    for place, letter in enumerate(seen):
        if letter == "{":
            if depth == 0 and (match := _last_definition(seen[start : place + 1])) is not None:
                found.append(match)
            depth += 1
        elif letter == "}":
            depth -= 1
            start = place + 1
    if not found or depth != 0:
        raise KernelError(
            "cannot find a function in the source",
            element="opencl",
            site=user_site(),
            expected='OpenCL C such as "float f(float x) { return x * x; }"',
            got=source.strip().split("\n", 1)[0][:60] or "nothing",
        )
    entry, parameters = found[-1]
    count = 0 if parameters.strip() in ("", "void") else parameters.count(",") + 1
    return entry, count, [name for name, _ in found]


def _last_definition(text: str) -> tuple[str, str] | None:
    matches = _DEFINITION.findall(text)
    return matches[-1] if matches else None


def _renamed(source: str, functions: list[str], digest: str) -> str:
    """Return a source whose functions meet no others of their name in a kernel."""
    own = set(functions)
    return _WORD.sub(lambda word: f"{word[0]}_{digest}" if word[0] in own else word[0], source).strip() + "\n"
