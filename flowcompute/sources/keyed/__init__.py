"""Arrays that files hold by name."""

from flowcompute.sources.keyed.named_arrays import no_such_key, parse_key

__all__ = ["no_such_key", "parse_key"]
