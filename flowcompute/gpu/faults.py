"""What a driver's errors mean: no room, a call that it refuses, or a device that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flowcompute.errors import DeviceError, DeviceFullError, FlowError, KernelError, Site
from flowcompute.gpu._cl import cl
from flowcompute.gpu.device import Device

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

    @contextmanager
    def told(self, element: str | None = None, site: Site | None = None) -> Iterator[None]:
        """What the driver raises inside is an error of the family that names the element.

        Raises:
            DeviceFullError: if there was no room; the device can be used on.
            KernelError: if the driver refused a call; the device can be used on.
            DeviceError: if the device is lost, or in no state to go on; its context is given up.
        """
        try:
            yield
        except cl.Error as error:
            raise self._meaning(error, element, site) from error
        except DeviceFullError as error:
            if not self._answers():
                raise self._lost(error, element, site) from error
            if error.element is None:
                error.element, error.site = element, site
            raise

    def _meaning(self, error: cl.Error, element: str | None, site: Site | None) -> FlowError:
        name, code = self._device.traits.name, error.code
        if code in _LOST or code not in ROOM | _REFUSED or not self._answers():
            return self._lost(error, element, site)
        if code in ROOM:
            return DeviceFullError(
                f"device {name} has no room", element=element, site=site, got=str(error), hint=SMALLER
            )
        return KernelError(f"{name} refuses a launch or a copy: {error}", element=element, site=site)

    def _lost(self, error: Exception, element: str | None, site: Site | None) -> DeviceError:
        self._device.give_up(self._context)
        return DeviceError(
            f"device {self._device.traits.name} failed",
            element=element,
            site=site,
            expected="a device that computes",
            got=str(error),
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
