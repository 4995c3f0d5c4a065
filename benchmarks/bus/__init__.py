"""Streams through discrete devices."""
