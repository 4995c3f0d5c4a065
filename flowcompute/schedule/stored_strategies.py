"""Stored strategies of jobs and stored knobs of kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from flowcompute.elements import Source
from flowcompute.errors import PlanError
from flowcompute.graph import Graph, structural_hash
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.schedule.explain import Plan
from flowcompute.strategy import Config, KernelKnobs, Key, Pace, Stored, Strategy, StrategyStore, Tuning


def job_key(asked: Graph, config: Config, capabilities: DeviceCapabilities) -> Key:
    """Return the key of a job's strategy: its structure, the device, and stream lengths in powers of two."""
    sources = [node.spec for node in asked.nodes if isinstance(node.element, Source) and node.spec.is_stream]
    lengths = [spec.length for spec in sources]
    sizes = ["unknown" if length is None else f"2^{max(length - 1, 0).bit_length()}" for length in lengths]
    size = f"{' and '.join(dict.fromkeys(sizes)) or 'no'} records, {config.precision}"
    return Key("job", structural_hash(asked), capabilities.kind, size)


def kernel_key(plan: Plan, kernel: Kernel) -> Key:
    """Return the key of a kernel's knobs: a hash of its default text, so that equal regions share them."""
    text = plan.backend.source_text(replace(kernel, name="kernel"))
    options = f"{kernel.contract}"
    digest = hashlib.blake2b(f"{options}\0{text}".encode(), digest_size=16).hexdigest()
    return Key("kernel", digest, plan.backend.capabilities.kind, "any batch")


def stored_job(plan: Plan, store: StrategyStore) -> Stored | None:
    """Load the strategy that is stored for the job of a plan, or None."""
    return store.load(job_key(plan.asked, plan.config, plan.backend.capabilities))


def stored_kernels(plan: Plan, store: StrategyStore) -> dict[str, KernelKnobs]:
    """Load the knobs stored for kernels of a default plan, by kernel name."""
    if not store.has_kernels():
        return {}
    found = {}
    for kernel in (kernel for one in plan.passes for kernel in one.kernels if kernel.knobs.plain()):
        stored = store.load(kernel_key(plan, kernel))
        if stored is not None:
            found[kernel.name] = KernelKnobs().over(stored.strategy)
    return found


def note_pace(plan: Plan, pace: Pace | None) -> float | None:
    """Compare the pace of a run of a stored strategy with that of the first such run, and store the drift.

    Returns:
        The ratio of the times per record if they differ by more than noise, otherwise None.
    """
    if pace is None or plan.tuning.origin != "stored" or plan.pinned != Strategy():
        return None
    store = StrategyStore()
    job = stored_job(plan, store)
    if job is None:
        return None
    drift = None if job.pace is None else job.pace.drift(pace)
    if job.pace is None or drift != job.drift:
        store.save(replace(job, pace=job.pace or pace, drift=drift))
    return drift


def chosen_plan(make: Callable[[Strategy], Plan], pinned: Strategy, *, stored: bool, searching: bool = False) -> Plan:
    """Make a plan with the knobs that the user pins, and stored knobs for the others.

    Args:
        make: makes a plan with a strategy.
        pinned: the user's knobs.
        stored: whether to look for a stored strategy.
        searching: whether a search for better knobs follows. A stored strategy that has drifted is not used then.
    """
    plan = replace(make(pinned), pinned=pinned)
    store = StrategyStore.existing() if stored else None
    if store is None:
        return plan
    job = stored_job(plan, store)
    kernels = stored_kernels(plan, store) if job is None else {}
    if job is None and not kernels:
        return plan
    if job is not None and job.drift is not None and searching:
        note = (
            f"the stored strategy is searched for again: records took {job.drift:.2f} times as long as when it was new"
        )
        return replace(plan, tuning=Tuning(notes=(note,)))
    chosen = pinned.with_defaults(Strategy(kernels=kernels) if job is None else job.strategy)
    try:
        again = make(chosen)
    except PlanError as error:
        note = f"the stored strategy does not fit here: {error.message}"
        return replace(plan, tuning=Tuning(notes=(note,)))
    notes = (f"knobs of {', '.join(kernels)} are those of equal kernels in other jobs",) if job is None else ()
    tried = () if job is None else job.tuning.tried
    gain = 0.0 if job is None else job.tuning.gain
    roofs = () if job is None else job.tuning.rooflines
    return replace(again, pinned=pinned, tuning=Tuning("stored", 0, 0.0, gain, tried, notes, roofs))


def keep(plan: Plan, strategy: Strategy, stored_as: Stored, default: Plan) -> None:
    """Store a job's strategy, and the knobs of the kernels that differ from `default`."""
    store = StrategyStore()
    store.save(stored_as)
    before = {kernel.name: kernel for one in default.passes for kernel in one.kernels}
    for name, knobs in strategy.by_kernel().items():
        if name in before and knobs != before[name].knobs:
            tried = tuple(trial for trial in stored_as.tuning.tried if trial.where == name)
            gain = max([trial.gain for trial in tried if trial.outcome == "kept"], default=0.0)
            tuning = replace(stored_as.tuning, tried=tried, trials=len(tried), gain=gain, rooflines=(), notes=())
            about = f"{before[name].family}: {before[name].region}"
            own = Strategy(**knobs.plain())
            store.save(Stored(kernel_key(plan, before[name]), about, own, tuning, stored_as.when))
