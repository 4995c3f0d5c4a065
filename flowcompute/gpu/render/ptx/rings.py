"""Rings of stages in inline PTX: tensor copies, their maps and barriers. `group_products` has what multiplies stages.

The instructions are `cp.async.bulk.tensor`, `tensormap.replace` and `mbarrier` of the PTX ISA (sections 9.7.9.25 to
9.7.9.27 and 9.7.13.15), for compute capability 9.0. OpenCL C is compiled for a target that lacks some of them. Those
are comments behind `MARK`, which become instructions in the program's PTX; `gpu/device/retargeting.py` does that.

Maps of copies are made by the kernel itself, field by field, since only CUDA's driver makes them on the host.
"""

from __future__ import annotations

from flowcompute.gpu.render.ptx.fragments import local_place
from flowcompute.ir import (
    MAP_BYTES,
    RING_GROUP,
    AwaitStage,
    BoxCopy,
    FillStages,
    FreeStage,
    OpenRing,
    PassSteps,
    PassTurn,
    RingLoop,
    RingRoles,
    TakeTurn,
    TensorMap,
    index_text,
)
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, INT8, UINT8

MARK = "//sm_90a "
"""Begin of a line of PTX that is an instruction for the target that is meant, and a comment for the compiler's."""

_TURN = "ring_turn"
"""Steps so far: their stages, and how often these were filled."""
_SUBGROUP = "ring_subgroup"
"""Number of the work-item's sub-group."""
_ELEMENTS = {INT8: 0, UINT8: 0, FLOAT16: 6, FLOAT32: 7, BFLOAT16: 10}
"""Codes of element types in maps, which copy bytes whatever their sign."""
_MANY = (1 << 31) - 1
"""Matrices of a map that has several: no copy asks for one that is not there."""
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
_UNIFORM = """static inline uint fc_uniform(uint x) {
    uint first;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(first) : "r"(x));
    return first;
}
"""
_COPY_BOX = """static inline void fc_copy_box{suffix}(uint to, ulong map, {parameters}, uint barrier) {{
    asm volatile("{mark}{instruction} {operands};"
                 :: "r"(to), "l"(map), {places}, "r"(barrier) : "memory");
}}
"""
_BULK_COPY = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


