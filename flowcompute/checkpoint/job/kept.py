"""The job beside its state in a checkpoint: the part that stays the same, and its progress."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self, get_args

from flowcompute.checkpoint.job.fields import Fields
from flowcompute.elements import MOST
from flowcompute.imports import dataclass
from flowcompute.metrics import PassProgress, Progress
from flowcompute.schedule import Shaping
from flowcompute.strategy import Mode, Precision


@dataclass(frozen=True)
class KeptJob:
    """The part of a checkpoint that stays the same in all generations.

    Attributes:
        token: names the drafts of the job; hexadecimal.
        graph: the job as data, by `describe_job`; whoever uses it checks it.
        order: the version of the canonical order of reductions.
        kind: of the device that it was begun on.
        precision: as the user fixed it.
        shaping: decisions of planning that its state depends on.
        flow: the mode of a flow; None for a run.
    """

    token: str
    graph: dict[str, Any]
    order: int
    kind: str
    precision: Precision
    shaping: Shaping
    flow: Mode | None = None

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "token": self.token,
            "graph": self.graph,
            "order": self.order,
            "kind": self.kind,
            "precision": self.precision,
            "float64": self.shaping.float64,
            "fused": self.shaping.fused,
            "piece_bytes": self.shaping.piece_bytes,
            "half_windows": self.shaping.half_windows,
            "product_order": self.shaping.product_order,
            "block_terms": self.shaping.block_terms,
            "flow": self.flow,
        }

    @classmethod
    def read(cls, data: object) -> Self:
        """Read what `plain` gave; entries that a later minor version added are not looked at.

        Raises:
            CheckpointError: if it is something else.
        """
        fields = Fields(data, "what a checkpoint keeps of its job")
        token, graph = fields.text("token"), fields.take("graph")
        if not re.fullmatch("[0-9a-f]{1,64}", token):
            # It becomes part of paths.
            fields.wrong("token", "hexadecimal digits")
        if not isinstance(graph, dict):
            fields.wrong("graph", "the description of a job")
        precision: Any = fields.choice("precision", get_args(Precision))
        flow: Any = fields.maybe("flow", lambda key: fields.choice(key, get_args(Mode)))
        pieces = fields.maybe("piece_bytes", lambda key: fields.whole(key, least=1))
        return cls(
            token,
            graph,
            fields.whole("order"),
            fields.text("kind"),
            precision,
            # Jobs that were kept before there was such an order do not have it.
            Shaping(
                fields.flag("float64"),
                fields.flag("fused"),
                pieces,
                fields.flag("half_windows") if "half_windows" in fields else False,
                fields.whole("product_order", least=1, most=2) if "product_order" in fields else 1,
                fields.flag("block_terms") if "block_terms" in fields else False,
            ),
            flow,
        )


def read_progress(body: Mapping[str, Any]) -> Progress:
    """Read the progress of a job at a generation.

    Raises:
        CheckpointError: if its body does not say so.
    """
    fields = Fields(body, "a generation")
    done = fields.flag("done")
    kept = Fields(fields.take("progress"), "the progress of a job")
    return Progress(
        items=kept.whole("items"),
        total_items=kept.maybe("total_items", kept.whole),
        bytes_read=kept.whole("bytes_read"),
        seconds=kept.real("seconds"),
        done=done,
        # Jobs that were kept before these were have none.
        bytes_written=kept.whole("bytes_written") if "bytes_written" in kept else 0,
        current=kept.maybe("pass", lambda _: _read_pass(kept)) if "pass" in kept else None,
    )


def _read_pass(kept: Fields) -> PassProgress:
    items = kept.items("pass", 4)
    known = [item for item in items if item is not None]
    counts = len(items) == 4 and all(type(item) is int and 0 <= item < MOST for item in known)
    if not counts or None in items[:3] or not 1 <= items[0] <= items[1]:
        kept.wrong("pass", "its number, the number of passes, and records")
    return PassProgress(*items)
