"""Placeholder until the device module lands."""

from flowcompute.gpu._cl import cl
from flowcompute.planner.backend import Traits


class Device:
    def __init__(self):
        dev = cl.get_platforms()[0].get_devices()[0]
        self.context = cl.Context([dev])
        self.queue = cl.CommandQueue(self.context)
        self.traits = Traits(dev.name, "k", "cpu", True, True, 1 << 34, 1 << 33, 1 << 15, 2, lanes=16)


_dev = []


def select_device(spec, needs_float64):
    if not _dev:
        _dev.append(Device())
    return _dev[0]
