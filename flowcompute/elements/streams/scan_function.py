"""Scans whose step is the user's: a Python function called for each record, or a kernel that runs on devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flowcompute import function_ir as ir
from flowcompute.elements.alignment import broadcast, common_dtype, common_length
from flowcompute.elements.arguments import array_of, dtype_of, flag, whole
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import is_weak
from flowcompute.elements.functions import KernelFunction, Type, UserOp, user_op
from flowcompute.elements.op import MOST, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.cumulative import scan_axis
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BOOL, FLOAT64, INT64, Spec, Stream, is_float


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("scans state their dtypes themselves")


SCAN = Op("scan", 1, Kind.SCAN, np.asarray, _declared, cost=10)
KERNEL_SCAN = Op("kernel_scan", 1, Kind.SCAN, np.asarray, _declared, cost=10)


class ScanFunction(Compute):
    """A user's step in Python along a stream; see `scan`. Never merged with another."""

    function: Callable[..., Any]
    init: np.ndarray

    @property
    def label(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", "scan")


class KernelScan(Compute):
    """A step by a typed function, along the stream or an axis of items; see `scan`. Never merged with another.

    Attributes:
        step: the function, of the carry and a number of each operand; its `result` is what the element gives.
        inits: what is carried before the first step, an array for each result of the function. It has the shape of
            items where it runs along records, else it is one number.
        associative: whether numbers are put together in the canonical order of scans.
    """

    step: UserOp
    inits: tuple[np.ndarray, ...]
    associative: bool

    @property
    def label(self) -> str:
        """The function's own name."""
        return self.step.name


def scan(
    function: Callable[..., Any],
    *inputs: Operand,
    init: npt.ArrayLike | tuple[npt.ArrayLike, ...],
    axis: int = 0,
    associative: bool = False,
    on_error: Literal["raise"] = "raise",
    name: str | None = None,
) -> Any:
    """Run a step of your own, `carry = function(carry, item, ...)`, for each record, and return every carry.

    A function made by `fc.kernel` is a step from number to number. It runs in a kernel with what stands before and
    after it, on every backend, and may run along an axis of items too. Any other function is called for each record, on
    the host.

    A step that does not care how numbers are grouped, `f(f(a, b), c) == f(a, f(b, c))`, is `associative=True`. Many
    work-items then put numbers together at once, in the canonical order of scans (runs of 64, tiles of runs). Results
    are those of that order for every batch size.

    A kernel may carry several numbers: it takes them all before the operands and returns as many, and
    `init=` is a tuple of them. The scan then gives a tuple of elements, which share one kernel:

        @fc.kernel
        def welford(count, mean, squares, x):
            new = mean + (x - mean) / (count + 1)
            return count + 1, new, squares + (x - mean) * (x - new)

        count, mean, squares = fc.scan(welford, x, init=(0.0, 0.0, 0.0))

    Args:
        function: takes the carry and one item of each stream and returns the next carry. A function in Python gets
            NumPy values (not to be written to) and returns the shape of `init` and a dtype that casts to its. A kernel
            gets numbers and returns the carry's dtype.
        inputs: streams, at least one; beside a kernel also what broadcasts with them.
        init: the carry before the first record. Its dtype is that of the results (a Python number beside a kernel takes
            the inputs'). Its shape is that of the results' items (beside a kernel it is broadcast to them). Where
            `associative`, or along items, one number; where `associative` the step's identity, `f(init, x) == x`, for
            it begins each run. Of several numbers a tuple, each with a dtype and shape of its own.
        axis: 0 for the stream; along items with a kernel only.
        associative: see above; of one stream, with a kernel only.
        on_error: a step that fails always fails the run: every later carry depends on it.
        name: name of the element.

    Returns:
        A `ScanFunction` or `KernelScan`; a tuple of these for several numbers.

    Raises:
        SpecError: if an input is no stream, streams differ in length, shapes or dtypes do not fit, or
            `on_error` is not "raise".
        KernelError: where a kernel holds what it cannot.
    """
    called = name if isinstance(name, str) else "scan"
    along, associative = whole(called, "axis", axis, -MOST), flag(called, "associative", associative)
    if not isinstance(on_error, str) or on_error != "raise":
        raise SpecError(
            "cannot skip records of a scan: each carry is made of the one before it",
            element=called,
            site=user_site(),
            expected="on_error='raise'",
            got=f"on_error={short_repr(on_error)}",
            hint="drop bad records before: fc.scan(step, fc.host(check, x, on_error='skip'), init=...)",
        )
    if isinstance(function, KernelFunction):
        return _typed_scan(function, inputs, init, along, associative, name)
    carry: Any = init
    if not callable(function):
        raise SpecError(
            "cannot call this", element=called, site=user_site(), expected="a function", got=short_repr(function)
        )
    if along != 0 or associative:
        raise SpecError(
            "cannot run a step in Python but record after record",
            element=called,
            site=user_site(),
            expected="axis=0, associative=False",
            got=f"axis={along}, associative={associative}",
            hint="make a kernel of it with @fc.kernel",
        )
    elements = [as_element(operand, "scan") for operand in inputs]
    if not elements or not all(element.spec.is_stream for element in elements):
        raise SpecError(
            "cannot run along streams of resident values",
            element=called,
            site=user_site(),
            expected="one or more streams",
            got=f"{len(elements)} inputs",
        )
    start = _first_carry(carry, None, called)
    stream = Stream(common_length("scan", elements))
    element = ScanFunction(SCAN, tuple(elements), Spec(start.dtype, start.shape, stream), {"axis": None}, name=name)
    element.freeze_fields(function=function, init=start)
    return element


def _first_carry(init: npt.ArrayLike, dtype: np.dtype | None, name: str) -> np.ndarray:
    """Copy `init` to an array of its own, which nobody writes to."""
    given = array_of(name, "init", init, "a number or an array", dtype)
    start = np.array(given, dtype_of(name, given.dtype) if dtype is None else dtype)
    start.setflags(write=False)
    return start


# -- steps that are kernels ---------------------------------------------------------------------------


def _typed_scan(
    function: KernelFunction,
    inputs: Sequence[Operand],
    init: npt.ArrayLike | tuple[npt.ArrayLike, ...],
    axis: int,
    associative: bool,
    name: str | None,
) -> KernelScan | tuple[KernelScan, ...]:
    """Return the scan by a kernel, typed for these operands."""
    called = name or "scan"
    # A tuple is an array of the carry where the step carries one number.
    several = isinstance(init, tuple) and function.arity != len(inputs) + 1
    begun: list[Any] = list(init) if several else [init]  # type: ignore[arg-type]
    if not inputs or not begun or len(inputs) + len(begun) != function.arity:
        carries = f"{len(begun)} carries" if several else "a carry"
        raise SpecError(
            "cannot call the step with these operands",
            element=called,
            site=user_site(),
            expected=", ".join(function.names) if function.arity > 1 else "a step of two arguments at least",
            got=f"{carries} and {len(inputs)} operand{'s' if len(inputs) != 1 else ''}",
            hint="init= is a tuple of as many numbers as the step carries" if function.arity > 2 else None,
        )
    elements, _ = function.typed_operands(inputs)
    weak = [is_weak(one) for one in begun]
    dtypes = [
        _carry_dtype(one, elements, called) if is_weak(one) else _first_carry(one, None, called).dtype for one in begun
    ]
    for _ in range(1 + len(begun)):
        given = [_as_carry(element, dtypes[0], called) for element in elements] if associative else elements
        taken = [Type(dtype) for dtype in (*dtypes, *(element.dtype for element in given))]
        step, results = function.specialised(taken, None, ())
        # A Python number is no dtype: the carry is what the step makes of it.
        made = [result.dtype for result in results[: len(begun)]]
        found = [new if own else old for old, new, own in zip(dtypes, made, weak, strict=False)]
        if found == dtypes[: len(found)]:
            break
        dtypes[: len(found)] = found
    inits = [_first_carry(one, dtype, called) for one, dtype in zip(begun, dtypes, strict=True)]
    scans = []
    for result in range(len(inits)):
        own = name if name is None or not result else f"{name}_{result + 1}"
        scans.append(kernel_scan(step, given, inits, axis, associative=associative, result=result, name=own))
    return tuple(scans) if several else scans[0]


def _carry_dtype(init: Any, elements: Sequence[Element], name: str) -> np.dtype:
    """Return the dtype of a Python number beside these operands."""
    dtype = common_dtype(name, elements)
    if isinstance(init, float) and not is_float(dtype):
        return FLOAT64
    return INT64 if dtype == BOOL and not isinstance(init, bool) else dtype


def _as_carry(element: Element, dtype: np.dtype, name: str) -> Element:
    """Return a number of a scan in any grouping, which may stand where a carry does."""
    if not np.can_cast(element.dtype, dtype, "same_kind"):
        raise SpecError(
            "cannot use numbers of another kind as the carry",
            element=name,
            site=user_site(),
            expected=dtype.name,
            got=element.dtype.name,
            hint=f'cast with .astype("{dtype.name}")',
        )
    return cast(element, dtype)


def kernel_scan(
    step: ir.TypedFunction,
    inputs: Sequence[Element],
    inits: Sequence[np.ndarray],
    axis: int,
    *,
    associative: bool,
    result: int = 0,
    name: str | None = None,
) -> KernelScan:
    """Return the scan by a typed function, or one of its results; see `scan`.

    Raises:
        SpecError: if it does not fit its operands or the carry.
    """
    called = name or "scan"
    carried = tuple(init.dtype.name for init in inits)
    dtypes = [*carried, *(element.dtype.name for element in inputs)]
    if list(step.parameters) != dtypes:
        raise SpecError(
            "cannot call the step with these operands",
            element=called,
            site=user_site(),
            expected=", ".join(step.parameters),
            got=", ".join(dtypes),
        )
    if step.results != carried:
        raise SpecError(
            "cannot carry what the step gives",
            element=called,
            site=user_site(),
            expected=", ".join(carried),
            got=", ".join(step.results),
            hint="cast in the step, or begin with another dtype: init=np.float64(0)",
        )
    if not inputs or (associative and len(inputs) != 1):
        least = "one value" if associative else "at least one stream"
        raise SpecError(
            "cannot scan so many operands", element=called, site=user_site(), expected=least, got=str(len(inputs))
        )
    if associative and len(inits) != 1:
        raise SpecError(
            "cannot carry several numbers in any grouping",
            element=called,
            site=user_site(),
            expected="associative=False",
            got=f"associative=True with {len(inits)} numbers",
        )
    aligned, shape, stream = broadcast(called, list(inputs))
    along = scan_axis(called, max(aligned, key=lambda element: element.ndim), axis)
    wanted = shape if along is None and not associative else ()
    begun = tuple(_spread_carry(init, wanted, called) for init in inits)
    attrs = {"axis": along, "associative": associative, "function": step.digest}
    attrs |= {"result": result} if len(begun) > 1 else {}
    made = KernelScan(KERNEL_SCAN, tuple(aligned), Spec(begun[result].dtype, shape, stream), attrs, name=name)
    made.freeze_fields(step=user_op(step, result, ""), inits=begun, associative=associative)
    return made


def _spread_carry(init: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return a first carry of this shape."""
    try:
        spread = np.array(np.broadcast_to(init, shape))
    except ValueError:
        raise SpecError(
            "cannot begin with a carry of this shape",
            element=name,
            site=user_site(),
            expected=f"what broadcasts to {shape}" if shape else "one number",
            got=str(init.shape),
        ) from None
    spread.setflags(write=False)
    return spread
