"""Result of `element.plan()`: the plan, and what can be said of it."""

from __future__ import annotations

from flowcompute.html import preformatted
from flowcompute.imports import dataclass
from flowcompute.ir import Kernel
from flowcompute.schedule.explain.expected_times import Expectation, expectations
from flowcompute.schedule.explain.explain_plan import describe_plan, plan_dot, plan_svg
from flowcompute.schedule.explain.explain_strategy import explain_strategy
from flowcompute.schedule.explain.plan_page import plan_html, summarize_plan
from flowcompute.schedule.plan import ExecutionPlan
from flowcompute.schedule.steps import RegionStep


@dataclass(frozen=True)
class KernelPlan:
    """A kernel of a plan: `ir` is its loop nest, `source` its OpenCL C."""

    name: str
    ir: Kernel
    source: str

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f"<KernelPlan {self.name} ({self.ir.work}): {self.ir.region}>"

    def _repr_html_(self) -> str:
        return preformatted(self.source)


@dataclass(frozen=True)
class Plan(ExecutionPlan):
    """Result of `element.plan()`: what a run follows, in words and pictures too."""

    @property
    def kernels(self) -> tuple[KernelPlan, ...]:
        """The kernels, with their text; none on the reference backend."""
        lowered = [step.kernel for step in self.steps if isinstance(step, RegionStep) and step.kernel is not None]
        return tuple(KernelPlan(kernel.name, kernel, self.backend.source_text(kernel)) for kernel in lowered)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """The seconds that measured rates allow each stage; none before `flowcompute devices --measure`.

        The system's cache is looked at anew each time.
        """
        return expectations(self)

    @property
    def text(self) -> str:
        """The plan as a page of text."""
        return describe_plan(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Plan {summarize_plan(self)}>"

    def _repr_html_(self) -> str:
        return plan_html(self)

    def explain(self) -> str:
        """Return the knobs of the run and of each kernel: what was chosen, what else there is, and why."""
        return explain_strategy(self)

    def dot(self) -> str:
        """Return the graph in Graphviz's language, each kernel framed."""
        return plan_dot(self)

    def svg(self) -> str:
        """Return the graph as SVG, each kernel in a frame with the reasons for its cuts."""
        return plan_svg(self)
