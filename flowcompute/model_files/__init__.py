"""Files of weights: GGUF and safetensors."""

from flowcompute.model_files.named_weights import NamedWeights, weights
from flowcompute.model_files.weight import Weight, WeightFile

__all__ = ["NamedWeights", "Weight", "WeightFile", "weights"]
