"""A job made again from plain data, all of which is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.describe import FORMAT
from flowcompute.checkpoint.job.fields import MOST_NODES, UNSOUND, Fields, read_calls, refuse
from flowcompute.checkpoint.job.kept_functions import rebuild_functions
from flowcompute.checkpoint.job.not_bound import NEVER_CALLED, NotBound
from flowcompute.checkpoint.job.parts import TAGS, KeptNode, Part, Rebuilding
from flowcompute.elements import MOST, Compute, Destination, Element, Source, UserCall
from flowcompute.errors import CheckpointError, FlowError, Site, SourceError
from flowcompute.graph import build_graph
from flowcompute.imports import dataclass
from flowcompute.ir import ORDER_VERSION
from flowcompute.spec import Spec, Stream


def rebuild_job(
    data: object,
    get: Callable[[Any], np.ndarray],
    bind: Mapping[str, object] | None = None,
    *,
    done: bool = False,
    allow: tuple[str, ...] = (),
    accept_touched: bool = False,
) -> list[Element]:
    """Rebuild the roots of the job that `describe_job` described, as elements that know the user's lines.

    Everything is checked. Each operation is made again by the rules that users' calls go through, and what comes out is
    compared with what was kept. Nothing is imported or called but what `bind` gives.

    Args:
        data: the description.
        get: gives the array for what `put` gave.
        bind: what cannot be kept as data, by the name of its element: functions, iterables, OpenCL
            texts, arrays of more than 64 MiB.
        done: whether the results are there: functions and iterables that are not bound are then stood in for.
        allow: folders whose files the job may replace; destinations carry it, since the description named them.
        accept_touched: whether a file that was touched is read if its contents are the same.

    Raises:
        CheckpointError: if the description is not sound, something is not bound, or a source is another one now.
    """
    try:
        inner = Rebuilding(get, {}, {})
        rebuilding = Rebuilding(
            get, dict(bind or {}), {}, allow, accept_touched, roots=lambda one: _rebuilt(one, inner, done=False)
        )
        return _rebuilt(data, rebuilding, done=done)
    except CheckpointError:
        raise
    except (FlowError, RecursionError, MemoryError) as error:
        raise CheckpointError(f"cannot rebuild the job in the checkpoint: {error}") from error


def _rebuilt(data: object, given: Rebuilding, *, done: bool) -> list[Element]:
    fields = Fields(data, "a job")
    version = fields.whole("format")
    if version != FORMAT:
        refuse(
            f"cannot read a job of a{' newer' if version > FORMAT else 'n older'} version of flowcompute",
            expected=f"format {FORMAT}",
            got=f"format {version}",
            hint="go on with the version that began it",
        )
    order = fields.whole("order")
    if order != ORDER_VERSION:
        refuse(
            "cannot go on with reductions begun in another order",
            expected=f"version {ORDER_VERSION} of the canonical order",
            got=f"version {order}",
            hint="go on with the version of flowcompute that began it",
        )
    fields.text("python")
    calls = read_calls(fields)
    drafts = [_Draft.read(one, calls) for one in fields.items("nodes", MOST_NODES)]
    kernels = rebuild_functions(fields.take("kernels"))
    roots = fields.wholes("roots", most=len(drafts) - 1, length=MOST_NODES)
    fields.close()
    bind = {**_stand_ins(drafts), **given.bind} if done else given.bind
    _check_bound(drafts, bind)
    rebuilding = replace(given, bind=bind, kernels=kernels)
    elements: list[Element] = []
    for draft in drafts:
        elements.append(draft.element(elements, rebuilding))
    return _checked_roots(drafts, elements, roots)


@dataclass(frozen=True)
class _Draft:
    """A node of the description: what all nodes have is read, the rest is in `fields`."""

    part: Part
    fields: Fields
    name: str
    given: bool
    site: Site | None
    inputs: tuple[int, ...]
    spec: Spec
    bind: str | None
    call: UserCall | None
    is_step: bool
    again: bool

    @classmethod
    def read(cls, data: object, calls: Sequence[UserCall]) -> _Draft:
        fields = Fields(data, "a node")
        part = TAGS[fields.choice("tag", tuple(TAGS))]
        bind = fields.text("bind") if "bind" in fields else None
        if bind is not None and bind != part.bind:
            fields.wrong("bind", repr(part.bind))
        if bind is None and part.bind and part.bind != "array":
            refuse(f"cannot rebuild a node without what is to be bound: {part.bind}")
        stream, length = fields.flag("stream"), fields.maybe("length", fields.whole)
        if length is not None and not stream:
            fields.wrong("length", "None without a stream")
        axis = Stream(length) if stream else None
        return cls(
            part,
            fields,
            fields.printable("name"),
            fields.flag("given"),
            fields.site("site"),
            fields.wholes("inputs", length=MOST_NODES),
            Spec(fields.dtype("dtype"), fields.wholes("shape", most=MOST - 1), axis),
            bind,
            calls[fields.whole("call", most=len(calls) - 1)] if "call" in fields else None,
            fields.flag("step") if "call" in fields else False,
            fields.flag("again") if "again" in fields else False,
        )

    def element(self, earlier: list[Element], rebuilding: Rebuilding) -> Element:
        """Return the element, of operands made already."""
        if any(i >= len(earlier) or isinstance(earlier[i], Destination) for i in self.inputs):
            refuse("cannot rebuild a node whose operands stand behind it, or are destinations", got=self.name)
        inputs = tuple(earlier[i] for i in self.inputs)
        bound = rebuilding.bind.get(self.name)
        node = KeptNode(self.name, self.name if self.given else None, self.spec, inputs, bound)
        try:
            made = self.part.rebuild(self.fields, node, rebuilding)
            self.fields.close()
            if made.spec != self.spec:
                refuse(
                    "cannot rebuild it with the same dtype, shape and length",
                    expected=str(self.spec),
                    got=str(made.spec),
                )
        except FlowError as error:
            # Hints of other errors speak to who composes, which nobody does now.
            own = error.hint if isinstance(error, CheckpointError | SourceError) else None
            hint = own or (f"bind={{{self.name!r}: ...}} takes its {self.bind}" if self.bind else UNSOUND)
            raise CheckpointError(
                error.message, element=self.name, site=self.site, expected=error.expected, got=error.got, hint=hint
            ) from error
        made.freeze_fields(site=self.site, call=self.call, is_step=self.is_step)
        if self.again:
            if not isinstance(made, Compute):
                refuse("cannot compute this again", expected="an operation", got=self.name, hint=UNSOUND)
            made.freeze_fields(again=True)
        named_otherwise = not re.fullmatch(re.escape(made.base_name) + r"(_\d+)?", self.name)
        if self.given or (named_otherwise and (self.bind or isinstance(made, Source))):
            # Its user's name, its own where a function of another name was bound, or that of an earlier version.
            made.freeze_fields(name=self.name)
        return made


def _stand_ins(drafts: list[_Draft]) -> dict[str, object]:
    """Return stand-ins, by name, for what nothing is asked of any more."""
    made: dict[str, object] = {}
    for draft in drafts:
        if draft.bind in NEVER_CALLED:
            digest = draft.fields.text("digest") if "digest" in draft.fields else None
            made[draft.name] = NotBound(draft.name, digest)
    return made


def _check_bound(drafts: list[_Draft], bind: Mapping[str, object]) -> None:
    """Raise CheckpointError that names everything that is to be bound and is not, or is bound to nothing."""
    wanted = {draft.name: draft.bind for draft in drafts if draft.bind is not None}
    if missing := [f"{name} ({what})" for name, what in wanted.items() if name not in bind]:
        given = ", ".join(f"{name!r}: ..." for name in list(wanted)[:4]) + (", ..." if len(wanted) > 4 else "")
        refuse(
            "cannot thaw without what no checkpoint keeps",
            expected=_listed(missing),
            hint=f"fc.thaw(path, bind={{{given}}}).resolve(), or run the program that began the job once more",
        )
    if others := [name for name in bind if name not in wanted]:
        refuse("cannot bind anything to these names", expected=_listed(list(wanted)) or "nothing", got=others)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _checked_roots(drafts: list[_Draft], elements: list[Element], roots: tuple[int, ...]) -> list[Element]:
    """Return the roots, whose graph has the very nodes that were described, by number and name."""
    if not roots:
        refuse("cannot rebuild a job without roots", expected="at least one root")
    found = [elements[i] for i in roots]
    graph = build_graph(found)
    if graph.roots != roots or len(graph.nodes) != len(elements):
        refuse(
            "cannot rebuild the job: it has other nodes than are described",
            expected=str(len(elements)),
            got=len(graph.nodes),
        )
    for node, element, draft in zip(graph.nodes, elements, drafts, strict=True):
        if node.element is not element or node.name != draft.name or node.inputs != draft.inputs:
            refuse(
                "cannot rebuild the job: its nodes have other places or names than are described",
                expected=draft.name,
                got=node.name,
            )
    return found
