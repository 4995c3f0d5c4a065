"""Jobs: from what users ask for to what computes it, and by which plan."""

from flowcompute.jobs.backend_choice import choose_backend, device_names, job_of
from flowcompute.jobs.job_planner import plan_job

__all__ = ["choose_backend", "device_names", "job_of", "plan_job"]
