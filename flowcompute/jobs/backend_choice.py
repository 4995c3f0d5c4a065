"""The choice of what computes a job: a device, several that share its batches, or several placements."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from flowcompute.elements import Pin, plain_name
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.engine import Backend, PlacedBackend, PlannedJob, SplitBackend
from flowcompute.errors import PlanError, short_repr
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import select_device, select_devices, shown_names
from flowcompute.graph import Graph
from flowcompute.reference import NumpyBackend
from flowcompute.schedule.explain import Plan
from flowcompute.spec import FLOAT64
from flowcompute.strategy import Devices

_NAMED: dict[str, Callable[[str], PlacedBackend]] = {"numpy": NumpyBackend}
"""Makes each backend that `device=` names and that is no OpenCL device, with the reason why it was chosen.

Such a backend computes everything, so that nothing is named after it.
"""


def choose_backend(device: Devices | None, graph: Graph, *, isolate: bool) -> Backend:
    """Choose the backend for `device=` and for what `on()` pins.

    Args:
        device: as given: one device, or several. Several of one kind share the batches, unless something is pinned;
            others compute what those before them cannot, and what is pinned to them.
        graph: of the job.
        isolate: whether kernels run in worker processes, which no devices that share batches have.

    Raises:
        PlanError: if there is no such device, or none that can compute the job.
    """
    names = device_names(device)
    pins = {node.pin.device: (node.name, node.pin) for node in graph.nodes if node.pin is not None}
    doubles = _needs_float64(graph)
    if len(names) == 1 and not pins:
        return _named(names[0]) if names[0] in _NAMED else OpenCLBackend.select(names[0], doubles)
    cl = [name for name in names if name not in _NAMED]
    devices = select_devices(cl, doubles and names == ("auto",)) if cl else ()
    if not pins and len(cl) == len(names) and len({one.capabilities.kind for one in devices}) == 1:
        _check_alone(names, isolate=isolate)
        return OpenCLBackend(*select_devices(names, doubles))
    pinned = {name: _pinned(*pin) for name, pin in pins.items()}
    placements: list[PlacedBackend] = []
    own = [_named(name) for name in names if name in _NAMED]
    for placement in (*map(OpenCLBackend, devices), *own, *pinned.values()):
        if not any(_is_same(placement, other) for other in placements):
            placements.append(placement)
    # What computes everything comes last, unless it alone was asked for.
    placements.sort(key=lambda placement: not isinstance(placement, OpenCLBackend) and len(own) < len(names))
    if len(placements) == 1:
        return placements[0]
    places = {
        name: next(i for i, other in enumerate(placements) if _is_same(placement, other))
        for name, placement in pinned.items()
    }
    return SplitBackend(placements, places)


def job_of(plan: Plan) -> PlannedJob:
    """Pair a plan with its backend, chosen once more as the plan's user named it.

    Raises:
        PlanError: if it is not there any more.
    """
    return PlannedJob.of(plan, choose_backend(plan.config.device, plan.asked, isolate=plan.config.isolate))


def _check_alone(names: Sequence[str], *, isolate: bool) -> None:
    """Refuse isolated devices that share batches.

    Raises:
        PlanError: if there are several.
    """
    if isolate and len(names) > 1:
        raise PlanError(
            "cannot isolate kernels where devices share the batches of a job",
            element="isolate",
            expected="one device, or parts of the graph pinned to several with on()",
            got=f"device={list(names)!r}",
            hint="leave isolate= out, or name one device",
        )


def device_names(device: Devices | None) -> tuple[str, ...]:
    """Return the devices as given, best first; "auto" for None. Kinds are in small letters.

    Raises:
        PlanError: if that is not text or a list of texts, or NumPy is not the last of them.
    """
    given = ("auto",) if device is None else (device,) if isinstance(device, str) else device
    if not isinstance(given, Sequence) or not given or not all(isinstance(name, str) for name in given):
        several = " (a set has no order)" if isinstance(device, Set) else ""
        raise PlanError(
            "cannot choose a device",
            element="device",
            expected="text, or a list of devices' names",
            got=short_repr(device),
            hint=f'name one, device="cpu", or several, device=["gpu", "cpu"]{several}; without device= it is "auto"',
        )
    names = tuple(map(plain_name, given))
    everything = next((name for name in names[:-1] if name in _NAMED), None)
    if everything is not None:
        last = [*dict.fromkeys(name for name in names if name != everything), everything]
        raise PlanError(
            f'cannot use devices that are named after "{everything}", which computes everything',
            element="device",
            expected=f'"{everything}" last',
            got=repr(list(given)),
            hint=f"device={shown_names(last)}",
        )
    return names


def _named(name: str) -> PlacedBackend:
    return _NAMED[name](f'asked for by device="{name}"')


def _pinned(element: str, pin: Pin) -> PlacedBackend:
    """Return the device that something is pinned to.

    Raises:
        PlanError: naming the element, if there is no such device.
    """
    reason = f"on({pin.device!r}) names it"
    if pin.device in _NAMED:
        return _NAMED[pin.device](reason)
    try:
        return OpenCLBackend(select_device(pin.device, needs_float64=False).with_reason(reason))
    except PlanError as error:
        error.element, error.site = element, pin.site
        if "," in pin.device:
            error.hint = "name one device; other operations may be pinned to others"
        raise


def _is_same(one: PlacedBackend, other: PlacedBackend) -> bool:
    if isinstance(one, OpenCLBackend) and isinstance(other, OpenCLBackend):
        return one.device.is_same(other.device)
    return type(one) is type(other)


def _needs_float64(graph: Graph) -> bool:
    inside = any(isinstance(node.op, UserOp | SourceOp) and node.op.float64 for node in graph.nodes)
    return inside or any(node.spec.dtype == FLOAT64 for node in graph.nodes)
