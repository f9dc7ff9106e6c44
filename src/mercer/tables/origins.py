"""Which column of a table each number comes from that a transformer of scikit-learn makes of it.

Known are those that treat every column by itself. What mixes columns, or may do so, is refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from mercer.samples.arrays import Indices
from mercer.tables.unwrap import MixedColumns

# Each column becomes as many as every other one does, side by side.
_ALIKE: Final = (
    *(Binarizer, MaxAbsScaler, MinMaxScaler, OrdinalEncoder, PowerTransformer, QuantileTransformer, RobustScaler),
    *(SplineTransformer, StandardScaler, TargetEncoder),
)


def origins(step: Any, width: int) -> Indices:
    """For each number that a fitted step makes, the place of its column among the `width` columns that it is given.

    Raises
    ------
    MixedColumns
        Where that is not certain.
    """
    every = np.arange(width)
    if step is None or step == "passthrough":
        return every
    if isinstance(step, Pipeline):
        return through(list(step.named_steps.values()), width)
    if isinstance(step, FeatureUnion):
        return np.concatenate([origins(part, width) for _, part in step.transformer_list if part != "drop"])
    if type(step) is ColumnTransformer:
        return _of_parts(step)
    if type(step) is FunctionTransformer and (step.func is None or isinstance(step.func, np.ufunc)):
        return every
    if type(step) is OneHotEncoder:
        return np.repeat(every, step._n_features_outs)
    if type(step) is KBinsDiscretizer:
        return every if step.encode == "ordinal" else np.repeat(every, step.n_bins_)
    if type(step) is SimpleImputer:
        return _imputed(step, every)
    if type(step) is MissingIndicator:
        return np.asarray(every[step.features_])
    if isinstance(step, SelectorMixin):
        return np.asarray(every[step.get_support(indices=True)])
    if type(step) in _ALIKE:
        return np.repeat(every, _n_made(step) // width)
    if width == 1:
        return np.zeros(_n_made(step), dtype=np.intp)
    raise MixedColumns(f"{type(step).__name__} makes numbers that mix columns, or may do so")


def through(steps: list[Any], width: int) -> Indices:
    """The same of several steps, one after another."""
    found = np.arange(width)
    for step in steps:
        found = found[origins(step, len(found))]
    return found


def _of_parts(step: ColumnTransformer) -> Indices:
    places = step._transformer_to_input_indices
    out = np.full(max((part.stop for part in step.output_indices_.values()), default=0), -1, dtype=np.intp)
    for name, part, _ in step.transformers_:
        if part != "drop" and step.output_indices_[name] != slice(0, 0):
            own = np.asarray(places[name], dtype=np.intp)
            out[step.output_indices_[name]] = own[origins(part, len(own))]
    return out


def _imputed(step: SimpleImputer, every: Indices) -> Indices:
    """Columns without any value are left out, unless they are kept; marks of holes come after all others."""
    known = np.array([item == item for item in step.statistics_.tolist()])
    kept = every if step.keep_empty_features else every[known]
    return np.concatenate([kept, every[step.indicator_.features_]]) if step.add_indicator else kept


def _n_made(step: Any) -> int:
    if not hasattr(step, "get_feature_names_out"):
        raise MixedColumns(f"{type(step).__name__} does not tell how many numbers it makes")
    return len(step.get_feature_names_out())
