"""Products by four sub-groups of what a ring has brought to local memory, in inline PTX.

The instructions are `wgmma` of the PTX ISA (section 9.7.15), for compute capability 9.0. They stand behind `MARK`, as
those of `rings` do.
"""

from __future__ import annotations

from collections.abc import Iterator

from flowcompute.gpu.render.ptx.fragments import FORMATS, local_place
from flowcompute.gpu.render.ptx.rings import MARK
from flowcompute.imports import dataclass
from flowcompute.ir import GroupMultiply, OverlappedMultiply, Stmt, Var

_OPERAND = """static inline ulong fc_operand(const __local void *from, ulong step) {
    return (ulong)(((uint)(size_t)from & 0x3ffff) >> 4) | step >> 4 << 16 | (ulong)(1024 >> 4) << 32 | (ulong)1 << 62;
}
"""


@dataclass(frozen=True)
class _Sums:
    """Sums of products: their name in instructions, the letter of their registers, and their type."""

    kind: str
    place: str
    memory: str


_WHOLE, _REAL = _Sums("s32", "r", "int"), _Sums("f32", "f", "float")
_SUMS = {1: _WHOLE, 2: _REAL, 4: _REAL}
"""Sums by the bytes of a factor's numbers."""


def group_multiply(multiply: GroupMultiply, helpers: dict[str, str]) -> list[str]:
    """Return the statements that multiply and wait.

    All instructions and the wait for them are one statement: in between, the compiler could move the sums to other
    registers while they are being written.
    """
    lines = _begun(multiply, "", helpers, wait=" wgmma.wait_group.sync.aligned 0;")
    return ["{", *("    " + line for line in [*lines, *_ended(multiply)]), "}"]


def overlapped_multiply(
    overlapped: OverlappedMultiply, helpers: dict[str, str]
) -> Iterator[tuple[list[str], tuple[Stmt, ...]]]:
    """Yield, for each product, the lines that start the next one and wait for this one, and what is behind it."""
    products, declared = overlapped.products, set[Var]()
    begun = [_begun(one, f"p{number}_", helpers, declared=declared) for number, one in enumerate(products)]
    for number, (one, behind) in enumerate(zip(products, overlapped.behind, strict=True)):
        first, following = begun[:1] if number == 0 else [], begun[number + 1 : number + 2]
        lines = [line for lines in [*first, *following] for line in lines]
        yield [*lines, *_awaited(one, len(following)), *_ended(one)], behind


def _scalars(variables: tuple[Var, ...]) -> list[str]:
    """Return the names of the lanes of variables: instructions of groups take registers, one by one."""
    return [f"{one.name}_{lane}" for one in variables for lane in range(4)]


def _fragments(multiply: GroupMultiply) -> list[tuple[Var, ...]]:
    """Return the left operands that are fragments, in the order in which a step multiplies them."""
    last = [multiply.a] if isinstance(multiply.a, tuple) else []
    return [*(fragments for fragments, _ in multiply.before), *last]


def _words(multiply: GroupMultiply) -> list[str]:
    """Return the operands of assembly that are fragments, each once."""
    several = dict.fromkeys(one for fragments in _fragments(multiply) for one in fragments)
    return [f'"r"({one.name}.s{word})' for one in several for word in range(4)]


