"""Modules of Python's library that are imported when they are first used: most processes need few of them.

Together they take a tenth of the time in which a language model is loaded. What numpy imports is there in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.imports.late_module import LateModule

if TYPE_CHECKING:
    import difflib
    import hashlib
    import html
    import logging
    import pathlib
    import secrets
    import subprocess
    import tempfile
    from urllib import parse
else:
    difflib, hashlib, html = map(LateModule, ("difflib", "hashlib", "html"))
    logging, parse, pathlib = map(LateModule, ("logging", "urllib.parse", "pathlib"))
    secrets, subprocess, tempfile = map(LateModule, ("secrets", "subprocess", "tempfile"))

__all__ = ["difflib", "hashlib", "html", "logging", "parse", "pathlib", "secrets", "subprocess", "tempfile"]
