"""Symmetry of models in the order of their samples, which the theorems on jackknife+ and CV+ assume.

Barber, Candès, Ramdas and Tibshirani (2021) assume a symmetric algorithm: the fitted function is the same, or has the
same distribution, for any order of the samples. mercer's machines sort their samples by value before they draw random
numbers or compute sums, so that they are symmetric for any seed. A model that draws from the rows in the given order is
symmetric if every fit draws again (random_state=None), and not with a fixed seed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from mercer.estimators.fitting.families.landmark_machine import LandmarkMachine
from mercer.estimators.fitting.pipeline.fit import cache_bytes
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.state import best_estimator_of
from mercer.estimators.unsupervised.kernel_cca import KernelCCA
from mercer.tables.estimator import Tabular

# Symmetric transformers of scikit-learn; those that draw random numbers are symmetric with random_state=None.
_SYMMETRIC: Final = (
    "Binarizer",
    "CountVectorizer",
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MissingIndicator",
    "Normalizer",
    "Nystroem",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PCA",
    "PolynomialFeatures",
    "PowerTransformer",
    "QuantileTransformer",
    "RBFSampler",
    "RobustScaler",
    "SimpleImputer",
    "SplineTransformer",
    "StandardScaler",
    "TfidfTransformer",
    "TfidfVectorizer",
    "TruncatedSVD",
    "VarianceThreshold",
)


def order_dependence(model: Any, n_samples: int) -> str | None:
    """Return why a fit to `n_samples` samples may depend on their order, or None if it does not."""
    for part in _parts_of(model):
        reason = _reason(part, n_samples)
        if reason is not None:
            return f"{type(part).__name__} {reason}"
    return None


def _parts_of(model: Any) -> list[Any]:
    """Return the estimators in a fitted model that learn from samples, from the outside in."""
    if model is None or isinstance(model, str):  # "passthrough", "drop"
        return []
    if isinstance(model, Pipeline):
        inner = [step for _, step in model.steps]
    elif isinstance(model, FeatureUnion):
        inner = [step for _, step in model.transformer_list]
    elif isinstance(model, ColumnTransformer):
        inner = [step for _, step, _ in model.transformers_]
    elif isinstance(model, TransformedTargetRegressor):
        inner = [model.transformer_, model.regressor_]
    elif isinstance(model, Tabular):
        inner = [model.estimator_]
    elif best_estimator_of(model) is not model:
        inner = [best_estimator_of(model)]
    else:
        return [model]
    return [part for model in inner for part in _parts_of(model)]


def _reason(part: Any, n_samples: int) -> str | None:
    """Return why a fit of one estimator to `n_samples` samples may depend on their order, or None if it does not."""
    from mercer.inspection.features import GaussianSeries, Monomials, Nystrom, RandomFourier

    seed = getattr(part, "random_state", None)
    seed_text = f"draws from the rows in their order with random_state={seed!r}; use None"
    if isinstance(part, Machine):
        rows = np.broadcast_to(0.0, (n_samples, getattr(part, "n_features_in_", 0)))
        if part._merges(rows, cache_bytes(getattr(part, "cache_size", 1000))):
            return None
        if isinstance(part, LandmarkMachine):
            return None if seed is None or not isinstance(part.landmarks, str) else seed_text
        if isinstance(part, KernelCCA):
            return None if seed is None or part.n_landmarks is None else seed_text
        return "may depend on the order of its samples"
    if isinstance(part, Nystrom):
        return None if seed is None else seed_text
    if isinstance(part, GaussianSeries | RandomFourier | Monomials):
        return None
    if type(part).__module__.startswith("sklearn."):
        function = getattr(part, "func", None)  # only FunctionTransformer has it
        if type(part).__name__ == "FunctionTransformer" and (function is None or isinstance(function, np.ufunc)):
            return None
        if type(part).__name__ in _SYMMETRIC:
            return None if seed is None else seed_text
    return "is not known to be independent of the order of the samples"
