"""Plans of large graphs on disk: another process that asks for an equal one does not plan."""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from flowcompute.files import SealedStore
from flowcompute.graph import Graph, UnknownError
from flowcompute.ir import Kernel
from flowcompute.schedule.backend_description import BackendDescription, KernelTexts
from flowcompute.schedule.explain import Plan
from flowcompute.schedule.known_plans.plan_digest import digest
from flowcompute.schedule.known_plans.plan_rows import PlanWriter, read_rows
from flowcompute.schedule.shaping import Shaping
from flowcompute.strategy import Config, Strategy

_LOG = logging.getLogger(__name__)

LIMIT_BYTES = 64 << 20
"""Bytes of all plans together; that of a language model takes one MB."""

LEAST_NODES = 256
"""Nodes of a graph whose plan is kept, at least. Smaller ones are planned in less than 0.1 s."""

MOST_WAITING = 16
"""Plans of a process that are kept at its end."""

_EXIT_LIMIT_S = 1.0
"""Seconds after which no further plan is written: one takes up to half of them."""

_FIELDS = ("passes", "folds", "host_folds", "memory", "depth", "reasons")


class KeptPlans:
    """Plans that processes before have made. They are written at the end of a process, since nobody waits for it.

    A file is sealed like a compiled program, in a folder that nobody else can write to. It holds instances of the
    classes of plans and the texts of kernels. It names no file and no element: these are those of the graph in hand.
    It is written again by a process that knows texts of more kernels.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Plan, int]] = {}
        self._texts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._registered = False

    def digest(self, key: object, graph: Graph, backend: BackendDescription) -> str | None:
        """Return what a plan is kept by; None where it is not kept.

        Args:
            key: of `plan_key`.
            graph: to plan.
            backend: the devices.
        """
        if len(graph.nodes) < LEAST_NODES or backend.texts is None or len(backend.placements) > 1:
            return None
        return digest(key)

    def get(
        self,
        name: str,
        graph: Graph,
        asked: Graph,
        settings: tuple[BackendDescription, Config, Strategy, Shaping],
    ) -> Plan | None:
        """Return the plan that is kept under a digest, without the elements of its stages; None where there is none."""
        store = SealedStore("plans", b"fcplan1\n", LIMIT_BYTES)
        self._texts.pop(name, None)
        content = store.load(name)
        if content is None:
            return None
        backend, config, strategy, shaping = settings
        try:
            kept = json.loads(content)
            values = read_rows(kept["rows"], graph)
            parts = {field: values[i] for field, i in zip(_FIELDS, kept["plan"], strict=True)}
            plan = Plan(
                graph=graph,
                asked=asked,
                backend=backend,
                config=config,
                strategy=strategy,
                shaping=shaping,
                **parts,
            )
            if backend.texts is not None:
                _note_texts(plan, kept["texts"], kept["kernels"], backend.texts)
            self._texts[name] = len(kept["kernels"])
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            _LOG.info("the plan %s is not used: %s", name, error)
            store.remove(name)
            return None
        return plan

    def keep(self, name: str, plan: Plan) -> None:
        """Keep a plan at the end of the process, with the texts that its kernels have by then.

        One that `get` has read is written where its file has fewer texts.

        Args:
            name: its digest.
            plan: without elements, so that no data is kept alive.
        """
        if plan.inner or plan.backend.texts is None:
            return
        with self._lock:
            self._waiting[name] = plan, os.getpid()
            while len(self._waiting) > MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            if not self._registered:
                self._registered = True
                atexit.register(self.write)

    def write(self) -> int:
        """Write the plans that wait, for as long as an exit may take, and return how many were written."""
        began_s = time.monotonic()
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        written = 0
        for name, (plan, process) in waiting.items():
            # A forked child has the plans of its parent, which keeps them itself.
            if process != os.getpid() or time.monotonic() - began_s > _EXIT_LIMIT_S:
                continue
            assert plan.backend.texts is not None
            found = [(number, depth, plan.backend.texts.known(kernel)) for number, depth, kernel in _kernels(plan)]
            known = [(number, depth, text) for number, depth, text in found if text is not None]
            if len(known) <= self._texts.get(name, -1):
                continue
            try:
                content = _content(plan, known)
            except (RecursionError, UnknownError):
                continue
            self._texts[name] = len(known)
            SealedStore("plans", b"fcplan1\n", LIMIT_BYTES).store(name, content)
            written += 1
        return written


def _content(plan: Plan, known: Sequence[tuple[int, int, str]]) -> bytes:
    """Return a plan as bytes.

    Args:
        plan: without elements.
        known: texts of kernels, with the place of each among those of `_kernels`.

    Raises:
        UnknownError: if it holds what no file can.
    """
    writer = PlanWriter()
    places = [writer.place(getattr(plan, name)) for name in _FIELDS]
    texts: dict[str, int] = {}
    kernels = [(number, depth, texts.setdefault(text, len(texts))) for number, depth, text in known]
    return json.dumps({"rows": writer.rows, "plan": places, "texts": [*texts], "kernels": kernels}).encode()


def _kernels(plan: Plan) -> Iterator[tuple[int, int, Kernel]]:
    """Yield kernels with their numbers, and those for fewer rows with how often they were asked for such."""
    for number, kernel in enumerate(kernel for one in plan.passes for kernel in one.kernels):
        found: Kernel | None = kernel
        depth = 0
        while found is not None:
            yield number, depth, found
            found, depth = found.of_few, depth + 1


def _note_texts(plan: Plan, texts: Any, kept: Any, into: KernelTexts) -> None:
    """Give kernels the texts that equal ones had."""
    kernels = [kernel for one in plan.passes for kernel in one.kernels]
    for number, depth, text in kept:
        kernel: Kernel = kernels[number]
        for _ in range(depth):
            if kernel.of_few is None:
                raise LookupError(f"kernel {number} has no form for fewer rows")
            kernel = kernel.of_few
        into.note(kernel, texts[text])
