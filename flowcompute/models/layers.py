"""Parts that several architectures share. Each is a few public operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.elements.axes import reshape


def normed(x: Any, weight: Any, eps: float) -> Any:
    """Return vectors divided by their root mean square, times a weight."""
    return nn.rms_norm(x, weight=weight, eps=eps)


def projected(x: Any, w: Mapping[str, Any], name: str) -> Any:
    """Return the product with a matrix (outputs, inputs) of the file, plus its bias where it has one."""
    made = x @ w[f"{name}.weight"].T
    return made + w[f"{name}.bias"] if f"{name}.bias" in w else made


def split_heads(x: Any, heads: int) -> Any:
    """Return vectors as items (heads, numbers of a head)."""
    return reshape(x, (-1, heads, x.shape[-1] // heads))


def joined_heads(x: Any) -> Any:
    """Return items (heads, numbers) as vectors."""
    return reshape(x, (-1, x.shape[-2] * x.shape[-1]))


def head(states: Any, w: Mapping[str, Any]) -> Any:
    """Return the scores of all tokens; the matrix is that of the embedding where the file has no other."""
    return states @ w["output.weight" if "output.weight" in w else "token_embd.weight"].T
