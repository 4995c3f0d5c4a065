"""Training: optimizers, schedules of their rates, and when to stop."""

from typing import TYPE_CHECKING, NoReturn

from flowcompute.elements.arguments import no_such_name
from flowcompute.train.fitting import Trained, fit
from flowcompute.train.optimizers import Optimizer, adam, adamw, sgd
from flowcompute.train.patience import Patience, patience
from flowcompute.train.schedules import Schedule, cosine, linear, step
from flowcompute.train.trainer import Trainer

__all__ = [
    "Optimizer",
    "Patience",
    "Schedule",
    "Trained",
    "Trainer",
    "adam",
    "adamw",
    "cosine",
    "fit",
    "linear",
    "patience",
    "sgd",
    "step",
]


if not TYPE_CHECKING:  # type checkers find wrong names themselves

    def __getattr__(name: str) -> NoReturn:
        raise no_such_name(name, {"fc.train": __all__})


def __dir__() -> list[str]:
    return __all__
