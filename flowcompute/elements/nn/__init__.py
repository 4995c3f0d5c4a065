"""Functions of neural networks, public as `fc.nn`.

Axes are counted as everywhere, the stream being axis 0. Half formats are computed in float32
and rounded once, at the end; integers become the float in which NumPy takes their `exp`.
"""

from typing import TYPE_CHECKING, NoReturn

from flowcompute.elements.arguments import no_such_name
from flowcompute.elements.nn.activations import ACTIVATIONS as ACTIVATIONS
from flowcompute.elements.nn.activations import (
    elu,
    erf,
    gelu,
    hardswish,
    leaky_relu,
    mish,
    relu,
    sigmoid,
    silu,
    softplus,
)
from flowcompute.elements.nn.attention_gradient import ATTENTION_PART as ATTENTION_PART
from flowcompute.elements.nn.attention_gradient import PART_SIZE as PART_SIZE
from flowcompute.elements.nn.attention_gradient import as_weighed as as_weighed
from flowcompute.elements.nn.attention_gradient import attention_part as attention_part
from flowcompute.elements.nn.attention_gradient import key_gradient as key_gradient
from flowcompute.elements.nn.attention_gradient import negated_logarithms as negated_logarithms
from flowcompute.elements.nn.attention_gradient import query_gradient as query_gradient
from flowcompute.elements.nn.attention_gradient import value_gradient as value_gradient
from flowcompute.elements.nn.attention_gradient import vector_padded as vector_padded
from flowcompute.elements.nn.convolution import conv1d, conv2d, conv3d
from flowcompute.elements.nn.dot_product_attention import ATTENTION as ATTENTION
from flowcompute.elements.nn.dot_product_attention import WEIGHED_SIZE as WEIGHED_SIZE
from flowcompute.elements.nn.dot_product_attention import attention
from flowcompute.elements.nn.dot_product_attention import attention_of as attention_of
from flowcompute.elements.nn.dot_product_attention import visible_keys as visible_keys
from flowcompute.elements.nn.dot_product_attention import weighed as weighed
from flowcompute.elements.nn.experts import EXPERTS as EXPERTS
from flowcompute.elements.nn.experts import experts
from flowcompute.elements.nn.experts import experts_of as experts_of
from flowcompute.elements.nn.implicit import implicit_convolution as implicit_convolution
from flowcompute.elements.nn.losses import binary_cross_entropy, cross_entropy, huber, mse
from flowcompute.elements.nn.norms import group_norm, instance_norm, layer_norm, rms_norm
from flowcompute.elements.nn.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from flowcompute.elements.nn.positions import position, rope
from flowcompute.elements.nn.recurrent import gru, lstm, rnn
from flowcompute.elements.nn.resampling import grid_sample, resize
from flowcompute.elements.nn.self_attention import SELF_ATTENTION as SELF_ATTENTION
from flowcompute.elements.nn.self_attention import self_attention
from flowcompute.elements.nn.softmax import log_softmax, logsumexp, softmax
from flowcompute.elements.nn.state_space import SELECTIVE_SCAN as SELECTIVE_SCAN
from flowcompute.elements.nn.state_space import selective_scan
from flowcompute.elements.nn.state_space import selective_scan_of as selective_scan_of
from flowcompute.elements.nn.transposed_convolution import conv_transpose1d, conv_transpose2d, conv_transpose3d
from flowcompute.elements.nn.windows import WINDOWS as WINDOWS
from flowcompute.elements.nn.windows import slide as slide
from flowcompute.elements.nn.windows import unfold
from flowcompute.elements.nn.windows import windows_of as windows_of
from flowcompute.elements.random import dropout

__all__ = [
    "attention",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "binary_cross_entropy",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "elu",
    "erf",
    "experts",
    "gelu",
    "grid_sample",
    "group_norm",
    "gru",
    "hardswish",
    "huber",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "lstm",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "mse",
    "position",
    "relu",
    "resize",
    "rms_norm",
    "rnn",
    "rope",
    "selective_scan",
    "self_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "unfold",
]


if not TYPE_CHECKING:  # type checkers find wrong names themselves

    def __getattr__(name: str) -> NoReturn:
        raise no_such_name(name, {"fc.nn": __all__})


def __dir__() -> list[str]:
    return __all__
