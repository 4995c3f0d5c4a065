"""Training: optimizers, schedules of their rates, and when to stop."""

from flowcompute.train.optimizers import Optimizer, adam, adamw, sgd
from flowcompute.train.patience import Patience, patience
from flowcompute.train.schedules import Schedule, cosine, linear, step

__all__ = ["Optimizer", "Patience", "Schedule", "adam", "adamw", "cosine", "linear", "patience", "sgd", "step"]
