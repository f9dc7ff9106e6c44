"""PegasosSVC against its own theorem, the exact machine, and itself in other forms.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Printed steps of the algorithm: tests/solvers/test_pegasos.py, tests/core/test_pegasos.py, tests/reference/pegasos.py.
Streams: tests/estimators/test_pegasos_streams.py. C and alpha: tests/estimators/test_regularisation.py.
Stored rows: tests/files/test_stored_rows.py. Files: tests/files/export/test_onnx_machines.py.
"""

import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import scale

from mercer import PegasosSVC
from mercer.kernels import Gaussian, Linear, Spectrum
from mercer.problems.classification import soft_margin
from reference import pegasos as printed
from reference.pegasos import noisy
from reference.qp import by_clarabel

LAM = 0.03


def separable(n=60, d=5, seed=0):
    X, y = noisy(n, d, seed)
    w = np.arange(1.0, d + 1) / np.linalg.norm(np.arange(1.0, d + 1))
    return X + np.outer(y * (1.0 + np.abs(X @ w)) - X @ w, w), y


def test_estimators_of_both_forms_agree_at_the_same_seed():
    X, y = load_iris(return_X_y=True)
    linear = PegasosSVC(LAM, max_iter=100, random_state=3).fit(X, y)
    dual = PegasosSVC(LAM, kernel=Linear(), max_iter=100, random_state=3).fit(X, y)
    np.testing.assert_allclose(linear.decision_function(X), dual.decision_function(X), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dual.dual_coef_ @ dual.support_vectors_, linear.coef_, rtol=1e-8, atol=1e-10)
    assert linear.objective_ == pytest.approx(dual.objective_, rel=1e-9)


# --- the theorem, and the optimum -----------------------------------------------------------------------------------


def optimum(X, y, lam, weight=None):
    """min F by an interior-point method on the dual without bias."""
    weight = np.ones(len(y)) if weight is None else weight
    problem = soft_margin(y, weight / weight.sum() / lam)
    problem = problem.without_bias()
    return lam * by_clarabel(problem, X @ X.T)[0]


@pytest.mark.parametrize("data", [separable, noisy])
@pytest.mark.parametrize("lam", [1e-3, 0.1])
def test_the_mean_stays_under_the_theorems_bound(data, lam):
    """E F(w̄) − min F ≤ 2R²(1 + ln T)/(λT), over 40 seeds, from few steps to many."""
    X, y = data()
    best = optimum(X, y, lam)
    R2 = (X**2).sum(axis=1).max()
    means = []
    for epochs in (1, 10, 100):
        runs = [
            PegasosSVC(lam, bias=False, average="all", max_iter=epochs, random_state=seed).fit(X, y)
            for seed in range(40)
        ]
        T = runs[0].t_
        excess = np.array([run.objective_ for run in runs]) - best
        assert epochs * len(X) == T
        assert (excess > -1e-9).all()
        assert excess.mean() <= 2 * R2 * (1 + np.log(T)) / (lam * T)
        means.append(excess.mean())
    assert means[2] < 0.1 * means[0]  # the bound falls by a factor of 53 to 57


@pytest.mark.parametrize("average", ["all", "suffix", "last"])
@pytest.mark.parametrize("bias", [False, "regularized"])
def test_every_output_approaches_the_optimum(bias, average):
    X, y = noisy()
    plain = np.c_[X, np.ones(len(X))] if bias else X
    best = optimum(plain, y, LAM)
    model = PegasosSVC(LAM, bias=bias, average=average, max_iter=5000, random_state=0).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=0.02)
    w = np.append(model.coef_[0], model.intercept_[0]) if bias else model.coef_[0]
    assert model.objective_ == pytest.approx(printed.objective(plain, y, np.ones(len(y)), w, LAM), rel=1e-12)
    assert bias or model.intercept_.tolist() == [0.0]


def test_in_the_neighbourhood_of_scikit_learns_sgd():
    X, y = load_breast_cancer(return_X_y=True)
    X, signs = scale(X), np.where(y == 1, 1.0, -1.0)
    ours = PegasosSVC(0.01, max_iter=100, random_state=0).fit(X, y)
    theirs = SGDClassifier(alpha=0.01, average=True, max_iter=100, tol=None, random_state=0).fit(X, y)
    plain = np.c_[X, np.ones(len(X))]
    values = [
        printed.objective(plain, signs, np.ones(len(y)), np.append(m.coef_[0], m.intercept_[0]), 0.01)
        for m in (ours, theirs)
    ]
    assert values[0] < 1.05 * values[1]


