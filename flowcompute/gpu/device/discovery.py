"""Discovery of this machine's OpenCL devices: finding, describing and choosing them."""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections.abc import Sequence

from flowcompute.elements import plain_name
from flowcompute.errors import PlanError
from flowcompute.gpu.device._cl import INSTALL_HINT, cl
from flowcompute.gpu.device.device import Device, forked
from flowcompute.gpu.device.program_cache import drivers_confined
from flowcompute.imports import dataclass
from flowcompute.strategy import RuntimeTrial, load_runtime_trial

_WHEEL_POCL = (3, 0)
"""Release of PoCL in its wheel, on which all tests pass."""

_WHEEL_SHARE = 0.9
"""Part of its time that counts: another runtime is taken where it is more than a tenth faster."""


# -- finding ------------------------------------------------------------------------------------


class _Inventory:
    """Devices of this process, listed once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._devices: tuple[Device, ...] | None = None
        self._process: int | None = None

    def devices(self) -> tuple[Device, ...]:
        # This is checked before the lock, which another thread may have held when this process was forked off.
        if self._process not in (None, os.getpid()):
            raise forked()
        with self._lock:
            if self._devices is None:
                self._process = os.getpid()
                self._devices = ordered(_listed())
            return self._devices


_INVENTORY = _Inventory()


def _listed() -> tuple[Device, ...]:
    with drivers_confined():
        try:
            platforms = cl.get_platforms()
        except cl.Error as error:
            if error.code == cl.status_code.PLATFORM_NOT_FOUND_KHR:
                return ()
            raise PlanError(f"cannot start the OpenCL loader: {error}", element="device", hint=INSTALL_HINT) from error
        found = []
        for platform in platforms:
            try:
                handles = platform.get_devices()
            except cl.Error:  # a driver without its hardware
                continue
            found += [Device(handle, platform) for handle in handles]
    return tuple(found)


def all_devices() -> tuple[Device, ...]:
    """Return all OpenCL devices, best first within each of "gpu", "cpu" and the rest.

    Raises:
        PlanError: without pyopencl.
        RunError: in a process forked off one that had used a device.
    """
    return _INVENTORY.devices()


def ordered(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Sort devices by the preference of `device="auto"`. Equal ones stay in the drivers' order.

    Where there are several runtimes for the CPU, what `flowcompute devices --measure` has kept of them goes first: the
    fastest of those that are right, then those that were not tried, and last those that were wrong.
    """
    return tuple(sorted(devices, key=lambda device: _preference(device, _trial(devices, device))))


# -- choosing -----------------------------------------------------------------------------------


def _pocl(device: Device) -> tuple[int, int] | None:
    """Return the version of a PoCL device, or None for another one."""
    match = re.search(r"PoCL (\d+)\.(\d+)", device.version, re.IGNORECASE)
    return (int(match[1]), int(match[2])) if match else None


def _trial(devices: Sequence[Device], device: Device) -> RuntimeTrial | None:
    """Return what is kept of a runtime for the CPU, where there are others to prefer."""
    several = device.kind == "cpu" and sum(one.kind == "cpu" for one in devices) > 1
    return load_runtime_trial(device.identity) if several else None


def _preference(device: Device, trial: RuntimeTrial | None) -> tuple[float, ...]:
    pocl = _pocl(device)
    if device.kind == "gpu":
        # A vendor's own driver comes before PoCL on the same hardware.
        return (5 if device.unified else 0, pocl is not None, -device.capabilities.memory_bytes)
    if device.kind == "cpu":
        share = _WHEEL_SHARE if pocl == _WHEEL_POCL else 1.0
        tried = (1, 0.0) if trial is None else (2, 0.0) if trial.problem else (0, share * trial.seconds)
        if pocl is not None:
            # PoCL 5.0 ended processes on some random programs.
            return (1, *tried, 0, pocl != _WHEEL_POCL, -pocl[0], -pocl[1])
        return (1, *tried, 1 if "intel" in device.platform.lower() else 2)
    return (6,)


