"""Classification of a driver's errors: no memory, a refused call, or a lost device."""

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
"""Codes of MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY, INVALID_BUFFER_SIZE."""

_LOST = frozenset({-2, -14, -33, -34, -36})
"""DEVICE_NOT_AVAILABLE, EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, INVALID_DEVICE, _CONTEXT, _COMMAND_QUEUE."""

_REFUSED = frozenset(range(-72, -29))
"""Codes from INVALID_VALUE to the last one. The driver did nothing."""

SMALLER = "take smaller batches: strategy=fc.Strategy(batch_bytes=...)"
"""Advice where there is no memory."""

ANEW = (
    "run it again: the next run starts the device anew, and with checkpoint= goes on from the last checkpoint, also "
    "with another device=; where a kernel of yours is to blame, isolate=True keeps it out of this process"
)
"""Advice after a device was lost."""


class Faults:
    """Translator of a driver's errors into errors of the package, for one device.

    Args:
        device: the device whose present context is used, and given up when it is lost.

    Raises:
        DeviceError: if the device does not start.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._context = device.context

    def told(self, element: str | None = None, site: Site | None = None) -> AbstractContextManager[None]:
        """Turn the driver's errors inside a block into errors of the family that name the element.

        Raises:
            DeviceFullError: if there was no memory. The device remains usable.
            KernelError: if the driver refused a call. The device remains usable.
            DeviceError: if the device is lost or broken. Its context is given up.
        """
        return _FaultContext(self, element, site)

    def tell(self, error: BaseException | None, element: str | None, site: Site | None) -> None:
        """Raise the error of the family for a driver's error. Ignore other exceptions."""
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
                f"cannot allocate memory on device {name}", element=element, site=site, got=str(error), hint=SMALLER
            )
        return KernelError(f"cannot launch or copy on {name}: {error}", element=element, site=site)

    def _lost(self, error: Exception, element: str | None, site: Site | None) -> DeviceError:
        self._device.give_up(self._context)
        capabilities = self._device.capabilities
        return DeviceError(
            f"cannot compute on device {capabilities.name}: it failed",
            element=element,
            site=site,
            expected="a device that computes",
            # Several may have this name.
            got="; ".join(filter(None, (str(error), capabilities.reason))),
            hint=ANEW,
        )

    def _answers(self) -> bool:
        """Check whether the context still works. A broken one reports a lack of memory too, but permanently.

        All commands that were in progress have then ended, so that a repeated one runs alone.
        """
        if self._device.is_given_up(self._context):
            return False
        try:
            self._device.finish()
        except cl.Error:
            return False
        return True


class _FaultContext(AbstractContextManager[None]):
    """Context manager of `Faults.told`. It is a class, since it is entered several times for each batch."""

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
    """Return the name and the line of the element that errors of a step name.

    It is the user's kernel if the step holds exactly one.

    Args:
        step: of a plan.
        nodes: of its graph.
    """
    computed = [step.node] if isinstance(step, NodeStep) else [nodes[i] for i in step.region.nodes]
    own = [node for node in computed if isinstance(node.op, UserOp | SourceOp)]
    if len({id(node.element) for node in own}) == 1:
        return own[0].name, own[0].element.site
    return step.name, computed[-1].element.site
