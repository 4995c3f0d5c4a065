"""Rings of stages in inline PTX: tensor copies, their maps and barriers, and products by four sub-groups.

The instructions are `cp.async.bulk.tensor`, `tensormap.replace`, `mbarrier` and `wgmma` of the PTX ISA (sections
9.7.9.25 to 9.7.9.27, 9.7.13.15 and 9.7.15), for compute capability 9.0. OpenCL C is compiled for a target that lacks
some of them. Those are comments behind `MARK`, which become instructions in the program's PTX;
`gpu/device/retargeting.py` does that.

Maps of copies are made by the kernel itself, field by field, since only CUDA's driver makes them on the host.
"""

from __future__ import annotations

from flowcompute.gpu.render.ptx.fragments import FORMATS
from flowcompute.ir import MAP_BYTES, GroupMultiply, OpenRing, RingLoop, TensorMap, index_text
from flowcompute.spec import BFLOAT16, FLOAT16

MARK = "//sm_90a "
"""Begin of a line of PTX that is an instruction for the target that is meant, and a comment for the compiler's."""

_TURN = "ring_turn"
"""Steps so far: their stages, and how often these were filled."""
_ELEMENTS = {FLOAT16: 6, BFLOAT16: 10}
"""Codes of element types in maps."""
_SWIZZLED = 3
"""Code of the exchange of chunks of 16 bytes in 8 rows of 128 bytes."""

_AWAIT = """static inline void fc_await(uint barrier, uint parity) {
    asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra again;}"
                 :: "r"(barrier), "r"(parity) : "memory");
}
"""
_ARRIVE = """static inline void fc_arrive(uint barrier) {
    asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" :: "r"(barrier) : "memory");
}
"""
_EXPECT = """static inline void fc_expect(uint barrier, uint bytes) {
    asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}"
                 :: "r"(barrier), "r"(bytes) : "memory");
}
"""
_COPY_BOX = (
    """static inline void fc_copy_box(uint to, ulong map, int column, int row, uint barrier) {
    asm volatile(\""""
    + MARK
    + """cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
"""
)
_OPERAND = """static inline ulong fc_operand(const __local void *from, ulong step) {
    return (ulong)(((uint)(size_t)from & 0x3ffff) >> 4) | step >> 4 << 16 | (ulong)(1024 >> 4) << 32 | (ulong)1 << 62;
}
"""


