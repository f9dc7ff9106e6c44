"""A model of a table of nothing but numbers, as the plain Pipeline it amounts to, for whatever knows only those."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.tables.encodings import LeftOut, Numbers
from mercer.tables.estimator import Tabular


def used_columns(model: Tabular) -> list[str]:
    """The columns that the model learnt from."""
    return [one.name for one in model.columns_ if not isinstance(one, LeftOut)]


def as_pipeline(model: Tabular) -> Pipeline:
    """A StandardScaler of the columns in use and the machine, in y's own unit; TypeError where that is not all."""
    used: list[Numbers] = []
    for one in model.columns_:
        if isinstance(one, Numbers) and not one.n_holes:
            used.append(one)
        elif not isinstance(one, LeftOut):
            raise TypeError(
                f"pictures and ONNX are for models of numbers without holes, but the column {one.name!r} is this: "
                f"{one.description}"
            )
    scaler = StandardScaler()
    scaler.mean_ = np.array([one.centre for one in used])
    scaler.scale_ = np.array([one.scale for one in used])
    scaler.var_ = scaler.scale_**2
    scaler.n_features_in_, scaler.n_samples_seen_ = len(used), 1
    return Pipeline([("standardise", scaler), ("machine", _in_its_own_unit(model))])


def _in_its_own_unit(model: Tabular) -> Any:
    machine, scale, mean = model.estimator_, model.target_scale_, model.target_mean_
    if np.all(scale == 1) and np.all(mean == 0):
        return machine
    expansion = getattr(machine, "_expansion_", None)
    if expansion is None or np.ndim(scale):
        raise TypeError(f"y was standardised, which cannot be undone inside {machine!r}; train with standardise=False")
    machine = copy.copy(machine)
    machine._expansion_ = replace(expansion, coefficients=expansion.coefficients * scale, b=expansion.b * scale + mean)
    return machine
