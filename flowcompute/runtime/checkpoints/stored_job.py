"""Job that a checkpoint belongs to, and whether a plan is that job."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.elements import warn_at
from flowcompute.errors import CheckpointError, CheckpointWarning, FlowError, PlanError, Site, short_repr
from flowcompute.files import FILES, Files, shown
from flowcompute.imports import LateModule
from flowcompute.ir import ORDER_VERSION
from flowcompute.schedule import Shaping, files_of, letter_paths
from flowcompute.schedule.explain import Plan
from flowcompute.strategy import Mode

if TYPE_CHECKING:
    from flowcompute.checkpoint import job as jobs
    from flowcompute.checkpoint import store
else:
    jobs = LateModule("flowcompute.checkpoint.job")
    store = LateModule("flowcompute.checkpoint.store")

_BELOW = "\n" + " " * 12
"""Separator that brings the next line of an error below the one before."""


def refuse_unreadable(plan: Plan) -> None:
    """Refuse a plan whose sources cannot be read from a later record on.

    Raises:
        PlanError: naming the source.
    """
    for source in (source for one in plan.passes for source in one.sources):
        if not source.element.rereadable:
            raise PlanError(
                "cannot resume a job whose source can be read only once",
                element=source.name,
                site=source.element.site,
                expected="a source that can be read again from any record, like a file or an array",
                got=type(source.element).__name__,
                hint="write it to a file first, or give an object whose iter() begins anew",
            )


@contextmanager
def sound_state(path: str | None) -> Iterator[None]:
    """Whatever a state cannot be restored for is told as an error of the checkpoint: its bytes came from outside.

    Raises:
        CheckpointError: in place of what comes of a state that this job never had.
    """
    try:
        yield
    except FlowError:
        raise
    except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"cannot go on: the state in {shown(path or 'the checkpoint')} is not one that this job can have",
            got=f"{type(error).__name__}: {error}",
            hint=jobs.UNSOUND,
        ) from error


def check_alike(begun: Any, state: Any) -> None:
    """Compare a stored state with one at the beginning: the same names, and numbers and arrays of the same kind.

    Raises:
        ValueError: naming what is something else.
    """
    if isinstance(begun, dict):
        if not isinstance(state, dict) or state.keys() != begun.keys():
            raise ValueError(f"other parts than {', '.join(map(str, begun))}")
        for key, value in begun.items():
            try:
                check_alike(value, state[key])
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
    elif isinstance(begun, np.ndarray):
        if not isinstance(state, np.ndarray) or state.dtype != begun.dtype or state.ndim != begun.ndim:
            raise ValueError(f"no array of {begun.dtype} with {begun.ndim} axes")
    elif isinstance(begun, bool | int | float | str):
        negative = isinstance(state, int) and isinstance(begun, int) and state < min(begun, 0)
        if type(state) is not type(begun) or negative:
            raise ValueError(f"{state!r} in place of {type(begun).__name__}")
    elif isinstance(begun, list | tuple) and not isinstance(state, list | tuple):
        raise ValueError("no list")
    elif begun is None and not (state is None or isinstance(state, np.ndarray | list | tuple | int | float)):
        raise ValueError(f"a {type(state).__name__}")


def refuse_overwriting(plan: Plan, checkpoint: str) -> None:
    """Refuse a plan that replaces a file that it reads, or writes where its checkpoint is.

    Args:
        plan: what runs.
        checkpoint: the path of its checkpoint.

    Raises:
        PlanError: naming the destination.
    """
    files = [(node, path, does) for node in plan.asked.nodes for path, does in files_of(node.element)]
    read = {path for _, path, does in files if does == "reads"}
    inside = os.path.join(os.path.realpath(checkpoint), "")
    written = [(node, path) for node, path, does in files if does == "writes"]
    for node, path in (*written, *letter_paths(plan.asked)):
        if path in read:
            # Nobody could tell then whether the job is still the same.
            raise PlanError(
                "cannot replace a file that the job reads: a job with a checkpoint must find its sources unchanged",
                element=node.name,
                site=node.element.site,
                got=shown(path),
                hint="write to another file, or leave checkpoint= out",
            )
        if os.path.join(path, "").startswith(inside):
            raise PlanError(
                "cannot write where the checkpoint of the job is",
                element=node.name,
                site=node.element.site,
                expected="a file outside of the folder of the checkpoint",
                got=shown(path),
                hint="choose another path for one of them",
            )


def checkpoint_path(path: object) -> str:
    """`checkpoint=` as an absolute path.

    Raises:
        PlanError: if it is no path.
    """
    try:
        return store.absolute_path(path)  # type: ignore[arg-type]
    except CheckpointError:
        raise PlanError(
            "cannot use this value", element="checkpoint", expected="the path of a folder", got=short_repr(path)
        ) from None


def freezing_path(own: str | None, path: str | os.PathLike[str] | None, what: str) -> str:
    """Return where a run or a flow that is to be frozen now puts its checkpoint.

    Args:
        own: where it keeps one already; None for nowhere.
        path: as asked for; None for there.
        what: "run" or "flow".

    Raises:
        CheckpointError: if that is nowhere, or elsewhere, or no path.
    """
    if path is None:
        if own is None:
            raise CheckpointError(
                f"cannot freeze: the {what} has no checkpoint of its own", hint=f"say where: {what}.freeze(path)"
            )
        return own
    target = store.absolute_path(path)
    if own is not None and target != own:
        raise CheckpointError(
            f"cannot freeze there: the {what} keeps its checkpoint elsewhere",
            expected=shown(own),
            got=shown(target),
            hint=f"{what}.freeze() without a path",
        )
    return target


def is_there(path: str) -> bool:
    """Check whether a checkpoint is at a path."""
    return store.CheckpointFolder.exists(path, FILES)


def is_of_cluster(path: object) -> bool:
    """Check whether a job of a cluster is kept at a path; False for None, and for what is no path."""
    return path is not None and store.keeps_cluster_job(path)


def stored_shaping(path: str) -> Shaping | None:
    """Return the decisions that the state in a checkpoint depends on; None where there is no checkpoint.

    Raises:
        CheckpointError: if it cannot be used.
    """
    if not is_there(path):
        return None
    with store.CheckpointFolder.peek(path, FILES) as folder:
        return jobs.KeptJob.read(folder.job()).shaping


def draft_token(path: str) -> str:
    """Return the token that names the drafts of the job in a checkpoint.

    It follows from the checkpoint's path, so that the next attempt finds those of one that was killed early.
    """
    return hashlib.sha256(os.path.abspath(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def create_folder(path: str, files: Files, plan: Plan, flow: Mode | None = None) -> tuple[store.CheckpointFolder, str]:
    """Create a checkpoint for a plan; return it, and the token that names its drafts.

    Args:
        path: of the checkpoint.
        files: the file layer.
        plan: what runs.
        flow: the mode of a flow; None for a run.

    Raises:
        CheckpointError: if there can be none, or the job cannot be kept.
    """
    folder = store.CheckpointFolder.create(path, files)
    try:
        token = draft_token(path)
        graph, capabilities = jobs.describe_job(plan.asked, folder.put_blob, contents=True), plan.backend.capabilities
        job = jobs.KeptJob(token, graph, ORDER_VERSION, capabilities.kind, plan.config.precision, plan.shaping, flow)
        folder.set_job(job.plain())
    except BaseException:
        folder.close()
        raise
    return folder, token


def check_job(
    job: jobs.KeptJob,
    plan: Plan,
    path: str,
    site: Site | None,
    flow: Mode | None = None,
    *,
    accept_touched: bool = False,
) -> None:
    """Refuse a checkpoint of another job, of changed sources, or of another order of reductions.

    Args:
        job: as it was kept.
        plan: what runs.
        path: of the checkpoint.
        site: the user's line that runs it, for the warning that it was made on another kind of device.
        flow: the mode of a flow; None for a run.
        accept_touched: whether a source that was touched is the same if its contents are.

    Raises:
        CheckpointError: with one line for each difference.
    """
    now = jobs.describe_job(plan.asked, lambda array: store.blob_of(array)[0])
    found = jobs.differences(job.graph, now, states=False)
    if job.precision != plan.config.precision:
        found.append(f"precision was {job.precision!r} and is {plan.config.precision!r}")
    if job.order != ORDER_VERSION:
        found.append(f"the order of reductions was version {job.order} and is version {ORDER_VERSION}")
    if job.flow != flow:
        modes = [f"a flow in {mode!r} mode" if mode else "a run" for mode in (job.flow, flow)]
        found.append(f"it was {modes[0]} and is {modes[1]}")
    changed = jobs.check_sources(job.graph, accept_touched=accept_touched)
    found += changed
    if found:
        # As it was it can go on only where data and order of reductions are what they were.
        thawed = "" if changed or job.order != ORDER_VERSION else "go on with the job as it was by fc.thaw, "
        raise CheckpointError(
            f"cannot go on: the checkpoint {shown(path)} belongs to a job that is not this one any more",
            expected="the job as it was frozen, on the same data",
            got=_BELOW.join(found),
            hint=f"undo the change, {thawed}or begin anew with another checkpoint=",
        )
    kind = plan.backend.capabilities.kind
    if job.kind != kind:
        warn_at(
            site,
            f"the checkpoint {shown(path)} was made on {job.kind} and goes on on {kind}: results are those of "
            "either within the stated error bounds, not to the last bit",
            CheckpointWarning,
        )
