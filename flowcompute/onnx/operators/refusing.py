"""Operators that are refused, each for a reason out of the closed set."""

from __future__ import annotations

from flowcompute.onnx.operators.record import Operator, refused

_LATER = "compute this part with NumPy before or after the model"

OPERATORS: tuple[Operator, ...] = (
    *refused(
        "length", "export the model without it, and select with x[mask] afterwards",
        "NonZero", "Unique", "Compress", "NonMaxSuppression",
    ),
    *refused(
        "sequence", "give arrays one by one",
        "SequenceMap", "Optional",
    ),
    *refused(
        "string", "make numbers of the strings before the model",
        "StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer",
    ),
    *refused(
        "random", "draw the numbers with fc.random, and give them to the model",
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    ),
    *refused("codec", "decode the files before the model", "ImageDecoder"),
    *refused(
        "missing", _LATER,
        "MaxRoiPool",
    ),
    *refused(
        "training", "train with fc, and export the model for inference",
        "Adagrad", "Adam", "Gradient", "Momentum", domain="ai.onnx.preview.training",
    ),
    *refused(
        "domain", _LATER,
        "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer",
        "Imputer", "LabelEncoder", "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder",
        "SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor",
        "ZipMap",
        domain="ai.onnx.ml",
    ),
)  # fmt: skip
