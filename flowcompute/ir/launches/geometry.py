"""How the work of a launch is divided among work-items: a function for each way in which forms do it."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.ir.index_nodes import IndexLike, choose, equal, index_min
from flowcompute.ir.launches.launch_task import LaunchDivision, LaunchTask

PARTS_PER_UNIT = 16
"""Work-items for each compute unit of a CPU, when there is so much work."""

GPU_PARTS_PER_UNIT = 64
"""As many work-groups of a GPU: more than run at once, so that those that wait keep the memory busy."""

GROUPS_OF_UNIT = 2
"""Work-groups that a compute unit of a GPU runs at once, where tasks go from one to another."""

SCAN_GROUPS_PER_UNIT = 4
"""Work-groups that scan tiles at a time, for each compute unit of a GPU."""

STRIP_PARTS = 4
"""Work-items of a product for each compute unit of a CPU: all have as many strips, but not all cores as much time."""

ROWS_PER_ITEM = 128
"""Most rows of a product for a work-item of a CPU, a multiple of the rows of any tile."""


def by_numbers(task: LaunchTask) -> LaunchDivision:
    """Divide numbers: a run for each work-item of a CPU, on GPUs vectors in turn."""
    kernel, count = task.kernel, task.count
    if task.is_gpu:
        # Groups that wait cost nothing, and those that go round several times all end late.
        lanes = (kernel.knobs.items_per_work_item or kernel.lanes) * kernel.work_group
        return LaunchDivision(count, 0, max(1, -(-count // lanes)))
    return _in_chunks(count, max(16, (kernel.knobs.items_per_work_item or 1) // 16 * 16))


def by_rows(task: LaunchTask) -> LaunchDivision:
    """Divide rows: a run for each work-item of a CPU, on GPUs those that a work-group walks together in turn."""
    if task.is_gpu:
        return by_tiles(task)
    columns = max(1, task.record_numbers() // max(1, task.kernel.units))
    return _in_chunks(task.count, max(1, (task.kernel.knobs.items_per_work_item or 1) // columns))


def by_numbers_or_rows(task: LaunchTask) -> LaunchDivision:
    """Divide rows on CPUs, numbers on GPUs."""
    return by_numbers(task) if task.is_gpu else by_rows(task)


def by_blocks(task: LaunchTask) -> LaunchDivision:
    """Divide canonical blocks of folds, and tiles of their columns where these are apart."""
    kernel, capabilities = task.kernel, task.capabilities
    units = task.blocks * (_column_tiles(task) if kernel.columns else 1)
    if task.is_gpu:
        return LaunchDivision(task.items, 0, _groups(task, units))
    # Neighbouring blocks to one work-item, but enough work-items for all compute units to end together.
    chunk = max(1, units // (capabilities.units * (kernel.knobs.fold_parts or PARTS_PER_UNIT)))
    return LaunchDivision(task.items, chunk, -(-units // chunk))


def by_tiles(task: LaunchTask) -> LaunchDivision:
    """Divide tiles of rows, which the work-groups of a GPU take in turn."""
    kernel = task.kernel
    return LaunchDivision(task.count, 0, _groups(task, -(-task.count // kernel.tile[0]) * kernel.tile[1]))


def by_handed_tiles(task: LaunchTask) -> LaunchDivision:
    """Divide tiles among the work-groups that share them; where none do, as `by_tiles` does."""
    return LaunchDivision(task.count, 0, min(task.count, task.kernel.shares)) if task.kernel.shares else by_tiles(task)


def by_resident_tiles(task: LaunchTask) -> LaunchDivision:
    """Divide tiles among work-groups of which each compute unit holds one, and which take them in turn."""
    kernel = task.kernel
    tiles = -(-task.count // kernel.tile[0]) * kernel.tile[1]
    return LaunchDivision(task.count, 0, max(1, min(tiles, task.capabilities.units)))


def by_shares(task: LaunchTask) -> LaunchDivision:
    """Divide rows of products fairly among the work-items of a CPU, in whole tiles: as many items for each unit."""
    units, together = task.capabilities.units, task.kernel.tile[0]
    items = max(2, -(-task.count // (ROWS_PER_ITEM // together * together * units))) * units
    return _in_chunks(task.count, -(-task.count // (items * together)) * together)


def by_strips(task: LaunchTask) -> LaunchDivision:
    """Divide strips of columns of blocks of rows among the work-items of a CPU, which know their shares themselves."""
    rows, strips = task.kernel.tile
    return LaunchDivision(
        task.count, 0, max(1, min(-(-task.count // rows) * strips, STRIP_PARTS * task.capabilities.units))
    )


def dealt(place: IndexLike, groups: IndexLike) -> IndexLike:
    """Return the number of the work-group at a place, so that each thread of a CPU has some of all parts of a launch.

    PoCL gives the first thread the work-groups at the first places: half of them where there are two threads. Parts
    whose groups have less to do, and those that do more beforehand, would fall to one thread.
    """
    each = groups // STRIP_PARTS
    return choose(equal(groups % STRIP_PARTS, 0), place % STRIP_PARTS * each + place // STRIP_PARTS, place)


def even_rows(rows: IndexLike, blocks: IndexLike, most: int, together: int) -> IndexLike:
    """Return the rows of each block but the last one, which has fewer. None is empty.

    PoCL gives the first half of the work-groups to one thread. Blocks of `most` rows would leave it the longer ones.

    Args:
        rows: of all blocks.
        blocks: as few as hold them.
        most: rows of a block.
        together: rows of a tile, of which blocks have whole ones.
    """
    if most == 1:
        return 1
    share = (rows + blocks - 1) // blocks
    return index_min(most, (share + together - 1) // together * together)


def by_tickets(task: LaunchTask) -> LaunchDivision:
    """Divide tiles of scans, which are taken by ticket: as many work-groups as run at once are enough."""
    kernel = task.kernel
    tiles = -(-task.blocks // kernel.tile[0]) * kernel.tile[1]
    return LaunchDivision(
        task.items, 0, min(tiles, task.capabilities.units * (SCAN_GROUPS_PER_UNIT if task.is_gpu else 1))
    )


def by_sequences(task: LaunchTask) -> LaunchDivision:
    """Divide sequences that are walked, each by a work-item or a lane."""
    kernel = task.kernel
    sequences = task.count if kernel.notes["along"] == "items" else kernel.units
    most = task.capabilities.units * (GPU_PARTS_PER_UNIT if task.is_gpu else PARTS_PER_UNIT)
    return LaunchDivision(task.items, 0, max(1, min(-(-sequences // (kernel.lanes * kernel.work_group)), most)))


def by_records(task: LaunchTask) -> LaunchDivision:
    """Divide records, and blocks of them, which work-groups take in turn; the carry says what `chunk` is."""
    kernel = task.kernel
    blocks = -(-task.items // kernel.tile[0]) * kernel.units
    most = task.capabilities.units * (GPU_PARTS_PER_UNIT if task.is_gpu else PARTS_PER_UNIT)
    return LaunchDivision(task.items, 0, max(1, min(max(task.items, blocks), most)))


def _groups(task: LaunchTask, wanted: int) -> int:
    most = task.capabilities.units * (task.kernel.knobs.fold_parts or GPU_PARTS_PER_UNIT)
    return max(1, min(wanted, most))


def _in_chunks(count: int, chunk: int) -> LaunchDivision:
    return LaunchDivision(count, chunk, max(1, -(-count // chunk)))


def _column_tiles(task: LaunchTask) -> int:
    fold = next(argument.value for argument in task.kernel.arguments if argument.kind == "partial")
    return -(-task.folds[fold].numbers // task.kernel.columns)


_DIVISIONS: dict[str, Callable[[LaunchTask], LaunchDivision]] = {
    one.__name__: one
    for one in (
        by_numbers,
        by_rows,
        by_numbers_or_rows,
        by_blocks,
        by_tiles,
        by_handed_tiles,
        by_resident_tiles,
        by_shares,
        by_strips,
        by_tickets,
        by_sequences,
        by_records,
    )
}


def divide(task: LaunchTask) -> LaunchDivision:
    """Return how a launch is divided; KeyError for a kernel that no form has lowered."""
    return _DIVISIONS[task.kernel.division](task)
