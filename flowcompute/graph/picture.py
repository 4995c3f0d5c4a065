"""Drawing of the graph as SVG: operands above their users, with a frame and notes for each kernel.

A thin line is a value in a register. A thick line ends at a frame: its value is stored in memory.
"""

from __future__ import annotations

import colorsys
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import field
from html import escape

from flowcompute.elements import Compute, Constant
from flowcompute.graph.draw import details, title
from flowcompute.graph.drawing_layout import LANE, DrawnEdge, Layers, Point, place
from flowcompute.graph.folding import fold_groups
from flowcompute.graph.graph import Graph, is_number
from flowcompute.graph.repeats import fold_repeats
from flowcompute.imports import dataclass

CHAR, LINE = 7, 16
"""Width of a character and height of a line, for text of 12 pixels."""

BOX, NUMBER, MARGIN = 40, 24, 20
"""Heights of the boxes of nodes and of scalars, and the margin around boxes."""

INSIDE, OUTSIDE = (20, 28), (40, 48)
"""Horizontal and vertical gaps inside a frame and between frames."""

TEXT, LABEL = 72, 48
"""Characters in a line of a frame's text, more where it is wider, and most characters of a box's text."""

BOLD, GREY, DARK = ' font-weight="bold"', ' fill="#666"', ' fill="#222"'

_UNFRAMED = -1


@dataclass
class _Frame:
    """The nodes of a kernel, or one node without a frame.

    Attributes:
        number: index of the kernel; `_UNFRAMED` for none.
        nodes: ids of the nodes.
        title: lines of text at the top.
        enter: port of each incoming (frame, value). Boxes and ports share one numbering.
        leave: port of each value that other frames read.
        inner: layout of the nodes and ports.
    """

    number: int
    nodes: list[int]
    title: list[str]
    enter: dict[tuple[int, int], int] = field(default_factory=dict)
    leave: dict[int, int] = field(default_factory=dict)
    inner: Layers = field(default_factory=lambda: Layers([], [], 0, 0))

    @property
    def unframed(self) -> bool:
        return self.number == _UNFRAMED

    @property
    def text_width(self) -> float:
        return CHAR * max(map(len, self.title), default=0)

    @property
    def left(self) -> float:
        return 0 if self.unframed else (self.size[0] - self.inner.width) / 2

    @property
    def top(self) -> float:
        return 0 if self.unframed else 2 * MARGIN + LINE * len(self.title)

    @property
    def size(self) -> tuple[float, float]:
        if self.unframed:
            return self.inner.width, self.inner.height
        return max(self.text_width, self.inner.width) + 2 * MARGIN, self.top + self.inner.height + MARGIN

    def port(self, port: int) -> float:
        """Return the horizontal position of a port."""
        return self.left + (self.inner.width / 2 if self.unframed else self.inner.corners[port][0] + LANE / 2)


