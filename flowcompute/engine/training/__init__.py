"""Steps of a training: a plan that is run again and again, its records, and the values that it carries on."""

from flowcompute.engine.training.carried_values import CarriedValues, handed_on_by_steps
from flowcompute.engine.training.drawn_records import DrawnRecords
from flowcompute.engine.training.inner_job import InnerJob
from flowcompute.engine.training.training_scan import TrainingScan

__all__ = ["CarriedValues", "DrawnRecords", "InnerJob", "TrainingScan", "handed_on_by_steps"]
