"""Templates of calls: what a public function made of operands is copied for others of the same specs and operations.

A step of a training composes the same graph as the step before, and equal layers are composed one after the other.
Checking arguments, promoting dtypes and broadcasting shapes then find what they found before. So the second of equal
calls is made of stand-ins, which show what a template is found by and nothing else. Its elements become a template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Never

import numpy as np

from flowcompute.elements.compute import CAST, Compute, Constant
from flowcompute.elements.element import Element
from flowcompute.elements.op import Op
from flowcompute.elements.site import UserCall, user_site
from flowcompute.elements.source import Reader, Source
from flowcompute.imports import dataclass
from flowcompute.spec import Spec

Key = tuple[object, ...]
"""Tells equal calls: the function, plain arguments, and of each operand its spec, operation and first place.

Of a cast it has spec and operation of what is cast, too: reductions look behind it, and losses are often cast.
A tensor of a file has its class in place of an operation. Numbers of other constants decide what functions make.
"""

_MOST_CALLS = 1024
"""Calls that are known."""

_MOST_TEXT = 256
_MOST_ENTRIES = 64
_MOST_CONSTANT_BYTES = 4 << 20
"""Bytes of constants that all templates hold."""

_PLAIN = frozenset((int, bool, str, type(None), type(Ellipsis), np.dtype))
_FIELDS = frozenset(("spec", "inputs", "name", "site", "call", "is_step", "twin_of"))
_FIELDS_OF = {Compute: _FIELDS | {"op", "attrs", "pin", "again"}, Constant: _FIELDS | {"value"}}
"""Fields of the elements that are copied. One with more of them, or of another class, has no template."""


@dataclass(frozen=True, slots=True)
class _CallTemplate:
    """Elements that a call made.

    Attributes:
        given: as of `UserCall`.
        made: class, fields, and the places of the inputs of each, in the order in which they are made. Places are
            those among all operands, and then these.
        result: place of what the call returned.
    """

    given: tuple[tuple[str, object], ...] | str | None
    made: tuple[tuple[type[Element], dict[str, Any], tuple[int, ...]], ...]
    result: int

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants, which all copies share."""
        return sum(fields["value"].nbytes for kind, fields, _ in self.made if kind is Constant)

    def copy(self, name: str, operands: Sequence[Element]) -> Element:
        """Return what the function returns for other operands, as called at the user's present line."""
        site, values = user_site(), list(operands)
        call = UserCall(name, site, self.given)
        for kind, fields, places in self.made:
            one = kind.__new__(kind)
            held = one.__dict__
            held.update(fields)
            held["inputs"], held["site"], held["call"] = tuple([values[place] for place in places]), site, call
            values.append(one)
        return values[self.result]


@dataclass(frozen=True, slots=True)
class _Known:
    """A call that was met.

    Attributes:
        held: operations whose identities are in its key.
        is_learned: whether it was made of stand-ins.
        template: None where there is none yet, or what the call makes follows from more than its key.
    """

    held: tuple[object, ...]
    is_learned: bool = False
    template: _CallTemplate | None = None


KNOWN_CALLS: dict[Key, _Known] = {}
"""Calls that were met. It is emptied at once when it is full, so that no thread needs a lock."""


def call_key(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], operands: list[Element]
) -> Key | None:
    """Return the key of a call; None where an argument is neither an element that is computed or read, nor plain.

    Nor has a call one where it would never be found again: an operand's operation was made for that operand alone.

    Args:
        function, args, kwargs: the call.
        operands: takes its operands, each once.
    """
    parts: list[object] = [function, len(args)]
    for one in args:
        # `learn` holds those that stand here, and no others.
        part = (Op, id(one)) if type(one) is Op else _part(one, operands)
        if part is None:
            return None
        parts.append(part)
    for name, one in kwargs.items():
        part = _part(one, operands)
        if part is None:
            return None
        parts += (name, part)
    return tuple(parts)


