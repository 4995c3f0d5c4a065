"""Random numbers as streams made on the device, public as `fc.random`.

A number depends on its seed and its position alone. The position is `r * item numbers + j` for
place j of the item in record r. So it is the same for any batch size, device and run, and any
part of a stream can be made without the rest.

They come from Philox4x32-10 (see `elements/generated/philox.py`). The key is the seed, its lower
32 bits first. The counter is (lower half of the block's number, upper half, tag, 0). The tag is 1
for `uniform`, 2 for `normal` and 3 for `integers`, so that these are unrelated even for one seed.
A block is four words of 32 bits, w0 to w3. Words of 64 bits are w0 + 2^32 w1 and w2 + 2^32 w3.

| numbers | of a block | position n is made of | as |
|---|---|---|---|
| uniform float32 | 4 | word n mod 4 of block n div 4 | (w >> 8) * 2^-24 |
| uniform float64 | 2 | 64-bit word n mod 2 of block n div 2 | (w >> 11) * 2^-53 |
| uniform float16, bfloat16 | 4 | as float32 | (w >> 21) * 2^-11, (w >> 24) * 2^-8 |
| normal float32 | 4 | words 2k and 2k + 1 of block n div 4, k = (n mod 4) div 2 | Box-Muller |
| normal float64 | 2 | both 64-bit words of block n div 2 | Box-Muller |
| integers | 2 | 64-bit word n mod 2 of block n div 2 | floor(w * count / 2^64) |
| integers, count above 2^32 | 1 | all 128 bits of block n | floor(w * count / 2^128) |

Box-Muller of words x and y is r cos a for even and r sin a for odd positions. There
a = 2 pi y / 2^32, r = sqrt(-2 ln u) and u = ((x >> 1) + 1/2) / 2^31; float64 has 2^64, x >> 11 and 2^53. Half
formats are rounded from float32. All of it is + - * / and sqrt in a fixed order: bits are equal
on all devices that round these correctly.
"""

from typing import TYPE_CHECKING, NoReturn

from flowcompute.elements.arguments import no_such_name
from flowcompute.elements.random.distributions import SEED_BITS as SEED_BITS
from flowcompute.elements.random.distributions import Random as Random
from flowcompute.elements.random.distributions import integers, normal, uniform
from flowcompute.elements.random.dropped_numbers import dropout as dropout

__all__ = ["integers", "normal", "uniform"]


if not TYPE_CHECKING:  # type checkers find wrong names themselves

    def __getattr__(name: str) -> NoReturn:
        raise no_such_name(name, {"fc.random": __all__})


def __dir__() -> list[str]:
    return __all__
