"""What a Python function may hold to be a kernel, which dtypes follow, and what is refused, where and why."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.host import numpy_functions as user_functions
from flowcompute.spec import BFLOAT16

TABLE = [1.0, 2.0]
TEXT = "text"
SCALE = 3
HALF = np.float32(0.5)


def stream(dtype: str, values: Any = (1, 2, 3)) -> fc.Element:
    return fc.source(np.asarray(values).astype(BFLOAT16 if dtype == "bfloat16" else dtype))


def mean(x, y):
    return (x + y) / 2


def halved(x):
    return x * 0.5


def counted(x):
    total = 0
    for i in range(3):
        total += i
    return total


def scaled(x):
    return x * SCALE * HALF


def truncated(x):
    return int(x) * 2, float(3), math.floor(x + 0.5), x > 1


def weak_local(x):
    s = 0.1
    s = s * s
    return x * s


def widened(n):
    if n > 1:
        n = n * 0.5
    return n


@pytest.mark.parametrize(
    ("function", "dtypes", "results"),
    [
        (mean, ["float32", "float32"], ["float32"]),
        (mean, ["float32", "float64"], ["float64"]),
        (mean, ["float16", "float16"], ["float16"]),
        (mean, ["bfloat16", "bfloat16"], ["bfloat16"]),
        (mean, ["float32", "float16"], ["float32"]),
        (mean, ["int8", "int8"], ["float64"]),
        (mean, ["bool", "bool"], ["float64"]),
        (halved, ["int32"], ["float64"]),
        (halved, ["float32"], ["float32"]),
        (counted, ["float32"], ["int64"]),
        (scaled, ["float32"], ["float32"]),
        (scaled, ["float64"], ["float64"]),
        (truncated, ["float32"], ["int64", "float32", "int64", "bool"]),
        (truncated, ["int16"], ["int16", "float64", "int64", "bool"]),
        (weak_local, ["float32"], ["float32"]),
        (weak_local, ["float16"], ["float16"]),
        (widened, ["int64"], ["float64"]),
    ],
)  # fmt: skip
def test_dtypes_follow_numpy_and_python_numbers_are_weak(
    function: Callable[..., Any], dtypes: list[str], results: list[str]
) -> None:
    made = fc.kernel(function)(*(stream(dtype) for dtype in dtypes))
    made = made if isinstance(made, tuple) else (made,)
    assert [one.dtype.name for one in made] == results
    values = fc.resolve(*made, device="numpy")
    values = values if isinstance(values, tuple) else (values,)
    assert [value.dtype.name for value in values] == results


def test_two_bools_add_up_as_in_python() -> None:
    assert fc.kernel(mean)(stream("bool", [True, False]), True).resolve(device="numpy").tolist() == [1.0, 0.5]


def test_operands_are_elements_arrays_and_numbers_and_broadcast() -> None:
    average = fc.kernel(mean)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    got = fc.resolve(
        average(fc.source(x), 1),
        average(fc.source(x), np.array([2.0, 4.0], np.float32)),
        average(x, x),
        average(1, 2.0),
    )
    np.testing.assert_array_equal(got[0], (x + 1) / 2)
    np.testing.assert_array_equal(got[1], (x + np.float32([2, 4])) / 2)
    np.testing.assert_array_equal(got[2], x)
    assert got[3] == 1.5
    assert got[3].dtype == np.float64
    assert average(fc.source(x), 1).dtype == np.float32
    with pytest.raises(fc.SpecError, match="broadcast"):
        average(fc.source(x), np.ones(3))
    with pytest.raises(fc.SpecError, match="cannot take so many operands"):
        average(x)


def test_it_looks_like_the_function() -> None:
    @fc.kernel
    def named(x):
        """What it does."""
        return x

    assert (named.__name__, named.__doc__, named.python(3)) == ("named", "What it does.", 3)
    assert inspect.signature(named).parameters.keys() == {"x"}
    assert "named" in str(named(stream("float32")))


def test_options_may_be_given_with_the_function() -> None:
    def before(x, *, i):
        return x[i - 1]

    for made in (fc.kernel(before, boundary="edge"), fc.kernel(boundary="edge")(before)):
        assert made(stream("f8")).resolve(device="numpy", progress=False).tolist() == [1, 1, 2]


def test_captured_numbers_are_part_of_the_hash_and_are_those_of_the_call() -> None:
    def make(factor: float) -> fc.Element:
        @fc.kernel
        def times(x):
            return x * factor

        return times(stream("float32"))

    assert make(2.5).hash == make(2.5).hash != make(3.5).hash
    both = fc.resolve(make(2.5), make(3.5), device="numpy")
    assert [value.tolist() for value in both] == [[2.5, 5.0, 7.5], [3.5, 7.0, 10.5]]


def test_numbers_that_are_known_are_computed_as_python_computes_them() -> None:
    @fc.kernel
    def third(x):
        return x * (2 * math.pi / 3) + math.sqrt(2) ** 2

    got = third(stream("float32")).resolve(device="numpy")
    np.testing.assert_array_equal(
        got, np.float32([1, 2, 3]) * np.float32(2 * math.pi / 3) + np.float32(math.sqrt(2) ** 2)
    )


def test_what_raises_in_python_has_a_value() -> None:
    @fc.kernel
    def by(n, m, x):
        a = [10, 20, 30]
        return n // m, n % m, x / (x - x), a[n - 5], a[-n]

    got = fc.resolve(*by(stream("int64"), 0, stream("float64")), device="numpy")
    assert [value.tolist() for value in got[:2]] == [[0, 0, 0]] * 2
    assert np.isposinf(got[2]).all()
    assert [value.tolist() for value in got[3:]] == [[10, 10, 20], [30, 20, 10]]


def test_integers_compare_by_value_whatever_their_dtypes() -> None:
    @fc.kernel
    def compared(u, i):
        return u < i, u >= i, i != u, u > 300, i < 2**63

    u = np.array([0, 2**63, 2**64 - 1], np.uint64)
    i = np.array([-1, 5, -(2**63)])
    got = fc.resolve(*compared(fc.source(u), fc.source(i)), device="numpy")
    pairs = list(zip(u.tolist(), i.tolist(), strict=True))
    want = [[a < b for a, b in pairs], [a >= b for a, b in pairs], [a != b for a, b in pairs]]
    assert [value.tolist() for value in got] == [*want, [a > 300 for a, _ in pairs], [True] * 3]


@fc.kernel
def even(x):
    return odd(x - 1)


@fc.kernel
def odd(x):
    return even(x - 1)


@fc.kernel
def two(x):
    return x, x + 1


def calls_open(x):
    return open(x)


def holds_text(x):
    return x + "one"


def reads_table(x):
    return x * TABLE[0]


def reads_text(x):
    return x * TEXT


def recursive(x):
    return even(x)


def many(*args):
    return args


def defaulted(x, y=1):
    return x + y


def tries(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


def has_lambda(x):
    return (lambda y: y)(x)


def unpaired(x):
    if x > 0:
        return x, x
    return x


def endless(x):
    while x > 0:
        x = x - 1


def unset(x):
    if x > 0:
        y = 1.0
    return x + y


def over_list(x):
    total = 0.0
    for item in [1.0, 2.0]:
        total += item
    return total


def undefined(x):
    return x + nowhere  # noqa: F821


def attribute(x):
    return x.real


def sliced(x):
    a = [0.0] * 4
    return a[1:2]


def outside_array(x):
    a = [0.0] * 4
    return a[4] + x


def fractional_index(x):
    a = [0.0] * 4
    return a[x]


def sized_by_value(x):
    a = [0.0] * x
    return a[0]


def resized(x):
    a = [0.0] * 4
    a = [0.0] * 5
    return a[0]


def shifted(x):
    return x << 1


def matrix(x):
    return x @ x


def keyword(x):
    return max(x, 1, key=abs)


def two_as_one(x):
    return two(x) + 1


def three_of_two(x):
    a, b, c = two(x)
    return a + b + c


def nothing(x):
    return


def printing(x):
    print(x)
    return x


def overflowing(x):
    return x + 300


def chained_names(x):
    x.y = 1
    return x


def global_state(x):
    global SCALE  # noqa: PLW0603 - refused
    SCALE = 4
    return x


REFUSED: list[tuple[Callable[..., Any], str, str, str]] = [
    (calls_open, "float32", "return open(x)", "cannot call open in a kernel"),
    (holds_text, "float32", "return x +", "cannot use 'one' as a number"),
    (reads_table, "float32", "return x", ", which is no local array"),
    (reads_text, "float32", "return x", "cannot use TEXT, which is not a number"),
    (recursive, "float32", "", "cannot call itself, directly or through another kernel"),
    (many, "float32", "", "cannot take *args"),
    (defaulted, "float32", "", "cannot take default values"),
    (tries, "float32", "try", "cannot use try in a kernel"),
    (has_lambda, "float32", "lambda", "cannot call"),
    (unpaired, "float32", "return x\n", "cannot return different numbers of results"),
    (endless, "float32", "def", "cannot end without a result"),
    (unset, "float32", "return x + y", "cannot read 'y', which may have no value yet"),
    (over_list, "float32", "for item", "cannot loop over this"),
    (undefined, "float32", "return", "cannot find 'nowhere'"),
    (attribute, "float32", "return", ": only attributes of modules are known in a kernel"),
    (sliced, "float32", "a[1:2]", "cannot compute 1:2"),
    (outside_array, "float32", "a[4]", "cannot index outside the array"),
    (fractional_index, "float32", "a[x]", "cannot index by what is no integer"),
    (sized_by_value, "int32", "* x", "cannot make an array whose size is not known when the kernel is made"),
    (resized, "float32", "* 5", "from 4 numbers to 5"),
    (shifted, "float32", "<<", "cannot compute bitwise_left_shift of these"),
    (matrix, "float32", "@", "cannot compute x @ x"),
    (keyword, "float32", "key", "cannot call with other than plain arguments"),
    (two_as_one, "float32", "two(x)", "which gives 2 results"),
    (three_of_two, "float32", "two(x)", "which gives 2 results"),
    (nothing, "float32", "return", "cannot return nothing"),
    (printing, "float32", "print", "an expression whose value goes nowhere"),
    (overflowing, "int8", "300", "cannot hold a number in the dtype of what it meets"),
    (chained_names, "float32", "x.y", "cannot assign to x.y"),
    (global_state, "float32", "global", "cannot use global in a kernel"),
]


@pytest.mark.parametrize(
    ("function", "dtype", "line", "words"), REFUSED, ids=lambda one: getattr(one, "__name__", None)
)
def test_what_cannot_be_translated_is_refused_with_its_line(
    function: Callable[..., Any], dtype: str, line: str, words: str
) -> None:
    with pytest.raises(fc.KernelError) as caught:
        fc.kernel(function)(stream(dtype))
    text = str(caught.value)
    assert words in text
    if function is not recursive:
        assert text.startswith(f"{function.__name__}: ")
    assert caught.value.site is not None
    assert caught.value.site.file == __file__
    lines, first = inspect.getsourcelines(function)
    if line and function is not recursive:
        assert line.strip() in lines[caught.value.site.line - first]


def test_source_must_be_there() -> None:
    space: dict[str, Any] = {}
    exec("def unseen(x): return x", space)
    with pytest.raises(fc.KernelError, match="cannot read the source of this function"):
        fc.kernel(space["unseen"])
    for thing in (lambda x: x, math.sqrt, print, np.add):
        with pytest.raises(fc.KernelError, match="cannot make a kernel of"):
            fc.kernel(thing)
    with pytest.raises(fc.KernelError, match="cannot make a kernel of this"):
        fc.kernel(3)  # type: ignore[arg-type]


def test_a_loop_that_never_ends_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    @fc.kernel
    def forever(x):
        while x == x:
            x = x + 0
        return x

    looping = threading.Event()
    check = user_functions.check_stopped

    def checked() -> None:
        looping.set()
        check()

    monkeypatch.setattr(user_functions, "check_stopped", checked)
    run = forever(stream("float32")).start(device="numpy", progress=False)
    assert looping.wait(60)
    run.stop()
    with pytest.raises(fc.RunError, match="stopped"):
        run.wait(60)


def plain_helper(x: Any) -> Any:
    return x + 1


def test_a_plain_function_in_a_kernel_may_become_one() -> None:
    @fc.kernel
    def outer(x: Any) -> Any:
        return plain_helper(x)

    with pytest.raises(fc.KernelError, match=r"cannot call plain_helper(.|\n)*decorate plain_helper with @fc\.kernel"):
        outer(fc.source(np.ones(3, "f4")))
