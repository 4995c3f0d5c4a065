"""Files of weights: GGUF and safetensors."""

from flowcompute.model_files.weight import Weight, WeightFile
from flowcompute.model_files.weights import Weights, weights

__all__ = ["Weight", "WeightFile", "Weights", "weights"]