def open_ring(ring: OpenRing, helpers: dict[str, str]) -> list[str]:
    """Return the statements that make the maps and the barriers of a ring."""
    needed = (("fc_await", _AWAIT), ("fc_arrive", _ARRIVE), ("fc_expect", _EXPECT), ("fc_uniform", _UNIFORM))
    for name, text in needed:
        helpers.setdefault(name, text)
    count = len(ring.maps)
    lines = [
        f"const uint ring_full = (uint)(size_t)&{ring.barriers}[0], ring_empty = ring_full + {8 * ring.stages};",
        f"uint {_TURN} = 0;",
        # A branch by a number that may differ in a sub-group makes all behind it one of each work-item.
        f"const uint {_SUBGROUP} = fc_uniform((uint)lid / 32);",
        f"const long {RING_GROUP.name} = {_SUBGROUP} / 4;",
    ]
    arrivals = {"ring_full": 1, "ring_empty": ring.workers // 32}
    if ring.preparers:
        lines.append(f"const uint ring_ready = ring_empty + {8 * ring.stages};")
        arrivals["ring_ready"] = ring.preparers // 32
    for i in range(count):
        at = f"{ring.room.name} + (gid * {count} + {i}) * {MAP_BYTES}"
        lines.append(f"const ulong ring_map{i} = (ulong)({at});")
    lines += ["if (lid < 32) {", "    if (lid == 0) {"]
    lines.append(f"        for (int i = 0; i < {count * MAP_BYTES // 4}; i++) {ring.fields}[i] = 0;")
    for i, one in enumerate(ring.maps):
        lines += ["        " + line for line in _made_map(ring.fields, i, one)]
    for first, count_of in arrivals.items():
        lines.append(f"        for (int i = 0; i < {ring.stages}; i++)")
        init = 'asm volatile("mbarrier.init.shared.b64 [%0], %1;"'
        lines.append(f'            {init} :: "r"({first} + 8 * i), "r"({count_of}) : "memory");')
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

    boxes, sizes, strides = [*one.box], [f"{one.width}", f"(uint)({index_text(one.rows)})"], [one.pitch]
    if one.planes is not None:
        boxes, sizes = [*boxes, one.planes.box], [*sizes, f"{one.planes.count}"]
        strides = [*strides, one.planes.distance]
    if one.matrices:
        many = f"{_MANY}" if one.many is None else f"(uint)({index_text(one.many)})"
        boxes, sizes, strides = [*boxes, 1], [*sizes, many], [*strides, one.matrices]
    return [
        place,
        field("global_address", f"(ulong)({one.argument.name} + {one.begin})", "b64"),
        code("rank", len(sizes) - 1),
        *(field("box_dim", f"{size}", position=f"{axis}, ") for axis, size in enumerate(boxes)),
        *(field("global_dim", size, position=f"{axis}, ") for axis, size in enumerate(sizes)),
        *(
            field("global_stride", f"(ulong){stride * dtype.itemsize}", "b64", f"{axis}, ")
            for axis, stride in enumerate(strides)
        ),
        *(field("element_stride", "1", position=f"{axis}, ") for axis in range(len(sizes))),
        code("elemtype", _ELEMENTS[dtype]),
        code("interleave_layout", 0),
        code("swizzle_mode", _SWIZZLED),
        code("fill_mode", 0),
    ]


def begin_copies(part: RingLoop | RingRoles) -> list[str]:
    """Return the lines up to the part of those that copy."""
    return [
        # What was read and written here before goes before the copies.
        _marked("fence.proxy.async.shared::cta;"),
        "barrier(CLK_LOCAL_MEM_FENCE);",
        f"if ({_SUBGROUP} >= {part.ring.workers // 32}) {{",
    ]


def registers_of(roles: RingRoles, *, workers: bool) -> list[str]:
    """Return the statement by which groups of one role set how many registers they have, if there is one."""
    if roles.registers is None:
        return []
    verb = "inc" if workers else "dec"
    return [_marked(f"setmaxnreg.{verb}.sync.aligned.u32 {roles.registers[workers]};")]


def ring_copies(loop: RingLoop, helpers: dict[str, str]) -> list[str]:
    """Return the part of those that copy, up to what they prepare or up to the part of those that multiply."""
    ring, step, steps = loop.ring, loop.step.name, index_text(loop.steps)
    lines = begin_copies(loop)
    if not loop.prepare:
        lines.append(f"    for (long {step} = 0; lid == {ring.workers} && {step} < {steps}; {step}++) {{")
        return [*lines, *_filled_stage(loop, "        ", helpers), "    }", "} else {"]
    # Copies of a step are begun before the step before is prepared.
    return [
        *lines,
        f"    for (long {step} = 0; {step} <= {steps}; {step}++) {{",
        f"        if (lid == {ring.workers} && {step} < {steps}) {{",
        *_filled_stage(loop, "            ", helpers),
        "        }",
        f"        if ({step} == 0) continue;",
        f"        const uint at = {_TURN} + (uint){step} - 1;",
        f"        const long {loop.stage.name} = at % {ring.stages};",
        f"        fc_await(ring_full + 8 * (uint){loop.stage.name}, at / {ring.stages} & 1);",
    ]


def fill_stages(fill: FillStages, helpers: dict[str, str]) -> list[str]:
    """Return the statements of the one who copies for the steps of a tile."""
    step = fill.step.name
    return [
        f"for (long {step} = 0; {step} < {index_text(fill.steps)}; {step}++) {{",
        *_filled_stage(fill, "    ", helpers, fill.behind),
        "}",
        pass_steps(fill),
    ]


def pass_steps(one: RingLoop | FillStages | PassSteps) -> str:
    """Return the statement that counts steps."""
    return f"{_TURN} += (uint)({index_text(one.steps)});"


def group_barrier() -> str:
    """Return the meeting of a group; barrier 0 is that of the work-group."""
    return f'asm volatile("bar.sync %0, 128;" :: "r"((uint){RING_GROUP.name} + 1) : "memory");'


def take_turn(one: TakeTurn) -> str:
    """Return the wait for the turn. Barriers behind those of groups are one a group: half of it waits, half passes."""
    return f'asm volatile("bar.sync %0, 256;" :: "r"((uint){RING_GROUP.name} + {one.groups + 1}) : "memory");'


def pass_turn(one: PassTurn) -> str:
    """Return the statement that lets the next group take its turn."""
    following = f"({RING_GROUP.name} + 1) % {one.groups} + {one.groups + 1}"
    return f'asm volatile("bar.arrive %0, 256;" :: "r"((uint)({following})) : "memory");'


def stage_prepared(loop: RingLoop) -> list[str]:
    """Return the lines behind what prepares a stage, up to the part of those that multiply."""
    return [
        # What was written goes before products, which read local memory by another way than work-items.
        f"        {_marked('fence.proxy.async.shared::cta;')}",
        f"        {_marked('bar.warp.sync -1;')}",
        f"        if (lid % 32 == 0) fc_arrive(ring_ready + 8 * (uint){loop.stage.name});",
        "    }",
        "} else {",
    ]


def _filled_stage(loop: RingLoop | FillStages, inside: str, helpers: dict[str, str], behind: int = 0) -> list[str]:
    """Return the statements of the one who copies for a step."""
    step, stage, stages = loop.step.name, loop.stage.name, loop.ring.stages
    lines = [
        f"{inside}const uint at = {_TURN} + (uint){step};",
        f"{inside}const long {stage} = at % {stages};",
        f"{inside}if (at >= {stages}) fc_await(ring_empty + 8 * (uint){stage}, at / {stages} - 1 & 1);",
    ]
    if behind:
        before = f"(at - {behind})"
        awaited = f"fc_await(ring_empty + 8 * ({before} % {stages}), {before} / {stages} & 1);"
        lines.append(f"{inside}if ({step} == 0 && at >= {behind}) {awaited}")
    for number, fill in enumerate(loop.fills):
        within = inside
        if len(loop.fills) > 1:
            lines.append(f"{inside}if ({step} % {len(loop.fills)} == {number}) {{")
            within += "    "
        size = f"{sum(copy.map.box_bytes for copy in fill)}"
        if number == 0 and loop.first:
            size += f" + ({step} == 0 ? {sum(copy.map.box_bytes for copy in loop.first)} : 0)"
        lines.append(f"{within}fc_expect(ring_full + 8 * (uint){stage}, {size});")
        if number == 0:
            prefix = f"{within}if ({step} == 0) "
            lines += [prefix + _box_copy(loop, copy, helpers) for copy in loop.first]
        lines += [within + _box_copy(loop, copy, helpers) for copy in fill]
        lines += [f"{inside}}}"] if len(loop.fills) > 1 else []
    return lines


def _box_copy(loop: RingLoop | FillStages, copy: BoxCopy, helpers: dict[str, str]) -> str:
    places = {"column": copy.column, "row": copy.row}
    suffix = ""
    if copy.map.planes is not None:
        places["plane"], suffix = copy.plane, "_in"
    if copy.map.matrices:
        places["matrix"], suffix = copy.matrix, suffix + "_of"
    axes = list(places)
    numbers = ", ".join(f"%{2 + axis}" for axis in range(len(axes)))
    text = _COPY_BOX.format(
        suffix=suffix,
        mark=MARK,
        instruction=_BULK_COPY.format(rank=len(axes)),
        parameters=", ".join(f"int {axis}" for axis in axes),
        operands=f"[%0], [%1, {{{numbers}}}], [%{2 + len(axes)}]",
        places=", ".join(f'"r"({axis})' for axis in axes),
    )
    helpers.setdefault(f"fc_copy_box{suffix}", text)
    to = f"(uint)(size_t)({local_place(loop.array, copy.place, copy.map.argument.dtype)})"
    place = ", ".join(f"(int)({index_text(index)})" for index in places.values())
    map = f"ring_map{loop.ring.maps.index(copy.map)}"
    return f"fc_copy_box{suffix}({to}, {map}, {place}, ring_full + 8 * (uint){loop.stage.name});"


def end_loop(loop: RingLoop) -> list[str]:
    """Return the lines behind both parts."""
    return ["}", pass_steps(loop)]


def await_stage(one: AwaitStage) -> list[str]:
    """Return the statements that wait until a stage is full."""
    at, stages = f"({_TURN} + (uint)({index_text(one.step)}))", one.ring.stages
    barriers = ("full", "ready") if one.ring.preparers else ("full",)
    return [
        f"const long {one.stage.name} = {at} % {stages};",
        *(f"fc_await(ring_{barrier} + 8 * (uint){one.stage.name}, {at} / {stages} & 1);" for barrier in barriers),
    ]


def free_stage(one: FreeStage) -> str:
    """Return the statement that gives a stage back."""
    return f"if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint){one.stage.name});"
