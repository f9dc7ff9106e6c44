"""Probabilities of novelty detectors, as LIBSVM's -b 1 defines them."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from mercer.calibration.calibrated import weighted_splits
from mercer.calibration.libsvm_laws import density_marks, normal_probabilities
from mercer.model_selection.held_out.folds import calibration_splits
from mercer.model_selection.held_out.machines import fold_machines
from mercer.runtime.parameters import one_of
from mercer.samples import checks
from mercer.samples.arrays import Floats, freeze, n_samples
from mercer.samples.engine import to_engine
from mercer.tables.unwrap import unwrap


def calibrate_novelty(model: Any, X: Any, cv: Any, sample_weight: Any) -> Any:
    """Return a copy of a novelty detector, inside the same wrappers, with the marks for probabilities."""
    unwrapped = unwrap(model)
    check_is_fitted(unwrapped.machine)
    model, X = unwrapped.rewrap(unwrapped.machine), to_engine(X)  # without searches, which may need labels
    n = n_samples(X)
    weight = checks.weights(sample_weight, n)
    if isinstance(cv, str):
        one_of("cv", cv, ("held-out",), "a number of folds, a splitter of scikit-learn")
        f = model.decision_function(X)
    else:
        f = np.full(n, np.nan)
        splits = weighted_splits(cv, weight, lambda rows: calibration_splits(check_cv(cv), np.zeros(len(rows)), cv))
        for fold_model, test, test_X in fold_machines(model, X, None, weight, splits):
            f[test] = fold_model.decision_function(test_X)
    machine_with_marks = copy(unwrapped.machine)
    machine_with_marks.prob_density_marks_ = freeze(density_marks(f[weight > 0], weight[weight > 0]))
    return unwrapped.rewrap(machine_with_marks)


def novelty_probabilities(machine: Any, X: Any) -> Floats:
    """Return probabilities of outliers (−1) in the first column and of normal samples (+1) in the second."""
    p = normal_probabilities(machine.decision_function(X), machine.prob_density_marks_)
    return np.column_stack([1.0 - p, p])
