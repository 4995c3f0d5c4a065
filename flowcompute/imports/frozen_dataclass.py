"""Dataclasses that are frozen, made with one text to compile each: `dataclasses` compiles six, and we have hundreds.

`fields`, `replace`, `asdict` and `astuple` of `dataclasses` take them, and type checkers see `dataclasses.dataclass`.
"""

from __future__ import annotations

import dataclasses
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

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True, **others: Any
    ) -> Callable[[type[_T]], type[_T]]:
        """Return what makes a dataclass of a class, as `dataclasses.dataclass` does.

        Instances compare, hash, print and refuse changes as those of `dataclasses` do.

        Args:
            frozen: whether instances cannot be changed. Other classes are left to `dataclasses`.
            slots, eq, repr: as of `dataclasses.dataclass`.
            others: further arguments of it. Classes that have some are left to it, too.
        """
        if not frozen or others:
            return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, repr=repr, **others)

        def made(cls: type[_T]) -> type[_T]:
            # Of a class without a docstring it would print the signature, which takes longer than all else.
            if cls.__doc__ is None:
                cls.__doc__ = cls.__name__
            # It is told of no method, and so compiles none.
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            every = dataclasses.fields(cls)
            _set(cls, "__init__", _initializer(cls, every, slots=slots))
            _freeze(cls, every)
            if slots:
                _let_copy(cls, every)
            if repr:
                _set(cls, "__repr__", _printer(every))
            if eq:
                _compare(cls, every)
            return cls

        return made


def _set(cls: type, name: str, function: Callable[..., Any]) -> None:
    """Give a class a method, where it has none of its own by that name."""
    if name not in cls.__dict__:
        function.__name__, function.__qualname__ = name, f"{cls.__qualname__}.{name}"
        setattr(cls, name, function)


def _initializer(cls: type, every: tuple[dataclasses.Field[Any], ...], *, slots: bool) -> Callable[..., None]:
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
        body.append(f" _set(self,{name!r},{value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    if by_name:
        taken += ["*", *by_name]
    # The names are those of the class's own attributes, which Python's parser took for names.
    exec(f"def __init__({','.join(taken)}):\n" + "\n".join(body or [" pass"]), known)  # noqa: S102
    function: Callable[..., None] = known["__init__"]
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
        _set(cls, name, function)


def _let_copy(cls: type, every: tuple[dataclasses.Field[Any], ...]) -> None:
    """Let instances without a dictionary be copied and pickled: they refuse what Python does by itself."""
    names = tuple(one.name for one in every)

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    _set(cls, "__getstate__", state)
    _set(cls, "__setstate__", restore)


def _printer(every: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any], str]:
    names = tuple(one.name for one in every if one.repr)

    @recursive_repr()
    def printed(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return printed


def _compare(cls: type, every: tuple[dataclasses.Field[Any], ...]) -> None:
    """Let instances of one class be equal if their fields are, and hash as the tuple of these."""
    compared = _getter(tuple(one.name for one in every if one.compare))
    hashed = _getter(tuple(one.name for one in every if (one.compare if one.hash is None else one.hash)))

    def equal(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(hashed(self))

    # Python has set the hash of a class with an __eq__ of its own to None.
    if cls.__dict__.get("__hash__") is None:
        hash_of.__qualname__, hash_of.__name__ = f"{cls.__qualname__}.__hash__", "__hash__"
        setattr(cls, "__hash__", hash_of)  # noqa: B010 - mypy takes the plain one for an override
    _set(cls, "__eq__", equal)


def _getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return what gives attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    (name,) = names
    return lambda value: (getattr(value, name),)
