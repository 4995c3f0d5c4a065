"""Flows: a graph compiled once, then fed by hand; the dot product in three of its shapes, from plain code and trio."""

import numpy as np
import trio

import flowcompute as fc

a, b = np.random.default_rng(20).standard_normal((2, 8, 4), dtype=np.float32)
left, right = (fc.feed(shape=fc.Vector(4, "float32"), name=name) for name in ("left", "right"))
with fc.vecdot(left, right).flow() as flow:  # a number for each pair of vectors
    for size in (8, 1, 0):  # every send has its receive
        flow.send(left=a[:size], right=b[:size])
        np.testing.assert_allclose(flow.receive(), (a[:size] * b[:size]).sum(axis=1), rtol=1e-4, atol=1e-5)

# Two streams of numbers have one dot product: a fold, which answers when it is asked.
u, v = fc.feed(dtype="float32", name="u"), fc.feed(dtype="float32", name="v")
for mode in ("reset", "cumulative"):  # for what came since it was last asked, or for all that ever came
    answers = []
    with fc.vecdot(u, v).flow(mode=mode) as flow:
        for _ in range(4):
            flow.send(u=np.ones(10), v=np.full(10, 2))
            answers.append(flow.resolve())
    print(f"{mode:10}", *answers)
    assert answers == ([20, 20, 20, 20] if mode == "reset" else [20, 40, 60, 80])


async def main():
    async def produce():
        for size in (3, 4, 1, 12):
            await flow.send(u=np.arange(size), v=np.ones(size))  # waits while nobody receives
        await flow.aclose_input()

    runs = fc.vecdot(fc.cut(u, every=5), fc.cut(v, every=5))  # a number for every five records, however sent
    async with runs.flow() as flow, trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        return [number async for part in flow for number in part.tolist()]  # ends when the input does


print("in trio   ", *(received := trio.run(main)))
assert received == [4, 6, 20, 45]
