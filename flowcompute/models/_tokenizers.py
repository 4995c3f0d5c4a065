"""The one import of tokenizers, which is needed for texts alone. Without it the first text says what to install."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flowcompute.errors import SourceError

try:
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers
except ImportError as missing:
    _problem: ImportError | None = missing
else:
    _problem = None


class Package:
    """The modules of the package tokenizers."""

    base: Any
    models: ModuleType
    normalizers: ModuleType
    pre_tokenizers: ModuleType
    decoders: ModuleType

    def __init__(self) -> None:
        """Take the modules.

        Raises:
            SourceError: where tokenizers is not installed.
        """
        if _problem is not None:
            raise SourceError(
                "cannot make a tokenizer: tokenizers is not installed",
                element="models",
                got=str(_problem),
                hint="run pip install 'flowcompute[models]'",
            ) from _problem
        self.base, self.models, self.normalizers = tokenizers, models, normalizers
        self.pre_tokenizers, self.decoders = pre_tokenizers, decoders