def _description(device: Device) -> str:
    pocl = _pocl(device)
    if device.kind == "gpu":
        return "a GPU that shares the host's memory" if device.unified else "a discrete GPU"
    if device.kind == "cpu" and pocl is not None:
        version = f"PoCL {pocl[0]}.{pocl[1]}"
        if pocl == _WHEEL_POCL:
            return f"the CPU through {version}, which comes with the package"
        return f"the CPU through {version}" + (", newer than the package's" if pocl > _WHEEL_POCL else "")
    if device.kind == "cpu":
        return f"the CPU through {device.platform}"
    return "neither a CPU nor a GPU"


def select_device(spec: str, needs_float64: bool) -> Device:
    """Select the device that `device=` names.

    Args:
        spec: "auto", "cpu", "cpu:1", "gpu", "gpu:1", or a part of the platform's or the device's name that fits
            exactly one device. Case does not matter. "auto" takes a discrete GPU, else the CPU: through the
            fastest runtime that was right in a kept measurement, else the PoCL that comes with the package, else the
            newest, else Intel's runtime.
        needs_float64: whether the job computes in float64.

    Returns:
        The device; `capabilities.reason` says in words why it was taken.

    Raises:
        PlanError: if no device, or more than one, fits, or it has no float64 where that is needed.
        RunError: in a process forked off one that had used a device.
    """
    return choose(all_devices(), spec, needs_float64)


def select_devices(specs: str | Sequence[str], needs_float64: bool) -> tuple[Device, ...]:
    """Select the devices that `device=` names, one or several.

    Raises:
        PlanError: as `select_device`; also if one is named twice.
        RunError: as `select_device`.
    """
    if isinstance(specs, str):
        return (select_device(specs, needs_float64),)
    devices = tuple(select_device(spec, needs_float64) for spec in specs)
    if any(one.is_same(other) for one, other in itertools.combinations(devices, 2)):
        raise PlanError(
            "cannot use a device twice in device=",
            element="device",
            expected="different devices",
            got=repr(list(specs)),
            hint="take one of them, or others:\n" + _candidates(all_devices()),
        )
    return devices


def choose(devices: Sequence[Device], spec: str, needs_float64: bool) -> Device:
    """Select a device as `select_device` does, among given devices, best first."""
    if not devices:
        raise PlanError("cannot find any OpenCL device", element="device", got=f"device={spec!r}", hint=INSTALL_HINT)
    if plain_name(spec) == "auto":
        return _automatic(devices, needs_float64)
    device = _named(devices, spec)
    if needs_float64 and not device.capabilities.float64:
        raise PlanError(
            f"cannot compute in float64 on device {device.capabilities.name}",
            element="device",
            expected="a device with double precision",
            got=f"device={spec!r}: {device.platform} / {device.capabilities.name}",
            hint='cast to float32 with .astype("float32"), or take another device:\n' + _candidates(devices),
        )
    return device.with_reason(f"device={spec!r} names it")


def _automatic(devices: Sequence[Device], needs_float64: bool) -> Device:
    skipped = []
    for device in devices:
        if needs_float64 and not device.capabilities.float64:
            skipped.append(f"{device.capabilities.name} has no float64")
            continue
        trial = _trial(devices, device)
        measured = ", the fastest that was right here" if trial is not None and not trial.problem else ""
        reason = f"auto: the best of {len(devices)} is {_description(device)}{measured}"
        if len(devices) == 1:
            reason = f"auto: the only OpenCL device is {_description(device)}"
        return device.with_reason("; ".join([reason, *(f"skipped: {text}" for text in skipped)]))
    raise PlanError(
        "cannot compute in float64: no OpenCL device has it",
        element="device",
        expected="a device with double precision",
        got="; ".join(skipped),
        hint='cast to float32 with .astype("float32"), or use device="numpy"',
    )


