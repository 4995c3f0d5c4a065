"""Print the integer expressions of the kernel IR in C's syntax, which OpenCL C reads."""

from __future__ import annotations

from flowcompute.ir.index_nodes import (
    Arithmetic,
    ArrayNumber,
    Both,
    Choice,
    Comparison,
    ConditionLike,
    Either,
    Index,
    IndexLike,
    IsFinite,
    IsNan,
    IsSet,
    IsZero,
    Lane,
    Name,
    ToWidth,
    in_lane,
    is_narrow,
)

_PRECEDENCE = {
    "?": 0,
    "||": 1,
    "&&": 2,
    "&": 3,
    "^": 4,
    "==": 5,
    "!=": 5,
    "<": 6,
    "<=": 6,
    ">": 6,
    ">=": 6,
    "<<": 7,
    ">>": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
}
"""How tightly an operator binds. All of them join from left to right; casts and calls bind more tightly than any."""
_ATOM = 10


def index_text(index: IndexLike | ConditionLike, lane: int | None = None) -> str:
    """Return the C text of an integer or condition; with `lane`, of that lane's."""
    if lane is not None and isinstance(index, int | Index):
        index = in_lane(index, lane)
    return _printed(index)[0]


def known_number(index: IndexLike | None) -> int | None:
    """Return an integer that is known when the kernel is lowered."""
    return index if isinstance(index, int) else None


def factor_text(index: IndexLike) -> str:
    """Return the C text of an integer, in brackets unless it is a name, number, cast or call."""
    return _bracketed(index, _ATOM)


def _bracketed(index: IndexLike | ConditionLike, least: int) -> str:
    text, precedence = _printed(index)
    return text if precedence >= least else f"({text})"


def _printed(index: IndexLike | ConditionLike) -> tuple[str, int]:
    """Return a text and how tightly its outermost operator binds."""
    match index:
        case bool():
            return str(int(index)), _ATOM
        case int():
            return str(index), _ATOM if index >= 0 else _PRECEDENCE["-"]
        case Name(name):
            return name, _ATOM
        case Arithmetic("min" | "max" as function, left, right):
            narrow = index.narrow
            return f"{function}({_widened(left, narrow)}, {_widened(right, narrow)})", _ATOM
        case Arithmetic(op, left, right) | Comparison(op, left, right):
            return _joined(op, left, right)
        case Both(left, right):
            return _joined("&&", left, right)
        case Either(left, right):
            return _joined("||", left, right)
        case ToWidth(operand, narrow):
            return f"({'int' if narrow else 'long'}){_bracketed(operand, _ATOM)}", _ATOM
        case Choice(condition, yes, no):
            least = _PRECEDENCE["?"] + 1
            return " ".join((_bracketed(condition, least), "?", _bracketed(yes, least), ":", _bracketed(no, 0))), 0
        case ArrayNumber(array, position):
            return f"{array}[{index_text(position)}]", _ATOM
        case IsSet(operand):
            return _printed(operand)
        case IsNan(variable):
            return f"isnan({variable})", _ATOM
        case IsZero(variable):
            return f"{variable} == 0", _PRECEDENCE["=="]
        case IsFinite(variable):
            return f"isfinite({variable})", _ATOM
        case Lane():
            raise ValueError("cannot print the number of a lane: got LANE, expected a number; ask for one lane's index")
    raise TypeError(f"cannot print an index: got {index!r}, expected an Index or a Condition")


def _joined(op: str, left: IndexLike | ConditionLike, right: IndexLike | ConditionLike) -> tuple[str, int]:
    precedence = _PRECEDENCE[op]
    return f"{_bracketed(left, precedence)} {op} {_bracketed(right, precedence + 1)}", precedence


def _widened(index: IndexLike, narrow: bool) -> str:
    """Return an operand of `min` or `max`, whose operands must have one type."""
    if isinstance(index, int):
        return str(index) if narrow else f"{index}L"
    return index_text(index) if is_narrow(index) == narrow else f"(long){_bracketed(index, _ATOM)}"
