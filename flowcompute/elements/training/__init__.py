"""Training as elements: the graph of a step, and the stream of its losses."""

from flowcompute.elements.training.given import STEP, Given, GivenStream
from flowcompute.elements.training.training import MOST_EPOCHS, TRAIN, TRAINED, StepSchedule, Training, trained

__all__ = ["MOST_EPOCHS", "STEP", "TRAIN", "TRAINED", "Given", "GivenStream", "StepSchedule", "Training", "trained"]
