"""Intervals and sets rest on samples that were left out, and the theorem that is named is one about these folds."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut

import mercer

rng = np.random.default_rng(0)
X, T = rng.normal(size=(18, 3)), rng.normal(size=18)


def test_leaving_out_a_sample_that_bounds_b_alone_changes_the_function():
    """Without support vectors β stays 0, but b is the middle of the targets that are left."""
    rows, t, new = np.zeros((5, 1)), np.array([0.0, 1.0, 2.0, 3.0, 10.0]), [[0.0]]
    machine = mercer.SVR(kernel="linear", epsilon=6.0, tol=1e-10)
    found = mercer.CalibratedRegressor(machine, cv="leave-one-out").fit(rows, t)
    values = np.array([(np.delete(t, i).min() + np.delete(t, i).max()) / 2 for i in range(5)])
    np.testing.assert_allclose(found.residuals_, np.abs(t - values))
    low, high = found.predict_interval(new, alpha=0.2)
    np.testing.assert_allclose(
        [low[0], high[0]], [(values - found.residuals_).min(), (values + found.residuals_).max()]
    )


@pytest.mark.parametrize("seed", range(6))
def test_intervals_of_wide_tubes_are_those_of_refits(seed):
    rng = np.random.default_rng(seed)
    rows, t, new = rng.normal(size=(12, 2)), 2 * rng.normal(size=12), rng.normal(size=(4, 2))
    machine = mercer.SVR(gamma=0.5, epsilon=3.0, tol=1e-10)
    found = mercer.CalibratedRegressor(machine, cv="leave-one-out").fit(rows, t)
    parts = [machine.fit(np.delete(rows, i, 0), np.delete(t, i)) and machine.predict(new) for i in range(12)]
    values, off = np.column_stack(parts), found.residuals_
    low, high = found.predict_interval(new, alpha=1 / 13)
    np.testing.assert_allclose(low, (values - off).min(axis=1), atol=1e-6)
    np.testing.assert_allclose(high, (values + off).max(axis=1), atol=1e-6)


def test_folds_of_samples_without_weight_do_not_count():
    weight = np.r_[np.ones(12), np.zeros(6)]
    folds = [[2 * i, 2 * i + 1] for i in range(6)] + [[12 + i] for i in range(6)]
    pairs = [(np.setdiff1d(np.arange(18), fold), np.array(fold)) for fold in folds]
    machine = mercer.SVR(gamma=0.5)
    of_pairs = mercer.CalibratedRegressor(machine, cv=pairs).fit(X, T, sample_weight=weight)
    assert "√(2/12) (CV+)" in of_pairs.guarantee_
    of_each = mercer.CalibratedRegressor(machine, cv=LeaveOneOut()).fit(X, T, sample_weight=weight)
    assert "(jackknife+)" in of_each.guarantee_


@pytest.mark.parametrize("model", [mercer.CalibratedRegressor(mercer.SVR()), mercer.CalibratedClassifier(mercer.SVC())])
def test_folds_that_train_on_what_they_leave_out_are_refused(model):
    leaking = [(np.arange(18), test) for _, test in KFold(3).split(X)]
    y = T if isinstance(model, mercer.CalibratedRegressor) else np.arange(18) % 2
    with pytest.raises(ValueError, match="trains on sample 0 and leaves it out"):
        model.set_params(cv=leaking).fit(X, y)


def test_folds_that_train_on_fewer_samples_have_no_theorem():
    fewer = [(train[:-1], test) for train, test in KFold(3).split(X)]
    found = mercer.CalibratedRegressor(mercer.SVR(gamma=0.5), cv=fewer).fit(X, T)
    assert found.guarantee_.startswith("none: a fold does not train on all")


@pytest.mark.filterwarnings("ignore:all samples of the classes 2 have weight 0")
@pytest.mark.parametrize("held_out", [False, True])
def test_a_class_of_weight_zero_counts_nowhere(held_out):
    y, weight = np.arange(18) % 3, (np.arange(18) % 3 < 2) * 1.0
    counted = weight > 0
    if held_out:
        machine = mercer.SVC(gamma=0.5).fit(X, y, sample_weight=weight)
        both = [
            machine.calibrate(X, y, cv="held-out", sample_weight=weight),
            machine.calibrate(X[counted], y[counted], cv="held-out"),
        ]
    else:
        model = mercer.CalibratedClassifier(mercer.SVC(gamma=0.5), cv=3)
        both = [
            model.fit(X, y, sample_weight=weight).predict_proba(X),
            model.fit(X[counted], y[counted]).predict_proba(X),
        ]
    answers = [one.predict_proba(X) if held_out else one for one in both]
    np.testing.assert_allclose(*answers, atol=1e-9)
