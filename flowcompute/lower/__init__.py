"""Lowering from regions to kernel IR: one folder for each kernel family, one file for each form."""

from flowcompute.lower.form import Form
from flowcompute.lower.forms import COMPUTED_IN_DOUBLE, candidates, form_for, lower
from flowcompute.lower.kernel_cache import KernelCache
from flowcompute.lower.kernel_knobs import KNOBS_BESIDE_BODIES, KernelStyle
from flowcompute.lower.product_folds import MADE, lower_cast, lower_end, lower_product, lower_sum

__all__ = [
    "COMPUTED_IN_DOUBLE",
    "KNOBS_BESIDE_BODIES",
    "MADE",
    "Form",
    "KernelCache",
    "KernelStyle",
    "candidates",
    "form_for",
    "lower",
    "lower_cast",
    "lower_end",
    "lower_product",
    "lower_sum",
]
