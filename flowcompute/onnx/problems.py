"""What of a model cannot be computed: all of it at once, by node, with a reason out of a closed set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowcompute.elements import user_site
from flowcompute.errors import FlowError

REASONS = {
    "operator": "no operator of this name is known",
    "domain": "operators of this domain are none of a graph of arrays",
    "opset": "the operator is not defined in this version of its domain",
    "attribute": "an attribute is not known, or has a value that is not supported",
    "missing": "the operator is known, and not supported yet",
    "dtype": "a dtype that elements do not have",
    "string": "strings are no numbers",
    "sequence": "sequences and optional values are no arrays",
    "random": "random numbers have no answer to compare with",
    "training": "the operator is for training",
    "length": "the size of the result follows from the data",
    "codec": "the operator decodes files",
    "batch axis": "records of the stream would be mixed",
    "unknown": "a shape, an axis or a condition is not known when the graph is composed",
    "unbounded": "a loop whose number of turns is not known, or too large",
    "element": "an element that the operator is made of refuses its operands",
    "invalid": "the model is not valid: inputs of the node do not fit each other",
}
"""The reasons for which a node is refused. There are no others."""


class UnsupportedNode(NamedTuple):
    """A node that cannot be computed.

    Attributes:
        node: its name, or "#n" by its place in the graph where it has none.
        op: its operator; of a domain other than ONNX's own as "domain.Operator".
        domain: the domain, empty for ONNX's own.
        opset: version of the domain that the model asks for.
        reason: one of `REASONS`.
        hint: what to do.
        text: what is wrong, in words.
    """

    node: str
    op: str
    domain: str
    opset: int
    reason: str
    hint: str
    text: str


class UnsupportedError(FlowError):
    """A model that holds nodes which cannot be computed.

    Attributes:
        problems: one `UnsupportedNode` for each of them, in the order of the graph.
    """

    _SHOWN = 20

    def __init__(self, problems: Sequence[UnsupportedNode], name: str) -> None:
        self.problems = tuple(problems)
        lines = [
            f"\n  {one.node}: {one.op} (opset {one.opset}): {one.text} [{one.reason}]; {one.hint}"
            for one in self.problems[: self._SHOWN]
        ]
        more = len(self.problems) - self._SHOWN
        lines += [f"\n  and {more} more, in `problems`"] if more > 0 else []
        count = len(self.problems)
        super().__init__(
            f"cannot compute {count} node{'s' if count > 1 else ''} of {name}:{''.join(lines)}",
            element="onnx",
            site=user_site(),
            hint=self.problems[0].hint,
        )

    @property
    def reason(self) -> str:
        """The reason of the first problem."""
        return self.problems[0].reason


class Refusal(Exception):  # noqa: N818 - not for users, who see the error of all of them
    """Refusal of a builder, with what it cannot do. It becomes an `UnsupportedNode`.

    Args:
        reason: one of `REASONS`.
        text: what is wrong, in words.
        hint: what to do.
    """

    def __init__(self, reason: str, text: str, hint: str) -> None:
        assert reason in REASONS, reason
        super().__init__(text)
        self.reason, self.text, self.hint = reason, text, hint
