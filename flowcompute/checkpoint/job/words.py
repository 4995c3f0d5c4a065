"""A job in words, told from its description alone: nothing is imported, bound or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.attributes import decode_attrs
from flowcompute.checkpoint.job.fields import MOST_NODES, Fields, brief, read_calls, refuse
from flowcompute.checkpoint.job.fingerprint import changed_file, files_of, read_state
from flowcompute.checkpoint.job.parts import SINKS, TAGS
from flowcompute.elements import MOST, Destination, UserCall
from flowcompute.errors import Site
from flowcompute.files import FILES, Files, shown
from flowcompute.graph import draw_lines, fold_steps
from flowcompute.imports import dataclass
from flowcompute.spec import Spec, Stream

_PROMISES = {part.tag: kind.promise for kind, part in SINKS.items() if issubclass(kind, Destination)}
_HELD = {
    "memory": "an array, kept in the checkpoint",
    "iterate": "an iterable",
    "iterated_tokens": "an iterable of texts",
    "feed": "a feed",
}
_WHERE = {"to_array": " in memory, kept in the checkpoint", "callback": " to a function"}


@dataclass(frozen=True)
class Told:
    """A node of a description, as far as words need it."""

    tag: str
    name: str
    spec: Spec
    inputs: tuple[int, ...]
    bind: str | None
    data: Mapping[str, Any]
    site: Site | None
    call: UserCall | None
    step: bool

    @property
    def place(self) -> str:
        """The user's line, as `graph/draw.py` gives it."""
        number = self.tag == "constant" and not self.spec.shape
        return "" if number or self.site is None else self.site.short

    @property
    def text(self) -> str:
        """The element in a line."""
        if self.tag == "constant" and not self.spec.shape and "bytes" in self.data:
            return self._number()
        if self.call is not None and not self.step:
            told = brief(self.name) if self.call.name in self.name else f"{brief(self.name)} ({brief(self.call.name)})"
            return f"{told}{' ' if self.call.arguments else ''}{brief(self.call.arguments)}: {self.spec}"
        operation = brief(self.data.get("op", self.tag)).partition(".")[2] or self.tag
        same = self.tag in ("compute", "random") and operation.partition(".")[0] in self.name
        title = brief(self.name) if same or self.tag in self.name else f"{brief(self.name)} ({operation})"
        attrs = decode_attrs(self.data["attrs"]) if "attrs" in self.data else {}
        said = {key: value for key, value in attrs.items() if value not in (None, False) and key != "correction"}
        return f"{title}{''.join(f' {key}={brief(value)}' for key, value in said.items())}: {self.spec}"

    def _number(self) -> str:
        data = self.data["bytes"]
        if not isinstance(data, bytes) or len(data) != self.spec.dtype.itemsize:
            refuse("cannot read a number from its bytes", expected="the bytes of one number", got=data)
        return str(np.frombuffer(data, self.spec.dtype)[0])


@dataclass(frozen=True)
class JobWords:
    """The text that a description of a job is shown as.

    Args:
        data: as `describe_job` gives it.

    Raises:
        CheckpointError: if it is no description.
    """

    nodes: tuple[Told, ...]
    roots: tuple[int, ...]

    @classmethod
    def read(cls, data: object) -> JobWords:
        """Read a description, and check all of it that is used here."""
        fields = Fields(data, "a job")
        calls = read_calls(fields)
        nodes = tuple(_node(one, i, calls) for i, one in enumerate(fields.items("nodes", MOST_NODES)))
        return cls(nodes, fields.wholes("roots", most=len(nodes) - 1, length=MOST_NODES))

    def graph(self) -> str:
        """Draw the graph as the tree that `element.draw()` shows."""
        _, inputs = fold_steps([node.inputs for node in self.nodes], self.roots, self._joins, self._hides)
        number = {i: position for position, i in enumerate(inputs)}
        kept = [self.nodes[i] for i in inputs]
        operands = [[number[operand] for operand in inputs[i]] for i in inputs]
        return draw_lines([number[root] for root in self.roots], operands, lambda i: (kept[i].text, kept[i].place))

    def _joins(self, step: int, user: int) -> bool:
        """Check whether a step of a call is drawn as one with its user; see `graph/folding.py`."""
        one, other = self.nodes[step], self.nodes[user]
        return one.step and one.tag != "constant" and one.call is not None and one.call is other.call

    def _hides(self, operand: int, user: int) -> bool:
        """Check whether a number is a function's own, or among the arguments that it shows."""
        one, call = self.nodes[operand], self.nodes[user].call
        number = one.tag == "constant" and not one.spec.shape
        return number and one.call is not None and call is not None and not call.of_operands

    def sources(self, files: Files = FILES) -> Iterator[str]:
        """Yield a line for each source, and one for each of its files: its kept state, and whether it still holds."""
        for node in self.nodes:
            if node.tag in _HELD:
                held = "given again by name" if node.bind is not None else ""
                yield f"{brief(node.name)}: {node.spec}, {' '.join(filter(None, (_HELD[node.tag], held)))}"
            elif kept := files_of(node.data):
                yield f"{brief(node.name)}: {node.spec}"
                yield from dict.fromkeys(f"  {_file(one, files)}" for one in kept)

    def destinations(self) -> Iterator[str]:
        """Yield a line for each destination, with its promise."""
        for node in self.nodes:
            if node.tag in _PROMISES:
                data = Fields(node.data, "a file")
                where = f" to {shown(data.text('target'))}" if "target" in data else _WHERE.get(node.tag, "")
                yield f"{brief(node.name)}: {node.spec}{where}, {_PROMISES[node.tag]}"

    def files(self) -> list[str]:
        """Return absolute paths of the files that the job reads."""
        found = (read_state(Fields(one, "a file"))[0] for node in self.nodes for one in files_of(node.data))
        return list(dict.fromkeys(found))

    def targets(self) -> list[str]:
        """Return absolute paths of the files that the job makes, those of dropped records among them."""
        data = [Fields(node.data, "a file") for node in self.nodes]
        made = [one.text("target") for one in data if "target" in one]
        return made + [path for one in data if "dead_letter" in one and (path := one.maybe("dead_letter", one.text))]

    def bound(self) -> dict[str, str]:
        """Return the kinds of things that must be given again, by the names of their elements."""
        return {node.name: node.bind for node in self.nodes if node.bind is not None}


def _node(data: object, position: int, calls: Sequence[UserCall]) -> Told:
    fields = Fields(data, "a node")
    assert isinstance(data, Mapping)
    length = fields.maybe("length", fields.whole)
    return Told(
        tag=fields.choice("tag", tuple(TAGS)),
        name=fields.text("name"),
        spec=Spec(
            fields.dtype("dtype"),
            fields.wholes("shape", most=MOST - 1),
            Stream(length) if fields.flag("stream") else None,
        ),
        inputs=fields.wholes("inputs", most=position - 1, length=MOST_NODES),
        bind=fields.text("bind") if "bind" in fields else None,
        data=data,
        site=fields.site("site"),
        call=calls[fields.whole("call", most=len(calls) - 1)] if "call" in fields else None,
        step=fields.flag("step") if "call" in fields else False,
    )


def _file(data: Any, files: Files) -> str:
    path, state = read_state(Fields(data, "a file"))
    lines = changed_file(path, state, files)
    seen = f"{shown(path)}: {state['size']:,} bytes, sample {brief(state['sample'])[:12]}, unchanged"
    return lines[0] if lines else seen
