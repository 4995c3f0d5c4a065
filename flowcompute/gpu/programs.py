"""Placeholder until the program cache lands."""

from flowcompute.gpu._cl import cl


def build(device, text, options):
    return cl.Program(device.context, text).build(["-cl-std=CL1.2"])
