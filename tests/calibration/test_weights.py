"""Weights in sets, p-values, intervals and marks: a weight of k is k samples, and a sample of weight 0 is not there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.model_selection import KFold, PredefinedSplit

import mercer
from mercer import SVDD, SVR, OneClassSVM, RLSClassifier, RLSRegressor
from mercer.calibration.libsvm_laws import density_marks, laplace_scale
from mercer.calibration.weighted_ranks import lower_ends, share_up_to, upper_ends

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
Y = X[:, 0] + rng.normal(size=60)
NEW = rng.normal(size=(25, 2))
COUNTS = rng.integers(1, 5, 60)
ROWS = np.repeat(np.arange(60), COUNTS)
FOLD = np.arange(60) % 4
ALPHAS = (0.03, 0.1, 0.25, 0.5, 0.9)


# --- the ranks themselves, by definition ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 9, 10, 29, 40])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_ends_are_the_order_statistics_of_the_definition(n: int, alpha: float) -> None:
    values = np.random.default_rng(n).normal(size=(6, n))
    below, above = math.floor(alpha * (n + 1)), math.ceil((1 - alpha) * (n + 1))
    ordered = np.sort(values, axis=1)
    low = ordered[:, below - 1] if below >= 1 else np.full(6, -np.inf)
    high = ordered[:, above - 1] if above <= n else np.full(6, np.inf)
    for weight in (None, np.ones(n)):
        np.testing.assert_array_equal(lower_ends(values, weight, alpha), low)
        np.testing.assert_array_equal(upper_ends(values, weight, alpha), high)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_whole_weights_are_repetitions(alpha: float) -> None:
    values = np.round(rng.normal(size=(20, 60)), 1)  # with ties
    many, weight = values[:, ROWS], COUNTS.astype(float)
    np.testing.assert_array_equal(lower_ends(values, weight, alpha), lower_ends(many, None, alpha))
    np.testing.assert_array_equal(upper_ends(values, weight, alpha), upper_ends(many, None, alpha))
    order = np.argsort(values[0])
    found = share_up_to(values[1], values[0][order], weight[order])
    np.testing.assert_array_equal(found, share_up_to(values[1], np.sort(many[0]), None))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_other_weights_are_shares_of_all(alpha: float) -> None:
    weight = rng.uniform(0.1, 3.0, 30)
    values = rng.normal(size=(10, 30))
    total = weight.sum() + 1.0
    for row, low, high in zip(
        values, lower_ends(values, weight, alpha), upper_ends(values, weight, alpha), strict=True
    ):
        enough = [v for v in row if weight[row <= v].sum() >= (1 - alpha) * total]
        assert high == (min(enough) if enough else np.inf)
        enough = [v for v in row if weight[row >= v].sum() >= (1 - alpha) * total]
        assert low == (max(enough) if enough else -np.inf)


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [SVR(C=3.0), RLSRegressor()], ids=lambda machine: type(machine).__name__)
def test_intervals_of_counts_are_those_of_rows(machine) -> None:
    fitted = machine.fit(NEW, NEW[:, 0])
    counts = fitted.calibrate(X, Y, cv="held-out", sample_weight=COUNTS)
    rows = fitted.calibrate(X[ROWS], Y[ROWS], cv="held-out")
    for alpha in ALPHAS:
        np.testing.assert_array_equal(counts.predict_interval(NEW, alpha), rows.predict_interval(NEW, alpha))
    assert counts.laplace_scale_ == pytest.approx(rows.laplace_scale_, rel=1e-12)
    assert laplace_scale(np.append(Y, 1e3), np.append(COUNTS, 2)) == pytest.approx(
        laplace_scale(np.append(Y[ROWS], [1e3, 1e3]))
    )


@pytest.mark.parametrize("machine", [RLSClassifier(), mercer.SVC(kernel="linear")], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "venn-abers"])
def test_sets_of_counts_are_those_of_rows(machine, n_classes: int, method: str) -> None:
    labels = np.digitize(Y, [0.0] if n_classes == 2 else [-0.5, 0.5])
    fitted = machine.fit(NEW, np.arange(25) % n_classes)
    counts = fitted.calibrate(X, labels, cv="held-out", method=method, sample_weight=COUNTS)
    rows = fitted.calibrate(X[ROWS], labels[ROWS], cv="held-out", method=method)
    np.testing.assert_allclose(counts.predict_proba(NEW), rows.predict_proba(NEW), atol=1e-9)
    np.testing.assert_allclose(counts.p_values(NEW), rows.p_values(NEW), rtol=1e-12)
    for alpha in ALPHAS:
        np.testing.assert_array_equal(counts.predict_set(NEW, alpha), rows.predict_set(NEW, alpha))


def test_counts_in_folds_are_rows_of_the_same_fold() -> None:
    cv, cv_rows = PredefinedSplit(FOLD), PredefinedSplit(FOLD[ROWS])
    machine = RLSRegressor(gamma=0.4)
    counts = machine.fit(X, Y, COUNTS).calibrate(X, Y, cv=cv, sample_weight=COUNTS)
    rows = machine.fit(X[ROWS], Y[ROWS]).calibrate(X[ROWS], Y[ROWS], cv=cv_rows)
    for alpha in ALPHAS:
        np.testing.assert_allclose(
            counts.predict_interval(NEW, alpha), rows.predict_interval(NEW, alpha), rtol=1e-9, atol=1e-9
        )
    alone = machine.fit(X, Y, COUNTS).calibrate(X, Y, cv="leave-one-out", sample_weight=COUNTS)
    rows = machine.fit(X[ROWS], Y[ROWS]).calibrate(X[ROWS], Y[ROWS], cv=PredefinedSplit(ROWS))
    np.testing.assert_allclose(alone.predict_interval(NEW, 0.1), rows.predict_interval(NEW, 0.1), rtol=1e-7)
    labels = (Y > 0).astype(int)
    decides = RLSClassifier(gamma=0.4)
    counts = decides.fit(X, labels, COUNTS).calibrate(X, labels, cv=cv, sample_weight=COUNTS)
    rows = decides.fit(X[ROWS], labels[ROWS]).calibrate(X[ROWS], labels[ROWS], cv=cv_rows)
    np.testing.assert_allclose(counts.p_values(NEW), rows.p_values(NEW), rtol=1e-9)


def test_marks_of_counts_are_those_of_rows() -> None:
    f, weight = np.round(Y, 1), COUNTS.astype(float)
    np.testing.assert_array_equal(density_marks(f, weight), density_marks(f[ROWS]))
    order = rng.permutation(60)
    np.testing.assert_array_equal(density_marks(f[order], weight[order]), density_marks(f[ROWS]))
    machine = OneClassSVM(nu=0.4).fit(NEW)
    counts = machine.calibrate(X, cv="held-out", sample_weight=COUNTS)
    np.testing.assert_array_equal(
        counts.prob_density_marks_, machine.calibrate(X[ROWS], cv="held-out").prob_density_marks_
    )
    with pytest.raises(ValueError, match="need 5 negative and 5 positive"):  # many rows, but little weight
        density_marks(f, np.full(60, 0.05))


ZERO = np.where(rng.random(60) < 0.25, 0.0, 1.0)
SEEN = ZERO > 0


@pytest.mark.parametrize("cv", ["held-out", 4, "leave-one-out"])
@pytest.mark.parametrize("machine", [SVR(C=3.0), RLSRegressor()], ids=lambda machine: type(machine).__name__)
def test_a_sample_of_weight_0_counts_in_no_interval(machine, cv) -> None:
    wild = np.where(SEEN, Y, 1e4)
    told = {"cv": cv, "sample_weight": ZERO}
    found = machine.fit(X, wild, ZERO).calibrate(X, wild, **told)
    without = machine.fit(X[SEEN], Y[SEEN]).calibrate(X[SEEN], Y[SEEN], cv=cv)
    np.testing.assert_allclose(found.predict_interval(NEW), without.predict_interval(NEW), rtol=1e-9)
    assert found.laplace_scale_ == pytest.approx(without.laplace_scale_, rel=1e-9)
    assert len(found.residuals_) == SEEN.sum()
    if cv == 4:
        model = mercer.CalibratedRegressor(machine, cv=cv).fit(X, wild, ZERO)
        np.testing.assert_allclose(model.predict_interval(NEW), without.predict_interval(NEW), rtol=1e-9)


@pytest.mark.parametrize("cv", ["held-out", 4])
@pytest.mark.parametrize(
    "machine", [mercer.SVC(), mercer.SVC(slack="l2"), RLSClassifier()], ids=["shared", "l2", "least squares"]
)
def test_a_sample_of_weight_0_counts_in_no_set(machine, cv) -> None:
    labels = (Y > 0).astype(int)
    wild = np.where(SEEN, labels, 1 - labels)
    found = machine.fit(X, wild, ZERO).calibrate(X, wild, cv=cv, sample_weight=ZERO)
    without = machine.fit(X[SEEN], labels[SEEN]).calibrate(X[SEEN], labels[SEEN], cv=cv)
    np.testing.assert_allclose(found.p_values(NEW), without.p_values(NEW), rtol=1e-9)
    np.testing.assert_allclose(found.predict_proba(NEW), without.predict_proba(NEW), rtol=1e-6)
    with pytest.raises(ValueError, match="no sample of class 1"):
        machine.calibrate(X, labels, cv=cv, sample_weight=1.0 - labels)


@pytest.mark.parametrize("cv", ["held-out", 4])
@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.4), SVDD(nu=0.4)], ids=lambda machine: type(machine).__name__)
def test_a_sample_of_weight_0_makes_no_mark(machine, cv) -> None:
    wild = np.where(SEEN[:, None], X, 50.0)
    found = machine.fit(wild, sample_weight=ZERO).calibrate(wild, cv=cv, sample_weight=ZERO)
    without = machine.fit(X[SEEN]).calibrate(X[SEEN], cv=cv)
    np.testing.assert_allclose(found.prob_density_marks_, without.prob_density_marks_, rtol=1e-6)


@pytest.mark.parametrize("machine", [mercer.SVC(), RLSClassifier()], ids=["shared", "fold by fold"])
def test_a_class_that_has_no_weight_in_a_fold_is_told(machine) -> None:
    labels = np.arange(60) % 3
    weight = np.where((labels == 2) & (np.arange(60) < 30), 0.0, 1.0)
    machine.fit(X, labels, weight)
    with pytest.raises(ValueError, match="trains on no sample of class 2, which has 10"):
        machine.calibrate(X, labels, cv=KFold(2), sample_weight=weight)


def test_a_precomputed_kernel_with_weights_of_0() -> None:
    machine = RLSRegressor(gamma=0.4).fit(X, Y, ZERO)
    K, new = machine.kernel_(X, X), machine.kernel_(NEW, X)
    given = RLSRegressor(kernel="precomputed").fit(K, Y, ZERO)
    found = given.calibrate(K, Y, cv=4, sample_weight=ZERO)
    want = machine.calibrate(X, Y, cv=4, sample_weight=ZERO)
    np.testing.assert_allclose(found.predict_interval(new), want.predict_interval(NEW), rtol=1e-9)
    with pytest.raises(ValueError, match="precomputed kernel needs positive weights; remove the rows and columns"):
        given.calibrate(K, Y, cv="leave-one-out", sample_weight=ZERO)


@pytest.mark.parametrize("cv", ["held-out", 4])
@pytest.mark.parametrize("weight", [COUNTS.astype(float), ZERO], ids=["counts", "zeros"])
def test_weights_are_saved(cv, weight, tmp_path) -> None:
    labels = (Y > 0).astype(int)
    models = [
        SVR().fit(X, Y).calibrate(X, Y, cv=cv, sample_weight=weight),
        mercer.SVC().fit(X, labels).calibrate(X, labels, cv=cv, sample_weight=weight),
    ]
    for model in models:
        mercer.save(model, tmp_path / "m.mercer")
        again = mercer.load(tmp_path / "m.mercer")
        assert again.guarantee_ == model.guarantee_
        ask = "predict_interval" if hasattr(model, "residuals_") else "p_values"
        np.testing.assert_array_equal(getattr(again, ask)(NEW), getattr(model, ask)(NEW))


def test_a_sample_of_weight_0_does_not_change_the_temperature() -> None:
    """Where all samples are right one of them bounds T; one that is wrong would lift that bound."""
    centres = np.array([[0.0, 4.0], [4.0, 0.0], [-4.0, -4.0]])
    y = np.arange(30) % 3
    inside = centres[y] + 0.1 * rng.normal(size=(30, 2))
    machine = mercer.SVC(multiclass="ovr", gamma=0.1).fit(inside, y)
    held, wrong = centres[y] + 0.1 * rng.normal(size=(30, 2)), centres
    options = {"cv": "held-out", "method": "temperature"}
    alone = machine.calibrate(held, y, **options)
    beside = machine.calibrate(
        np.r_[held, wrong], np.r_[y, 1, 2, 0], sample_weight=np.r_[np.ones(30), np.zeros(3)], **options
    )
    np.testing.assert_array_equal(beside.predict_proba(inside), alone.predict_proba(inside))
