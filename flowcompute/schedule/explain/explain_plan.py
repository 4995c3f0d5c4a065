"""Text and pictures of plans and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowcompute.elements import Compute, Destination
from flowcompute.fuse import Region
from flowcompute.graph import draw_dot, draw_svg, draw_tree, elided, names_of
from flowcompute.metrics import Checkpoints, Progress, counted
from flowcompute.schedule.explain.expected_times import expectations
from flowcompute.schedule.steps import NodeStep, RegionStep
from flowcompute.spec import format_shape

if TYPE_CHECKING:
    from flowcompute.rewrite import Entry
    from flowcompute.schedule.plan import ExecutionPlan, Pass, SinkStage, SourceStage


_TITLE_NAMES = 8
"""Names in the title of a kernel."""

_MOST_LINES, _MOST_NAMES = 100, 40
"""Lines of one kind in the text of a plan, and names of the operations of one kernel."""

_LONG_BUILD_S = 0.5
"""Seconds of building kernels that the text of a run mentions, if they are also a tenth of its time."""


def kernel_groups(plan: ExecutionPlan) -> dict[str, tuple[int, ...]]:
    """Group the nodes of a plan by the kernel that computes them, which is named with what it computes."""
    groups: dict[str, tuple[int, ...]] = {}
    for step in (step for step in plan.steps if isinstance(step, RegionStep)):
        names = names_of([plan.graph.nodes[i] for i in step.region.nodes])
        more = f" and {len(names) - _TITLE_NAMES} more" if len(names) > _TITLE_NAMES else ""
        name = base = f"{step.kernel.name if step.kernel else 'numpy'}: {' '.join(names[:_TITLE_NAMES])}{more}"
        while name in groups:
            name = f"{base} again" if name == base else f"{name} again"
        groups[name] = step.region.nodes
    return groups


def describe_plan(plan: ExecutionPlan) -> str:
    """Describe a plan in a page of text. Of many lines of one kind those in the middle are left out."""
    lines = [f"plan on {plan.backend.capabilities.name} ({plan.backend.capabilities.reason})"]
    places = plan.places
    for number, one in enumerate(plan.passes):
        length = "unknown records" if one.length is None else counted(one.length, "record")
        lines.append(f"pass {number + 1} of {len(plan.passes)}: {length}")
        lines += [f"  read   {_titled(source)}: {source.spec}{_at(places, source.name)}" for source in one.sources]
        lines += elided([f"  before {_step(plan, step, places)}" for step in one.before], _MOST_LINES)
        for clock in one.clocks:
            lines += elided([f"  enter  {_entry(plan, entry)}" for entry in clock.entries], _MOST_LINES)
            lines += elided([f"  batch  {_step(plan, step, places)}" for step in clock.steps], _MOST_LINES)
        lines += elided([f"  after  {_step(plan, step, places)}" for step in one.after], _MOST_LINES)
        lines += [
            f"  write  {_titled(sink)}: {sink.spec}{_promise(plan, sink)}{_at(places, sink.name)}" for sink in one.sinks
        ]
    batches = " and ".join(f"{one.batch_items:,}" for one in plan.passes)
    lines.append(f"batch of {batches} records, depth {plan.depth}, strategy: {plan.strategy}")
    memory = plan.memory
    lines.append(f"memory {format_bytes(memory.host_bytes)} of {format_bytes(memory.budget_bytes)} on the host")
    lines += elided([f"  {format_bytes(size):>10}  {what}" for what, size in memory.items], _MOST_LINES)
    if memory.device_bytes:
        lines.append(f"       and {format_bytes(memory.device_bytes)} on the device")
        lines += elided([f"  {format_bytes(size):>10}  {what}" for what, size in memory.device_items], _MOST_LINES)
    expected = expectations(plan)
    if expected:
        lines.append(f"expects {max(one.seconds for one in expected):.2f} s or more, at the rates measured here")
        lines += elided([f"  {one}" for one in expected], _MOST_LINES)
    known = plan.backend.capabilities.reason  # which the first line says
    lines += elided([f"{reason}" for reason in plan.reasons if reason.text != known], _MOST_LINES)
    return "\n".join(lines)


def _titled(stage: SourceStage | SinkStage) -> str:
    """Return the name of a stage with its file."""
    origin = stage.element.origin
    return f"{stage.name} {origin}" if origin else stage.name


def _promise(plan: ExecutionPlan, sink: SinkStage) -> str:
    """Return how often each record is written if the job is killed and resumed.

    The text is empty for jobs that are not resumable and for temporary files of the run, which belong to no root.
    """
    said = plan.config.resumable and sink.root != sink.NO_ROOT
    return f", {sink.element.promise}" if said else ""


def _entry(plan: ExecutionPlan, entry: Entry) -> str:
    nodes = plan.graph.nodes
    names = ", ".join(nodes[i].name for _, i in entry.inputs)
    return f"{names} as it is" if entry.node is None else f"{entry.node.name} of {names}"


def _step(plan: ExecutionPlan, step: RegionStep | NodeStep, places: Mapping[str, str]) -> str:
    nodes = plan.graph.nodes
    if isinstance(step, NodeStep):
        where = " on the device" if step.on_device else ""
        return f"{step.node.kind.value if step.node.kind else 'node'} {step.name}{where}{_at(places, step.name)}"
    names = " ".join(elided(names_of([nodes[i] for i in step.region.nodes]), _MOST_NAMES))
    weight_tiles = "" if step.region.weight_tiles is None else f" in {step.region.weight_tiles.count} tiles"
    kind = "region" if step.kernel is None else f"kernel {step.kernel.name} ({step.kernel.work}{weight_tiles})"
    placements = plan.backend.placements
    where = f" on {placements[step.placement].capabilities.name}" if len(placements) > 1 else ""
    return f"{kind}{where}: {names}{_at(places, step.name)}"


def _at(places: Mapping[str, str], stage: str) -> str:
    """Return the user's lines of a stage, as the end of a line."""
    place = places.get(stage, "")
    return f"  {place}" if place else ""


