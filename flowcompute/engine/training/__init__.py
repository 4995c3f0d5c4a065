"""Steps of a training: a plan that is run again and again, its records, and the values that it carries on."""

from flowcompute.engine.training.drawn_records import DrawnRecords
from flowcompute.engine.training.inner_job import InnerJob
from flowcompute.engine.training.training_scan import TrainingScan, given_value

__all__ = ["DrawnRecords", "InnerJob", "TrainingScan", "given_value"]