class _Picture:
    def __init__(
        self,
        graph: Graph,
        groups: Mapping[str, Sequence[int]],
        notes: Mapping[str, Sequence[str]],
        shares: Mapping[str, float] | None,
        counts: Mapping[int, int],
    ) -> None:
        self.nodes = graph.nodes
        self.shares = shares
        self.counts = counts
        self.names = list(groups)
        self.notes = notes
        self.holders: dict[int, list[int]] = {}
        self.frames: list[_Frame] = []
        for number, nodes in enumerate(groups.values()):
            for i in nodes:
                self.holders.setdefault(i, []).append(number)
            self.frames.append(_Frame(number, sorted({*nodes, *self._numbers(nodes)}), []))
        users = graph.users()
        for node in self.nodes:
            inside = is_number(node) and users[node.id] and all(user in self.holders for user in users[node.id])
            if node.id not in self.holders and not inside:
                self.frames.append(_Frame(_UNFRAMED, [node.id], []))
        self.unframed = {frame.nodes[0]: at for at, frame in enumerate(self.frames) if frame.unframed}

    def _numbers(self, nodes: Sequence[int]) -> set[int]:
        """Return the scalar constants that a kernel uses, which are drawn in each kernel's frame."""
        return {i for user in nodes for i in self.nodes[user].inputs if is_number(self.nodes[i])}

    def svg(self) -> str:
        """Render the picture as SVG."""
        ways = [way for at in range(len(self.frames)) for way in self._enter(at)]
        for frame in self.frames:
            frame.inner = self._inside(frame)
            frame.title = self._title(frame)
        edges = [
            DrawnEdge(
                a, self.frames[a].port(self.frames[a].leave[i]), b, self.frames[b].port(self.frames[b].enter[a, i])
            )
            for a, i, b in ways
        ]
        outer = place([frame.size for frame in self.frames], edges, OUTSIDE)
        corners = [(x + MARGIN, y + MARGIN) for x, y in outer.corners]
        parts = [
            _frame(frame, corner, self._fill(frame.number))
            for frame, corner in zip(self.frames, corners, strict=True)
            if not frame.unframed
        ]
        parts += [_line(route, (MARGIN, MARGIN), stored=True) for route in outer.routes]
        for frame, corner in zip(self.frames, corners, strict=True):
            parts += self._content(frame, corner)
        width, height = outer.width + 2 * MARGIN, outer.height + 2 * MARGIN
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12" style="background:#fff">'
        )
        return "\n".join([head, *parts, "</svg>"]) + "\n"

    # -- connections ---------------------------------------------------------------------------------

    def _enter(self, at: int) -> list[tuple[int, int, int]]:
        """Return the values that a frame reads from others: (frame, value, this frame)."""
        frame = self.frames[at]
        ways: dict[tuple[int, int, int], None] = {}
        for i in frame.nodes:
            for value in self.nodes[i].inputs:
                if value not in frame.nodes:
                    ways[self._origin(frame.number, value), value, at] = None
        for origin, value, _ in ways:
            frame.enter[origin, value] = len(frame.nodes) + len(frame.enter)
            self.frames[origin].leave.setdefault(value, -1)
        return list(ways)

    def _origin(self, number: int, value: int) -> int:
        """Return the frame that a frame reads a value from. Two passes that need a value both compute it."""
        holders = self.holders.get(value)
        if holders is None:
            return self.unframed[value]
        return max((holder for holder in holders if holder < number), default=holders[0])

    def _inside(self, frame: _Frame) -> Layers:
        """Compute the layout of a frame, with inputs at the top and outputs at the bottom."""
        sizes = [self._size(i) for i in frame.nodes]
        if frame.unframed:
            return place(sizes, [], INSIDE)
        at = {i: position for position, i in enumerate(frame.nodes)}
        edges = [DrawnEdge(at[a], sizes[at[a]][0] / 2, at[b], x) for a, b, x in self._uses(frame) if a in at]
        ports = {value: port for (_, value), port in frame.enter.items()}
        edges += [DrawnEdge(ports[a], LANE / 2, at[b], x) for a, b, x in self._uses(frame) if a not in at]
        sizes += [(LANE, 0)] * len(frame.enter)
        for value in frame.leave:
            frame.leave[value] = len(sizes)
            edges.append(DrawnEdge(at[value], sizes[at[value]][0] / 2, len(sizes), LANE / 2))
            sizes.append((LANE, 0))
        return place(sizes, edges, INSIDE, first=frame.enter.values(), last=frame.leave.values())

    def _title(self, frame: _Frame) -> list[str]:
        """Return the lines at the top of a frame, which are as wide as what it holds, or as is read with ease."""
        if frame.unframed:
            return []
        name = self.names[frame.number]
        times = self.counts.get(frame.nodes[-1], 1)
        texts = (name if times == 1 else f"{name}, {times} times", *self.notes.get(name, ()))
        return [line for text in texts for line in textwrap.wrap(text, max(TEXT, int(frame.inner.width / CHAR)))]

    def _uses(self, frame: _Frame) -> list[tuple[int, int, float]]:
        """Return operand, user, and the position on the user's box where the operand's line ends."""
        return [
            (value, i, self._size(i)[0] * (position + 1) / (len(self.nodes[i].inputs) + 1))
            for i in frame.nodes
            for position, value in enumerate(self.nodes[i].inputs)
        ]

    # -- rendering -----------------------------------------------------------------------------------

    def _size(self, i: int) -> tuple[float, float]:
        texts = self._texts(i)
        return MARGIN + CHAR * max(map(len, texts)), BOX if len(texts) > 1 else NUMBER

    def _texts(self, i: int) -> list[str]:
        """Return the lines in a box."""
        node = self.nodes[i]
        text = textwrap.shorten(title(node) + details(node), LABEL, placeholder=" …")
        times = self.counts.get(i, 1)
        if times > 1 and i not in self.holders:
            text += f", {times} times"
        return [text] if is_number(node) else [text, str(node.spec)]

    def _content(self, frame: _Frame, corner: Point) -> list[str]:
        offset = corner[0] + frame.left, corner[1] + frame.top
        parts = [_line(route, offset, stored=False) for route in frame.inner.routes]
        for x, y, down in self._stubs(frame):
            route = [(offset[0] + x, y0 + corner[1]) for y0 in (y, down)]
            parts.append(_line(route, (0, 0), stored=True))
        for i, (x, y) in zip(frame.nodes, frame.inner.corners, strict=False):
            parts.append(self._box(i, (x + offset[0], y + offset[1]), frame.number))
        # Lines into the frame go on behind its text.
        return parts if frame.unframed else [*parts, _titled(frame, corner, self._fill(frame.number))]

    def _stubs(self, frame: _Frame) -> list[tuple[float, float, float]]:
        """Return the lines between the side of a frame and its ports."""
        if frame.unframed:
            return []
        height, bottom = frame.size[1], frame.top + frame.inner.height
        enter = [(frame.port(port) - frame.left, 0.0, frame.top) for port in frame.enter.values()]
        return enter + [(frame.port(port) - frame.left, bottom, height) for port in frame.leave.values()]

    def _fill(self, number: int) -> str:
        return _colour(number, 95) if self.shares is None else _heat(self.shares.get(self.names[number], 0.0))

    def _box(self, i: int, corner: Point, number: int) -> str:
        node, (x, y), (width, height) = self.nodes[i], corner, self._size(i)
        fill = "#fff" if number == _UNFRAMED or isinstance(node.element, Constant) else _colour(number, 85)
        second = GREY
        if self.shares is not None:
            # Grey cannot be read on what takes most of the time.
            second = DARK
            fill = _heat(self.shares.get(node.name, 0.0)) if number == _UNFRAMED else "#fff"
        dashes = ' stroke-dasharray="5 3"' if number == _UNFRAMED and isinstance(node.element, Compute) else ""
        texts = "".join(
            f'<text x="{x + width / 2:.0f}" y="{y + 17 + 15 * row:.0f}" text-anchor="middle"'
            f"{second if row else ''}>{escape(text)}</text>"
            for row, text in enumerate(self._texts(i))
        )
        return (
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" fill="{fill}" '
            f'stroke="#444"{dashes}/>{texts}'
        )


