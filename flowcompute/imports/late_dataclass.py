"""Dataclasses whose methods are made when they are first asked for: most classes have no instance in a process.

`dataclasses` writes and compiles up to six methods of each class as it is defined, and we have hundreds of classes.
`fields`, `replace`, `asdict` and `astuple` of `dataclasses` take ours, and type checkers see `dataclasses.dataclass`.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass"]

_T = TypeVar("_T")


class _Made:
    """Default that says that a factory makes the value."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()

_TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<text of a dataclass>")
"""Name of the file of what is compiled here: one of the package, since whoever looks for the user's line passes it."""

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type[_T] | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        frozen: bool = False,
        kw_only: bool = False,
        slots: bool = False,
        **others: Any,
    ) -> Any:
        """Make a dataclass of a class, as `dataclasses.dataclass` does.

        Instances compare, hash, print and refuse changes as those of `dataclasses` do.

        Args:
            cls: the class; None for a decorator.
            init, repr, eq, frozen, kw_only, slots: as of `dataclasses.dataclass`.
            others: further arguments of it. Classes that have some are left to it.

        Raises:
            TypeError: if a class that is frozen inherits from a dataclass that is not, or the other way round.
        """
        if others:
            others.update(init=init, repr=repr, eq=eq, frozen=frozen, kw_only=kw_only, slots=slots)
            return dataclasses.dataclass(cls, **others)

        def made(cls: type[_T]) -> type[_T]:
            _check_bases(cls, frozen)
            # Of a class without a docstring it would print the signature, which takes longer than all else.
            if cls.__doc__ is None:
                cls.__doc__ = cls.__name__
            # It is told of no method, and so compiles none.
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
            every = dataclasses.fields(cls)
            if init:
                _set(cls, "__init__", _LateMethod(cls, "__init__", lambda: _initializer(cls, every, frozen, slots)))
            if repr:
                _set(cls, "__repr__", _LateMethod(cls, "__repr__", lambda: _printer(every)))
            if frozen:
                _freeze(cls, every)
                if slots:
                    _let_copy(cls, every)
            if eq:
                _compare(cls, every, frozen)
            return cls

        return made if cls is None else made(cls)


class _LateMethod:
    """A method that is made when it is first asked for. From then on the class has it in its place.

    Nobody sees a stand-in: to ask a class for its method, or to call it, makes it.

    Args:
        cls: whose method it is.
        name: of the method.
        make: gives it.
    """

    def __init__(self, cls: type, name: str, make: Callable[[], Callable[..., Any]]) -> None:
        self._cls, self._name, self._make = cls, name, make

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        # Two threads may make it at once: either will do.
        function = _named(self._cls, self._name, self._make())
        if self._cls.__dict__.get(self._name) is self:
            setattr(self._cls, self._name, function)
        return function.__get__(instance, owner)


def _check_bases(cls: type, frozen: bool) -> None:
    """Refuse a mixture of frozen and other dataclasses, which `dataclasses` is not told of."""
    for base in cls.__mro__[1:]:
        if "__dataclass_fields__" in base.__dict__ and ("__setattr__" in base.__dict__) != frozen:
            one, other = ("frozen", "non-frozen") if frozen else ("non-frozen", "frozen")
            raise TypeError(f"cannot inherit {one} dataclass from a {other} one")


def _set(cls: type, name: str, method: Any) -> None:
    """Give a class a method, where it has none of its own by that name."""
    if name not in cls.__dict__:
        setattr(cls, name, method)


def _named(cls: type, name: str, function: Callable[..., Any]) -> Any:
    """Return a function, with the names of a class's method."""
    function.__name__, function.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return function


def _initializer(
    cls: type, every: tuple[dataclasses.Field[Any], ...], frozen: bool, slots: bool
) -> Callable[..., None]:
    """Return `__init__` of a class: the only method that needs a text, for the names and defaults of its arguments."""
    taken, by_name, body = ["self"], list[str](), list[str]()
    known: dict[str, Any] = {"_set": object.__setattr__, "_MADE": _MADE}
    for one in every:
        name, value = one.name, one.name
        default = ""
        if one.default is not dataclasses.MISSING:
            known[f"_default_{name}"], default = one.default, f"=_default_{name}"
        elif one.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"], default = one.default_factory, "=_MADE"
            value = f"_make_{name}() if {name} is _MADE else {name}"
        if one.init:
            (by_name if one.kw_only else taken).append(name + default)
        elif one.default_factory is not dataclasses.MISSING:
            value = f"_make_{name}()"
        elif slots and default:
            value = default[1:]
        else:
            continue
        body.append(f" _set(self,{name!r},{value})" if frozen else f" self.{name}={value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    if by_name:
        taken += ["*", *by_name]
    lines = [f" def __init__({','.join(taken)}):", *(f" {line}" for line in body or [" pass"]), " return __init__"]
    made: dict[str, Any] = {}
    # The names are those of the class's own attributes, which Python's parser took for names. Its globals are those of
    # the class's module, where types are looked up.
    text = f"def make({','.join(known)}):\n" + "\n".join(lines)
    exec(compile(text, _TEXT, "exec"), vars(sys.modules[cls.__module__]), made)  # noqa: S102
    function: Callable[..., None] = made["make"](**known)
    function.__module__ = cls.__module__
    function.__annotations__ = {**{one.name: one.type for one in every if one.init}, "return": None}
    return function


def _freeze(cls: type, every: tuple[dataclasses.Field[Any], ...]) -> None:
    """Let instances refuse changes of their fields, and instances of the very class all changes.

    Raises:
        TypeError: if the class has a method of its own for it.
    """
    kind: Any = cls
    names = frozenset(one.name for one in every)

    def change(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    for name, function in (("__setattr__", change), ("__delattr__", delete)):
        if name in cls.__dict__:
            raise TypeError(f"cannot freeze {cls.__name__}: it has {name} of its own")
        _set(cls, name, _named(cls, name, function))


def _let_copy(cls: type, every: tuple[dataclasses.Field[Any], ...]) -> None:
    """Let instances without a dictionary be copied and pickled: they refuse what Python does by itself."""
    names = tuple(one.name for one in every)

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    _set(cls, "__getstate__", _named(cls, "__getstate__", state))
    _set(cls, "__setstate__", _named(cls, "__setstate__", restore))


def _printer(every: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any], str]:
    names = tuple(one.name for one in every if one.repr)

    @recursive_repr()
    def printed(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return printed


def _compare(cls: type, every: tuple[dataclasses.Field[Any], ...], frozen: bool) -> None:
    """Let instances of one class be equal if their fields are. Those that are frozen hash as the tuple of these."""
    compared = _getter(tuple(one.name for one in every if one.compare))

    def equal(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    # Python has set the hash of a class with an __eq__ of its own to None.
    if cls.__dict__.get("__hash__") is None:
        kind: Any = cls
        kind.__hash__ = _hasher(cls, every) if frozen else None
    _set(cls, "__eq__", _named(cls, "__eq__", equal))


def _hasher(cls: type, every: tuple[dataclasses.Field[Any], ...]) -> Any:
    hashed = _getter(tuple(one.name for one in every if (one.compare if one.hash is None else one.hash)))

    def hash_of(self: Any) -> int:
        return hash(hashed(self))

    return _named(cls, "__hash__", hash_of)


def _getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return what gives attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    (name,) = names
    return lambda value: (getattr(value, name),)
