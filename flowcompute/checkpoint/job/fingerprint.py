"""Fingerprints: cheap marks that tell one state of a file, an array or a function from another.

Of a file these are its size, the time of its last change, and a SHA-256 over 16 blocks of 4 KiB. These are the first,
the last, and others evenly between. A file of up to 64 KiB is so seen whole. Of a larger one a change of equal size
between the blocks is seen by its time alone.

Whoever says that a file was only touched has its contents compared. For that a second SHA-256 is kept, over up to 256
blocks of 256 KiB: all bytes of a file of up to 64 MiB. It is taken once, when the checkpoint begins, and costs 0.1 s a
file (0.3 s from a disk). All bytes of a file of 1 GiB would cost 2.6 s (7.4 s), before the first batch of each job.

Of an object in a store the mark is its ETag, which the store tells without a byte of it being read.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import platform
import re
from collections.abc import Iterable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.fields import MOST_NODES, Fields, refuse
from flowcompute.checkpoint.job.not_bound import NotBound
from flowcompute.files import FILES, Files, explain, shown
from flowcompute.model_files import WeightFile
from flowcompute.objects import layer_of
from flowcompute.sources import StoredSource

_BLOCK_BYTES = 1 << 12
_BLOCKS = 16

PYTHON = ".".join(platform.python_version_tuple()[:2])
"""Digests of functions mean something under one version of Python only."""


_CONTENT_BLOCK_BYTES = 1 << 18
_CONTENT_BLOCKS = 256
_JOINED_BLOCKS = 1024
"""Blocks of all files of a source that has several, unless they are so many that each has two."""


def blocks(size: int, block: int = _BLOCK_BYTES, count: int = _BLOCKS) -> list[tuple[int, int]]:
    """Begin and length of the blocks that are looked at."""
    if size <= count * block:
        return [(0, size)]
    return [(i * (size - block) // (count - 1), block) for i in range(count)]


def content_blocks(files: int) -> int:
    """Return the blocks of each file that `contents_digest` looks at, for a source of so many files."""
    return min(_CONTENT_BLOCKS, max(2, _JOINED_BLOCKS // files))


def contents_digest(path: str, count: int, files: Files = FILES) -> str:
    """Return the number of blocks and a SHA-256 over them, evenly spread over a file; see `content_blocks`.

    Raises:
        OSError: if it cannot be read.
    """
    handle = files.open_read(path)
    try:
        digest, buffer = hashlib.sha256(), memoryview(bytearray(_CONTENT_BLOCK_BYTES))
        for begin, length in blocks(files.status(handle).st_size, _CONTENT_BLOCK_BYTES, count):
            for at in range(begin, begin + length, _CONTENT_BLOCK_BYTES):
                part = buffer[: min(_CONTENT_BLOCK_BYTES, begin + length - at)]
                digest.update(part[: files.read_into(handle, part, at)])
    finally:
        files.close(handle)
    return f"{count}-{digest.hexdigest()}"


def file_fingerprint(path: str, files: Files = FILES) -> dict[str, Any]:
    """Return the state of a file as plain data: "size" in bytes, "mtime_ns", "sample" (hexadecimal; or an ETag).

    Raises:
        OSError: if it cannot be read.
    """
    handle = files.open_read(path)
    try:
        if not files.local:
            state = files.fingerprint(handle)
            return {"size": state.size, "mtime_ns": state.mtime_ns, "sample": f"ETag {state.etag}"}
        status = files.status(handle)
        digest = hashlib.sha256()
        for begin, length in blocks(status.st_size):
            data = bytearray(length)
            digest.update(data[: files.read_into(handle, memoryview(data), begin)])
    finally:
        files.close(handle)
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sample": digest.hexdigest()}


def described_file(source: StoredSource | WeightFile, contents: int | None = None) -> dict[str, Any]:
    """Return path and state of the file of a source; see `described_path`."""
    return described_path(source.path, source.files, contents)


def described_path(path: str, files: Files, contents: int | None = None) -> dict[str, Any]:
    """Return path and state of a file.

    Args:
        path: where it is.
        files: the file layer.
        contents: the blocks of its contents that are to be compared later; None for none.

    Raises:
        CheckpointError: if it cannot be read.
    """
    try:
        state = file_fingerprint(path, files)
        if contents is not None and files.local:
            state["contents"] = contents_digest(path, contents, files)
        return {"path": str(path), **state}
    except OSError as error:
        text, hint = explain(error)
        refuse(f"cannot read {shown(path)}: {text}", hint=hint)


def changes(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Compare two states of a file, in words."""
    found = []
    if then["size"] != now["size"]:
        found.append(f"it had {then['size']} bytes and has {now['size']}")
    if then["sample"] != now["sample"]:
        found.append("its content is another")
    if then["mtime_ns"] != now["mtime_ns"]:
        same = " (size and sampled content are the same)" if not found else ""
        found.append(f"its time of change was {_time(then)} and is {_time(now)}{same}")
    return found


