"""Training as elements: the graph of a step, and the stream of its losses."""

from flowcompute.elements.training.all_records import ALL_RECORDS
from flowcompute.elements.training.given import STEP, Given, GivenStream
from flowcompute.elements.training.training import (
    EVALUATED,
    LOSS,
    MEASURES,
    MOST_EPOCHS,
    MOST_MEASURES,
    TAKEN,
    TRAIN,
    TRAINED,
    Evaluation,
    StepSchedule,
    Training,
    trained,
)

__all__ = [
    "ALL_RECORDS",
    "EVALUATED",
    "LOSS",
    "MEASURES",
    "MOST_EPOCHS",
    "MOST_MEASURES",
    "STEP",
    "TAKEN",
    "TRAIN",
    "TRAINED",
    "Evaluation",
    "Given",
    "GivenStream",
    "StepSchedule",
    "Training",
    "trained",
]
