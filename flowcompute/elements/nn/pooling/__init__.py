"""Pooling: the largest number, the mean or a norm of windows that slide over the last axes."""

from flowcompute.elements.nn.pooling.max_pooling import max_pool1d, max_pool2d, max_pool3d
from flowcompute.elements.nn.pooling.mean_pooling import avg_pool1d, avg_pool2d, avg_pool3d
from flowcompute.elements.nn.pooling.norm_pooling import lp_pool1d, lp_pool2d, lp_pool3d

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]
