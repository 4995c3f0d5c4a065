"""One run of a plan, from its start to its end."""

from flowcompute.runtime.run.blocking import refuse_in_trio_task
from flowcompute.runtime.run.live_trials import LiveTrials
from flowcompute.runtime.run.run import Run
from flowcompute.runtime.run.starting import start

__all__ = ["LiveTrials", "Run", "refuse_in_trio_task", "start"]