def format_bytes(size: int) -> str:
    """Return a size in the unit that suits it: "1.5 MiB"."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def describe_run(
    plan: ExecutionPlan, progress: Progress, metrics: Mapping[str, Any], kept: Checkpoints, said: Sequence[str] = ()
) -> str:
    """Describe a run during or after it: its graph, with the progress of each element."""
    ended = "resolved" if progress.items == progress.total_items else "stopped"
    state = ended if progress.done else "running"
    notes: dict[str, str] = {}
    for node in plan.graph.nodes:
        if not isinstance(node.element, Compute | Destination) and not node.spec.is_stream:
            continue
        row = metrics.get(node.name)
        if row is None or not node.spec.is_stream:
            notes[node.name] = state if isinstance(node.element, Compute | Destination) else ""
        else:
            notes[node.name] = f"{state}, {row.told('item')}, busy {row.busy_s:.3f} s"
    dropped = f", {progress.skipped} skipped" if progress.skipped else ""
    build_s = sum(row.compile_s for row in metrics.values())
    built = f", {build_s:.1f} s to build kernels" if build_s >= max(_LONG_BUILD_S, progress.seconds / 10) else ""
    total = f"{progress.records} in {progress.seconds:.3f} s{built}{dropped}"
    saved = f"\n{kept}" if kept.count else ""
    unplanned = "".join(f"\n{line}" for line in said)
    return f"{total}{saved}{unplanned}\n{draw_tree(plan.graph, notes=notes)}"


def plan_dot(plan: ExecutionPlan) -> str:
    """Draw a plan's graph in Graphviz's language, with a frame around each kernel."""
    return draw_dot(plan.graph, kernel_groups(plan))


def plan_svg(plan: ExecutionPlan, shares: Mapping[str, float] | None = None) -> str:
    """Draw a plan's graph as SVG, with a frame around each kernel and the reasons for its boundaries.

    Args:
        plan: the plan.
        shares: by stage name, its share of the work from 0 to 1, if it is to be shown.
    """
    said: dict[str, list[str]] = {}
    for reason in plan.reasons:
        if reason.kind == "cut":
            said.setdefault(reason.element, []).append(str(reason))
    runs = [run for number, one in enumerate(plan.passes, 1) for run in _runs(one, f"pass {number}")]
    coloured, places = dict(shares or {}), plan.places
    notes: dict[str, list[str]] = {}
    for name, (when, region) in zip(kernel_groups(plan), runs, strict=True):
        boundaries = [text for i in region.nodes for text in said.get(plan.graph.nodes[i].name, ())]
        notes[name] = [f"{when}: {_domain(region)}", *filter(None, [places.get(region.name)]), *boundaries]
        if shares is not None and region.name in shares:
            notes[name].insert(0, f"{region.name}: {shares[region.name]:.0%} of the work")
            coloured[name] = shares[region.name]
    return draw_svg(plan.graph, kernel_groups(plan), notes, None if shares is None else coloured)


def _runs(one: Pass, name: str) -> list[tuple[str, Region]]:
    """Return when each region of a pass runs, in the order of `Plan.steps`."""
    parts = ((f"before {name}", one.before), (f"{name}, each batch", one.steps), (f"after {name}", one.after))
    return [(when, step.region) for when, steps in parts for step in steps if isinstance(step, RegionStep)]


def _domain(region: Region) -> str:
    """Describe the iteration domain of a region."""
    axes = " and ".join(str(axis) for axis in sorted(region.reduced))
    reduced = f", reduced along axis {axes}" if axes else ""
    return f"{'items' if region.stream else 'values'} {format_shape(region.domain)}{reduced}"
