"""How two jobs differ, in lines that people can act on. Names and the user's lines do not count."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowcompute.checkpoint.fields import Fields, refuse
from flowcompute.checkpoint.fingerprint import changed_file, changes, read_state
from flowcompute.files import FILES, Files, shown

MOST_LINES = 20
_MOST_NODES = 1 << 20
_UNCOMPARED = ("name", "given", "site")


def differences(stored: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What makes a job another one than the one that was stored, one readable line each; empty for the same job.

    What elements are named, and where they were made, does not count. Digests of functions count under
    the same version of Python only.

    Args:
        stored, now: two descriptions by `describe_job`.

    Raises:
        CheckpointError: if one of them is no description.
    """
    lines = []
    for key, what in (("format", "the format of job data"), ("order", "the canonical order of reductions")):
        if stored.get(key) != now.get(key):
            lines.append(f"{what} was version {stored.get(key)!r} and is {now.get(key)!r}")
    if lines:
        return lines
    python = stored.get("python") == now.get("python")
    then_nodes, now_nodes = _nodes(stored), _nodes(now)
    then_keys, now_keys = [_kind(node) for node in then_nodes], [_kind(node) for node in now_nodes]
    if then_keys != now_keys:
        lines = list(_rearranged(then_nodes, now_nodes, then_keys, now_keys))
    else:
        for then, here in zip(then_nodes, now_nodes, strict=True):
            lines += _node_differences(then, here, then_nodes, now_nodes, python)
        if list(stored.get("roots", ())) != list(now.get("roots", ())):
            lines.append("the results are asked for in another order, or others are")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES} more differences"]
    return lines


def check_sources(stored: Mapping[str, Any], files: Files = FILES) -> list[str]:
    """Files of a job that are not in the state in which it was described, one readable line each.

    Raises:
        CheckpointError: if `stored` is no description.
    """
    lines = []
    for node in _nodes(stored):
        for one in _files(node):
            path, state = read_state(Fields(one, "a file"))
            lines += changed_file(path, state, files)
    return lines


def _nodes(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    nodes = Fields(data, "a job").items("nodes", _MOST_NODES)
    for node in nodes:
        fields = Fields(node, "a node")
        fields.text("tag"), fields.text("name"), fields.wholes("inputs", length=_MOST_NODES)
    return nodes


def _files(node: Mapping[str, Any]) -> list[Any]:
    if "file" in node:
        return [node["file"]]
    if "files" not in node:
        return []
    return [Fields(one, "a file").take("file") for one in Fields(node, "a node").items("files", _MOST_NODES)]


def _kind(node: Mapping[str, Any]) -> tuple[Any, ...]:
    """What has to be equal for two nodes to be compared field by field."""
    return (node["tag"], node.get("op"), len(node["inputs"]))


def _told(node: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """A node in a few words, with its line."""
    what = str(node.get("op") or node["tag"]).rpartition(".")[2]
    operands = ", ".join(str(nodes[i]["name"]) for i in node["inputs"] if i < len(nodes))
    name = node["name"] if node["name"] == what else f"{node['name']} = {what}"
    return f"{name}({operands}){_place(node)}" if operands else f"{name}{_place(node)}"


def _place(node: Mapping[str, Any]) -> str:
    site = node.get("site")
    return f" (made at {site[0]}:{site[1]})" if isinstance(site, list | tuple) and len(site) == 2 else ""


def _rearranged(
    then: Sequence[Mapping[str, Any]],
    now: Sequence[Mapping[str, Any]],
    then_keys: Sequence[Any],
    now_keys: Sequence[Any],
) -> Iterator[str]:
    """Nodes that came and went."""
    matcher = difflib.SequenceMatcher(None, then_keys, now_keys, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            yield from (f"no longer in the job: {_told(node, then)}" for node in then[i1:i2])
            yield from (f"new in the job: {_told(node, now)}" for node in now[j1:j2])


_SAID = {
    "dtype": "is {1}, and was {0}",
    "op": "is the operation {1}, and was {0}",
    "path": "writes to {1}, and wrote to {0}",
    "target": "writes to {1}, and wrote to {0}",
    "bytes": "has other values",
    "blob": "has other values",
    "sample": "has other values",
    "digest": "has a function that does something else",
    "kernel": "is a kernel that does something else",
    "text": "has another OpenCL text",
    "init": "begins with another carry",
}
"""How a difference in a field is told, then and now being {0} and {1}."""


def _node_differences(
    then: Mapping[str, Any],
    now: Mapping[str, Any],
    then_nodes: Sequence[Mapping[str, Any]],
    now_nodes: Sequence[Mapping[str, Any]],
    python: bool,
) -> Iterator[str]:
    """How two nodes of one kind differ."""
    start = f"{now['name']}{_place(now)}"
    for key in sorted({*then, *now} - set(_UNCOMPARED)):
        one, other = then.get(key), now.get(key)
        if _same(one, other) or (key == "digest" and not python):
            continue
        if key == "inputs":
            before, after = (
                ", ".join(str(nodes[i]["name"]) for i in node["inputs"] if i < len(nodes))
                for node, nodes in ((then, then_nodes), (now, now_nodes))
            )
            yield f"{start} takes ({after}), and took ({before})"
        elif key == "attrs":
            yield from (f"{start} {line}" for line in _attr_differences(one, other))
        elif key in ("file", "files"):
            yield from (f"{start}: {line}" for line in _file_differences(then, now))
        else:
            yield f"{start} {_SAID.get(key, key + ' is {1}, and was {0}').format(_short(one), _short(other))}"


def _attr_differences(then: Any, now: Any) -> Iterator[str]:
    if not isinstance(then, Mapping) or not isinstance(now, Mapping):
        refuse("attributes are no map")
    for key in sorted({*then, *now}):
        if not _same(then.get(key), now.get(key)):
            yield f"has {key}={_short(now.get(key))}, and had {key}={_short(then.get(key))}"


def _file_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = _files(then), _files(now)
    if len(before) != len(after):
        yield f"reads {len(after)} files, and read {len(before)}"
        return
    for one, other in zip(before, after, strict=True):
        (old_path, old), (path, new) = (read_state(Fields(data, "a file")) for data in (one, other))
        if path != old_path:
            yield f"reads {shown(path)}, and read {shown(old_path)}"
        elif found := changes(old, new):
            yield f"{shown(path)} has changed: {', '.join(found)}"
        elif one != other:
            yield f"reads {shown(path)} in another way"


def _same(one: Any, other: Any) -> bool:
    """Equal also in type: True is not 1 here. Lists and tuples are the same."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _short(value: Any) -> str:
    match value:
        case {"float": str(text)} if len(value) == 1:
            try:
                return repr(float.fromhex(text))
            except (ValueError, OverflowError):
                return text[:80]
        case {"dtype": str(name)} if len(value) == 1:
            return name[:80]
        case str():
            return value if len(value) <= 200 else value[:197] + "..."
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
