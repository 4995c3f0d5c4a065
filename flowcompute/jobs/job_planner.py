"""Planning of a job, from the elements and options of a verb."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from flowcompute.elements import Destination, Element
from flowcompute.engine import PlannedJob
from flowcompute.gpu.worker import Isolation
from flowcompute.graph import Graph, build_graph
from flowcompute.imports import without_collector
from flowcompute.jobs.backend_choice import choose_backend, device_names
from flowcompute.rewrite import (
    fold_selected,
    move_lookups,
    move_parts_to_sources,
    move_shuffles_to_sources,
    move_views,
    multiply_bytes,
    multiply_halves,
    replace_idle_reductions,
    replace_small_windows,
    share_repeated_matrices,
    split_items,
)
from flowcompute.runtime.options import RunOptions
from flowcompute.schedule import Shaping, chosen_plan, make_plan, plan_recomputing
from flowcompute.schedule.explain import Plan
from flowcompute.schedule.memory import BatchTooLargeError, RecordTooLargeError
from flowcompute.schedule.placement import staying_bytes
from flowcompute.sinks import to_array
from flowcompute.strategy import Config, Strategy

_ITEM_SHARES = (16, 1 << 14)
"""Shares of the budget that an item may have before items are in pieces: for batches of any size, and whole blocks."""


@without_collector
def plan_job(
    elements: tuple[Element, ...],
    options: RunOptions,
    *,
    by_hand: bool = False,
    resumable: bool = False,
    shaping: Shaping | None = None,
    searching: bool = False,
) -> PlannedJob:
    """Plan a job: build its graph, choose what computes it, rewrite the graph, and take the strategy.

    Where a batch of a single record does not fit into memory, items are split into pieces, or values computed again.

    Args:
        elements: the roots; one that is no destination is kept in memory.
        options: those of the verb.
        by_hand: whether records are sent by hand, as into a flow.
        resumable: whether the job keeps checkpoints.
        shaping: the decisions of the checkpoint that the job goes on from; None where it begins.
        searching: whether a better strategy is looked for.

    Raises:
        PlanError: if the job cannot be run as asked.
        SpecError: if the graph is not sound.
    """
    asked = _graph(elements)
    names = device_names(options.device)
    isolate, limit_s = Isolation(options.isolate, options.launch_timeout_s).checked(names)
    backend = choose_backend(names, asked, isolate=isolate)
    budget = options.memory_bytes
    config = Config(budget, names, options.precision, by_hand, resumable, isolate, limit_s, options.device_memory_bytes)
    first = shaping or Shaping(backend.capabilities.float64, fused=backend.capabilities.code_shape != "numpy")
    graph = move_shuffles_to_sources(replace_small_windows(replace_idle_reductions(asked)))
    graph = multiply_halves(graph, backend.capabilities, windows=first.half_windows)
    # Products of NumPy have other bits for other numbers of rows.
    graph = share_repeated_matrices(graph) if first.fused else graph
    graph = move_views(move_parts_to_sources(move_lookups(graph)))
    graph = fold_selected(graph, float64=first.float64)
    room = staying_bytes(backend.capabilities.memory_bytes, options.device_memory_bytes)
    graph = multiply_bytes(graph, backend.capabilities, room)
    if first.piece_bytes is not None:
        graph = split_items(graph, first.piece_bytes, fused=first.fused) or graph

    def made(chosen: Strategy) -> Plan:
        make = partial(make_plan, config=config, strategy=chosen, backend=backend.description, asked=asked)
        refused: list[RecordTooLargeError] = []
        try:
            return make(graph, shaping=first)
        except RecordTooLargeError as error:
            refused.append(error)
        may_split = shaping is None and isinstance(refused[0], BatchTooLargeError)
        for share in _ITEM_SHARES if may_split else ():
            piece_bytes = max(1, budget // share)
            parts = split_items(graph, piece_bytes, fused=first.fused)
            if parts is not None:
                try:
                    return make(parts, shaping=replace(first, piece_bytes=piece_bytes))
                except RecordTooLargeError as error:
                    refused.append(error)
        try:
            return plan_recomputing(graph, lambda one, tight: make(one, shaping=first, tight=tight), refused[0])
        except RecordTooLargeError as error:
            refused.append(error)
        raise min([one for one in refused if type(one) is type(refused[0])], key=lambda error: error.missing_bytes)

    chosen = chosen_plan(made, options.strategy or Strategy(), stored=not by_hand, searching=searching)
    return PlannedJob.of(chosen, backend)


def _graph(elements: tuple[Element, ...]) -> Graph:
    return build_graph([e if isinstance(e, Destination) else to_array().bind(e) for e in elements])
