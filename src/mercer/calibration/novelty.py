"""Machines without targets that say how normal a sample is."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from mercer.calibration.calibrated import splits_of_counted
from mercer.calibration.libsvm_laws import density_marks, normal_probabilities
from mercer.model_selection.held_out.folds import splits_of
from mercer.model_selection.held_out.machines import fold_machines
from mercer.runtime.parameters import one_of
from mercer.samples import checks as samples
from mercer.samples.arrays import Floats, freeze, n_samples
from mercer.samples.engine import placed
from mercer.tables.unwrap import ask


def calibrate_novelty(model: Any, X: Any, cv: Any, sample_weight: Any) -> Any:
    """What `calibrate` of a machine without targets does: the machine with marks, and what is around it."""
    asked = ask(model)
    check_is_fitted(asked.machine)
    model, X = asked.around(asked.machine), placed(X)  # without searches, which may have had labels
    n = n_samples(X)
    weight = samples.weights(sample_weight, n)
    if isinstance(cv, str):
        one_of("cv", cv, ("held-out",), "a number of folds, a splitter of scikit-learn")
        f = model.decision_function(X)
    else:
        f = np.full(n, np.nan)
        splits = splits_of_counted(cv, weight, lambda rows: splits_of(check_cv(cv), np.zeros(len(rows)), cv))
        for part, test, rest in fold_machines(model, X, None, weight, splits):
            f[test] = part.decision_function(rest)
    marked = copy(asked.machine)
    marked.prob_density_marks_ = freeze(density_marks(f[weight > 0], weight[weight > 0]))
    return asked.around(marked)


def novelty_probabilities(machine: Any, X: Any) -> Floats:
    """A column for outliers, −1, and one for samples like those trained on, +1."""
    p = normal_probabilities(machine.decision_function(X), machine.prob_density_marks_)
    return np.column_stack([1.0 - p, p])
