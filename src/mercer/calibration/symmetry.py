"""Models that learn the same from samples in another order, as the theorems on jackknife+ and CV+ ask.

Barber, Candès, Ramdas and Tibshirani (2021) assume a symmetric algorithm: the function is the same, or has the same
law, whatever the order of the samples. A machine puts its samples into an order of their values before it draws or
sums anything, so that it is symmetric with any seed. What draws from the rows as they stand is symmetric if every fit
draws anew (random_state=None), and not with a fixed seed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from mercer.estimators.fitting.families.landmark_machine import LandmarkMachine
from mercer.estimators.fitting.pipeline.fit import bytes_of
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.state import chosen_of
from mercer.estimators.unsupervised.kernel_cca import KernelCCA
from mercer.tables.estimator import Tabular

# Transformers of scikit-learn that treat all samples alike, those that draw among them if every fit draws anew.
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
    """Reason why a fit to so many samples may depend on their order; None where it does not."""
    for part in _parts_of(model):
        reason = _reason(part, n_samples)
        if reason is not None:
            return f"{type(part).__name__} {reason}"
    return None


def _parts_of(model: Any) -> list[Any]:
    """The estimators in a fitted model that learn from samples, from the outside."""
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
    elif chosen_of(model) is not model:
        inner = [chosen_of(model)]
    else:
        return [model]
    return [part for one in inner for part in _parts_of(one)]


def _reason(part: Any, n_samples: int) -> str | None:
    from mercer.inspection.features import GaussianSeries, Monomials, Nystrom, RandomFourier

    seed = getattr(part, "random_state", None)
    fixed = f"draws from rows as they stand with random_state={seed!r}, so that their order counts; use None"
    if isinstance(part, Machine):
        rows = np.broadcast_to(0.0, (n_samples, getattr(part, "n_features_in_", 0)))
        if part._merges(rows, bytes_of(getattr(part, "cache_size", 1000))):
            return None
        if isinstance(part, LandmarkMachine):
            return None if seed is None or not isinstance(part.landmarks, str) else fixed
        if isinstance(part, KernelCCA):
            return None if seed is None or part.n_landmarks is None else fixed
        return "reads its samples in the order given, which may count"
    if isinstance(part, Nystrom):
        return None if seed is None else fixed
    if isinstance(part, GaussianSeries | RandomFourier | Monomials):
        return None
    if type(part).__module__.startswith("sklearn."):
        function = getattr(part, "func", None)  # of a FunctionTransformer
        if type(part).__name__ == "FunctionTransformer" and (function is None or isinstance(function, np.ufunc)):
            return None
        if type(part).__name__ in _SYMMETRIC:
            return None if seed is None else fixed
    return "is not known to learn the same from samples in another order"
