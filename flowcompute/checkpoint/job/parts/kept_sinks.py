"""Destinations as data."""

from __future__ import annotations

import os
from typing import Any

from flowcompute.checkpoint.job.fields import Fields
from flowcompute.checkpoint.job.parts.part import Describing, KeptNode, Part, Rebuilding
from flowcompute.elements import Destination, Element
from flowcompute.sinks import CallbackSink, DiscardSink, MemorySink, NpySink, RawSink, StoredSink


def _bound(sink: Destination, node: KeptNode, fields: Fields) -> Element:
    if len(node.inputs) != 1 or isinstance(node.inputs[0], Destination):
        fields.wrong("inputs", "one element with a value")
    return sink.bind(node.inputs[0])


def _describe_file(sink: StoredSink, _: Describing) -> dict[str, Any]:
    return {"path": str(sink.path), "target": str(sink.target), "durable": bool(sink.durable)}


def _rebuild_file(
    kind: type[NpySink] | type[RawSink], fields: Fields, node: KeptNode, rebuilding: Rebuilding
) -> Element:
    path, target = fields.text("path"), fields.text("target")
    if not os.path.basename(target) or target != os.path.abspath(target):
        fields.wrong("target", "the absolute path of the file")
    sink = kind(path, name=node.given, durable=fields.flag("durable"))
    # Settled when the job was composed, whatever the folder is now. Who made the checkpoint has chosen it.
    sink.freeze_fields(target=target, allow=rebuilding.allow)
    return _bound(sink, node, fields)


def _rebuild_npy(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return _rebuild_file(NpySink, fields, node, rebuilding)


def _rebuild_raw(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    return _rebuild_file(RawSink, fields, node, rebuilding)


def _nothing(_: Destination, __: Describing) -> dict[str, Any]:
    return {}


def _rebuild_memory(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return _bound(MemorySink(name=node.given), node, fields)


def _rebuild_discard(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return _bound(DiscardSink(name=node.given), node, fields)


def _describe_callback(sink: CallbackSink, _: Describing) -> dict[str, Any]:
    return {"bind": "function", "labels": bool(sink.labels)}


def _rebuild_callback(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return _bound(CallbackSink(node.bound, labels=fields.flag("labels"), name=node.given), node, fields)


SINKS: dict[type[Element], Part] = {
    NpySink: Part("save_npy", _describe_file, _rebuild_npy),
    RawSink: Part("save_raw", _describe_file, _rebuild_raw),
    MemorySink: Part("to_array", _nothing, _rebuild_memory),
    DiscardSink: Part("discard", _nothing, _rebuild_discard),
    CallbackSink: Part("callback", _describe_callback, _rebuild_callback, "function"),
}
