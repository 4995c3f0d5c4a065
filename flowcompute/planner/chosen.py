"""What became of the knobs: those of a plan, complete, and those that it has no use for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowcompute.planner.backend import Traits
from flowcompute.planner.kernel import Kernel
from flowcompute.planner.reason import Reason
from flowcompute.strategy import KERNEL_KNOBS, Strategy


def not_applied(strategy: Strategy, kernels: Sequence[Kernel], traits: Traits) -> Iterator[Reason]:
    """A reason for each knob that is set and that no kernel has, or cannot do."""
    names = {kernel.name for kernel in kernels}
    for knob in KERNEL_KNOBS:
        wanted = getattr(strategy, knob)
        having = [kernel for kernel in kernels if getattr(kernel.knobs, knob) is not None]
        if wanted is not None and all(getattr(kernel.knobs, knob) != wanted for kernel in having):
            yield Reason("knob", knob, f"accepted, not applied: {_why(knob, wanted, having, traits)}")
    for name, own in strategy.kernels:
        if name not in names:
            yield Reason("knob", name, "accepted, not applied: the plan has no kernel of this name")
        for kernel in (kernel for kernel in kernels if kernel.name == name):
            for knob, wanted in own.plain().items():
                if getattr(kernel.knobs, knob) != wanted:
                    why = _why(knob, wanted, [kernel] if getattr(kernel.knobs, knob) else [], traits)
                    yield Reason("knob", f"{knob} of {name}", f"accepted, not applied: {why}")


def _why(knob: str, wanted: int, having: Sequence[Kernel], traits: Traits) -> str:
    if not having:
        return f"no kernel here has it on {traits.name}"
    found = sorted({f"{getattr(kernel.knobs, knob)} in {kernel.name} ({kernel.family})" for kernel in having})
    return f"{wanted} is none of its values on {traits.name}; it is {', '.join(found)}"
