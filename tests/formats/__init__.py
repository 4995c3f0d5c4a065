"""Formats of files that others have made."""
