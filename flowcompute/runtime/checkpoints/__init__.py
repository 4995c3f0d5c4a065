"""When checkpoints are taken, and what they say of the job."""

from flowcompute.runtime.checkpoints.checkpoint_coordinator import CheckpointCoordinator, FrozenError, Request, Resume
from flowcompute.runtime.checkpoints.checkpoint_policy import CheckpointPolicy
from flowcompute.runtime.checkpoints.foreign_writes import refuse_foreign_writes
from flowcompute.runtime.checkpoints.stored_job import (
    check_alike,
    check_job,
    checkpoint_path,
    create_folder,
    draft_token,
    freezing_path,
    is_of_cluster,
    is_there,
    refuse_overwriting,
    refuse_unreadable,
    sound_state,
    stored_shaping,
)

__all__ = [
    "CheckpointCoordinator",
    "CheckpointPolicy",
    "FrozenError",
    "Request",
    "Resume",
    "check_alike",
    "check_job",
    "checkpoint_path",
    "create_folder",
    "draft_token",
    "freezing_path",
    "is_of_cluster",
    "is_there",
    "refuse_foreign_writes",
    "refuse_overwriting",
    "refuse_unreadable",
    "sound_state",
    "stored_shaping",
]