# --- the certificate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", ["linear", Linear(), Gaussian(gamma=0.2)], ids=["linear form", "linear kernel", "Gaussian"]
)
@pytest.mark.parametrize("sampling", ["replacement", "passes"])
@pytest.mark.parametrize("bias", [False, "regularized"])
@pytest.mark.parametrize("sharper", [False, True])
def test_the_certificate_encloses_the_optimum(sharper, bias, sampling, kernel):
    X, y = noisy()
    K = (Linear() if isinstance(kernel, str) else kernel)(X) + (1.0 if bias else 0.0)
    problem = soft_margin(y, np.full(len(y), 1 / (LAM * len(y))))
    problem = problem.without_bias()
    best = by_clarabel(problem, K)[0]
    gaps = []
    for epochs in (1, 30, 3000):
        model = PegasosSVC(
            LAM, kernel=kernel, bias=bias, sampling=sampling, max_iter=epochs, certificate=sharper, random_state=0
        ).fit(X, y)
        proof = model.certificate_
        assert proof.dual <= best * (1 + 1e-8)
        assert proof.primal >= best * (1 - 1e-8)
        assert proof.gap >= 0
        assert proof.gap == pytest.approx(proof.primal - proof.dual, abs=1e-9 * proof.primal)
        assert proof.primal == pytest.approx(model.objective_ / LAM, rel=1e-9)
        assert proof.kkt["dual feasibility: box"] == 0
        assert proof.gap_measures == "optimality"
        gaps.append(proof.relative_gap)
    assert gaps[2] < (0.02 if sharper else 0.2) < gaps[0]


def test_the_certificate_of_several_classes_is_a_sum():
    X, y = load_iris(return_X_y=True)
    model = PegasosSVC(0.1, max_iter=200, certificate=True, random_state=0).fit(X, y)
    assert len(model.certificate_.parts) == 3
    assert model.certificate_.primal == pytest.approx(model.objective_ / 0.1)


# --- weights --------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    weight=st.lists(st.integers(0, 4), min_size=24, max_size=24).filter(lambda w: min(max(w[:12]), max(w[12:])) > 0),
    sampling=st.sampled_from(["replacement", "passes"]),
    form=st.sampled_from([np.asarray, sp.csr_array]),
    kernel=st.sampled_from(["linear", "rbf"]),
    shuffle=st.integers(0, 1000),
)
def test_a_weight_is_a_repetition_to_the_last_bit(weight, sampling, form, kernel, shuffle):
    X, _ = noisy(24, 3)
    X[5] = X[4]
    y = np.repeat([0, 1], 12)
    model = PegasosSVC(LAM, kernel=kernel, sampling=sampling, max_iter=20, random_state=1)
    rows = np.random.default_rng(shuffle).permutation(np.repeat(np.arange(24), weight))
    weighted = clone(model).fit(form(X), y, sample_weight=np.array(weight, dtype=float))
    repeated = clone(model).fit(form(X[rows]), y[rows])
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    assert weighted.t_ == repeated.t_
    if kernel == "linear":
        streamed = [clone(model).partial_fit(form(X), y, [0, 1], np.array(weight, dtype=float))]
        streamed.append(clone(model).partial_fit(form(X[rows]), y[rows], [0, 1]))
        np.testing.assert_array_equal(streamed[0].coef_, streamed[1].coef_)
        assert streamed[0].t_ == sum(weight)


def test_fractional_and_class_weights_weigh_the_objective():
    X, y = noisy()
    weight = np.random.default_rng(3).random(len(y)) + 0.1
    both = weight * np.where(y > 0, 3.0, 0.5)
    model = PegasosSVC(LAM, bias=False, class_weight={1: 3.0, -1: 0.5}, max_iter=5000, random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert model.objective_ == pytest.approx(optimum(X, y, LAM, both), rel=0.02)
    assert model.objective_ == pytest.approx(printed.objective(X, y, both, model.coef_[0], LAM), rel=1e-12)
    plain = printed.objective(X, y, np.ones(len(y)), model.coef_[0], LAM)
    assert abs(plain - model.objective_) > 0.01  # so the weights made a difference
    balanced = PegasosSVC(LAM, class_weight="balanced", max_iter=1, random_state=0).fit(X, y)
    np.testing.assert_allclose(balanced.class_weight_, [len(y) / (2 * (y < 0).sum()), len(y) / (2 * (y > 0).sum())])


# --- limits, seeds, early stopping ----------------------------------------------------------------------------------


def test_seeds_reproduce_and_differ():
    X, y = noisy()
    fits = [PegasosSVC(LAM, max_iter=5, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = PegasosSVC(LAM, max_iter=5, random_state=0).fit(X[order], y[order])
    np.testing.assert_array_equal(shuffled.coef_, fits[0])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_early_stopping_keeps_the_best_epoch(kernel):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = PegasosSVC(1e-4, kernel=kernel, early_stopping=True, max_iter=300, random_state=0).fit(X, y)
    losses = model.validation_loss_
    assert model.stop_reason_ == "early stopping"
    assert model.converged_
    assert len(losses) == model.n_iter_ < 300
    best = int(np.argmin(losses))
    assert model.t_ == (best + 1) * 512  # nine tenths of 569 samples
    again = PegasosSVC(1e-4, kernel=kernel, early_stopping=True, max_iter=best + 1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert model.score(X, y) > 0.93


def test_early_stopping_by_the_smoothed_rule():
    """Igel, section 2.2: stop where the mean of some losses has risen by a share above its least."""
    X, y = noisy()
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.2, -y, y)
    options = {
        "kernel": "rbf",
        "gamma": 3.0,
        "early_stopping": "smoothed",
        "validation_fraction": 0.4,
        "random_state": 0,
    }
    model = PegasosSVC(1e-4, n_iter_no_change=3, rise=0.1, max_iter=500, **options).fit(X, y)
    losses = model.validation_loss_
    assert model.stop_reason_ == "early stopping"
    assert len(losses) == model.n_iter_ < 500
    smooth = [losses[max(0, t - 2) : t + 1].mean() for t in range(len(losses))]
    assert smooth[-1] > 1.1 * min(smooth)
    assert all(smooth[t] <= 1.1 * min(smooth[: t + 1]) for t in range(len(smooth) - 1))
    again = PegasosSVC(1e-4, max_iter=int(np.argmin(losses)) + 1, **options).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="early_stopping='late' must be one of"):
        PegasosSVC(early_stopping="late").fit(X, y)


def test_a_time_limit_is_kept_and_told():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match=r"(?s)max_time.*objective"):
        model = PegasosSVC(LAM, max_iter=10**9, max_time=0.2, random_state=0).fit(X, y)
    assert model.stop_reason_ == "max_time"
    assert not model.converged_
    assert 0 < model.t_ < 10**9
    assert model.score(X, y) > 0.8


def test_a_chunk_cut_short_is_told():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match=r"visited 0 of the 60 rows of chunk 1 \(max_time\)") as told:
        model = PegasosSVC(LAM, max_time=1e-9).partial_fit(X, y, [-1, 1])
    assert told[0].filename == __file__
    assert model.stop_reason_ == "max_time"