def _named(devices: Sequence[Device], spec: str) -> Device:
    match = re.fullmatch(r"(cpu|gpu)(?::(\d+))?", plain_name(spec))
    if match is not None:
        same = [device for device in devices if device.kind == match[1]]
        position = int(match[2] or 0)
        if position < len(same):
            return same[position]
        counted = f"{len(same)} {match[1].upper()} device{'' if len(same) == 1 else 's'}"
        message = f"cannot choose device={spec!r}: it does not exist, there {_is(len(same))} {counted}"
        raise _no_fit(devices, spec, message)
    text = spec.strip().lower()
    fitting = [d for d in devices if text and text in f"{d.platform} {d.version} / {d.capabilities.name}".lower()]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise _no_fit(devices, spec, f"cannot choose device={spec!r}: it fits {len(fitting)} devices", fitting)
    raise _no_fit(devices, spec, f"cannot choose device={spec!r}: it fits no device")


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _no_fit(devices: Sequence[Device], spec: str, message: str, fitting: Sequence[Device] = ()) -> PlanError:
    rows = describe(devices)
    shown = [row for row, device in zip(rows, devices, strict=True) if not fitting or device in fitting]
    hint = f'device="{shown[0].spec}", or another one of\n{_candidates(devices, fitting)}'
    parts = [part.strip() for part in spec.split(",")]
    if len(parts) > 1 and all(parts):
        hint = f"give several as a list: device={shown_names(parts)}; there are\n{_candidates(devices)}"
    kinds = ["auto", *(row.spec.removesuffix(":0") for row in rows if row.type != "other"), "numpy"]
    return PlanError(
        message,
        element="device",
        expected=", ".join(f'"{name}"' for name in kinds) + ", or text that fits exactly one device",
        got=repr(spec),
        hint=hint,
    )


def shown_names(names: Sequence[str]) -> str:
    """Return devices' names as the text of a Python list."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _candidates(devices: Sequence[Device], fitting: Sequence[Device] = ()) -> str:
    """List the possible values of `device=`: all devices and NumPy, or only the fitting devices, if there are any."""
    rows = zip(describe(devices), devices, strict=True)
    lines = [f"    {row.spec:<8} {row.platform} / {row.name}" for row, one in rows if not fitting or one in fitting]
    return "\n".join(lines if fitting else [*lines, "    numpy    NumPy, without OpenCL"])


# -- describing ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceRow:
    """Description of a device for users.

    Attributes:
        spec: the value for `device=`.
        platform, version, name, driver: as the driver states them.
        type: "cpu", "gpu" or "other".
        memory_bytes: its memory; for a host device the machine's.
        units: compute units.
        float64: whether it has double precision.
        summary: its kind, in words.
        identity: the runtime, its version and its device; see `Device.identity`.
    """

    spec: str
    platform: str
    version: str
    name: str
    driver: str
    type: str
    memory_bytes: int
    units: int
    float64: bool
    summary: str
    identity: str


def describe_devices() -> tuple[DeviceRow, ...]:
    """Describe each OpenCL device in a row, in the order in which `device="auto"` prefers them.

    Raises:
        PlanError: without pyopencl.
        RunError: in a process forked off one that had used a device.
    """
    return describe(all_devices())


def describe(devices: Sequence[Device]) -> tuple[DeviceRow, ...]:
    """Describe given devices, best first, as `describe_devices` does."""
    counts = {"cpu": 0, "gpu": 0}
    rows = []
    for device in devices:
        spec = device.capabilities.name
        if device.kind != "other":
            spec = f"{device.kind}:{counts[device.kind]}"
            counts[device.kind] += 1
        rows.append(
            DeviceRow(
                spec=spec,
                platform=device.platform,
                version=device.version,
                name=device.capabilities.name,
                driver=device.handle.driver_version.strip(),
                type=device.kind,
                memory_bytes=device.capabilities.memory_bytes,
                units=device.capabilities.units,
                float64=device.capabilities.float64,
                summary=_description(device),
                identity=device.identity,
            )
        )
    return tuple(rows)
