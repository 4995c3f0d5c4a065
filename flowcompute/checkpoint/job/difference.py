"""The differences of two jobs, in lines that people can act on. Names and the user's lines do not count."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.fields import MOST_NODES, Fields, brief, refuse, refused
from flowcompute.checkpoint.job.fingerprint import changed_file, changes, files_of, own_files, read_state
from flowcompute.checkpoint.store import DTYPES
from flowcompute.files import FILES, Files, shown

MOST_LINES = 20
_MOST_COMPARED = 1 << 18
_UNCOMPARED = frozenset({"name", "given", "site", "call", "step"})
_STATES = frozenset({"size", "mtime_ns", "sample", "contents"})
"""Entries of a file's description that say in which state it is."""

_INNER = "steps"
"""Entry of a node with graphs of its own, each described as a job."""

Nodes = Sequence[Mapping[str, Any]]


def differences(stored: Mapping[str, Any], now: Mapping[str, Any], *, states: bool = True) -> list[str]:
    """Compare a job with the one that was stored: a readable line for each difference, none for the same job.

    What elements are named, and where they were made, does not count. Digests of functions count under
    the same version of Python only.

    Args:
        stored, now: two descriptions by `describe_job`.
        states: whether the states of their files are compared too; `check_sources` does so without the files' names.

    Raises:
        CheckpointError: if one of them is no description.
    """
    try:
        return _differences(stored, now, _STATES if not states else frozenset({"contents"}))
    except (RecursionError, ValueError) as error:
        raise refused("cannot compare a job's description", got=str(error)) from error


def _differences(stored: Mapping[str, Any], now: Mapping[str, Any], uncompared: frozenset[str]) -> list[str]:
    then, here = ([_without(node, uncompared) for node in _nodes(one)] for one in (stored, now))
    lines = []
    for key, what in (("format", "the format of job data"), ("order", "the canonical order of reductions")):
        if stored.get(key) != now.get(key):
            lines.append(f"{what} was version {brief(stored.get(key))} and is {brief(now.get(key))}")
    if lines:
        return lines
    ignored = _UNCOMPARED if stored.get("python") == now.get("python") else _UNCOMPARED | {"digest"}
    stripped = [[_compared(node, ignored) for node in nodes] for nodes in (then, here)]
    if not _same(*stripped):
        lines = list(_Comparison(then, here, ignored).lines()) or ["the same elements come in another order"]
    if not lines and not _same(stored.get("roots"), now.get("roots")):
        lines.append("the results come in another order")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES} more differences"]
    return lines


def _compared(node: Mapping[str, Any], ignored: frozenset[str]) -> dict[str, Any]:
    """Return what is compared of a node; of graphs of its own what is compared of their nodes."""
    kept = {key: node[key] for key in node.keys() - ignored}
    if _INNER in kept:
        inner = Fields(node, "a node").items(_INNER)
        kept[_INNER] = [
            [one.get("roots"), *(_compared(each, ignored) for each in _nodes(one))] if isinstance(one, Mapping) else one
            for one in inner
        ]
    return kept


def _without(node: Mapping[str, Any], states: frozenset[str]) -> Mapping[str, Any]:
    """Return a node whose files lack these entries of their states, and those of its own graphs too."""

    def bare(file: Any) -> Any:
        return {key: value for key, value in file.items() if key not in states} if isinstance(file, Mapping) else file

    if _INNER in node:
        graphs = [
            {**one, "nodes": [_without(each, states) for each in _nodes(one)]} if isinstance(one, Mapping) else one
            for one in Fields(node, "a node").items(_INNER)
        ]
        node = {**node, _INNER: graphs}
    if "file" in node:
        first, *more = map(bare, own_files(node))
        return {**node, "file": first} | ({"more": more} if "more" in node else {})
    if "files" in node:
        files = [{**one, "file": bare(one.get("file"))} if isinstance(one, Mapping) else one
                 for one in Fields(node, "a node").items("files", MOST_NODES)]  # fmt: skip
        return {**node, "files": files}
    return node


def check_sources(stored: Mapping[str, Any], files: Files = FILES, *, accept_touched: bool = False) -> list[str]:
    """Return files of a job that are not in the state in which it was described, one readable line each.

    Args:
        stored: a description by `describe_job`.
        files: the file layer.
        accept_touched: whether a file that was touched is in that state if its contents are the same.

    Raises:
        CheckpointError: if `stored` is no description.
    """
    lines = []
    for node in _nodes(stored):
        for one in files_of(node):
            path, state = read_state(Fields(one, "a file"))
            lines += changed_file(path, state, files, accept_touched=accept_touched)
    return list(dict.fromkeys(lines))


