"""The one import of tokenizers, which is needed for texts alone. Without it the first text says what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowcompute.errors import SourceError
from flowcompute.imports import LateModule, import_problem

if TYPE_CHECKING:
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers
else:
    tokenizers, decoders, models, normalizers, pre_tokenizers = map(
        LateModule,
        (
            "tokenizers",
            "tokenizers.decoders",
            "tokenizers.models",
            "tokenizers.normalizers",
            "tokenizers.pre_tokenizers",
        ),
    )


class Package:
    """The modules of the package tokenizers."""

    base: Any
    models: Any
    normalizers: Any
    pre_tokenizers: Any
    decoders: Any

    def __init__(self) -> None:
        """Take the modules.

        Raises:
            SourceError: where tokenizers is not installed.
        """
        problem = import_problem("tokenizers")
        if problem is not None:
            raise SourceError(
                "cannot make a tokenizer: tokenizers is not installed",
                element="models",
                got=str(problem),
                hint="run pip install 'flowcompute[models]'",
            ) from problem
        self.base, self.models, self.normalizers = tokenizers, models, normalizers
        self.pre_tokenizers, self.decoders = pre_tokenizers, decoders
