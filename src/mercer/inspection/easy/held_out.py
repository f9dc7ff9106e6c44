"""Predictions for rows that neither training nor the search has seen, and the models that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.calibration.curves import fit_curves
from mercer.model_selection.held_out.machines import decision_values, machine_of
from mercer.samples.arrays import Floats, Indices
from mercer.samples.labels import planes, trained_codes
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame

_MOST_FOLDS = 5
_BACKGROUND_ROWS = 50  # rows with which a held-out row is compared to explain its prediction


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for held-out rows: `answers[i]` for row `rows[i]`, by `models[fold[i]]`, trained on other rows."""

    rows: Indices
    truth: Any
    answers: Any
    fold: Indices
    models: list[Tabular]
    trained_on: list[Indices]  # rows of each model
    method: str  # evaluation method, in words

    def medians(self, y: Floats) -> Floats:
        """Return for each held-out row the median target of the rows that its model was trained on."""
        return np.array([np.median(y[rows]) for rows in self.trained_on])[self.fold]

    def background(self, k: int, seed: int) -> Indices:
        """Return some of the rows that model k was trained on, drawn at random."""
        return np.random.default_rng(seed).permutation(self.trained_on[k])[:_BACKGROUND_ROWS]

    def probabilities(self, frame: Frame, seed: int) -> Floats:
        """Probability of each class for the held-out rows, from curves that were fitted to other held-out rows.

        Raises ValueError if a class has a single held-out row, or a model does not know one of the classes.
        """
        classes = machine_of(self.models[0]).classes_
        pairs = planes(len(classes), bool(getattr(machine_of(self.models[0]), "_function_per_class", True)))
        codes = trained_codes(classes, self.truth)
        f = np.empty((len(self.rows), len(pairs)))
        for k, model in enumerate(self.models):
            if not np.array_equal(machine_of(model).classes_, classes):
                raise ValueError("a fold was trained without one of the classes")
            in_fold = self.fold == k
            f[in_fold] = decision_values(model, frame.rows(self.rows[in_fold]))
        n_folds = min(_MOST_FOLDS, int(np.bincount(codes, minlength=len(classes)).min()))
        out = np.empty((len(self.rows), len(classes)))
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(f, codes):
            curves = fit_curves("sigmoid", f[train], codes[train], np.ones(len(train)), pairs, len(classes))
            out[test] = curves(f[test])
        return out

    def coverage(self, levels: Floats, seed: int) -> Floats:
        """Share of held-out rows within an interval for each level, whose half-width comes from other held-out rows."""
        errors = np.abs(self.truth - self.answers)
        is_inside = np.zeros((len(errors), len(levels)), dtype=bool)
        for train, test in KFold(min(_MOST_FOLDS, len(errors)), shuffle=True, random_state=seed).split(errors):
            ranks = np.minimum(np.ceil(levels * (len(train) + 1)), len(train)).astype(np.intp)
            is_inside[test] = errors[test, None] <= np.sort(errors[train])[ranks - 1]
        return np.asarray(is_inside.mean(axis=0))
