"""Results in object stores."""

from flowcompute.sinks.objects.upload_sink import UploadSink, draft_target
from flowcompute.sinks.objects.zarr_objects import ZarrObjectsSink

__all__ = ["UploadSink", "ZarrObjectsSink", "draft_target"]
