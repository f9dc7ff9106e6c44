"""Intervals for regressors: the functions without one sample against refits, and how often targets are inside.

scikit-learn's checks are in this file. Which theorem holds: tests/calibration/test_symmetry.py. Tools: tests/tools.
Weights: tests/calibration/test_weights.py. Fits of folds: tests/calibration/test_learnt_again.py,
tests/calibration/test_which_samples_are_left_out.py. Claims: tests/claims/test_false_claims_of_folds.py.
Files: tests/files/mercer_file/test_calibrated_models.py. Noise: tests/claims/test_calibrated_noise.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from contracts import scikit_learn_checks
from mercer import SVR, NuSVR, QuantileSVR, RLSRegressor
from mercer.calibration import CalibratedRegressor
from mercer.runtime.errors import SingularSystemWarning


@pytest.mark.filterwarnings("ignore:all .* samples end at their bound")  # targets of one check are large
def test_scikit_learn_checks() -> None:
    scikit_learn_checks.hold(CalibratedRegressor())


@scikit_learn_checks.of_each_in_turns(
    [CalibratedRegressor(RLSRegressor(), cv=3), CalibratedRegressor(RLSRegressor(), cv="leave-one-out")], turns=2
)
def test_scikit_learn_checks_of_other_forms(estimator, share) -> None:
    scikit_learn_checks.hold(estimator, share=share)


def curve(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + rng.normal(0, 0.3, n)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_functions_without_one_sample_are_those_of_refits(bias: bool, weighted: bool) -> None:
    X, y = curve(25, 0)
    X[3] = X[4]  # the same sample twice, with two targets
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 25) if weighted else None
    machine = RLSRegressor(lam=0.3, gamma=0.4, bias=bias).fit(X, y, weight)
    model = machine.calibrate(X, y, cv="leave-one-out", sample_weight=weight)
    new = curve(6, 9)[0]
    found = model._left_out_values(new)
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        refit = clone(machine).fit(X[rest], y[rest], None if weight is None else weight[rest])
        np.testing.assert_allclose(found[:, i], refit.predict(new), atol=1e-9)
        np.testing.assert_allclose(model.residuals_[i], abs(y[i] - refit.predict(X[i : i + 1])[0]), atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), machine.predict(new))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_without_a_ridge_they_are_those_of_least_squares(bias: bool, weighted: bool) -> None:
    X, y = curve(40, 0)
    y[0] = y[1:].mean()  # a target at the mean is no sign that all are equal
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 40) if weighted else None
    model = CalibratedRegressor(RLSRegressor(kernel="linear", lam=0.0, bias=bias), "leave-one-out").fit(X, y, weight)
    found = model._left_out_values(X[:5])
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        refit = LinearRegression(fit_intercept=bias).fit(X[rest], y[rest], None if weight is None else weight[rest])
        np.testing.assert_allclose(found[:, i], refit.predict(X[:5]), atol=1e-9)
        np.testing.assert_allclose(model.residuals_[i], abs(y[i] - refit.predict(X[i : i + 1])[0]), atol=1e-9)


def test_interpolants_are_left_out_from_or_the_reason_is_told() -> None:
    X, y = curve(20, 0)
    machine = RLSRegressor(lam=0.0, gamma=5.0).fit(X, y)
    model = machine.calibrate(X, y, cv="leave-one-out")
    refit = clone(machine).fit(X[1:], y[1:])
    np.testing.assert_allclose(model.residuals_[0], abs(y[0] - refit.predict(X[:1])[0]), atol=1e-9)
    alone = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"sample 4 .* is fitted exactly whatever its y is"):
        RLSRegressor(kernel="linear", lam=0.0).fit(alone, y[:5]).calibrate(alone, y[:5], cv="leave-one-out")
    far = X * [1.0, 1e-9]
    for mean in (0.0, 1e6):  # the spread of y counts, not its size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit says that it met the rounding floor
            steep = RLSRegressor(kernel="linear", lam=0.0).fit(far, y + mean)
        with pytest.raises(ValueError, match="float64 cannot resolve the kernel matrix"):
            steep.calibrate(far, y + mean, cv="leave-one-out")
    with pytest.warns((SingularSystemWarning, ConvergenceWarning)):
        smooth = RLSRegressor(lam=0.0, gamma=1e-3).fit(X, y)
    with pytest.raises(ValueError, match="needs a kernel matrix whose rank is certain"):
        smooth.calibrate(X, y, cv="leave-one-out")


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_so_are_those_of_support_vectors(loss: str, bias) -> None:  # type: ignore[no-untyped-def]  # fixtures and several kinds
    X, y = curve(25, 0)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 25)
    machine = SVR(C=2.0, gamma=0.4, bias=bias, loss=loss, tol=1e-9).fit(X, y, weight)
    model = machine.calibrate(X, y, cv="leave-one-out", sample_weight=weight)
    new = curve(6, 9)[0]
    found = model._left_out_values(new)
    assert found.shape == (6, 25)
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        refit = clone(machine).fit(X[rest], y[rest], weight[rest])
        np.testing.assert_allclose(found[:, i], refit.predict(new), atol=1e-6)
        np.testing.assert_allclose(model.residuals_[i], abs(y[i] - refit.predict(X[i : i + 1])[0]), atol=1e-6)


def test_a_copy_of_a_sample_is_left_out_alone() -> None:
    X, y = curve(20, 3)
    X[3], y[3] = X[4], y[4]
    machine = SVR(C=2.0, gamma=0.4, tol=1e-9).fit(X, y)
    model = machine.calibrate(X, y, cv="leave-one-out")
    refit = clone(machine).fit(np.delete(X, 3, axis=0), np.delete(y, 3))
    np.testing.assert_allclose(model._left_out_values(X)[:, 3], refit.predict(X), atol=1e-6)


@pytest.mark.parametrize(
    "machine", [RLSRegressor(lam=0.5, gamma=0.3), SVR(C=5.0, gamma=0.3)], ids=["least squares", "tube"]
)
def test_one_fold_for_each_sample_is_the_jackknife(machine) -> None:
    X, y = curve(20, 2)
    model = machine.fit(X, y).calibrate(X, y, cv=LeaveOneOut())
    low, high = model.predict_interval(X[:4], alpha=0.2)
    values = model._left_out_values(X[:4])
    for k in range(4):
        below = np.sort(values[k] - model.residuals_)[int(np.floor(0.2 * 21)) - 1]
        above = np.sort(values[k] + model.residuals_)[int(np.ceil(0.8 * 21)) - 1]
        assert (low[k], high[k]) == (below, above)
    both = machine.calibrate(X, y, cv="leave-one-out").predict_interval(X[:4], alpha=0.2)
    # The folds' tol=1e-3 is the machine's own: exact functions are near theirs.
    np.testing.assert_allclose(both, (low, high), atol=1e-7 if isinstance(machine, RLSRegressor) else 0.02)


@pytest.mark.parametrize(
    ("machine", "cv"),
    [
        (RLSRegressor(), "leave-one-out"),
        (RLSRegressor(), "held-out"),
        (SVR(), 5),
        (SVR(), "held-out"),
        (SVR(), "leave-one-out"),
    ],
    ids=lambda value: str(value),
)
@pytest.mark.parametrize("n_draws", [30, pytest.param(200, marks=pytest.mark.thorough)])
def test_targets_lie_inside_as_often_as_promised(machine, cv, n_draws: int) -> None:
    inside = []
    for seed in range(n_draws):
        X, y = curve(140, seed)
        rows = slice(40, 80) if cv == "held-out" else slice(0, 40)
        model = clone(machine).fit(X[:40], y[:40]).calibrate(X[rows], y[rows], cv=cv)
        low, high = model.predict_interval(X[80:], alpha=0.2)
        inside.append(np.mean((low <= y[80:]) & (y[80:] <= high)))
    error = np.std(inside) / np.sqrt(n_draws)
    assert np.mean(inside) >= 0.8 - 3 * error
    assert np.mean(inside) <= 0.8 + 3 * error + 0.05  # not by being wide


def test_too_few_samples_give_infinite_ends() -> None:
    X, y = curve(8, 0)
    low, high = SVR().fit(X, y).calibrate(X, y, cv=4).predict_interval(X, alpha=0.05)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_precomputed_samples_give_the_same_intervals() -> None:
    X, y = curve(40, 3)
    for cv in (4, "leave-one-out"):
        machine = RLSRegressor(gamma=0.3).fit(X, y)
        K = machine.kernel_(X, X)
        given = RLSRegressor(kernel="precomputed").fit(K, y).calibrate(K, y, cv=cv)
        np.testing.assert_allclose(
            given.predict_interval(K), machine.calibrate(X, y, cv=cv).predict_interval(X), atol=1e-9
        )


def test_bad_requests_are_answered() -> None:
    X, y = curve(20, 0)
    with pytest.raises(ValueError, match="RLSRegressor and SVR, not NuSVR"):
        CalibratedRegressor(NuSVR(), cv="leave-one-out").fit(X, y)
    for alpha in (0, 1, 1.5, 2):
        with pytest.raises(ValueError, match=f"alpha={alpha} must be between"):
            SVR().fit(X, y).calibrate(X, y).predict_interval(X, alpha=alpha)
    for quantiles in ([0.2, 0.8], [0.5]):
        machine = QuantileSVR(quantiles)
        with pytest.raises(
            ValueError, match=r"calibrating QuantileSVR: it predicts an array .* quantiles=0.5 \(not a list"
        ):
            machine.fit(X, y).calibrate(X, y, cv="held-out")
        with pytest.raises(ValueError, match="calibrating QuantileSVR: it predicts an array"):
            CalibratedRegressor(machine).fit(X, y)
    QuantileSVR(0.5).fit(X, y).calibrate(X, y).predict_interval(X)
    with pytest.raises(ValueError, match=r"calibrating SVR: y has 2 columns.*one model for each column"):
        SVR().fit(X, X).calibrate(X, X)
    with pytest.raises(MemoryError, match="cache_size"):
        RLSRegressor(cache_size=0.001).fit(X, y).calibrate(X, y, cv="leave-one-out")
    with pytest.raises(MemoryError, match=r"leaving out each of \d+ samples takes .* cache_size=0.001"):
        SVR(cache_size=0.001).fit(X, y).calibrate(X, y, cv="leave-one-out")
    SVR(cache_size=0.01).fit(X, y).calibrate(X, y, cv="leave-one-out")  # at most 8 · 20 · 21 bytes


def test_folds_are_told(capsys) -> None:  # type: ignore[no-untyped-def]  # fixtures and several kinds
    X, y = curve(30, 0)
    SVR().fit(X, y).calibrate(X, y, cv=3, verbose=True)
    assert "3 of 3 folds of the calibration" in capsys.readouterr().out


def test_steps_before_the_machine_are_fitted_in_every_fold() -> None:
    X, y = curve(60, 0)
    pipeline = make_pipeline(StandardScaler(), SVR(C=3.0))
    model = CalibratedRegressor(pipeline, cv=KFold(4)).fit(X, y)
    for train, test in KFold(4).split(X):
        other = clone(pipeline).fit(X[train], y[train])
        np.testing.assert_array_equal(model.residuals_[test], np.abs(y[test] - other.predict(X[test])))
    low, high = model.predict_interval(X, alpha=0.2)
    assert 0.7 < np.mean((low <= y) & (y <= high)) <= 1
    frozen = CalibratedRegressor(FrozenEstimator(clone(pipeline).fit(X[:40], y[:40]))).fit(X[40:], y[40:])
    np.testing.assert_array_equal(frozen.residuals_, np.abs(y[40:] - frozen.predict(X[40:])))
    with pytest.raises(ValueError, match="'leave-one-out' is for RLSRegressor and SVR, not Pipeline"):
        CalibratedRegressor(pipeline, cv="leave-one-out").fit(X, y)


@pytest.mark.parametrize("cv", ["held-out", 2])
def test_one_target_is_not_taken_for_that_of_every_sample(cv) -> None:
    X, y = curve(20, 0)
    machine = RLSRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 1\]"):
        machine.calibrate(X, y[:1], cv=cv)
