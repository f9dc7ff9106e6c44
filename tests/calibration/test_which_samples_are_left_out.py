"""Intervals and sets rest on samples that were left out, and the theorem that is named is one about these folds."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    StratifiedGroupKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.calibration import sigmoid

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
    with pytest.raises(ValueError, match="trains on sample 0, which it also holds out"):
        model.set_params(cv=leaking).fit(X, y)


MODELS = [
    mercer.CalibratedRegressor(mercer.SVR(gamma=0.5)),
    mercer.CalibratedClassifier(mercer.SVC(gamma=0.5)),
]


def _targets(model):
    return T if isinstance(model, mercer.CalibratedRegressor) else np.arange(18) % 2


@pytest.mark.parametrize("cv", [GroupKFold(3), StratifiedGroupKFold(3), LeaveOneGroupOut()])
@pytest.mark.parametrize("model", MODELS)
def test_folds_of_groups_are_given_as_a_list(model, cv):
    y, groups = _targets(model), np.arange(18) // 3
    with pytest.raises(ValueError, match=r"GroupKFold\(5\).split\(X, y, groups\)"):
        model.set_params(cv=cv).fit(X, y)
    with pytest.raises(ValueError, match="needs groups, which calibration does not take"):
        mercer.OneClassSVM(gamma=0.5).fit(X).calibrate(X, cv=cv)
    splits = list(GroupKFold(3).split(X, y, groups))
    model.set_params(cv=splits).fit(X, y)
    if isinstance(model, mercer.CalibratedRegressor):
        for train, test in splits:
            refit = mercer.SVR(gamma=0.5).fit(X[train], y[train])
            np.testing.assert_allclose(model.residuals_[test], np.abs(y[test] - refit.predict(X[test])), atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_folds_without_a_sample_to_leave_out_are_refused(model):
    y, splits = _targets(model), list(KFold(3).split(X))
    for nothing in ([], np.zeros(0, dtype=int), np.zeros(18, dtype=bool)):
        with pytest.raises(ValueError, match="fold 3 of cv holds out no sample"):
            model.set_params(cv=[*splits, (np.arange(18), nothing)]).fit(X, y)
    with pytest.raises(ValueError, match=r"cv=\[\] has no folds"):
        model.set_params(cv=[]).fit(X, y)


def test_folds_as_masks():
    masks = [tuple(np.isin(np.arange(18), part) for part in split) for split in KFold(3).split(X)]
    found = [mercer.CalibratedRegressor(mercer.SVR(gamma=0.5), cv=cv).fit(X, T) for cv in (masks, KFold(3))]
    np.testing.assert_array_equal(found[0].predict_interval(X, 0.3), found[1].predict_interval(X, 0.3))


def test_folds_that_train_on_fewer_samples_have_no_theorem():
    fewer = [(train[:-1], test) for train, test in KFold(3).split(X)]
    found = mercer.CalibratedRegressor(mercer.SVR(gamma=0.5), cv=fewer).fit(X, T)
    assert found.guarantee_.startswith("none: a fold does not train on all")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("drawn", ["fewer", "some twice"])
def test_folds_train_on_the_rows_that_they_name(n_classes, drawn):
    """Folds with a gap between both sides, and folds that draw rows again, against LIBSVM on exactly these rows."""
    rng = np.random.default_rng(n_classes)
    rows, y = rng.normal(size=(36, 2)), np.arange(36) % n_classes
    splits, f = [], np.full((36, n_classes * (n_classes - 1) // 2), np.nan)
    for train, test in KFold(3).split(rows):
        train = train[3:-3] if drawn == "fewer" else np.r_[train[:18], train[:6]]
        splits.append((train, test))
        part = sklearn.svm.SVC(gamma=0.5, tol=1e-10, decision_function_shape="ovo").fit(rows[train], y[train])
        f[test] = part.decision_function(rows[test]).reshape(len(test), -1)
    found = mercer.CalibratedClassifier(mercer.SVC(gamma=0.5, tol=1e-8), cv=splits).fit(rows, y)
    if n_classes == 2:
        own = [np.sort(-f[y == 0, 0]), np.sort(f[y == 1, 0])]
        np.testing.assert_allclose(found._own_scores_.scores, np.concatenate(own), atol=1e-4)
        return
    for column, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        members = (y == first) | (y == second)
        curve = sigmoid.fit_sigmoids(f[members, column], y[members] == first, np.ones(members.sum()), np.array([0]))
        np.testing.assert_allclose(found.curves_.slope[column], curve.slope[0], atol=1e-3)
        np.testing.assert_allclose(found.curves_.offset[column], curve.offset[0], atol=1e-3)


def test_folds_may_be_flags_or_count_from_the_end():
    machine, splits = mercer.SVR(gamma=0.5), list(KFold(3).split(X))
    flags = [(np.isin(np.arange(18), train), np.isin(np.arange(18), test)) for train, test in splits]
    ends = [(train - 18, test - 18) for train, test in splits]
    expected = mercer.CalibratedRegressor(machine, cv=splits).fit(X, T).residuals_
    for cv in (flags, ends):
        np.testing.assert_array_equal(mercer.CalibratedRegressor(machine, cv=cv).fit(X, T).residuals_, expected)
    leaking = [(np.r_[train, test - 18], test) for train, test in splits]
    with pytest.raises(ValueError, match="trains on sample 0, which it also holds out"):
        mercer.CalibratedRegressor(machine, cv=leaking).fit(X, T)
    with pytest.raises(ValueError, match="row 18, but there are 18 samples"):
        mercer.CalibratedRegressor(machine, cv=[(train, test + 6) for train, test in splits]).fit(X, T)


def test_folds_that_draw_samples_again_have_no_theorem():
    machine = mercer.SVR(gamma=0.5)
    hidden = [(np.r_[train[2:], train[2:4]], test) for train, test in KFold(3).split(X)]
    assert mercer.CalibratedRegressor(machine, cv=hidden).fit(X, T).guarantee_.startswith("none: a fold does not train")
    twice = [(np.r_[train, train[:2]], test) for train, test in KFold(3).split(X)]
    assert mercer.CalibratedRegressor(machine, cv=twice).fit(X, T).guarantee_.startswith("none: a fold trains on a")


def test_a_parameter_that_is_set_later_does_not_name_a_theorem():
    machine = mercer.SVR(gamma="scale").fit(X, T)
    found = machine.calibrate(X, T, cv="leave-one-out")
    machine.set_params(gamma=0.5)
    assert found.guarantee_.startswith("none: the kernel's parameters were computed from all samples")


@pytest.mark.parametrize("make", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m), mercer.tabular])
@pytest.mark.parametrize("frozen", [False, True])
def test_fitting_the_machine_again_does_not_change_what_was_calibrated(make, frozen):
    """A machine that has since trained on the samples held out would make the theorem about them false."""
    model = make(mercer.SVR(gamma=0.5)).fit(X[:9], T[:9])
    if frozen:
        found = mercer.CalibratedRegressor(FrozenEstimator(model)).fit(X[9:], T[9:])
    else:
        found = mercer.unwrap(model).calibrate(X[9:], T[9:], cv="held-out")
    before = [found.predict(X), *found.predict_interval(X, alpha=0.2)]
    model.fit(X, T)
    after = [found.predict(X), *found.predict_interval(X, alpha=0.2)]
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("cv", [3, PredefinedSplit(np.arange(18) % 3)])
def test_the_steps_of_a_pipeline_do_not_see_samples_without_weight(cv):
    weight = np.r_[np.ones(15), np.zeros(3)]
    far = np.where(weight[:, None] > 0, X, 1000.0 * X)
    model = mercer.CalibratedRegressor(make_pipeline(StandardScaler(), mercer.SVR(gamma=0.5)), cv=cv)
    found = model.fit(far, T, sample_weight=weight)
    answers = [found.predict(X), *found.predict_interval(X, alpha=0.2)]
    model.set_params(cv=cv if cv == 3 else PredefinedSplit(np.arange(15) % 3)).fit(X[:15], T[:15])
    for answer, expected in zip(answers, [model.predict(X), *model.predict_interval(X, alpha=0.2)], strict=True):
        np.testing.assert_allclose(answer, expected, atol=1e-9)


@pytest.mark.parametrize("machine", [mercer.RLSRegressor(), mercer.RLSRegressor(bias=False), mercer.SVR(gamma=0.5)])
def test_the_only_sample_that_counts_cannot_be_left_out(machine):
    """Two are enough: without one, f is the function of the other alone, its y where there is a bias."""
    weight = np.zeros(18)
    weight[4] = 3.0
    message = "at least 2 samples with positive weight, but n_samples = 1"
    with pytest.raises(ValueError, match=message):
        machine.fit(X, T, sample_weight=weight).calibrate(X, T, cv="leave-one-out", sample_weight=weight)
    with pytest.raises(ValueError, match=message):
        mercer.CalibratedRegressor(machine, cv="leave-one-out").fit(X[:1], T[:1])
    weight[7] = 3.0
    found = machine.fit(X, T, sample_weight=weight).calibrate(X, T, cv="leave-one-out", sample_weight=weight)
    one, other = (clone(machine).set_params(kernel=machine.kernel_).fit(X[[i]], T[[i]], [3.0]) for i in (4, 7))
    expected = [abs(T[4] - other.predict(X[[4]])[0]), abs(T[7] - one.predict(X[[7]])[0])]
    np.testing.assert_allclose(found.residuals_, expected, atol=1e-6)


def test_leaving_out_the_only_sample_of_an_svr():
    with pytest.raises(ValueError, match="at least 2 samples"):
        mercer.leave_one_out(mercer.SVR(gamma=0.5), X[:1], T[:1])


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
