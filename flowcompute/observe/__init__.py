"""What a run tells others while it works: Prometheus, JSON lines, a trace. It only reads, and drives nothing."""
