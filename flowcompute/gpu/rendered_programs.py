"""Texts of kernels that were rendered, for as long as the kernels live: equal kernels share one."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

from flowcompute.imports import LateModule
from flowcompute.ir import Kernel

if TYPE_CHECKING:
    from flowcompute.gpu import render
else:
    render = LateModule("flowcompute.gpu.render")

_PROGRAMS: dict[int, tuple[weakref.ref[Kernel], tuple[str, str]]] = {}
_LAST_OF_BODY: dict[int, weakref.ref[Kernel]] = {}
"""By the identity of a body the kernel that was rendered last of those that have it."""

_FUNCTIONS: dict[str, render.RenderedBody] = {}
"""By the text of a program what its kernel has inside of its frame: a model renders a fifth of a second for them."""

MOST_FUNCTIONS = 256
"""Functions that are kept, at most; then all are forgotten. A device keeps as many programs."""


def rendered(kernel: Kernel) -> str:
    """Return the OpenCL C of one kernel, complete with the functions that it needs."""
    return render.render(kernel)


def function_of(kernel: Kernel) -> render.RenderedBody:
    """Return what the text of a kernel has inside of its frame; it is rendered for that once."""
    text, _ = program_of(kernel)
    found = _FUNCTIONS.get(text)
    if found is None:
        if len(_FUNCTIONS) >= MOST_FUNCTIONS:
            _FUNCTIONS.clear()
        found = _FUNCTIONS[text] = render.render_function(kernel)
    return found


def program_of(kernel: Kernel) -> tuple[str, str]:
    """Return the text that is compiled for a kernel, and the kernel's name in it.

    The name gives the kind of the kernel and not its number in the plan. Equal kernels, as the layers of a
    network have, are then compiled once, and those that share their body are rendered once. The text of a kernel is
    kept for as long as the kernel: plans that are followed again have the same one.
    """
    program = _kept(kernel)
    if program is not None:
        return program
    program = _program_of_equal(kernel)
    if program is None:
        name = _name(kernel)
        program = rendered(replace(kernel, name=name)), name
    _note(kernel, program)
    return program


class RenderedTexts:
    """The texts of kernels, as plans that are kept between processes ask for them; see `KernelTexts`."""

    def known(self, kernel: Kernel) -> str | None:
        """Return the text of a kernel if it was rendered; nothing is rendered for it."""
        kept = _kept(kernel)
        return None if kept is None else kept[0]

    def note(self, kernel: Kernel, text: str) -> None:
        """Note the text that an equal kernel had, which this one need not be rendered for."""
        _note(kernel, (text, _name(kernel)))


def _name(kernel: Kernel) -> str:
    return f"fused_{kernel.work}"


def _kept(kernel: Kernel) -> tuple[str, str] | None:
    """Return the program that was noted for this very kernel."""
    reference, program = _PROGRAMS.get(id(kernel), (None, None))
    # An interrupt may come while Python forgets a kernel, and the next one may lie at its address.
    return program if reference is not None and reference() is kernel else None


def _note(kernel: Kernel, program: tuple[str, str]) -> None:
    # By identity, since kernels are equal whose numbers are 0.0 and -0.0.
    own, body = id(kernel), id(kernel.body)
    reference = weakref.ref(kernel, lambda gone: _forget(own, body, gone))
    _PROGRAMS[own] = reference, program
    _LAST_OF_BODY[body] = reference


def _program_of_equal(kernel: Kernel) -> tuple[str, str] | None:
    """Return the program of a kernel that has the very same body, arguments of the same types and the same frame."""
    reference = _LAST_OF_BODY.get(id(kernel.body))
    other = None if reference is None else reference()
    if other is None or other.body is not kernel.body or _frame(other) != _frame(kernel):
        return None
    return _PROGRAMS[id(other)][1]


def _frame(kernel: Kernel) -> tuple[object, ...]:
    """Return what a text depends on beside the body."""
    parameters = tuple((one.name, one.kind, one.dtype, one.period, one.blocks) for one in kernel.arguments)
    unroll, shape = kernel.knobs.function_unroll, (kernel.work_group, kernel.lanes, kernel.columns, kernel.tile)
    counts = kernel.block, kernel.units, kernel.stages
    return parameters, kernel.work, shape, counts, kernel.contract, kernel.tensor, unroll


def _forget(kernel: int, body: int, gone: weakref.ref[Kernel]) -> None:
    """Forget the text of a kernel that is no more."""
    _PROGRAMS.pop(kernel, None)
    if _LAST_OF_BODY.get(body) is gone:
        del _LAST_OF_BODY[body]
