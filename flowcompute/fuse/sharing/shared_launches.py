"""The ways in which regions share a launch, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from flowcompute.fuse.groups import Groups
from flowcompute.fuse.reasons import Reason
from flowcompute.fuse.region import Region
from flowcompute.fuse.sharing.alike_maps import join_alike_maps
from flowcompute.fuse.sharing.row_followers import add_row_followers
from flowcompute.fuse.sharing.row_makers import add_row_makers
from flowcompute.fuse.sharing.siblings import join_siblings
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Sharing:
    """Limits of what the kernels of a device do together in one launch.

    Attributes:
        joins: tells the form of the kernel of a region, if it can share its launch with others of that form.
        takes_rows: tells whether the kernel of a product may make the rows of its left factor.
        leads: tells whether rows may follow the kernel of a product in its launch; None where nothing may, and no
            product either.
        fences: whether few such rows are made in the same launch; see `DeviceCapabilities.device_fences`.
    """

    joins: Callable[[Region], str | None]
    takes_rows: Callable[[Region], bool]
    leads: Callable[[Region], bool] | None = None
    fences: bool = False


def share_launches(
    groups: Groups, regions: Sequence[Region], wanted: Collection[int], sharing: Sharing
) -> tuple[list[Region], list[Reason]]:
    """Join regions that share a launch.

    Args:
        groups: the regions while they were made.
        regions: of one device.
        wanted: values that are read outside of regions.
        sharing: what its kernels can do together.

    Returns:
        The regions, and reasons for those that follow others in their launch.
    """
    graph, dependencies = groups.graph, groups.dependencies
    joined = join_siblings(graph, regions, dependencies, sharing.joins, follow=sharing.leads is not None)
    joined = join_alike_maps(graph, joined, dependencies, groups.changes, sharing.joins)
    joined = add_row_makers(graph, joined, wanted, sharing.takes_rows)
    if sharing.leads is None:
        return joined, []
    return add_row_followers(graph, joined, sharing.leads, fences=sharing.fences)
