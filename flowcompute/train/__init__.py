"""Training: optimizers, schedules of their rates, and when to stop."""

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
