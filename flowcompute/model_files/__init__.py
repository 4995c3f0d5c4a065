"""Files of weights: GGUF and safetensors."""

from flowcompute.model_files.named_weights import NamedWeights, weights
from flowcompute.model_files.placed_weight import PlacedWeight, open_weight_file
from flowcompute.model_files.weight import Weight, WeightFile

__all__ = ["NamedWeights", "PlacedWeight", "Weight", "WeightFile", "open_weight_file", "weights"]
