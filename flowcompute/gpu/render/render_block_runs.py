"""Runs of neighbouring numbers of a block as vectors: the function that decodes a run of a format.

What all lanes share, such as scales, is computed once, as a number. The bytes of neighbouring places are one load. What
differs in a few lanes is computed for each of them, and put into a vector. Whole numbers in vectors have 32 bits: bytes
become floats by way of them, and several parts of a byte share its widening.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count

from flowcompute.elements.quantized import (
    AsFloat,
    BlockFormat,
    Byte,
    CodebookEntry,
    Expression,
    Float,
    FloatNumber,
    OfFloats,
    OfWhole,
    Place,
    Whole,
    WholeNumber,
    exact_products,
    in_order,
    lanes_of,
    offset_between,
    operands,
)

_ON_VECTORS = ("+", "-", "*", "<<", ">>", "&", "|", "^")


@cache
def run_function(
    name: str,
    block_format: BlockFormat,
    lanes: int,
    text: Callable[[Expression, list[str]], str],
    bytes_type: str,
    fma: str,
) -> str:
    """Return the function that decodes a run of a block, whose place is a multiple of `lanes`.

    What a block means is data, so `precision="fast"` contracts nothing in it. Products that float32 holds exactly are
    added by `fma`, which rounds as often: once.

    Args:
        name: of the function.
        block_format: of the block.
        lanes: numbers in a run.
        text: returns the text of an expression of one number, given those of its operands.
        bytes_type: vectors of bytes that may begin anywhere.
        fma: the function of vectors that multiplies and adds, fused where the processor can.
    """
    found = _Run(block_format, lanes, text, bytes_type, fma, {})
    found.text()
    uses: dict[Expression, int] = dict.fromkeys(found.numbers, 0)
    for node in dict.fromkeys(one for number in found.numbers for one in in_order(number)):
        for one in operands(node):
            uses[one] = uses.get(one, 0) + 1
    for number in found.asked:
        uses[number] += 1
    body = _Run(block_format, lanes, text, bytes_type, fma, uses).text()
    return (
        f"static inline float{lanes} {name}(const __global uchar *block, int place) {{\n"
        f"#pragma OPENCL FP_CONTRACT OFF\n{body}}}\n"
    )


class _Run:
    """The text of a run.

    Attributes:
        asked: expressions of one number that vectors are made of, as often as they are asked for.
    """

    def __init__(
        self,
        block_format: BlockFormat,
        lanes: int,
        text: Callable[[Expression, list[str]], str],
        bytes_type: str,
        fma: str,
        uses: dict[Expression, int],
    ) -> None:
        self.value = block_format.value
        self.lanes = lanes
        self.asked: list[Expression] = []
        self._each = lanes_of(block_format, lanes)
        self._exact = exact_products(block_format)
        self._text_of = text
        self._bytes_type = bytes_type
        self._fma = fma
        self._uses = uses
        self._lines: list[str] = []
        self._names = count()
        self._scalars: dict[Expression, str] = {}
        self._vectors: dict[Expression, str] = {}

    @property
    def numbers(self) -> list[Expression]:
        """The expressions of one number that vectors are made of."""
        return list(dict.fromkeys(self.asked))

    def text(self) -> str:
        """Return the body of the function."""
        value = self._float(self.value)
        return "".join(self._lines) + f"    return {value};\n"

    # -- one number -------------------------------------------------------------------------------

    def _scalar(self, number: Expression) -> str:
        """Return the text of one number. Parts that are used twice are variables."""
        self.asked.append(number)
        for node in in_order(number):
            if node in self._scalars:
                continue
            text = self._text_of(node, [self._scalars[one] for one in operands(node)])
            if self._uses.get(node, 0) > 1 and not isinstance(node, Place | WholeNumber | FloatNumber):
                text = self._declared("int" if isinstance(node, Whole) else "float", text)
            self._scalars[node] = text
        return self._scalars[number]

    def _declared(self, kind: str, text: str) -> str:
        name = f"v{next(self._names)}"
        self._lines.append(f"    {kind} {name} = {text};\n")
        return name

    def _is_one(self, node: Expression) -> bool:
        """Check whether all lanes have the same number."""
        return all(other is self._each[node][0] for other in self._each[node])

    # -- vectors ----------------------------------------------------------------------------------

    def _float(self, node: Expression) -> str:
        """Return the text of floats: of a vector, or of a number that all lanes have where one operand is a vector."""
        if self._is_one(node):
            one = self._scalar(self._each[node][0])
            return f"(float{self.lanes})({one})" if node == self.value else one
        if node not in self._vectors:
            match node:
                case AsFloat(of):
                    text = f"__builtin_convertvector({self._whole(of)}, float{self.lanes})"
                case OfFloats("+" | "-" as op, OfFloats("*", a, b) as product, c) if product in self._exact:
                    minus = "-" if op == "-" else ""
                    text = f"{self._fma}({self._spread(a)}, {self._spread(b)}, {minus}{self._spread(c)})"
                case OfFloats(op, left, right):
                    text = f"{self._float(left)} {op} {self._float(right)}"
                case _:
                    text = self._in_lanes("float", node)
            self._vectors[node] = self._declared(f"float{self.lanes}", text)
        return self._vectors[node]

    def _spread(self, node: Float) -> str:
        """Return the text of a vector of floats, also of a number that all lanes have."""
        text = self._float(node)
        return f"(float{self.lanes})({text})" if self._is_one(node) else text

    def _whole(self, node: Whole) -> str:
        """Return the text of a vector of whole numbers."""
        if node not in self._vectors:
            match node:
                case Byte() if self._is_one_load(node):
                    place = self._scalar(self._place(node, 0))
                    load = f"*(const __global {self._bytes_type} *)(block + {place})"
                    # PoCL's conversions are calls, which may lose lanes.
                    text = f"__builtin_convertvector({load}, int{self.lanes})"
                case OfWhole(op, left, right) if op in _ON_VECTORS and not self._is_few(node):
                    text = f"{self._operand(left)} {op} {self._operand(right)}"
                case CodebookEntry(codebook, at) if not self._is_few(node) and not self._is_few(at):
                    rows = self._whole(at)
                    every = ", ".join(f"fc_{codebook.name}_codes[{rows}.s{lane:x}]" for lane in range(self.lanes))
                    text = f"(int{self.lanes})({every})"
                case _:
                    text = self._in_lanes("int", node)
            self._vectors[node] = self._declared(f"int{self.lanes}", text)
        return self._vectors[node]

    def _operand(self, node: Whole) -> str:
        """Return the text of an operand as a vector of whole numbers."""
        if self._is_one(node):
            return f"(int{self.lanes})({self._scalar(self._each[node][0])})"
        if all(isinstance(one, WholeNumber) for one in self._each[node]):
            return self._in_lanes("int", node)
        return self._whole(node)

    def _is_few(self, node: Whole) -> bool:
        """Check whether at most a quarter of the lanes differ, which are then computed one by one."""
        return 4 * len(dict.fromkeys(self._each[node])) <= self.lanes

    def _in_lanes(self, kind: str, node: Expression) -> str:
        """Return a vector of which each lane is computed as one number."""
        return f"({kind}{self.lanes})({', '.join(self._scalar(one) for one in self._each[node])})"

    def _is_one_load(self, node: Byte) -> bool:
        """Check whether the bytes of the lanes are neighbours, in order."""
        first = self._place(node, 0)
        return all(offset_between(first, self._place(node, lane)) == lane for lane in range(self.lanes))

    def _place(self, node: Byte, lane: int) -> Whole:
        """Return the place of the byte that a lane reads."""
        own = self._each[node][lane]
        assert isinstance(own, Byte)
        return own.at
