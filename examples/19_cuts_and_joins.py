"""Cuts and joins: a stream seen in runs, laid out flat, repeated, or played after another."""

import numpy as np

import flowcompute as fc

hours = np.arange(24 * 30 + 5)  # a month, and five hours
rate = 600 * np.sin(np.pi * hours / 24) ** 6 * (1 + hours // 24 % 7 / 6)
steps = np.random.default_rng(19).poisson(rate)
x = fc.source(steps, name="steps")

try:
    fc.cut(x, every=24)
except fc.SpecError as error:  # known when composed: nothing has run
    print(f"refused: {error}\n")
days = fc.cut(x, every=24, tail="drop")  # (725,) seen as (30, 24); the rest is dropped
padded = fc.cut(x, every=24, tail="pad", fill=0)  # or filled up
begun = fc.cut(x, every=24, tail="emit").sum(axis=1)  # or a run of five, which a sum can take
assert days.shape == (30, 24)
assert padded.shape == (31, 24)
daily, last_day, all_days = fc.resolve(days.sum(axis=1), padded[-1:], begun)
whole = steps[:720].reshape(30, 24)
np.testing.assert_array_equal(daily, whole.sum(axis=1))
assert (last_day[0, 5:] == 0).all()
assert all_days[-1] == steps[720:].sum()

# What is made of a run meets the hours it came from: each mean is repeated for its 24 hours.
mean = days.mean(axis=1)
lively = x[:720] > fc.repeat(mean, 24)
table = fc.cut(lively, every=24).resolve()  # and the answer is seen in days again
np.testing.assert_array_equal(table, whole > whole.mean(axis=1, keepdims=True))
print("hours above the mean of their day, the first week:")
for number, day in enumerate(table[:7], 1):
    print(f"  day {number}  {''.join('●' if hour else '·' for hour in day)}  {daily[number - 1]:6,} steps")

# One after the other, and items as their numbers.
both = fc.concat([fc.flatten(days), x[720:]])
np.testing.assert_array_equal(both.resolve(), steps)
