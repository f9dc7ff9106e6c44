"""Trace each output column of a fitted scikit-learn transformer back to the input column that it comes from.

This works for transformers that treat every column by itself; others raise `MixedColumns`.
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

# Transformers that make the same number of adjacent output columns from every input column.
_ALIKE: Final = (
    *(Binarizer, MaxAbsScaler, MinMaxScaler, OrdinalEncoder, PowerTransformer, QuantileTransformer, RobustScaler),
    *(SplineTransformer, StandardScaler, TargetEncoder),
)


def origins(step: Any, width: int) -> Indices:
    """Return the index of the input column of each output column of a fitted step with `width` input columns.

    Raises
    ------
    MixedColumns
        If an output column may depend on several input columns.
    """
    positions = np.arange(width)
    if step is None or step == "passthrough":
        return positions
    if isinstance(step, Pipeline):
        return origins_through_steps(list(step.named_steps.values()), width)
    if isinstance(step, FeatureUnion):
        return np.concatenate([origins(part, width) for _, part in step.transformer_list if part != "drop"])
    if type(step) is ColumnTransformer:
        return _column_transformer_origins(step)
    if type(step) is FunctionTransformer and (step.func is None or isinstance(step.func, np.ufunc)):
        return positions
    if type(step) is OneHotEncoder:
        return np.repeat(positions, step._n_features_outs)
    if type(step) is KBinsDiscretizer:
        return positions if step.encode == "ordinal" else np.repeat(positions, step.n_bins_)
    if type(step) is SimpleImputer:
        return _imputer_origins(step, positions)
    if type(step) is MissingIndicator:
        return np.asarray(positions[step.features_])
    if isinstance(step, SelectorMixin):
        return np.asarray(positions[step.get_support(indices=True)])
    if type(step) in _ALIKE:
        return np.repeat(positions, _n_outputs(step) // width)
    if width == 1:
        return np.zeros(_n_outputs(step), dtype=np.intp)
    raise MixedColumns(f"{type(step).__name__} may mix columns")


def origins_through_steps(steps: list[Any], width: int) -> Indices:
    """Return the origins of the outputs of several steps, one after another."""
    result = np.arange(width)
    for step in steps:
        result = result[origins(step, len(result))]
    return result


def _column_transformer_origins(step: ColumnTransformer) -> Indices:
    """Return the origins of the output columns of a ColumnTransformer."""
    inputs = step._transformer_to_input_indices
    out = np.full(max((part.stop for part in step.output_indices_.values()), default=0), -1, dtype=np.intp)
    for name, part, _ in step.transformers_:
        if part != "drop" and step.output_indices_[name] != slice(0, 0):
            columns = np.asarray(inputs[name], dtype=np.intp)
            out[step.output_indices_[name]] = columns[origins(part, len(columns))]
    return out


def _imputer_origins(step: SimpleImputer, positions: Indices) -> Indices:
    """Return the origins of an imputer, which may drop columns without any value and appends missing indicators."""
    has_statistic = np.array([item == item for item in step.statistics_.tolist()])
    value_origins = positions if step.keep_empty_features else positions[has_statistic]
    return (
        np.concatenate([value_origins, positions[step.indicator_.features_]]) if step.add_indicator else value_origins
    )


def _n_outputs(step: Any) -> int:
    if not hasattr(step, "get_feature_names_out"):
        raise MixedColumns(f"{type(step).__name__} does not say how many columns it makes")
    return len(step.get_feature_names_out())