def test_margins_of_both_forms_agree():
    X, y = load_iris(return_X_y=True)
    linear = PegasosSVC(LAM, max_iter=100, random_state=3).fit(X, y)
    dual = PegasosSVC(LAM, kernel=Linear(), max_iter=100, random_state=3).fit(X, y)
    np.testing.assert_allclose(linear.rkhs_norm_, np.linalg.norm(linear.coef_, axis=1))
    np.testing.assert_allclose(dual.rkhs_norm_, linear.rkhs_norm_, rtol=1e-8)
    np.testing.assert_allclose(linear.signed_distance(X), linear.decision_function(X) / linear.rkhs_norm_)
    assert [m.classes for m in linear.margins(X, y)] == [m.classes for m in dual.margins(X, y)]


def test_a_fit_can_be_interrupted_and_leaves_the_machine_as_it_was():
    X, y = noisy(200, 50)
    model = PegasosSVC(LAM, max_iter=1, random_state=0).fit(X, y)
    before = model.coef_
    model.set_params(max_iter=10**9)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    timer.join()
    assert model.coef_ is before


def test_no_steps_at_all_is_the_zero_function():
    X, y = noisy()
    model = PegasosSVC(max_iter=0).fit(X, y)
    assert not model.decision_function(X).any()
    assert model.objective_ == 1.0


def test_verbose_prints_lines(capsys):
    X, y = noisy()
    PegasosSVC(LAM, max_iter=5, verbose=True, early_stopping=True, random_state=0).fit(X, y)
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("[mercer]")
    assert "validation loss" in line


# --- other inputs ---------------------------------------------------------------------------------------------------


def test_precomputed_kernels_and_strings():
    X, y = noisy()
    K = Gaussian(gamma=0.2)(X)
    model = PegasosSVC(LAM, kernel="precomputed", max_iter=2000, certificate=True, random_state=0).fit(K, y)
    other = PegasosSVC(LAM, kernel=Gaussian(gamma=0.2), max_iter=2000, random_state=0).fit(X, y)
    assert model.objective_ == pytest.approx(other.objective_, rel=0.01)
    assert model.certificate_.relative_gap < 0.05
    assert model.score(K, y) == other.score(X, y)
    text = ["aab", "aba", "baa", "bbc", "cbb", "bcb"] * 2
    words = PegasosSVC(LAM, kernel=Spectrum(), random_state=0).fit(text, [0, 0, 0, 1, 1, 1] * 2)
    assert words.score(text, [0, 0, 0, 1, 1, 1] * 2) == 1.0


def test_fitted_arrays_are_read_only_and_inputs_untouched():
    X, y = noisy()
    X.flags.writeable = y.flags.writeable = False
    model = PegasosSVC(LAM, max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    model.partial_fit(X, y)  # and still goes on


def test_no_warning_on_ordinary_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PegasosSVC(LAM, max_iter=2).fit(*noisy())


def test_kernel_rows_stay_within_cache_size():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_500, 4)), rng.integers(2, size=1_500)
    model = PegasosSVC(kernel="rbf", cache_size=4, max_iter=1, random_state=0)
    model.fit(X[:50], y[:50])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4.5e6
