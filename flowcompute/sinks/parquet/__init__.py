"""Results as Parquet tables."""

from flowcompute.sinks.parquet.parquet_sink import ParquetSink

__all__ = ["ParquetSink"]