def _time(state: dict[str, Any]) -> str:
    seconds, rest = divmod(int(state["mtime_ns"]), 10**9)
    return f"{np.datetime64(seconds, 's') if 0 <= seconds < 2**40 else seconds}.{rest:09d}"


def read_state(fields: Fields) -> tuple[str, dict[str, Any]]:
    """Return path and state as they are in job data."""
    state: dict[str, Any] = {"size": fields.whole("size"), "mtime_ns": fields.whole("mtime_ns", least=-(1 << 63))}
    path = fields.text("path")
    state["sample"] = fields.text("sample")
    if "contents" in fields:
        # Checkpoints of the first versions have none.
        state["contents"] = fields.text("contents")
        if not re.fullmatch(r"[0-9]{1,3}-[0-9a-f]{64}", state["contents"]) or _count(state) not in _COUNTS:
            fields.wrong("contents", "the number of blocks and their SHA-256")
    return path, state


def _count(state: Mapping[str, Any]) -> int:
    """Return the number of blocks that the digest of contents was taken of."""
    return int(state["contents"].partition("-")[0])


_COUNTS = range(2, _CONTENT_BLOCKS + 1)


def own_files(node: Mapping[str, Any]) -> list[Any]:
    """Return the descriptions of a node's files in job data. A table of several parts has `more` than one file."""
    fields = Fields(node, "a node")
    if "file" in node:
        return [node["file"], *(fields.items("more", MOST_NODES) if "more" in node else ())]
    if "files" not in node:
        return []
    return [Fields(one, "a file").take("file") for one in fields.items("files", MOST_NODES)]


def files_of(node: Mapping[str, Any]) -> list[Any]:
    """Return the descriptions of a node's files, and of those that only the graphs of its steps read."""
    graphs = Fields(node, "a node").items("steps") if "steps" in node else ()
    inner = [one for graph in graphs for one in Fields(graph, "a graph").items("nodes", MOST_NODES)]
    return own_files(node) + [file for one in inner for file in own_files(one)]


def changed_file(path: str, then: dict[str, Any], files: Files = FILES, *, accept_touched: bool = False) -> list[str]:
    """Compare a file with its kept state: one line for all differences, none where it is the same.

    Args:
        path: of the file.
        then: its state.
        files: the file layer.
        accept_touched: whether a file is the same whose contents are, whatever its time of change.
    """
    try:
        files = layer_of(path, files)
        now = file_fingerprint(path, files)
        found = changes(then, now)
        if found and (then["size"], then["sample"]) == (now["size"], now["sample"]):
            if "contents" not in then:
                found.append("no more of it was kept, so that it cannot be said to be only touched")
            elif not accept_touched:
                found.append("accept_touched=True (--accept-touched) compares its contents")
            elif contents_digest(path, _count(then), files) == then["contents"]:
                found = []
            else:
                found = ["its content is another, though size and sampled content are the same"]
    except OSError as error:
        return [f"{shown(path)} cannot be read: {explain(error)[0]}"]
    except ValueError:
        return [f"{shown(path)} is no path of a file"]
    return [f"{shown(path)} has changed: {', '.join(found)}"] if found else []