def _begun(
    multiply: GroupMultiply, prefix: str, helpers: dict[str, str], wait: str = "", declared: set[Var] | None = None
) -> list[str]:
    """Return the statements that start a product, as one piece of assembly.

    `declared` are variables whose lanes have been declared as registers; those of the product are added.
    """
    helpers.setdefault("fc_operand", _OPERAND)
    kind, k_of_step = FORMATS[multiply.dtype]
    columns, count = 8 * len(multiply.sums), 4 * len(multiply.sums)
    itemsize = multiply.dtype.itemsize
    # Bytes from one step of k to the next, in the units of operands.
    own, other = (32 * (1 if along_k else 64) >> 4 for along_k in (not multiply.turned, multiply.along_k))
    further = [distance * itemsize >> 4 for distance in multiply.further]
    step = 16 if multiply.along_k else multiply.aside * itemsize
    registers = ", ".join(f"%{i}" for i in range(count))
    words = _words(multiply)
    number = {word: f"%{count + i}" for i, word in enumerate(words)}
    left = None if isinstance(multiply.a, tuple) else f"%{count + len(words)}"
    first_right = count + len(words) + (left is not None)
    right_kind, _ = FORMATS[multiply.right_dtype or multiply.dtype]
    kinds = f"{_SUMS[itemsize].kind}.{kind}.{right_kind}"
    # Behind the flag of addition stand the signs of factors, which whole numbers have not. Only numbers of 16 bits have
    # flags of transposition.
    signs = "" if itemsize == 1 else ", 1, 1"
    turned = f", {0 if multiply.along_k else 1}" if itemsize == 2 else ""
    text = "{.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0;"
    text += " .reg .pred no; setp.eq.b32 no, 1, 0;" if multiply.fresh else ""
    text += " wgmma.fence.sync.aligned;"
    added = "no" if multiply.fresh else "yes"
    for k in range(multiply.depth * itemsize // 32):
        for term, fragments in enumerate(_fragments(multiply) or [None]):
            if fragments is None:
                a = "a"
                text += f" add.s64 a, {left}, {k % 4 * own + k // 4 * further[0]};"
            else:
                of_step = (f'"r"({fragments[k].name}.s{word})' for word in range(4))
                a = "{" + ", ".join(number[word] for word in of_step) + "}"
            text += f" add.s64 b, %{first_right + term}, {k % 4 * other + k // 4 * further[1]};"
            text += f" wgmma.mma_async.sync.aligned.m64n{columns}{k_of_step}.{kinds} {{{registers}}}, {a}, b,"
            text += f" {added}{signs}{'' if fragments or not turned else f', {int(multiply.turned)}'}{turned};"
            added = "yes"
    text += f" wgmma.commit_group.sync.aligned;{wait}}}"
    names = _scalars(multiply.sums)
    again = declared is not None and declared.issuperset(multiply.sums)
    if declared is not None:
        declared.update(multiply.sums)
    lines = []
    places = [*(place for _, place in multiply.before), multiply.b]
    operands = [(f"right{i or ''}", index, step) for i, index in enumerate(places)]
    if not isinstance(multiply.a, tuple):
        operands.insert(0, ("left", multiply.a, 16))
    for name, index, distance in operands:
        place = "(const " + local_place(multiply.array, index, multiply.dtype)[1:]
        lines.append(f"const ulong {prefix}{name} = fc_operand({place}, {distance});")
        words.append(f'"l"({prefix}{name})')
    given = [f" = {one.name}.s{lane}" for one in multiply.sums for lane in range(4)]
    begin = [""] * count if multiply.fresh else given
    sign = f"{'=' if multiply.fresh else '+'}{_SUMS[itemsize].place}"
    declaration = "" if again else f"{_SUMS[itemsize].memory} "
    return [
        *lines,
        declaration + ", ".join(name + value for name, value in zip(names, begin, strict=True)) + ";",
        f'asm volatile("{MARK}{text}"',
        "             : " + ", ".join(f'"{sign}"({name})' for name in names),
        f'             : {", ".join(words)} : "memory");',
    ]


def _awaited(multiply: GroupMultiply, pending: int) -> list[str]:
    """Return the wait for a product, behind which so many others are pending.

    Its sums are operands, so that no statement that reads them goes before it. So are its fragments: what replaces
    them is not computed into the same registers before.
    """
    place = _SUMS[multiply.dtype.itemsize].place
    sums = ", ".join(f'"+{place}"({name})' for name in _scalars(multiply.sums))
    words = ", ".join(_words(multiply))
    return [f'asm volatile("{MARK}wgmma.wait_group.sync.aligned {pending};" : {sums} : {words} : "memory");']


def _ended(multiply: GroupMultiply) -> list[str]:
    """Return the statements that take a product's sums as vectors again."""
    kind = _SUMS[multiply.dtype.itemsize].memory
    return [f"{one.name} = ({kind}4)({', '.join(f'{one.name}_{lane}' for lane in range(4))});" for one in multiply.sums]