def _part(one: Any, operands: list[Element]) -> object:
    """Return what a key has of one argument; None where there is no key."""
    kind = type(one)
    if issubclass(kind, Element):
        for place, other in enumerate(operands):
            if one is other:
                return place
        operands.append(one)
        if issubclass(kind, Compute):
            if one.op is not CAST:
                return _seen(one)
            behind = _seen(one.inputs[0])
            return None if behind is None else (one.spec, id(CAST), *behind)
        return _seen(one) if issubclass(kind, Source | Constant) and kind is not Constant else None
    if kind is float:
        # It tells -0.0 from 0.0, and NaN from nothing else.
        return float, one.hex()
    if kind in _PLAIN:
        return None if kind is str and len(one) > _MOST_TEXT else (kind, one)
    if kind is slice:
        return _several(slice, (one.start, one.stop, one.step), operands)
    if kind is tuple and len(one) <= _MOST_ENTRIES:
        return _several(tuple, one, operands)
    if isinstance(one, type | np.dtype):
        return type, one
    return None


def _seen(one: Element) -> tuple[object, ...] | None:
    """Return what a key has of an element alone; None where no later call meets its operation."""
    if not isinstance(one, Compute):
        return one.spec, type(one) if isinstance(one, Constant) else None
    # Such an operation may hold what its user's functions refer to, and a key would keep it alive for nothing.
    return None if one.op.made_by_call else (one.spec, id(one.op))


def _several(kind: type, values: tuple[Any, ...], operands: list[Element]) -> object:
    parts = [_part(value, operands) for value in values]
    return None if None in parts else (kind, *parts)


def copy_known(key: Key, name: str, operands: Sequence[Element]) -> Element | None:
    """Return what a call makes, copied from an equal one; None where none has a template."""
    known = KNOWN_CALLS.get(key)
    return None if known is None or known.template is None else known.template.copy(name, operands)


def learn(
    key: Key,
    call: UserCall,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    operands: Sequence[Element],
) -> None:
    """Remember that a call was met, and make the template of one that was met before.

    Args:
        key, operands: as of `call_key`.
        call: that the thread is in.
        function, args, kwargs: the call.
    """
    known = KNOWN_CALLS.get(key)
    if known is not None and known.is_learned:
        return
    if known is None:
        if len(KNOWN_CALLS) >= _MOST_CALLS:
            KNOWN_CALLS.clear()
        seen = [*operands, *(one.inputs[0] for one in operands if _is_cast(one))]
        held = (*(one.op for one in seen if isinstance(one, Compute)), *(one for one in args if type(one) is Op))
        KNOWN_CALLS[key] = _Known(held)
    else:
        KNOWN_CALLS[key] = _Known(known.held, True, _template(call, function, args, kwargs, operands))


def _template(
    call: UserCall,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    operands: Sequence[Element],
) -> _CallTemplate | None:
    """Return the template of a call; None where the function wants to know more than its key, or refuses."""
    asked: list[str] = []
    stand_ins = [_stand_in(one, asked) for one in operands]
    by_id = {id(one): stand_in for one, stand_in in zip(operands, stand_ins, strict=True)}
    try:
        made = function(*_replaced(args, by_id), **{name: _replaced(one, by_id) for name, one in kwargs.items()})
    except Exception:  # noqa: BLE001 - it is called again with its operands, and raises then
        return None
    return None if asked else _described(made, call, stand_ins)


def _replaced(one: Any, by_id: dict[int, Any]) -> Any:
    kind = type(one)
    if kind is tuple:
        return tuple([_replaced(value, by_id) for value in one])
    if kind is slice:
        return slice(*(_replaced(value, by_id) for value in (one.start, one.stop, one.step)))
    return by_id.get(id(one), one)


