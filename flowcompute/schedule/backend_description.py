"""A backend as plans know it: plain data and the function that renders a kernel. Nothing here computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol

from flowcompute.imports import dataclass
from flowcompute.ir import DeviceCapabilities, Kernel


class KernelTexts(Protocol):
    """Texts of kernels that were rendered, which plans on disk keep."""

    def known(self, kernel: Kernel) -> str | None:
        """Return the text of a kernel if it was rendered; nothing is rendered for it."""
        raise NotImplementedError

    def note(self, kernel: Kernel, text: str) -> None:
        """Note the text that an equal kernel had, which this one need not be rendered for."""
        raise NotImplementedError


@dataclass(frozen=True)
class BackendDescription:
    """Description of what computes a plan: a device, several that share batches, or one with several placements.

    Attributes:
        capabilities: of all devices together.
        source_text: renders a lowered kernel; touches no device.
        main: number of the placement whose memory plans are made for.
        pins: by name, as `on()` was given it, the number of the placement that is meant.
        parts: descriptions of the placements, where the backend has several.
        number: of this placement, where it is one of several of a backend.
        addresses: of its devices on the host's bus, those that their drivers tell.
        texts: of kernels; None where there are no kernels, or several devices compute one plan.
        first: description of the first device alone, where several share batches.
    """

    capabilities: DeviceCapabilities
    source_text: Callable[[Kernel], str]
    main: int = 0
    pins: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[BackendDescription, ...] = ()
    number: int | None = None
    addresses: tuple[str, ...] = ()
    texts: KernelTexts | None = field(default=None, compare=False)
    first: BackendDescription | None = None

    @property
    def placements(self) -> tuple[BackendDescription, ...]:
        """Devices that compute the regions of a plan: each step names the number of one."""
        return self.parts or (self,)
