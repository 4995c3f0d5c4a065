"""Jobs that were frozen, and go on without the program that made them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from flowcompute.checkpoint.job import KeptJob, MovedWeights, read_progress, rebuild_job, weight_paths
from flowcompute.checkpoint.store import CheckpointFolder, absolute_path
from flowcompute.distributed import ClusterRun, is_done, kept_graph, kept_items, kept_options, read_job, run_on_cluster
from flowcompute.elements import Element
from flowcompute.errors import CheckpointError
from flowcompute.files import is_url, path_text
from flowcompute.flow import open_moved_flow, start
from flowcompute.metrics import Progress
from flowcompute.models import Conversations, TextGeneration, go_on, go_on_together
from flowcompute.runtime.flows import FlowOpener
from flowcompute.runtime.options import check_names, shows_options
from flowcompute.runtime.run import Run
from flowcompute.strategy import FlowOptions, StartOptions, ThawFlowOptions, ThawOptions


def thaw(
    path: str | os.PathLike[str],
    *,
    bind: Mapping[str, object] | None = None,
    allow: Sequence[str | os.PathLike[str]] = (),
) -> Frozen | FrozenShards:
    """Return the job in a checkpoint, to go on with it in any process, without the program that made it.

    Args:
        path: the checkpoint.
        bind: what is never written into a checkpoint, by the name of its element. That is functions of `fc.host`,
            `fc.scan` and `fc.callback`, iterables, OpenCL C, and arrays of more than 64 MiB.
        allow: folders whose files the job may replace. Without it, it writes only new files, none of which is hidden,
            and goes on with those that it has begun here. Who made the checkpoint has named them.

    Raises:
        CheckpointError: if there is no checkpoint that can be used.
    """
    if not isinstance(bind, Mapping | None):
        raise CheckpointError(
            "cannot use bind=",
            expected="a dict by the names of elements",
            got=type(bind).__name__,
            hint='as bind={"name": function}',
        )
    where = absolute_path(path)
    if read_job(where) is not None:
        return FrozenShards(where, dict(bind or {}), _folders(allow))
    return Frozen(where, dict(bind or {}), _folders(allow))


def _folders(allow: object) -> tuple[str, ...]:
    """Return the absolute paths of the folders in `allow=`."""
    try:
        if isinstance(allow, str | bytes) or not isinstance(allow, Iterable):
            raise ValueError
        return tuple(str(one) if is_url(one) else os.path.abspath(path_text(one)) for one in allow)
    except ValueError:
        raise CheckpointError(
            "cannot use this value of allow=", expected="a list of folders", got=repr(allow), hint="as allow=[folder]"
        ) from None


class Frozen:
    """A job as its checkpoint holds it. Made by `thaw`; looking at it changes nothing.

    Attributes:
        path: of the checkpoint.
        progress: how far the job was.
        done: whether it had ended, so that its results are there.
        number: of the checkpoint: how many have been taken before it.
        extra: what was kept beside a flow by `freeze(extra=)`, or None. Whoever made the checkpoint wrote it.
        created: when it was taken, in seconds since 1970 by the clock of that machine.
    """

    def __init__(self, path: str, bind: dict[str, object], allow: tuple[str, ...] = ()) -> None:
        self.path = path
        self._bind = bind
        self._allow = allow
        with CheckpointFolder.peek(path) as folder:
            generation = folder.look()
            self._job = KeptJob.read(folder.job())
        self.number, self.created = generation.number, generation.created
        self.progress = read_progress(generation.body)
        self.extra = generation.body.get("extra")
        self.done = self.progress.done

    def elements(self, *, accept_touched: bool = False) -> list[Element]:
        """Return the job's roots, made anew from the checkpoint.

        Args:
            accept_touched: as for `fc.start`.

        Raises:
            CheckpointError: if something has to be bound, or a source is not what it was.
        """
        return self._rebuilt(done=False, accept_touched=accept_touched)

    def _rebuilt(self, *, done: bool, accept_touched: bool, moved: MovedWeights | None = None) -> list[Element]:
        with CheckpointFolder.peek(self.path) as folder:
            return rebuild_job(
                self._job.graph if moved is None else moved.placed(self._job.graph),
                folder.get_blob,
                self._bind,
                done=done,
                allow=self._allow,
                accept_touched=accept_touched,
            )

    @shows_options(ThawOptions, method=True)
    def start(self, **options: Unpack[ThawOptions]) -> Run:
        """Go on in the background, and return the running `Run`. A job that is done has its values, whatever is bound.

        Args:
            options: as for `fc.start`, but for `checkpoint` and `precision`, which are kept.

        Raises:
            CheckpointError: if the job cannot go on.
            FlowError, TypeError: as `fc.start`.
        """
        return self._start("start", options)

    def _start(self, verb: str, options: Mapping[str, Any]) -> Run:
        if self._job.flow is not None:
            raise CheckpointError(
                "cannot run this: a flow was frozen, which has no data of its own",
                hint="with frozen.flow() as flow: ...",
            )
        _refuse(options, "checkpoint", "precision")
        check_names(verb, options, StartOptions)
        touched = options.get("accept_touched") is True
        return start(
            *self._rebuilt(done=self.done, accept_touched=touched),
            checkpoint=self.path,
            precision=self._job.precision,
            **options,
        )

    @shows_options(ThawOptions, method=True)
    def run(self, **options: Unpack[ThawOptions]) -> Run:
        """Go on to the end, and return the finished `Run`. Options and errors as for `start`."""
        return self._start("run", options).wait()

    @shows_options(ThawOptions, method=True)
    def resolve(self, **options: Unpack[ThawOptions]) -> Any:
        """Go on to the end, and return the values as `fc.resolve` of the job would: one value, or a tuple.

        Options and errors as for `start`.
        """
        values = self._start("resolve", options).wait().values
        return values[0] if len(values) == 1 else values

    @shows_options(ThawFlowOptions, method=True)
    def flow(self, **options: Unpack[ThawFlowOptions]) -> FlowOpener:
        """Open the frozen flow again, by `with` or `async with`.

        Args:
            options: as for `fc.open_flow`, but for `checkpoint`, `precision` and `mode`, which are kept.

        Raises:
            CheckpointError: if a run was frozen, or it cannot go on.
        """
        return self._flow(options)

    def _flow(self, options: Mapping[str, Any], moved: MovedWeights | None = None) -> FlowOpener:
        """Open the frozen flow again, whose weights may have been moved."""
        if self._job.flow is None:
            raise CheckpointError("cannot open a flow: a run was frozen, not a flow", hint="call .resolve()")
        _refuse(options, "checkpoint", "precision", "mode")
        check_names("flow", options, FlowOptions)
        elements = tuple(self._rebuilt(done=False, accept_touched=False, moved=moved))
        kept = {"mode": self._job.flow, "precision": self._job.precision, "checkpoint": self.path}
        return open_moved_flow(elements, {**options, **kept}, moved)

    def generation(
        self, *, model: str | os.PathLike[str] | None = None, **options: Unpack[ThawFlowOptions]
    ) -> TextGeneration:
        """Go on with an answer that a language model was writing: `with frozen.generation() as said: ...`.

        Args:
            model: where the file of the model is now; None for where it was. A file with other contents is refused.
            options: as for `flow`.

        Raises:
            CheckpointError: if none was frozen, or the model is not there, or is another one.
        """
        return go_on(self.extra, lambda path: self._flow(options, self._moved(path, model)), model)

    def conversations(
        self, *, model: str | os.PathLike[str] | None = None, **options: Unpack[ThawFlowOptions]
    ) -> Conversations:
        """Go on with the conversations of a language model: `with frozen.conversations() as talks: ...`.

        Args:
            model: where the file of the model is now; None for where it was. A file with other contents is refused.
            options: as for `flow`.

        Raises:
            CheckpointError: if none were frozen, or the model is not there, or is another one.
        """
        return go_on_together(self.extra, lambda path: self._flow(options, self._moved(path, model)), model)

    def _moved(self, path: str, model: object) -> MovedWeights | None:
        """Return where weights are that are not where they were: in a file that is given, or was given before."""
        if model is None and path in weight_paths(self._job.graph):
            return None
        return MovedWeights(path, needed=model is not None)

    @property
    def state(self) -> str:
        """The progress, in words."""
        return "done" if self.done else self.progress.records

    def __str__(self) -> str:
        taken = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.created))
        return f"{self.path}: {self.state}, checkpoint {self.number} of {taken}"

    def __repr__(self) -> str:
        return f"<Frozen {self}>"


class FrozenShards:
    """A job on a cluster as its folder holds it. Made by `thaw`; looking at it changes nothing.

    Shards go on where the program that began them is run again, with `cluster=` or without it. `run` and `resolve` go
    on with them on this machine. `fc.start(*frozen.elements())` begins the job anew.

    Attributes:
        path: of the folder.
        progress: how far all shards are together: a record counts once in each stage.
        done: whether all results are complete.
    """

    def __init__(self, path: str, bind: dict[str, object], allow: tuple[str, ...]) -> None:
        found = read_job(path)
        assert found is not None
        self.path, self._job, self._bind, self._allow = path, found["job"], bind, allow
        self.done = is_done(path)
        self.progress = Progress(kept_items(path), found["total"], 0, 0.0, self.done)

    def elements(self, *, accept_touched: bool = False) -> list[Element]:
        """Return the job's roots, made anew.

        Raises:
            CheckpointError: if something has to be bound, or a source is not what it was.
        """
        graph, array = kept_graph(self._job)
        return rebuild_job(graph, array, self._bind, done=False, allow=self._allow, accept_touched=accept_touched)

    @shows_options(ThawOptions, method=True)
    def run(self, **options: Unpack[ThawOptions]) -> ClusterRun:
        """Go on to the end on this machine, and return the finished `ClusterRun`.

        Shards that ended are not computed again; others go on. A cluster may go on where this one is interrupted. A
        job that is done has its values.

        Args:
            options: as for `fc.run` with `cluster`, but for `checkpoint` and `precision`, which are kept. So is the
                device, unless one is given.

        Raises:
            CheckpointError: if the job cannot go on, or another client runs it.
            FlowError, TypeError: as `fc.run`.
        """
        _refuse(options, "checkpoint", "precision")
        check_names("run", options, StartOptions)
        device, precision = kept_options(self._job)
        given: dict[str, Any] = {**options, "precision": precision, "checkpoint": self.path}
        # A file that was touched is read where its contents are the same, as in shards.
        given.pop("accept_touched", None)
        if given.get("device") in (None, "auto"):
            given["device"] = device
        return run_on_cluster(self.elements(accept_touched=options.get("accept_touched") is True), given)

    @shows_options(ThawOptions, method=True)
    def resolve(self, **options: Unpack[ThawOptions]) -> Any:
        """Go on to the end on this machine, and return the values: one value, or a tuple.

        Options and errors as for `run`.
        """
        values = self.run(**options).values
        return values[0] if len(values) == 1 else values

    def __str__(self) -> str:
        items, total = self.progress.items, self.progress.total_items
        state = "done" if self.done else f"{items:,} of {total:,} records of all stages"
        goes_on = "its program goes on with it, and so does flowcompute resume on one machine"
        return f"{self.path}: a job on a cluster, {state}; {goes_on}"

    def __repr__(self) -> str:
        return f"<FrozenShards {self}>"


def _refuse(options: Mapping[str, Any], *kept: str) -> None:
    """Refuse options that the checkpoint says."""
    if given := [name for name in kept if name in options]:
        raise CheckpointError(
            f"cannot choose {' and '.join(given)} again: a frozen job keeps its own",
            hint=f"leave {' and '.join(given)} out",
        )
