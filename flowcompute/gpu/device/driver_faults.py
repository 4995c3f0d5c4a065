"""What a driver's errors mean: no room, a call that it refuses, or a device that is lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.errors import DeviceError, DeviceFullError, FlowError, KernelError, Site
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device
from flowcompute.graph import Node
from flowcompute.schedule import NodeStep, Step

ROOM = frozenset({-4, -5, -6, -61})
"""MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY, INVALID_BUFFER_SIZE."""

_LOST = frozenset({-2, -14, -33, -34, -36})
"""DEVICE_NOT_AVAILABLE, EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, INVALID_DEVICE, _CONTEXT, _COMMAND_QUEUE."""

_REFUSED = frozenset(range(-72, -29))
"""INVALID_VALUE to the last of them: the driver did nothing."""

SMALLER = "take smaller batches: strategy=fc.Strategy(batch_bytes=...)"
"""Where there is no room."""

ANEW = (
    "run it again: the next run starts the device anew, and with checkpoint= goes on from the last checkpoint, also "
    "with another device=; where a kernel of yours is to blame, isolate=True keeps it out of this process"
)
"""After a device was lost."""


class Faults:
    """Tells the errors of one device's driver to whoever runs a plan on it.

    Args:
        device: whose context is used from now on, and given up when it is lost.

    Raises:
        DeviceError: if the device does not start.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._context = device.context

    def told(self, element: str | None = None, site: Site | None = None) -> AbstractContextManager[None]:
        """What the driver raises inside is an error of the family that names the element.

        Raises:
            DeviceFullError: if there was no room; the device can be used on.
            KernelError: if the driver refused a call; the device can be used on.
            DeviceError: if the device is lost, or in no state to go on; its context is given up.
        """
        return _Told(self, element, site)

    def tell(self, error: BaseException | None, element: str | None, site: Site | None) -> None:
        """Raise what an error of the driver means; others are left as they are."""
        if isinstance(error, cl.Error):
            raise self._meaning(error, element, site) from error
        if isinstance(error, DeviceFullError):
            if not self._answers():
                raise self._lost(error, element, site) from error
            if error.element is None:
                error.element, error.site = element, site

    def _meaning(self, error: cl.Error, element: str | None, site: Site | None) -> FlowError:
        name, code = self._device.capabilities.name, error.code
        if code in _LOST or code not in ROOM | _REFUSED or not self._answers():
            return self._lost(error, element, site)
        if code in ROOM:
            return DeviceFullError(
                f"device {name} has no room", element=element, site=site, got=str(error), hint=SMALLER
            )
        return KernelError(f"{name} refuses a launch or a copy: {error}", element=element, site=site)

    def _lost(self, error: Exception, element: str | None, site: Site | None) -> DeviceError:
        self._device.give_up(self._context)
        capabilities = self._device.capabilities
        return DeviceError(
            f"device {capabilities.name} failed",
            element=element,
            site=site,
            expected="a device that computes",
            # Several may have this name.
            got="; ".join(filter(None, (str(error), capabilities.reason))),
            hint=ANEW,
        )

    def _answers(self) -> bool:
        """Whether the context is still good: errors of room are also what a broken one gives, but then for ever.

        What had begun has then ended, so that what is tried again meets nobody.
        """
        if self._device.is_given_up(self._context):
            return False
        try:
            self._device.finish()
        except cl.Error:
            return False
        return True


class _Told(AbstractContextManager[None]):
    """See `Faults.told`. A class, since it is entered several times for each batch."""

    __slots__ = ("_element", "_faults", "_site")

    def __init__(self, faults: Faults, element: str | None, site: Site | None) -> None:
        self._faults = faults
        self._element = element
        self._site = site

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._faults.tell(error, self._element, self._site)


def answerable(step: Step, nodes: Sequence[Node]) -> tuple[str, Site | None]:
    """Whom errors of a step name, and that one's line: where it holds one kernel of the user's, that one.

    Args:
        step: of a plan.
        nodes: of its graph.
    """
    computed = [step.node] if isinstance(step, NodeStep) else [nodes[i] for i in step.region.nodes]
    own = [node for node in computed if isinstance(node.op, UserOp | SourceOp)]
    if len({id(node.element) for node in own}) == 1:
        return own[0].name, own[0].element.site
    return step.name, computed[-1].element.site