def _described(made: object, call: UserCall, stand_ins: Sequence[Element]) -> _CallTemplate | None:
    """Return the template of an element and all that it is made of; None where a copy would not be the same."""
    places = {id(one): place for place, one in enumerate(stand_ins)}
    records: list[tuple[type[Element], dict[str, Any], tuple[int, ...]]] = []
    templates = [known.template for known in list(KNOWN_CALLS.values()) if known.template is not None]
    room = _MOST_CONSTANT_BYTES - sum(template.constant_bytes for template in templates)
    waiting: list[Any] = [made]
    while waiting:
        one = waiting[-1]
        if id(one) in places:
            waiting.pop()
            continue
        if not _can_be_copied(one, call):
            return None
        missing = [other for other in one.inputs if id(other) not in places]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        room -= one.value.nbytes if isinstance(one, Constant) else 0
        fields = {**one.__dict__, "site": None, "call": None, "is_step": one is not made}
        inputs = tuple([places[id(other)] for other in fields.pop("inputs")])
        places[id(one)] = len(places)
        records.append((type(one), fields, inputs))
    return None if room < 0 else _CallTemplate(call.given, tuple(records), places[id(made)])


def _can_be_copied(one: Any, call: UserCall) -> bool:
    fields = _FIELDS_OF.get(type(one))
    if fields is None or one.__dict__.keys() != fields or one.call is not call:
        return False
    return type(one) is Constant or (one.pin is None and all(map(_is_plain, one.attrs.values())))


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _PLAIN or isinstance(value, float | np.generic | np.dtype | slice | type | Spec)


# -- stand-ins ---------------------------------------------------------------------------------

_TOLD = frozenset(("spec", "dtype", "shape", "ndim", "size", "nbytes", "op", "__class__", "__dict__"))
_METHODS = frozenset(name for name, value in vars(Element).items() if callable(value)) - {"freeze_fields"}


class _LooksDeeperError(Exception):
    """A function asks an operand for what is in no key."""


def _shown(one: Any, name: str) -> Any:
    """Return what a stand-in may show: what follows from its key."""
    if name in _TOLD or name in _METHODS:
        return object.__getattribute__(one, name)
    held = object.__getattribute__(one, "__dict__")
    if name == "inputs" and "inputs" in held:
        return held["inputs"]
    # Whoever catches the error would go on with what no key tells.
    held["asked"].append(name)
    raise _LooksDeeperError(name)


class ComputeStandIn(Compute):
    """An operand that is computed, of which a function sees spec and operation."""

    def __getattribute__(self, name: str) -> Any:
        return _shown(self, name)

    def __getattr__(self, name: str) -> Never:
        raise _LooksDeeperError(name)


class ConstantStandIn(Constant):
    """A tensor of a file, of which a function sees the spec."""

    def __getattribute__(self, name: str) -> Any:
        return _shown(self, name)

    def __getattr__(self, name: str) -> Never:
        raise _LooksDeeperError(name)


class SourceStandIn(Source):
    """An operand that is read, of which a function sees the spec."""

    def __getattribute__(self, name: str) -> Any:
        return _shown(self, name)

    def __getattr__(self, name: str) -> Never:
        raise _LooksDeeperError(name)

    def open(self, *, position: int = 0, mapped: bool = True) -> Reader:  # noqa: ARG002 - it is never called
        """Refuse: nothing is read when composed."""
        raise _LooksDeeperError("open")


_STAND_INS: dict[type[Element], type[Element]] = {
    Compute: ComputeStandIn,
    Constant: ConstantStandIn,
    Element: SourceStandIn,
}
"""Class of what stands for an element, by that of the element; the first that fits."""


def _is_cast(one: Element) -> bool:
    return isinstance(one, Compute) and one.op is CAST


def _stand_in(operand: Element, asked: list[str]) -> Any:
    """Return what a function is shown of an operand.

    Args:
        operand: given to the function.
        asked: takes the names of what it asks for and is not shown.
    """
    one = _spec_alone(operand, asked)
    if isinstance(operand, Compute) and operand.op is CAST:
        # What is behind one cast is in the key, and what is behind two is not.
        object.__getattribute__(one, "__dict__")["inputs"] = (_spec_alone(operand.inputs[0], asked),)
    return one


def _spec_alone(operand: Element, asked: list[str]) -> Any:
    kind = next(own for base, own in _STAND_INS.items() if isinstance(operand, base))
    one = kind.__new__(kind)
    held = object.__getattribute__(one, "__dict__")
    held["spec"], held["asked"] = operand.spec, asked
    if isinstance(operand, Compute):
        held["op"] = operand.op
    return one