def _colour(number: int, lightness: int) -> str:
    return _rgb((200 + number * 67) % 360, 0.6, lightness / 100)


def _heat(share: float) -> str:
    return _rgb(18, 0.95, 0.98 - 0.46 * share)


def _rgb(hue: int, saturation: float, lightness: float) -> str:
    """Return a colour as every reader of SVG knows it."""
    channels = colorsys.hls_to_rgb(hue / 360, lightness, saturation)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)


def _frame(frame: _Frame, corner: Point, fill: str) -> str:
    (x, y), (width, height) = corner, frame.size
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="10" '
        f'fill="{fill}" stroke="{_colour(frame.number, 45)}"/>'
    )


def _titled(frame: _Frame, corner: Point, fill: str) -> str:
    """Render the text of a frame on a ground of its own."""
    x, y = corner[0] + MARGIN, corner[1] + MARGIN
    texts = "".join(
        f'<text x="{x:.0f}" y="{y + 12 + LINE * row:.0f}"{BOLD if not row else ""}>{escape(line)}</text>'
        for row, line in enumerate(frame.title)
    )
    width, height = frame.text_width, LINE * len(frame.title)
    return f'<path d="M{x:.0f},{y:.0f} h{width:.0f} v{height:.0f} h-{width:.0f} z" fill="{fill}"/>{texts}'


def _line(route: Sequence[Point], offset: Point, *, stored: bool) -> str:
    """Render a route as SVG: curves between layers, straight lines through them."""
    points = [(x + offset[0], y + offset[1]) for x, y in route]
    path = f"M{points[0][0]:.0f},{points[0][1]:.0f}"
    for (ax, ay), (bx, by) in itertools.pairwise(points):
        half = (ay + by) / 2
        path += f" L{bx:.0f},{by:.0f}" if ax == bx else f" C{ax:.0f},{half:.0f} {bx:.0f},{half:.0f} {bx:.0f},{by:.0f}"
    stroke = 'stroke="#333" stroke-width="2"' if stored else 'stroke="#888"'
    return f'<path d="{path}" fill="none" {stroke}/>'


def draw_svg(
    graph: Graph,
    groups: Mapping[str, Sequence[int]] | None = None,
    notes: Mapping[str, Sequence[str]] | None = None,
    shares: Mapping[str, float] | None = None,
) -> str:
    """Draw the graph as a self-contained SVG.

    A call of a public function is one box in each kernel that has steps of it. Equal blocks that follow each other are
    drawn once, with their number.

    Args:
        graph: the graph.
        groups: kernel name -> nodes, in execution order; each has a frame and a colour.
        notes: kernel name -> further lines in its frame.
        shares: kernel or node name -> its share of the whole, 0 to 1, which then determines its colour.
    """
    folded, held = fold_groups(graph, groups or {})
    short, left, counts = fold_repeats(folded, held)
    return _Picture(short, left, notes or {}, shares, counts).svg()