def open_ring(ring: OpenRing, helpers: dict[str, str]) -> list[str]:
    """Return the statements that make the maps and the barriers of a ring."""
    for name, text in (("fc_await", _AWAIT), ("fc_arrive", _ARRIVE), ("fc_expect", _EXPECT)):
        helpers.setdefault(name, text)
    count = len(ring.maps)
    lines = [
        f"const uint ring_full = (uint)(size_t)&{ring.barriers}[0], ring_empty = ring_full + {8 * ring.stages};",
        f"uint {_TURN} = 0;",
    ]
    for i in range(count):
        at = f"{ring.room.name} + (gid * {count} + {i}) * {MAP_BYTES}"
        lines.append(f"const ulong ring_map{i} = (ulong)({at});")
    lines += ["if (lid < 32) {", "    if (lid == 0) {"]
    lines.append(f"        for (int i = 0; i < {count * MAP_BYTES // 4}; i++) {ring.fields}[i] = 0;")
    for i, one in enumerate(ring.maps):
        lines += ["        " + line for line in _made_map(ring.fields, i, one)]
    for first, arrivals in (("ring_full", 1), ("ring_empty", ring.workers // 32)):
        lines.append(f"        for (int i = 0; i < {ring.stages}; i++)")
        init = 'asm volatile("mbarrier.init.shared.b64 [%0], %1;"'
        lines.append(f'            {init} :: "r"({first} + 8 * i), "r"({arrivals}) : "memory");')
    lines += [f"        {_marked('fence.mbarrier_init.release.cluster;')}", "    }"]
    lines.append(f"    {_marked('bar.warp.sync -1;')}")
    for i in range(count):
        release = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        place = f'"l"(ring_map{i}), "l"((ulong)(size_t)&{ring.fields}[{i * MAP_BYTES // 4}])'
        lines.append(f"    {_marked(f'{release} [%0], [%1], {MAP_BYTES};', place)}")
    lines += ["}", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"]
    acquire = f"fence.proxy.tensormap::generic.acquire.gpu [%0], {MAP_BYTES};"
    acquired = ("    " + _marked(acquire, f'"l"(ring_map{i})') for i in range(count))
    return [*lines, f"if (lid == {ring.workers}) {{", *acquired, "}"]


def _marked(instruction: str, operands: str = "") -> str:
    return f'asm volatile("{MARK}{instruction}" :: {operands} : "memory");'


def _made_map(fields: str, number: int, one: TensorMap) -> list[str]:
    """Return the statements that fill in the fields of a map in local memory."""
    dtype = one.argument.dtype
    at = f"ring_fields{number}"
    place = f"const ulong {at} = (ulong)(size_t)&{fields}[{number * MAP_BYTES // 4}];"

    def field(name: str, value: str, kind: str = "b32", position: str = "") -> str:
        constraint = "l" if kind == "b64" else "r"
        instruction = f"tensormap.replace.tile.{name}.shared::cta.b1024.{kind} [%0], {position}%1;"
        return _marked(instruction, f'"l"({at}), "{constraint}"({value})')

    def code(name: str, value: int) -> str:
        return _marked(f"tensormap.replace.tile.{name}.shared::cta.b1024.b32 [%0], {value};", f'"l"({at})')

    return [
        place,
        field("global_address", f"(ulong)({one.argument.name} + {one.begin})", "b64"),
        code("rank", 1),
        field("box_dim", f"{one.box[0]}", position="0, "),
        field("box_dim", f"{one.box[1]}", position="1, "),
        field("global_dim", f"{one.width}", position="0, "),
        field("global_dim", f"(uint)({index_text(one.rows)})", position="1, "),
        field("global_stride", f"(ulong){one.pitch * dtype.itemsize}", "b64", "0, "),
        field("element_stride", "1", position="0, "),
        field("element_stride", "1", position="1, "),
        code("elemtype", _ELEMENTS[dtype]),
        code("interleave_layout", 0),
        code("swizzle_mode", _SWIZZLED),
        code("fill_mode", 0),
    ]


def ring_copies(loop: RingLoop, helpers: dict[str, str]) -> list[str]:
    """Return the part of the sub-group that copies, up to the part of those that multiply."""
    helpers.setdefault("fc_copy_box", _COPY_BOX)
    ring, step, stage, stages = loop.ring, loop.step.name, loop.stage.name, loop.ring.stages
    size = sum(copy.map.box[0] * copy.map.box[1] * copy.map.argument.dtype.itemsize for copy in loop.copies)
    lines = [
        # What was read and written here before goes before the copies.
        _marked("fence.proxy.async.shared::cta;"),
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"if (lid >= {ring.workers}) {{",
        f"    for (long {step} = 0; lid == {ring.workers} && {step} < {loop.steps}; {step}++) {{",
        f"        const uint at = {_TURN} + (uint){step};",
        f"        const long {stage} = at % {stages};",
        f"        if (at >= {stages}) fc_await(ring_empty + 8 * (uint){stage}, at / {stages} - 1 & 1);",
        f"        fc_expect(ring_full + 8 * (uint){stage}, {size});",
    ]
    for copy in loop.copies:
        kind = "(__local ushort *)"
        to = f"(uint)(size_t)({kind}{loop.array} + ({index_text(copy.place)}))"
        map = f"ring_map{ring.maps.index(copy.map)}"
        place = f"(int)({index_text(copy.column)}), (int)({index_text(copy.row)})"
        lines.append(f"        fc_copy_box({to}, {map}, {place}, ring_full + 8 * (uint){stage});")
    return [*lines, "    }", "} else {"]


def ring_steps(loop: RingLoop) -> tuple[list[str], list[str]]:
    """Return the lines before and behind the work on a stage."""
    stage, stages, step = loop.stage.name, loop.ring.stages, loop.step.name
    before = [
        f"for (long {step} = 0; {step} < {loop.steps}; {step}++) {{",
        f"    const uint at = {_TURN} + (uint){step};",
        f"    const long {stage} = at % {stages};",
        f"    fc_await(ring_full + 8 * (uint){stage}, at / {stages} & 1);",
    ]
    return before, [f"    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint){stage});", "}"]


def end_loop(loop: RingLoop) -> list[str]:
    """Return the lines behind both parts."""
    return ["}", f"{_TURN} += {loop.steps};"]


def group_multiply(multiply: GroupMultiply, helpers: dict[str, str]) -> list[str]:
    """Return the statements that multiply a stage.

    All instructions and the wait for them are one statement: in between, the compiler could move the sums to other
    registers while they are being written.
    """
    helpers.setdefault("fc_operand", _OPERAND)
    kind = FORMATS[multiply.dtype][0]
    columns, count = 8 * len(multiply.sums), 4 * len(multiply.sums)
    itemsize = multiply.dtype.itemsize
    # Bytes from one k to the k 16 further on, in the units of operands.
    own, other = 16 * itemsize >> 4, 16 * (itemsize if multiply.along_k else 2 * 64) >> 4
    step = 16 if multiply.along_k else multiply.depth * 128
    registers = ", ".join(f"%{i}" for i in range(count))
    text = "{.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned;"
    for k in range(multiply.depth // 16):
        text += f" add.s64 a, %{count}, {k * own}; add.s64 b, %{count + 1}, {k * other};"
        text += f" wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} {{{registers}}},"
        text += f" a, b, yes, 1, 1, 0, {0 if multiply.along_k else 1};"
    text += " wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
    names = [(one.name, f"{one.name}_{lane}", lane) for one in multiply.sums for lane in range(4)]
    place = "(const __local ushort *)" + multiply.array

    def own_lanes(name: str) -> str:
        return ", ".join(f"{name}_{lane}" for lane in range(4))

    return [
        "{",
        f"    const ulong left = fc_operand({place} + ({index_text(multiply.a)}), 16);",
        f"    const ulong right = fc_operand({place} + ({index_text(multiply.b)}), {step});",
        "    float " + ", ".join(f"{name} = {whole}.s{lane}" for whole, name, lane in names) + ";",
        f'    asm volatile("{MARK}{text}"',
        "                 : " + ", ".join('"+f"(' + name + ")" for _, name, _ in names),
        '                 : "l"(left), "l"(right) : "memory");',
        *(f"    {one.name} = (float4)({own_lanes(one.name)});" for one in multiply.sums),
        "}",
    ]
