"""Parts of the gradient of attention."""

from flowcompute.lower.attention.gradients.tensor_parts import ATTENTION_PARTS

__all__ = ["ATTENTION_PARTS"]