class MovedWeights:
    """A file of weights that lies elsewhere than a job's description says.

    Its contents are compared with the state that was kept. Its time of change is not, since a copy has another one.

    Args:
        path: where it is now, absolute.
        needed: whether a job that reads other weights is refused.
    """

    def __init__(self, path: str, *, needed: bool = True) -> None:
        self.path = path
        self._needed = needed
        self._compared: dict[tuple[Any, ...], list[str]] = {}

    def placed(self, graph: Mapping[str, Any]) -> dict[str, Any]:
        """Return the description with this path where the file has the contents that were kept.

        Raises:
            CheckpointError: if it is needed, and the job reads weights, none of which are in such a file.
        """
        nodes = Fields(graph, "a job").items("nodes", MOST_NODES)
        made = [self._placed(node) if _is_weight(node) else node for node in nodes]
        if self._needed and self._compared and all(self._compared.values()):
            refuse(
                f"cannot go on with the weights in {shown(self.path)}",
                expected="the file that was read when the job was frozen, wherever it is now",
                got="; ".join(next(iter(self._compared.values()))),
                hint="give the path of that file, or of a copy",
            )
        return {**graph, "nodes": made}

    def _placed(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        file = node["file"]
        _, state = read_state(Fields(file, "a file"))
        key = tuple(state.values())
        if key not in self._compared:
            self._compared[key] = changed_file(self.path, state, accept_touched=True)
        if self._compared[key]:
            return node
        return {**node, "file": {**file, "path": self.path, "mtime_ns": os.stat(self.path).st_mtime_ns}}


def _is_weight(node: object) -> bool:
    return isinstance(node, Mapping) and node.get("tag") == "weight" and "file" in node


def weight_paths(graph: Mapping[str, Any]) -> frozenset[str]:
    """Return the paths of files of weights in a job's description."""
    nodes = filter(_is_weight, Fields(graph, "a job").items("nodes", MOST_NODES))
    return frozenset(read_state(Fields(node["file"], "a file"))[0] for node in nodes)


def array_sample(array: np.ndarray) -> str:
    """Return a SHA-256 over dtype, shape and 16 runs of numbers of an array, of any layout and byte order."""
    native = array.dtype.newbyteorder("=") if array.dtype.kind != "V" else array.dtype
    digest = hashlib.sha256(f"{native.name} {array.shape}".encode())
    for begin, length in blocks(array.size, max(1, _BLOCK_BYTES // array.itemsize)):
        digest.update(np.ascontiguousarray(array.flat[begin : begin + length], native).tobytes())
    return digest.hexdigest()


def function_digest(function: object) -> str:
    """Return a digest of a function's code and of what it holds, as far as that can be seen.

    The digest covers its bytecode, constants and names. It covers plain data in its defaults, in its closure and in
    the attributes of an object that can be called. Plain data are numbers, text, small arrays, and lists and maps of
    them. What global names mean is not part of it, nor are line numbers and the name of the file.
    """
    if isinstance(function, NotBound) and function.digest is not None:
        return function.digest
    digest = hashlib.sha256()
    for part in _function_parts(function, 0):
        digest.update(repr(part).encode(errors="surrogatepass"))
    return digest.hexdigest()


_DEEPEST = 8
_OPERATORS = (operator.methodcaller, operator.itemgetter, operator.attrgetter)
"""Objects whose fields are seen by `__reduce__` alone."""
_COMPARED_BYTES = 1 << 20


def _function_parts(function: Any, depth: int) -> Iterable[object]:
    """Return the parts of a function, functions that it holds included."""
    if depth > _DEEPEST:
        return
    if isinstance(function, functools.partial):
        yield from _function_parts(function.func, depth + 1)
        yield from _value_parts((function.args, function.keywords), depth)
    elif isinstance(function, MethodType):
        yield from _function_parts(function.__func__, depth + 1)
        yield from _value_parts(getattr(function.__self__, "__dict__", None), depth)
    elif isinstance(function, FunctionType):
        yield from _code_parts(function.__code__, depth + 1)
        yield from _value_parts((function.__defaults__, function.__kwdefaults__), depth)
        for cell in function.__closure__ or ():
            try:
                yield from _value_parts(cell.cell_contents, depth)
            except ValueError:
                yield "an empty cell"
    elif isinstance(function, _OPERATORS):
        yield type(function).__qualname__
        yield from _value_parts(function.__reduce__()[1:], depth)
    else:
        yield getattr(function, "__qualname__", type(function).__qualname__)
        if hasattr(function, "__wrapped__"):
            yield from _function_parts(function.__wrapped__, depth + 1)
        call = type(function).__call__
        if isinstance(call, FunctionType):
            yield from _function_parts(call, depth + 1)
            yield from _value_parts(getattr(function, "__dict__", None), depth)


def _code_parts(code: CodeType, depth: int) -> Iterable[object]:
    yield (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount)
    for constant in code.co_consts:
        yield from _value_parts(constant, depth)


def _value_parts(value: Any, depth: int) -> Iterable[object]:
    """Return a value that a function holds, as far as it is plain."""
    if depth > _DEEPEST:
        return
    if isinstance(value, CodeType):
        yield from _code_parts(value, depth + 1)
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        yield (type(value).__name__, value)
    elif isinstance(value, tuple | list):
        yield (type(value).__name__, len(value))
        for one in value:
            yield from _value_parts(one, depth + 1)
    elif isinstance(value, dict):
        yield ("dict", len(value))
        for key in sorted(value, key=repr):
            yield repr(key) if isinstance(key, str | int | float) else type(key).__qualname__
            yield from _value_parts(value[key], depth + 1)
    elif isinstance(value, frozenset | set):
        # Sets have an order of their own in each process.
        yield sorted(repr(one) if isinstance(one, str | bytes | int | float) else "" for one in value)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.nbytes <= _COMPARED_BYTES:
        yield (value.dtype.name, value.shape, value.tobytes())
    elif callable(value) and not isinstance(value, type):
        yield from _function_parts(value, depth + 1)
    else:
        yield type(value).__qualname__