def _nodes(data: Mapping[str, Any]) -> Nodes:
    nodes = Fields(data, "a job").items("nodes", MOST_NODES)
    for node in nodes:
        fields = Fields(node, "a node")
        for key in ("tag", "name", *(["op"] if "op" in node else [])):
            fields.text(key)
        fields.wholes("inputs", length=MOST_NODES)
        fields.site("site")
    return nodes


def _kind(node: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key that two nodes must share to be compared field by field."""
    return (node["tag"], node.get("op"), len(node["inputs"]))


def _told(node: Mapping[str, Any], nodes: Nodes) -> str:
    """Describe a node in a few words, with its line."""
    what = brief(node.get("op", node["tag"])).rpartition(".")[2]
    operands = _operands(node, nodes)
    name = brief(node["name"]) if node["name"] == what else f"{brief(node['name'])} = {what}"
    return f"{name}({operands}){_place(node)}" if operands else f"{name}{_place(node)}"


def _operands(node: Mapping[str, Any], nodes: Nodes) -> str:
    return ", ".join(brief(nodes[i]["name"]) for i in node["inputs"] if i < len(nodes))


def _place(node: Mapping[str, Any]) -> str:
    site = node["site"]
    return f" (made at {site[0]}:{site[1]})" if site is not None else ""


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
"""The text of a difference in a field, then and now being {0} and {1}."""


def _paired(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Return places of equal things in two lists, in their order, so that few are left over."""
    least = min(len(before), len(after))
    first = next((i for i in range(least) if before[i] != after[i]), least)
    last = next((i for i in range(least - first) if before[-1 - i] != after[-1 - i]), least - first)
    yield from ((i, i) for i in range(first))
    yield from ((len(before) - 1 - i, len(after) - 1 - i) for i in range(last))
    middle = before[first : len(before) - last], after[first : len(after) - last]
    if len(middle[0]) * len(middle[1]) <= _MOST_COMPARED:
        for block in difflib.SequenceMatcher(None, *middle, autojunk=False).get_matching_blocks():
            yield from ((first + block.a + i, first + block.b + i) for i in range(block.size))
        return
    # Looking for the longest equal runs would take long: each is paired with the next one of its kind.
    waiting: dict[Any, list[int]] = {}
    for j in reversed(range(len(middle[1]))):
        waiting.setdefault(middle[1][j], []).append(j)
    yield from ((first + i, first + waiting[kind].pop()) for i, kind in enumerate(middle[0]) if waiting.get(kind))


class _Comparison:
    """Pairs the nodes of two jobs, so that what differs is told where it differs and nowhere else.

    Nodes that are equal, with all that they are made of, are the same. Of the others those of one kind are paired
    in their order.
    """

    def __init__(self, then: Nodes, now: Nodes, ignored: frozenset[str]) -> None:
        self._then = then
        self._now = now
        self._ignored = ignored
        self._pairs = self._same_nodes()
        before = [i for i in range(len(then)) if i not in self._pairs]
        taken = {*self._pairs.values()}
        after = [i for i in range(len(now)) if i not in taken]
        kinds = [_kind(then[i]) for i in before], [_kind(now[i]) for i in after]
        self._pairs.update((before[i], after[j]) for i, j in _paired(*kinds))

    def _same_nodes(self) -> dict[int, int]:
        """Return nodes of the first job with the same ones of the second."""
        places: dict[str, list[int]] = {}
        for i, key in reversed(list(enumerate(self._keys(self._now)))):
            places.setdefault(key, []).append(i)
        return {i: places[key].pop() for i, key in enumerate(self._keys(self._then)) if places.get(key)}

    def _keys(self, nodes: Nodes) -> list[str]:
        """Return for each node a digest of it and of all that it is made of."""
        keys: list[str] = []
        for node in nodes:
            compared = _compared(node, self._ignored)
            own = sorted((key, repr(_plain(value))) for key, value in compared.items())
            held = [keys[i] if i < len(keys) else "" for i in node["inputs"]]
            parts = repr(([one for one in own if one[0] != "inputs"], held))
            keys.append(hashlib.sha256(parts.encode(errors="surrogatepass")).hexdigest())
        return keys

    def lines(self) -> Iterator[str]:
        """Yield a line for each difference."""
        then, now = self._then, self._now
        yield from (f"no longer in the job: {_told(node, then)}" for i, node in enumerate(then) if i not in self._pairs)
        new = {*range(len(now))} - {*self._pairs.values()}
        yield from (f"new in the job: {_told(now[i], now)}" for i in sorted(new))
        for i, j in self._pairs.items():
            yield from self._node_lines(then[i], now[j])

    def _node_lines(self, then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
        start = f"{brief(now['name'])}{_place(now)}"
        for key in sorted({*then, *now} - self._ignored):
            one, other = then.get(key), now.get(key)
            if key == "inputs":
                if [self._pairs.get(i) for i in one or ()] != list(other or ()):
                    yield f"{start} takes ({_operands(now, self._now)}), and took ({_operands(then, self._then)})"
            elif _same(one, other):
                continue
            elif key == "bytes" and (numbers := (_number(then), _number(now)))[0] and numbers[1]:
                yield f"{start} is {numbers[1]}, and was {numbers[0]}"
            elif key == _INNER:
                yield from (f"{start}: {line}" for line in _inner_differences(one, other))
            elif key == "attrs":
                yield from (f"{start} {line}" for line in _attr_differences(one, other))
            elif key == "more" and not _same(then.get("file"), now.get("file")):
                continue  # told with the first file
            elif key in ("file", "files", "more"):
                yield from (f"{start} {line}" for line in _file_differences(then, now))
            else:
                said = _SAID.get(key)
                told = f"{brief(key)} is {_short(other)}, and was {_short(one)}"
                yield f"{start} {told if said is None else said.format(_short(one), _short(other))}"


def _number(node: Mapping[str, Any]) -> str | None:
    """Return the value of a constant that is a single number."""
    data, dtype = node.get("bytes"), DTYPES.get(str(node.get("dtype")))
    if dtype is None or node.get("shape") or not isinstance(data, bytes) or len(data) != dtype.itemsize:
        return None
    return f"{np.frombuffer(data, dtype)[0]} ({dtype.name})"


def _inner_differences(then: Any, now: Any) -> list[str]:
    """Compare the graphs that a node has of its own; what differs in the first one differs in all."""
    sizes = [len(one) if isinstance(one, list | tuple) else -1 for one in (then, now)]
    if sizes[0] != sizes[1] or sizes[0] < 1 or not all(isinstance(one, Mapping) for one in (*then, *now)):
        return [f"has {sizes[1]} graphs of its own, and had {sizes[0]}"]
    found = (_differences(one, other, frozenset()) for one, other in zip(then, now, strict=True))
    return next((lines for lines in found if lines), [])


def _attr_differences(then: Any, now: Any) -> Iterator[str]:
    if not isinstance(then, Mapping) or not isinstance(now, Mapping):
        refuse("cannot read attributes", expected="a map with names")
    for key in sorted({*then, *now}):
        if not _same(then.get(key), now.get(key)):
            yield f"has {brief(key)}={_short(now.get(key))}, and had {brief(key)}={_short(then.get(key))}"


def _file_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = own_files(then), own_files(now)
    if len(before) != len(after):
        yield f"reads {len(after)} files, and read {len(before)}"
        return
    for one, other in zip(before, after, strict=True):
        old_path, path = (Fields(data, "a file").text("path") for data in (one, other))
        if path != old_path:
            yield f"reads {shown(path)}, and read {shown(old_path)}"
        elif "size" in one and (found := changes(*(read_state(Fields(data, "a file"))[1] for data in (one, other)))):
            yield f"reads {shown(path)}, which has changed: {', '.join(found)}"
        elif one != other:
            yield f"reads {shown(path)} in another way"


def _same(one: Any, other: Any) -> bool:
    """Check whether values are equal, in type too: True is not 1 here. Lists and tuples are the same."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _plain(value: Any) -> Any:
    """Return an attribute as it was before it became plain data, and anything else as it is."""
    match value:
        case {"float": str(text)} if len(value) == 1:
            try:
                return float.fromhex(text)
            except (ValueError, OverflowError):
                return text
        case {"dtype": str(name)} if len(value) == 1:
            return np.dtype(DTYPES[name]) if name in DTYPES else name
        case list() | tuple():
            return tuple(map(_plain, value))
    return value


def _short(value: Any) -> str:
    plain = _plain(value)
    return plain.name if isinstance(plain, np.dtype) else brief(plain)
