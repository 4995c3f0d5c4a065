"""Operators of neural networks and of signals."""

from flowcompute.onnx.operators.layers import (
    attending,
    class_losses,
    convolving,
    matrix_products,
    normalising,
    pooling_windows,
    quantising,
    recurrent,
    resizing_layers,
    sampled_places,
    transforms,
    unpooling,
)
from flowcompute.onnx.operators.layers.matrix_products import product
from flowcompute.onnx.operators.record import Operator

LAYERS: tuple[Operator, ...] = (
    *matrix_products.OPERATORS,
    *normalising.OPERATORS,
    *pooling_windows.OPERATORS,
    *unpooling.OPERATORS,
    *convolving.OPERATORS,
    *resizing_layers.OPERATORS,
    *sampled_places.OPERATORS,
    *quantising.OPERATORS,
    *class_losses.OPERATORS,
    *transforms.OPERATORS,
    *attending.OPERATORS,
    *recurrent.OPERATORS,
)

__all__ = ["LAYERS", "product"]
