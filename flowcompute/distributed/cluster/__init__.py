"""Jobs on the workers of a dask cluster."""

from flowcompute.distributed.cluster.cluster_run import ClusterRun, ClusterShards, run_on_cluster

__all__ = ["ClusterRun", "ClusterShards", "run_on_cluster"]
