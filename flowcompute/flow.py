"""The verbs: plan, start, run, resolve. The one place where elements, plans and the runtime meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from flowcompute.elements import Element, VerbSlot, user_site
from flowcompute.engine import PlannedJob
from flowcompute.errors import PlanError, Site, SpecError
from flowcompute.event_loops import asyncio_loop, in_thread
from flowcompute.graph import build_graph, draw_svg, draw_tree, hash_of_elements
from flowcompute.html import folded, heading, lines_folded
from flowcompute.imports import LateModule, load_module, without_collector
from flowcompute.jobs import plan_job
from flowcompute.metrics import counted
from flowcompute.runtime.checkpoints import (
    CheckpointPolicy,
    Request,
    is_of_cluster,
    is_there,
    refuse_overwriting,
    refuse_unreadable,
    stored_shaping,
)
from flowcompute.runtime.flows import FlowOpener
from flowcompute.runtime.options import RunOptions, shows_options
from flowcompute.schedule.explain import Plan, describe_run
from flowcompute.sources import FeedSource
from flowcompute.strategy import (
    FlowOptions,
    PlanVerbOptions,
    RunVerbOptions,
    StartOptions,
    Strategy,
    TuneOptions,
    Tuning,
)

if TYPE_CHECKING:
    import asyncio

    from flowcompute.checkpoint.job import MovedWeights
    from flowcompute.runtime import run as runs
    from flowcompute.runtime import tuning
    from flowcompute.runtime.run import Run
else:
    # A flow needs neither.
    runs, tuning = LateModule("flowcompute.runtime.run"), LateModule("flowcompute.runtime.tuning")

_MOST_DRAWN = 300
"""Nodes of a graph that a notebook shows as a tree."""

_OF_CLUSTERS = frozenset({"cluster", "shards", "insecure", "mixed_devices", "resources"})


@shows_options(PlanVerbOptions)
def plan(*elements: Element, **options: Unpack[PlanVerbOptions]) -> Plan:
    """Return what would be done to resolve these elements in one reading, and why. Nothing runs.

    Args:
        elements: the roots; one that is no destination is kept in memory.
        memory: budget on the host: bytes, as a whole number or as text ("24MiB", "24MB", "0.5GiB", "100"). By default
            it is half of the memory that the machine, the process's control groups and `ulimit` let it have.
        device: "auto" (also None), "numpy", "cpu", "gpu", "gpu:1", or text that is part of exactly one device's name. A
            list of such names has the best first. Devices of one kind share the batches; of others the first computes
            all that it can, and what is left goes to the next. What `element.on()` pins is computed where it is pinned.
        device_memory: the budget on a discrete device, as `memory`; by default most of its memory. Resident
            operands (weights) that do not fit together are uploaded as kernels need them.
        strategy: knobs to pin.
        precision: "exact" keeps IEEE rounding of every operation. "fast" lets the compiler contract multiplications and
            additions. "tf32x3" lets tensor cores, where there are any, multiply matrices of float32 (attention, too) by
            three products of their parts. Such a product is good to about 2^-19 of the sum of |a| |b|, as by rounding
            sums in float32, but infinities give NaN.
        isolate: kernels run in a worker process. A text given to `fc.opencl` may crash, a loop in an `@fc.kernel` may
            never end. That is then an error of the run and no more. Results have the same bits; what kernels read and
            make is copied once each way. On Linux, and not with device="numpy".
        launch_timeout_s: with `isolate`, seconds after which a launch is ended with its process; by default any time.
        checkpoint: as for `fc.start`. The copies that a checkpoint takes are in the plan's bytes. Nothing is written.

    Raises:
        CheckpointError: if there is a checkpoint that cannot be used.
        PlanError: if the job cannot be run as asked.
        SpecError: if the graph is not sound.
        TypeError: if there is no such option.
    """
    _check_elements("plan", elements)
    return _planned(elements, RunOptions.parse("plan", options, PlanVerbOptions)).plan


@shows_options(StartOptions)
def start(*elements: Element, **options: Unpack[StartOptions]) -> Run:
    """Start to resolve these elements in the background, and return the running `Run`. In asyncio: `await run`.

    Args:
        elements: the roots, in one reading.
        name: what progress lines, `metrics_log` and `trace` call the run.
        progress: True shows a bar (plain lines without a terminal), False nothing; by default
            a bar on a terminal, and a line in a notebook.
        throttle: seconds to pause after each batch, to be polite to a shared disk.
        on_batch: called with the run, in a worker thread, after each batch.
        stall_timeout_s: seconds without any movement after which the run fails.
        checkpoint: a folder that keeps what the job has done. Where it is not there it appears just before the first
            batch. Where it is, the job goes on from it, and a job that is done gives its results at once. SIGTERM and
            Ctrl-C freeze the job then before they end the program.
        checkpoint_every: seconds, a size of what is read ("64MiB"), or "auto". That is as often as costs less than 1 %
            of the time, and not more often than every 10 s.
        accept_touched: a source that was touched since the checkpoint began is taken if its contents are the same. They
            are all bytes of files of up to 64 MiB, and 256 blocks of 256 KiB of larger ones.
        memory, device, device_memory, strategy, precision, isolate, launch_timeout_s: as for `plan`.
        tune: False takes the strategy that was kept for such a job, or the defaults, and tries
            nothing. True looks for a better one, while the job runs and after its end, in at most 2 % of its time. Of a
            job too short for 3 candidates the rest is measured after its end, with 3 s to confirm what they promise.
            "quick" may take 10 s for it, "full" two minutes. What is best is kept for the next run, whose search begins
            with it. `run.tuning` tells of it.
        metrics: False keeps only the counters of `run.metrics`: no history, no launches by element, no
            seconds on the device.
        metrics_port: serves `run.metrics` to Prometheus while the run lasts, on this machine only: a port, 0 for
            any free one (`run.metrics_port`). "0.0.0.0:9464" serves other machines too.
        page: a port of this machine, 0 for any free one, where a browser sees the run while it works. Its address
            is `run.page`, with a token. It needs `pip install "flowcompute[page]"`.
        metrics_log: a path to whose end, or a text file to which, a line of JSON is written each second and at the end.
        trace: a file for Perfetto or chrome://tracing: what each stage and the device did, written
            at the end, also of a run that fails.

    Raises:
        PlanError, SpecError: as `plan`.
        CheckpointError: if the checkpoint belongs to another job, or its sources have changed.
        RunError: in a trio task.
        TypeError: if there is no such option.
    """
    _check_elements("start", elements)
    loop = asyncio_loop()
    runs.refuse_in_trio_task("start a run")
    return _start(elements, RunOptions.parse("start", options, StartOptions), loop=loop, awaited=loop is not None)


def _start(
    elements: tuple[Element, ...],
    options: RunOptions,
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    awaited: bool = False,
) -> Run:
    return _prepared(elements, options, user_site())(loop=loop, awaited=awaited)


async def _start_awaited(elements: tuple[Element, ...], options: RunOptions) -> Run:
    """Plan in a thread, start in the task, whose thread may handle signals, and wait."""
    begin = await in_thread(_prepared, elements, options, user_site())
    return await begin(loop=asyncio_loop(), awaited=True)


def _planned(elements: tuple[Element, ...], options: RunOptions) -> PlannedJob:
    """Plan a job, with what its checkpoint keeps."""
    path = options.checkpoint_path
    made = plan_job(
        elements,
        options,
        resumable=path is not None,
        shaping=None if path is None else stored_shaping(path),
        searching=options.tune is not False,
    )
    if path is not None:
        refuse_unreadable(made.plan)
    return made


def _prepared(elements: tuple[Element, ...], options: RunOptions, site: Site | None) -> Callable[..., Run]:
    """Return what starts the run of a job that is planned here."""
    path = options.checkpoint_path
    policy = CheckpointPolicy.parse(options.checkpoint_every)
    request = Request(path, policy=policy, site=site, accept_touched=options.accept_touched)
    made = _planned(elements, options)
    _refuse_feeds(made.plan)
    if path is not None:
        refuse_overwriting(made.plan, path)
    if path is None or not is_there(path):
        # A job that goes on has room already for what it has written.
        runs.warn_of_full_disks(made.plan, site)
    return partial(
        runs.start,
        made,
        options,
        tuner=None if options.tune is False else tuning.Tuner(made, options.tune),
        draw=lambda run: describe_run(run.plan, run.progress, run.metrics, run.checkpoints, run.notes),
        aliases=made.plan.aliases,
        request=request,
    )


@shows_options(RunVerbOptions)
def run(*elements: Element, **options: Unpack[RunVerbOptions]) -> Any:
    """Resolve these elements, and return the finished `Run`. Options as for `start` and `plan`.

    Args:
        elements: the roots, in one reading.
        cluster: a `distributed.Client`: its workers compute the job in shards, to the same bits. The result is a
            `ClusterRun` with `values` and `shards`. It needs `pip install "flowcompute[cluster]"`. Without it a
            `checkpoint` of such a job goes on on this machine.
        shards: with `cluster`, the most shards of a stage; "auto", also by default, for four a worker.
        insecure: with `cluster`, allows a scheduler that other machines reach without TLS.
        mixed_devices: with `cluster`, allows workers with devices of another kind than the client's, whose bits differ.
        resources: with `cluster`, what a shard takes of a worker's resources, as {"GPU": 1}.

    Raises:
        FlowError: whatever went wrong.
        TypeError: if there is no such option.
    """
    _check_elements("run", elements)
    if options.get("cluster") is not None:
        return _in_shards(elements, options)
    for name in sorted(_OF_CLUSTERS & options.keys() - {"cluster"}):
        raise PlanError(f"cannot use {name}= without a cluster", element=name, hint="give cluster=client, too")
    options.pop("cluster", None)
    return _finished("run", elements, cast("StartOptions", options))


@shows_options(StartOptions)
def resolve(*elements: Element, **options: Unpack[StartOptions]) -> Any:
    """Return the values of these elements, read in one go: one value, or a tuple of several.

    Options and errors as for `run`.
    """
    _check_elements("resolve", elements)
    values = _finished("resolve", elements, options).values
    return values[0] if len(values) == 1 else values


def _finished(verb: str, elements: tuple[Element, ...], options: StartOptions) -> Any:
    """Return the finished run, also of a job that a cluster has begun."""
    if is_of_cluster(options.get("checkpoint")):
        return _in_shards(elements, options)
    return _start(elements, RunOptions.parse(verb, options, StartOptions)).wait()


def _in_shards(elements: tuple[Element, ...], options: Any) -> Any:
    # The room of clusters stands above this one.
    return load_module("flowcompute.distributed").run_on_cluster(elements, options)


@shows_options(StartOptions)
async def arun(*elements: Element, **options: Unpack[StartOptions]) -> Run:
    """Resolve these elements without blocking the event loop, in asyncio or trio, and return the finished `Run`.

    Planning is done in a thread. In asyncio, asynchronous iterables are read as tasks of the loop. Where the task is
    cancelled the run is stopped, and waited for until nothing of it is left. Options and errors as for `run`.
    """
    _check_elements("arun", elements)
    return await _start_awaited(elements, RunOptions.parse("arun", options, StartOptions))


@shows_options(StartOptions)
async def aresolve(*elements: Element, **options: Unpack[StartOptions]) -> Any:
    """Return the values of these elements without blocking the event loop: one value, or a tuple of several.

    Options and errors as for `arun`.
    """
    _check_elements("aresolve", elements)
    values = (await _start_awaited(elements, RunOptions.parse("aresolve", options, StartOptions))).values
    return values[0] if len(values) == 1 else values


@shows_options(TuneOptions)
def tune_ahead(*elements: Element, **options: Unpack[TuneOptions]) -> tuple[Strategy, Tuning]:
    """Find and keep a strategy for a job by rehearsals: its sources are read, its destinations see nothing.

    Args:
        elements: the roots.
        tune: "quick" may take 10 s, "full" two minutes.
        memory, device, device_memory, precision: as for `plan`.

    Returns:
        The strategy, complete, and how it was found.

    Raises:
        PlanError, SpecError: as `plan`; PlanError also for a job that cannot be run twice.
        TypeError: if there is no such option.
    """
    _check_elements("tune_ahead", elements)
    asked = RunOptions.parse("tune_ahead", {"tune": "full", **options}, TuneOptions)
    made = plan_job(elements, asked, searching=True)
    _refuse_feeds(made.plan)
    why_not = tuning.why_not_rehearsed(made.plan)
    if why_not is not None:
        raise PlanError(f"cannot run the job ahead of time: {why_not}", element="tune", hint="run it with tune=True")
    return tuning.Tuner(made, asked.tune).finish(lambda: False)


@shows_options(FlowOptions)
def open_flow(*elements: Element, **options: Unpack[FlowOptions]) -> FlowOpener:
    """Plan a persistent flow, which is opened once by `with` or `async with`, then fed by hand.

    Args:
        elements: what is to be computed of `fc.feed` sources.
        mode: what `resolve` answers for: what came since it was last asked ("reset", which begins
            all state anew) or everything that ever came ("cumulative").
        memory, device, device_memory, strategy, precision, isolate, launch_timeout_s: as for `plan`.
        checkpoint: where `flow.freeze()` keeps what the flow holds; a flow that is opened where there is one goes on
            from it. `flow.sent` says with which record.
        metrics, metrics_port, metrics_log, trace: as for `start`, from when the flow is opened until it is closed.

    Raises:
        PlanError: if a source is no feed, or the job needs several passes.
        TypeError: if there is no such option.
    """
    return open_moved_flow(elements, options)


def open_moved_flow(
    elements: tuple[Element, ...], options: Mapping[str, Any], moved: MovedWeights | None = None
) -> FlowOpener:
    """Plan a persistent flow as `open_flow`, some of whose weights lie elsewhere than its checkpoint says."""
    _check_elements("open_flow", elements)
    asked = RunOptions.parse("open_flow", options, FlowOptions)
    path = asked.checkpoint_path
    made = plan_job(elements, asked, by_hand=True, shaping=None if path is None else stored_shaping(path))
    return FlowOpener(made, asked.mode, path, asked.observe, moved)


@without_collector
def structural_hash_of(*elements: Element) -> str:
    """Return the structural hash of the merged graph of these elements."""
    return hash_of_elements(elements)


@without_collector
def draw(*elements: Element) -> str:
    """Return the lazy graph as text."""
    return draw_tree(build_graph(elements), note="unresolved")


@without_collector
def html_of(element: Element) -> str:
    """Return the lazy graph of an element as a notebook shows it; of a large one only how large it is."""
    graph = build_graph([element])
    told = f"{element.spec}, {counted(len(graph.nodes), 'operation')}, unresolved"
    if len(graph.nodes) > _MOST_DRAWN:
        return heading(element.name or element.base_name, f"{told}; too many to draw: see .plan().svg()")
    drawn = folded("picture", draw_svg(graph))
    return heading(element.name or element.base_name, told) + lines_folded("graph", draw_tree(graph)) + drawn


def _check_elements(verb: str, elements: tuple[object, ...]) -> None:
    """Refuse what is no element.

    Raises:
        SpecError: naming the verb.
    """
    if not elements:
        raise SpecError(
            "cannot be called with nothing", element=verb, site=user_site(), expected="at least one element"
        )
    for element in elements:
        if isinstance(element, Element):
            continue
        hint = "fc.constant makes one of a value"
        if isinstance(element, np.ndarray):
            hint = "fc.source(array) makes a stream of an array, fc.constant(array) a resident value"
        elif isinstance(element, list | tuple) and any(isinstance(one, Element) for one in element):
            hint = f"give them one by one: fc.{verb}(a, b), or of a list fc.{verb}(*elements)"
        elif isinstance(element, Mapping):  # a dict, or what fit and weights return
            name = next(iter(element), "w")
            hint = f"give one by its name: fc.{verb}(values[{name!r}]), or all: fc.{verb}(*values.values())"
        elif isinstance(element, str | os.PathLike):
            hint = "fc.open(path) makes a stream of a file"
        raise SpecError(
            "cannot take what is no element",
            element=verb,
            site=user_site(),
            expected="elements",
            got=type(element).__name__,
            hint=hint,
        )


def _refuse_feeds(made: Plan) -> None:
    for source in (source for one in made.passes for source in one.sources):
        if isinstance(source.element, FeedSource):
            raise PlanError(
                "cannot run a feed: it has no data of its own",
                element=source.name,
                site=source.element.site,
                hint="open a flow and send: with element.flow() as flow: flow.send(array)",
            )


Element.verbs = VerbSlot(
    resolve=resolve,
    run=run,
    plan=plan,
    start=start,
    aresolve=aresolve,
    arun=arun,
    flow=open_flow,
    draw=draw,
    html=html_of,
    hash=structural_hash_of,
)
for _verb, _known in (
    (Element.resolve, StartOptions),
    (Element.run, StartOptions),
    (Element.start, StartOptions),
    (Element.aresolve, StartOptions),
    (Element.arun, StartOptions),
    (Element.plan, PlanVerbOptions),
    (Element.flow, FlowOptions),
):
    shows_options(_known, method=True)(_verb)
