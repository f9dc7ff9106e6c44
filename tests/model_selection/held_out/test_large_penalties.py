"""Folds at a large C on few features: every sum is kept, values are those of refits, and no fit ends half-way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import SVC, SVR
from mercer.model_selection.held_out.fold_fits import fit_folds
from mercer.model_selection.held_out.folds import SharedFolds
from mercer.model_selection.held_out.machines import out_of_fold


def noisy(seed: int, n_classes: int = 2):  # type: ignore[no-untyped-def]
    """Classes that overlap on a line, and four folds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(50, 90))
    X = rng.normal(size=(n, 1))
    f = X[:, 0] + rng.choice([0.3, 0.7, 1.5]) * rng.normal(size=n)
    fold = rng.permutation(n) % 4
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes)), f, splits


class Fits(list):  # type: ignore[type-arg]
    def is_needed(self, name: int, fold: int) -> bool:
        return True

    def finished(self, name: int, fold: int, fit) -> None:  # type: ignore[no-untyped-def]
        self.append(fit)

    def failed(self, name: int, fold: int, error: Exception) -> None:
        raise error


@pytest.mark.parametrize("kind", ["SVC", "SVR"])
def test_sums_are_kept_from_the_smallest_penalty_to_the_largest(kind: str) -> None:
    for seed in range(4):
        X, y, f, splits = noisy(seed)
        make = SVC if kind == "SVC" else SVR
        machines = [make(C=C, gamma=gamma) for gamma in (0.3, 3.0) for C in (1e2, 1e4, 1e6)]
        fits = Fits()
        shared = SharedFolds.of(machines[0], X, y if kind == "SVC" else f, splits)
        batches = [list(enumerate(machines[:3])), list(enumerate(machines[3:]))]
        fit_folds(shared, batches, fits, 1, 10**9)
        assert len(fits) == 24
        for fit in fits:
            (task,) = fit.tasks
            assert abs(task.coefficients.sum()) <= 1e-12 * np.abs(task.coefficients).sum()


@pytest.mark.parametrize(("n_classes", "way"), [(2, "ovo"), (3, "ovo"), (3, "ovr")])
def test_values_left_out_are_those_of_refits(n_classes: int, way: str) -> None:
    for seed in range(4):
        X, y, _, splits = noisy(seed, n_classes)
        machine = SVC(C=1e3, gamma=0.3, tol=1e-6, multiclass=way).fit(X, y)
        found = out_of_fold(machine, X, y, None, splits)
        for train, test in splits:
            truth = clone(machine).set_params(tol=1e-8).fit(X[train], y[train])._decision(X[test])
            told = np.isfinite(found[test])
            assert told.sum() >= len(test) * (n_classes - 1)
            np.testing.assert_allclose(found[test][told], truth[told], atol=2e-3)


def test_mean_scores_of_a_search_are_those_of_refits() -> None:
    grid = {"C": [1.0, 1e2, 1e4], "gamma": [0.3, 3.0]}
    for seed in range(3):
        X, y, _, splits = noisy(seed)
        found = mercer.tune(SVC(tol=1e-6), X, y, grid=grid, cv=splits, skip=False, refit=False).cv_results_
        for params, mean in zip(found["params"], found["mean_test_score"], strict=True):
            models = [SVC(tol=1e-7, **params).fit(X[train], y[train]) for train, _ in splits]
            f = [model.decision_function(X[test]) for model, (_, test) in zip(models, splits, strict=True)]
            assert min(np.abs(values).min() for values in f) > 1e-4  # so that a sign is a sign
            scores = [model.score(X[test], y[test]) for model, (_, test) in zip(models, splits, strict=True)]
            assert mean == pytest.approx(np.mean(scores), abs=1e-12)


def test_folds_of_a_search_may_be_masks() -> None:
    X, y, _, splits = noisy(0)
    rows = np.arange(len(y))
    masks = [(np.isin(rows, train), np.isin(rows, test)) for train, test in splits]
    found = mercer.tune(SVC(tol=1e-6), X, y, grid={"C": [1.0, 1e2]}, cv=masks, skip=False, refit=False).cv_results_
    for params, mean in zip(found["params"], found["mean_test_score"], strict=True):
        scores = [SVC(tol=1e-7, **params).fit(X[train], y[train]).score(X[test], y[test]) for train, test in splits]
        assert mean == pytest.approx(np.mean(scores), abs=1e-12)
