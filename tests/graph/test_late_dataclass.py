"""Dataclasses of ours do what those of `dataclasses` do."""

import copy
import dataclasses
import inspect
import itertools
import pickle
import typing
from dataclasses import field
from functools import partial

import pytest

import flowcompute as fc
from flowcompute.imports import dataclass as ours
from flowcompute.imports import late_dataclass

NAMES = "frozen", "slots", "eq", "repr"
OPTIONS = [dict(zip(NAMES, one, strict=True)) for one in itertools.product((False, True), repeat=len(NAMES))]


def made(maker, **options):
    """Return classes with all that ours use of dataclasses: one of a kind, one that inherits, one without fields."""

    @maker(**options)
    class Point:
        """A point."""

        x: int
        names: list[str] = field(default_factory=list, hash=False)
        note: str = field(default="", repr=False, compare=False)
        twice: int = field(init=False, compare=False)
        memo: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.x)

    @maker(**options)
    class Deep(Point):
        """A point below another."""

        below: object = None
        last: int = field(default=7, kw_only=True)

    @maker(**options)
    class Nothing:
        """Nothing."""

    @maker(**options)
    class One:
        """One number, and methods of its own."""

        x: float

        def __eq__(self, other: object) -> bool:
            return isinstance(other, One) and abs(other.x - self.x) < 1

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return f"<{self.x}>"

    return Point, Deep, Nothing, One


def outcome(function):
    """Return what a function returns or raises."""
    try:
        return function()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_are_made_compared_printed_and_changed_alike(options):
    told = []
    for maker in (ours, dataclasses.dataclass):
        point, deep, nothing, one = made(maker, **options)
        a, b, c = point(1, ["a"], "x"), point(1, ["a"], note="y"), point(2)
        d, e = deep(1, below=a, last=3), deep(1, ["a"])
        values = [a, b, c, d, e, nothing(), nothing(), one(1.0), one(1.5)]
        facts = [[x == y for x in values] for y in values] + [x == 1 for x in values]
        if options["repr"]:
            facts += [repr(x) for x in values]
        if options["eq"]:
            # That of identity differs from run to run.
            facts += [outcome(lambda x=x: hash(x)) for x in values]
        # Of names that are no fields, Python 3.11 asks the class that it has replaced by one with slots.
        known = [x for x in values if hasattr(x, "x")] if options["slots"] else values
        facts += [outcome(lambda x=x: setattr(x, "x", 3)) for x in known]
        facts += [outcome(lambda x=x: delattr(x, "x")) for x in map(copy.copy, known)]
        facts += [outcome(lambda x=x: setattr(x, "other", 3)) for x in values if not options["slots"]]
        facts += [outcome(function) for function in (point, partial(point, 1, 2, 3, 4), partial(deep, 1, b=2))]
        facts += [[dataclasses.astuple(x) for x in values], [dataclasses.asdict(x) for x in values]]
        facts += [dataclasses.astuple(dataclasses.replace(d, x=5)), c.names is point(2).names, c.memo is a.memo]
        facts += [str(inspect.signature(each)) for each in (point, deep, nothing, one)]
        facts += [[one.name for one in dataclasses.fields(each)] for each in (point, deep, nothing, one)]
        facts += [each.__match_args__ for each in (point, deep, nothing, one)]
        facts += [hasattr(x, "__dict__") for x in values] + [type(x).__hash__ is None for x in values]
        facts += [dataclasses.astuple(copy.copy(x)) for x in values] + [dataclasses.astuple(copy.deepcopy(d))]
        facts += [each.__init__.__qualname__ for each in (point, deep, nothing, one)]
        told.append(facts)
    for mine, theirs in zip(*told, strict=True):
        assert mine == theirs


@ours(frozen=True, slots=True)
class Kept:
    """A class that pickle finds by its name."""

    x: int
    y: str = "y"


@ours(frozen=True)
class Undocumented:
    x: int


def test_they_are_pickled():
    assert pickle.loads(pickle.dumps([Kept(1), Undocumented(2)])) == [Kept(1), Undocumented(2)]


def test_values_with_slots_refuse_other_names():
    with pytest.raises(dataclasses.FrozenInstanceError, match="other"):
        Kept(1).other = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="other"):
        del Kept(1).other


def test_a_value_that_holds_itself_is_printed():
    @ours(frozen=True)
    class Ring:
        """A ring."""

        held: list[object]

    ring = Ring([])
    ring.held.append(ring)
    assert repr(ring).endswith("Ring(held=[...])")


def test_one_text_is_compiled_for_a_class_once_it_has_an_instance(monkeypatch):
    texts = []
    monkeypatch.setattr("builtins.exec", lambda text, *names, run=exec: (texts.append(text), run(text, *names))[1])
    point, _, nothing, one = made(ours, frozen=True, slots=True)
    assert not texts
    assert [point(1), point(2), nothing(), one(1.0)] != [point(1), point(2), nothing(), one(3.0)]
    # Named as a file of the package, which no line of a user is looked for in.
    assert [text.co_filename for text in texts] == [late_dataclass._TEXT] * 3
    assert all("__init__" in text.co_consts[0].co_names + text.co_consts[0].co_varnames for text in texts)
    texts.clear()
    made(dataclasses.dataclass, frozen=True, slots=True)
    assert len(texts) > 12


def test_classes_take_their_options_without_a_call_and_by_keyword():
    for maker in (ours, dataclasses.dataclass):

        @maker
        class Bare:
            """A class without options."""

            x: int = 1

        @maker(init=False, kw_only=True)
        class Own:
            """A class with its own initializer."""

            x: int

            def __init__(self) -> None:
                self.x = 5

        @maker(kw_only=True)
        class Named:
            """A class whose fields are given by name."""

            x: int = 1
            y: int

        changed = Bare()
        changed.x = 2
        assert (changed, Own(), Named(y=2)) == (Bare(2), Own(), Named(x=1, y=2))
        assert (repr(Own()).rpartition(".")[2], str(inspect.signature(Named))) == (
            "Own(x=5)",
            "(*, x: int = 1, y: int) -> None",
        )


def test_what_asks_for_more_is_left_to_dataclasses():
    @ours(frozen=True, order=True)
    class Ordered:
        """A class with an order."""

        x: int

    assert Ordered(1) < Ordered(2)
    assert Ordered(1).__dataclass_params__.frozen


def test_a_method_that_was_replaced_before_it_was_made_stays():
    @ours(frozen=True)
    class Point:
        """A point."""

        x: int

    late = Point.__dict__["__init__"]
    Point.__init__ = lambda self, x: object.__setattr__(self, "x", -x)
    late.__get__(None, Point)
    assert Point(1).x == -1


@pytest.mark.parametrize("maker", [dataclasses.dataclass, ours])
@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_and_other_classes_are_not_mixed(maker, frozen):
    @maker(frozen=not frozen)
    class Base:
        """A base."""

        x: int

    with pytest.raises(TypeError, match=r"cannot inherit (non-)?frozen dataclass from a (non-)?frozen one"):

        @maker(frozen=frozen)
        class Below(Base):
            """A class below it."""

            y: int


def test_types_of_arguments_are_found_in_the_module():
    assert typing.get_type_hints(fc.Strategy.__init__) == typing.get_type_hints(fc.Strategy) | {"return": type(None)}


def test_a_class_that_guards_its_attributes_itself_is_refused():
    class Guarded:
        x: int

        def __setattr__(self, name, value):
            raise AssertionError

    for maker in (ours, dataclasses.dataclass):
        with pytest.raises(TypeError, match="__setattr__"):
            maker(frozen=True)(Guarded)
