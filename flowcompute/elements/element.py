"""The nodes that users compose: frozen, lazy, found again from what is resolved."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, cast

import numpy as np

from flowcompute.elements.arguments import NoValue, instead_of, meant
from flowcompute.elements.site import UserCall, current_call, user_site
from flowcompute.errors import Site, SpecError, short_repr
from flowcompute.imports import dataclass, load_module
from flowcompute.spec import Spec
from flowcompute.strategy import FlowOptions, PlanVerbOptions, StartOptions


@dataclass(frozen=True)
class VerbSlot:
    """The verbs of elements. Elements know nothing of running: `flowcompute.flow` fills this in once."""

    resolve: Callable[..., Any]
    run: Callable[..., Any]
    plan: Callable[..., Any]
    start: Callable[..., Any]
    aresolve: Callable[..., Any]
    arun: Callable[..., Any]
    flow: Callable[..., Any]
    draw: Callable[..., str]
    html: Callable[..., str]
    hash: Callable[..., str]


class _LateVerbs:
    """The place of the verbs until the first is asked for. It loads what plans and runs, by text: that lies above."""

    def __get__(self, element: Element | None, kind: type[Element]) -> VerbSlot:
        load_module("flowcompute.flow")
        return Element.verbs


class Element(NoValue):
    """A node of the lazy graph: Source, Compute or Destination.

    Frozen once made. `shape` counts the stream as axis 0. Operators and methods build new
    elements; nothing runs before `resolve`, `run` or `start`.
    """

    verbs: VerbSlot = cast("VerbSlot", _LateVerbs())
    """Filled by `flowcompute.flow`, which is loaded for the first verb."""
    apply: Callable[..., Element]
    """Filled once by `elements.operators`."""
    call_numpy: Callable[..., Any]
    """Filled once by `elements.operators`."""

    spec: Spec
    inputs: tuple[Element, ...]
    name: str | None
    site: Site | None
    call: UserCall | None
    """The call of a public function that made it; None where none did."""
    is_step: bool
    """Whether it was made on the way to what that call returned."""
    twin_of: Element | None
    """The element that this is, with another name."""

    def __init__(self, spec: Spec, inputs: tuple[Element, ...] = (), name: str | None = None) -> None:
        if name is not None:
            _check_name(name)
        call = current_call()
        fields = self.__dict__
        fields["spec"], fields["inputs"], fields["name"] = spec, inputs, name
        fields["site"] = user_site() if call is None else call.site
        fields["call"], fields["is_step"], fields["twin_of"] = call, call is not None, None

    # -- frozen ---------------------------------------------------------------------------

    def freeze_fields(self, **fields: Any) -> None:
        """Set fields while the element is being made."""
        self.__dict__.update(fields)

    def __setattr__(self, field: str, value: object) -> None:
        raise AttributeError(f"elements are frozen: cannot set {field!r}")

    def __delattr__(self, field: str) -> None:
        raise AttributeError(f"elements are frozen: cannot delete {field!r}")

    def _copy(self) -> Self:
        """Copy the element, as made at the user's present line."""
        twin = copy.copy(self)
        twin.freeze_fields(site=user_site(), twin_of=None)
        return twin

    def __deepcopy__(self, memo: object) -> Self:
        """Return the element itself, since nothing of it changes."""
        return self

    # -- what it is -----------------------------------------------------------------------

    @property
    def label(self) -> str:
        """The name that drawings and plans give an element without one."""
        return type(self).__name__.lower()

    @property
    def base_name(self) -> str:
        """The name that it has unless its user gave one, or another element has it, too."""
        return self.label

    @property
    def origin(self) -> str:
        """The file that it reads or writes; empty where there is none."""
        return ""

    def named(self, name: str) -> Self:
        """Return the element under a name, which plans, drawings, metrics and errors show.

        No answer, checkpoint or kept strategy depends on names.

        Raises:
            SpecError: if it is not printable text.
        """
        _check_name(name)
        twin = copy.copy(self)
        twin.freeze_fields(name=name, twin_of=self if self.twin_of is None else self.twin_of)
        return twin

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the value."""
        return self.spec.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """`(length, *item)` for a stream (length None while unknown), else the plain shape."""
        return self.spec.full_shape

    @property
    def ndim(self) -> int:
        """Number of axes, the stream axis included."""
        return self.spec.ndim

    @property
    def size(self) -> int | None:
        """Numbers in the value; None while the length is unknown."""
        return None if None in self.shape else math.prod(size for size in self.shape if size is not None)

    @property
    def nbytes(self) -> int | None:
        """Bytes of the value; None while the length is unknown."""
        return None if self.size is None else self.size * self.dtype.itemsize

    @property
    def hash(self) -> str:
        """Structural hash of the graph up to here: equal for equal graphs, whatever they read."""
        return Element.verbs.hash(self)

    def __str__(self) -> str:
        return Element.verbs.draw(self)

    def _repr_html_(self) -> str | None:
        return Element.verbs.html(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or self.base_name}: {self.spec}>"

    # -- verbs ----------------------------------------------------------------------------

    def resolve(self, **options: Unpack[StartOptions]) -> Any:
        """Run and give the value: a NumPy scalar or array, or the path of a saved result."""
        return Element.verbs.resolve(self, **options)

    def run(self, **options: Unpack[StartOptions]) -> Any:
        """Run to the end and give the finished `Run` (value, metrics, plan)."""
        return Element.verbs.run(self, **options)

    def plan(self, **options: Unpack[PlanVerbOptions]) -> Any:
        """Plan the run and say why; reads headers only and touches no data."""
        return Element.verbs.plan(self, **options)

    def start(self, **options: Unpack[StartOptions]) -> Any:
        """Start running in the background and give the running `Run`."""
        return Element.verbs.start(self, **options)

    async def aresolve(self, **options: Unpack[StartOptions]) -> Any:
        """Run without blocking the event loop, in asyncio or trio, and give the value."""
        return await Element.verbs.aresolve(self, **options)

    async def arun(self, **options: Unpack[StartOptions]) -> Any:
        """Run to the end without blocking the event loop, in asyncio or trio, and give the finished `Run`."""
        return await Element.verbs.arun(self, **options)

    def flow(self, **options: Unpack[FlowOptions]) -> Any:
        """Open a flow over `fc.feed` sources by `with` or, in asyncio and trio, `async with`; see `fc.open_flow`."""
        return Element.verbs.flow(self, **options)

    def explain(self, **options: Any) -> str:
        """Say how the value would be computed, and why."""
        plan = Element.verbs.plan(self, **options)
        return f"{plan}\n{plan.explain()}"

    def to_numpy(self, **options: Any) -> np.ndarray:
        """Run and give the value as an array; options as of `resolve`."""
        return np.asarray(Element.verbs.resolve(self, **options))

    def pipe(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function(self, *args, **kwargs)`, to chain functions from left to right."""
        return function(self, *args, **kwargs)

    def on(self, device: str) -> Self:
        """Refuse to pin the value to a device: the elements that are computed have an `on` of their own.

        Raises:
            SpecError: always.
        """
        raise SpecError(
            f"cannot be pinned to {device!r}",
            element=self.name or self.base_name,
            site=user_site(),
            expected="an operation on elements",
            got=type(self).__name__,
            hint="device= of the verbs says where a run computes",
        )

    def __len__(self) -> int:
        if not self.ndim or self.shape[0] is None:
            raise self.refuse("len()")
        return self.shape[0]

    def __round__(self, decimals: int = 0) -> Element:
        return Element.apply("round", self, decimals=decimals)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            told = f"{type(self).__name__} has no attribute {name!r}{instead_of(name)}"
            raise AttributeError(told, name=name, obj=self)

    __hash__ = object.__hash__

    # -- NumPy's functions build the same graph ---------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            options = method if method != "__call__" else ", ".join(f"{key}=" for key in kwargs)
            raise TypeError(f"numpy.{ufunc.__name__} on a lazy element takes no {options}; use the fc function instead")
        return Element.apply(ufunc.__name__, *operands)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Element.call_numpy(function, args, kwargs)

    # -- operators ------------------------------------------------------------------------

    def __add__(self, other: Any) -> Element:
        return Element.apply("add", self, other)

    def __radd__(self, other: Any) -> Element:
        return Element.apply("add", other, self)

    def __sub__(self, other: Any) -> Element:
        return Element.apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Element:
        return Element.apply("subtract", other, self)

    def __mul__(self, other: Any) -> Element:
        return Element.apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Element:
        return Element.apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Element:
        return Element.apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Element:
        return Element.apply("divide", other, self)

    def __floordiv__(self, other: Any) -> Element:
        return Element.apply("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Element:
        return Element.apply("floor_divide", other, self)

    def __mod__(self, other: Any) -> Element:
        return Element.apply("remainder", self, other)

    def __rmod__(self, other: Any) -> Element:
        return Element.apply("remainder", other, self)

    def __pow__(self, other: Any) -> Element:
        return Element.apply("pow", self, other)

    def __rpow__(self, other: Any) -> Element:
        return Element.apply("pow", other, self)

    def __matmul__(self, other: Any) -> Element:
        return Element.apply("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Element:
        return Element.apply("matmul", other, self)

    def __and__(self, other: Any) -> Element:
        return Element.apply("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Element:
        return Element.apply("bitwise_and", other, self)

    def __or__(self, other: Any) -> Element:
        return Element.apply("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Element:
        return Element.apply("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Element:
        return Element.apply("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Element:
        return Element.apply("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> Element:
        return Element.apply("bitwise_left_shift", self, other)

    def __rlshift__(self, other: Any) -> Element:
        return Element.apply("bitwise_left_shift", other, self)

    def __rshift__(self, other: Any) -> Any:
        """Compose `x >> destination`; otherwise shift integers right by bits."""
        return Element.apply("bitwise_right_shift", self, other)

    def __rrshift__(self, other: Any) -> Element:
        return Element.apply("bitwise_right_shift", other, self)

    def __neg__(self) -> Element:
        return Element.apply("negative", self)

    def __pos__(self) -> Element:
        return Element.apply("positive", self)

    def __abs__(self) -> Element:
        return Element.apply("abs", self)

    def __invert__(self) -> Element:
        return Element.apply("bitwise_invert", self)

    def __lt__(self, other: Any) -> Element:
        return Element.apply("less", self, other)

    def __le__(self, other: Any) -> Element:
        return Element.apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Element:
        return Element.apply("greater", self, other)

    def __ge__(self, other: Any) -> Element:
        return Element.apply("greater_equal", self, other)

    def __eq__(self, other: Any) -> Element:  # type: ignore[override]
        return Element.apply("equal", self, other)

    def __ne__(self, other: Any) -> Element:  # type: ignore[override]
        return Element.apply("not_equal", self, other)

    def __getitem__(self, key: Any) -> Any:
        """Index as NumPy's basic indexing, the stream being axis 0; a stream also takes a 1-D mask: `x[x > 0]`."""
        return Element.apply("index", self, key)

    # -- methods, each the function of the same name ------------------------------------------

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """Axes in reversed order; of a stream a transposed stream, which `matmul` and `resolve` take."""
        return Element.apply("transpose", self)

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        """The last two axes exchanged; where one of them is the stream as `T`."""
        return Element.apply("matrix_transpose", self)

    def astype(self, dtype: Any) -> Element:
        """Cast to `dtype`; see `fc.astype`."""
        return Element.apply("astype", self, dtype=dtype)

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Element:
        """Sum over `axis`; see `fc.sum`."""
        return Element.apply("sum", self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Element:
        """Multiply over `axis`; see `fc.prod`."""
        return Element.apply("prod", self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Element:
        """Return the mean over `axis`; see `fc.mean`."""
        return Element.apply("mean", self, axis=axis, keepdims=keepdims)

    @meant(ddof="correction")
    def var(self, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Element:
        """Return the variance over `axis`; see `fc.var`."""
        return Element.apply("var", self, axis=axis, correction=correction, keepdims=keepdims)

    @meant(ddof="correction")
    def std(self, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Element:
        """Return the standard deviation over `axis`; see `fc.std`."""
        return Element.apply("std", self, axis=axis, correction=correction, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False, initial: Any = None) -> Element:
        """Return the minimum over `axis`; see `fc.min`."""
        return Element.apply("min", self, axis=axis, keepdims=keepdims, initial=initial)

    def max(self, axis: Any = None, *, keepdims: bool = False, initial: Any = None) -> Element:
        """Return the maximum over `axis`; see `fc.max`."""
        return Element.apply("max", self, axis=axis, keepdims=keepdims, initial=initial)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Element:
        """Return the index of the first minimum; see `fc.argmin`."""
        return Element.apply("argmin", self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Element:
        """Return the index of the first maximum; see `fc.argmax`."""
        return Element.apply("argmax", self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Element:
        """Test whether any number over `axis` is non-zero; see `fc.any`."""
        return Element.apply("any", self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Element:
        """Test whether all numbers over `axis` are non-zero; see `fc.all`."""
        return Element.apply("all", self, axis=axis, keepdims=keepdims)

    def head(self, n: int = 5) -> Any:
        """Return the first `n` records of a stream, or the first of a resident value along axis 0, as an element."""
        return Element.apply("index", self, slice(n))

    def describe(self) -> Any:
        """Return the usual statistics of each column, resolved in one reading; see `fc.describe`."""
        return Element.apply("describe", self)

    def reshape(self, *shape: Any) -> Any:
        """Reshape the value, given one shape or its sizes; see `fc.reshape`."""
        return Element.apply("reshape", self, shape[0] if len(shape) == 1 else shape)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Element:
        """Return running sums along `axis`; see `fc.cumulative_sum`."""
        return Element.apply("cumulative_sum", self, axis=axis, dtype=dtype)

    def round(self, decimals: int = 0) -> Element:
        """Round to `decimals`; see `fc.round`."""
        return Element.apply("round", self, decimals=decimals)

    def clip(self, min: Any = None, max: Any = None) -> Element:
        """Limit the value to [min, max]; see `fc.clip`."""
        return Element.apply("clip", self, min, max)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise SpecError("cannot take name=", site=user_site(), expected="printable text", got=short_repr(name))
