"""At the ends of float64, of the parameters and of patience: a fit says what it is worth."""

import math
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer.estimators
from bad_inputs.given import EVERY, MACHINES, TWO_POINTS, K, N, T, X, Y, fit, made, pegasos, svc, values
from bad_inputs.judge import usable
from mercer import SVR, KernelMachineRegressor, LinearSVC, LinearSVR, NuSVC, OneClassSVM, RLSRegressor, RLSRegressorCV
from mercer.runtime.errors import NonPSDKernelWarning

RARE = (np.arange(N) < 4).astype(int)


def worth(act):
    """What a fit came to: a model that is finite, and proven where it says so, or an error that says what to scale."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = act()
        except (FloatingPointError, ValueError) as error:
            return str(error)
    finite = np.isfinite(model.intercept_).all() and np.isfinite(values(model)).all()
    proven = not model.converged_ or not hasattr(model, "certificate_") or math.isfinite(model.certificate_.gap)
    return "good" if finite and proven else "not finite" if not finite else "unproven"


@pytest.mark.parametrize("scale", [1e-300, 1e30, pytest.param(1e100, marks=pytest.mark.thorough), 1e200, 1e307])
@pytest.mark.parametrize("name", EVERY)
def test_no_scale_of_the_features_makes_a_model_of_nan(name, scale):
    parameters = {"kernel": "linear"} if "kernel" in made(name).get_params() else {}
    found = worth(lambda: fit(name, scale * np.tanh(X), **parameters))
    assert found == "good" or any(word in found for word in ("scale", "Scale", "semi-definite", "hulls meet"))


@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e-8, 1e8, 1e300])
@pytest.mark.parametrize("name", EVERY)
def test_no_scale_of_the_weights_makes_a_model_of_nan(name, weight):
    found = worth(lambda: fit(name, weight=np.full(N, weight)))
    assert found == "good" or (not 1e-9 < weight < 1e9 and any(word in found for word in ("scale", "too small")))


@pytest.mark.parametrize("machine", [OneClassSVM, NuSVC])
@pytest.mark.parametrize("factor", [1e-9, 1e-4, 1e4, 1e9])
def test_nu_machines_know_only_the_proportions_of_the_weights(machine, factor):
    """Their problem, and its violations, scale with the weights: a tolerance that does not would stop anywhere."""
    weight = 1.0 + np.random.default_rng(1).uniform(size=N)
    one, other = (machine(0.3).fit(X, Y, sample_weight=w) for w in (weight, factor * weight))
    assert one.converged_
    assert other.converged_
    assert other.certificate_.relative_gap <= 5 * one.certificate_.relative_gap + 1e-9
    f, g = one.decision_function(X), other.decision_function(X)
    scale = factor if machine is OneClassSVM else 1.0
    np.testing.assert_allclose(g, scale * f, atol=5e-3 * scale)


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_linear_machine_cut_short_says_so(solver, steps):
    """β may fit f = Xw + b while w is nowhere near X'β: with no step taken all other conditions hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(solver=solver, max_iter=steps).fit(X, Y)
    optimum = LinearSVC(tol=1e-10).fit(X, Y).certificate_.primal
    assert not model.converged_
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.violation > 1e-4
    assert model.certificate_.primal - optimum <= model.certificate_.gap + 1e-9


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets_that_are_all_zero(solver, loss):
    model = LinearSVR(solver=solver, loss=loss).fit(X, np.zeros(N))
    assert model.converged_
    np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e8])
def test_the_huber_loss_far_from_its_targets(scale):
    """Where no sample has curvature, only a search finds b; and a gap counts on the b that balances the gradients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # without curvature little is proven of the best b
        model = KernelMachineRegressor("huber", lam=1.0, tol=1e-9).fit(X, scale * T)
        warnings.simplefilter("ignore", UserWarning)  # C is small for these targets
        other = SVR(0.5, loss="huber", tol=1e-9).fit(X, scale * T)
    assert model.stop_reason_ == ("converged" if scale == 1 else "rounding floor")
    assert model.certificate_.dual <= 2 * other.certificate_.primal <= model.certificate_.primal * (1 + 1e-8)
    assert model.certificate_.primal == pytest.approx(2 * other.certificate_.primal, rel=1e-8)
    assert scale > 1 or model.certificate_.kkt["dual feasibility: equality"] <= 1e-6


def test_a_gap_of_nan_proves_nothing():
    with pytest.warns(ConvergenceWarning, match="gap inf"), np.errstate(all="ignore"):
        assert not KernelMachineRegressor().fit(X, T, sample_weight=np.full(N, 1e300)).converged_


@pytest.mark.parametrize("bias", [True, False])
def test_a_path_over_a_matrix_of_zeros(bias):
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        model = RLSRegressorCV(kernel="precomputed", bias=bias).fit(np.zeros((N, N)), T)
    np.testing.assert_allclose(model.predict(np.zeros((2, N))), T.mean() if bias else 0.0)


def test_a_matrix_of_zeros_ends():
    with pytest.raises(ValueError, match="reduced hulls meet"):
        NuSVC(nu=0.3, kernel="precomputed").fit(np.zeros((N, N)), Y)
    with pytest.warns(UserWarning, match="f is constant"):
        NuSVC(kernel="precomputed").fit(np.zeros((N, N)), Y)


def test_two_points_end_within_a_second_for_every_degree():
    """Finding 1: scikit-learn's fit of these two points never returns and ignores Ctrl-C."""
    for degree in (2, 3, 4):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = svc(TWO_POINTS, [0, 1], kernel="poly", degree=degree, gamma="auto")
        assert time.perf_counter() - start < 1
        assert usable(model)
        assert model.converged_ or model.stop_reason_ in ("rounding floor", "stalled", "max_iter")


def test_a_definite_matrix_does_not_warn_and_proves_optimality():
    """Finding 5, the other side: the probe must not cry wolf."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = svc(K, kernel="precomputed")
        low_rank = svc(X @ X.T, kernel="precomputed")
    assert model.certificate_.proves.startswith("optimality")
    assert low_rank.certificate_.proves.startswith("optimality")


def test_an_indefinite_kernel_is_told():
    with pytest.warns(NonPSDKernelWarning):
        model = pegasos(X @ X.T - 3 * np.eye(40), kernel="precomputed", certificate=True)
    assert model.certificate_.gap_measures == "stationarity"


def test_an_indefinite_matrix_is_solved_and_named():
    indefinite = K - 0.5 * np.eye(N)
    with pytest.warns(NonPSDKernelWarning):
        model = RLSRegressor(0.1, kernel="precomputed").fit(indefinite, T)
    assert model.certificate_.proves == "stationarity"
    A = np.block([[indefinite + 0.1 * np.eye(N), np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(A, np.r_[T, 0.0])[:-1], atol=1e-8)


def test_the_smallest_useful_nu_is_the_smallest():
    """Where the reduced hulls just touch: below it ρ = 0, above it a machine."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(120, 2))
    labels = (points[:, 0] + rng.normal(size=120) > 0).astype(int)
    with pytest.raises(ValueError, match="too small") as caught:
        NuSVC(nu=0.05, kernel="linear").fit(points, labels)
    smallest = float(str(caught.value).partition("useful nu is ")[2].split(" ")[0])
    assert NuSVC(nu=1.01 * smallest, kernel="linear").fit(points, labels).equivalent_C_ > 0
    with pytest.raises(ValueError, match="too small"):
        NuSVC(nu=0.97 * smallest, kernel="linear").fit(points, labels)


def test_auto_takes_what_is_feasible_and_says_so():
    assert NuSVC().fit(X, Y).nu_ == pytest.approx(0.5)
    with pytest.warns(UserWarning, match=r"nu=0.5 is infeasible.*took 0.198 for 1 against 0"):
        model = NuSVC().fit(X, RARE)
    assert model.nu_ == pytest.approx(0.99 * 0.2)


@pytest.mark.parametrize("name", MACHINES)
def test_limits_warn_and_leave_a_usable_model(name):
    estimator = getattr(mercer.estimators, name)
    target = Y if name in ("SVC", "NuSVC") else T
    with pytest.warns(ConvergenceWarning, match=f"{name} stopped before tol=1e-12"):
        model = estimator(tol=1e-12, max_iter=2).fit(X, target)
    assert not model.converged_
    assert model.fit_status_ == 1
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "machine",
    [
        mercer.SVC(slack="l2", kernel="precomputed"),
        mercer.SVR(loss="squared_epsilon_insensitive", kernel="precomputed"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_a_squared_slack_with_an_indefinite_matrix_has_an_unbounded_dual(machine, seed):
    A = np.random.default_rng(seed).normal(size=(30, 30))
    indefinite = (A + A.T) / 2
    assert np.linalg.eigvalsh(indefinite)[0] < -1.0  # 1/C on the diagonal does not outweigh it
    with pytest.raises(FloatingPointError, match=r"the dual problem is unbounded.*Lower C"):
        machine.fit(indefinite, np.arange(30) % 2)


def test_targets_whose_squares_overflow_in_a_machine_with_a_norm():
    with pytest.warns(ConvergenceWarning):
        model = mercer.KernelMachineRegressor("huber", penalty="norm").fit(X, 1e300 * X[:, 0])
    assert model.certificate_.proves == "nothing"


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_hulls_of_an_indefinite_matrix_are_not_said_to_meet():
    A = np.random.default_rng(0).normal(size=(30, 30))
    with pytest.raises(ValueError, match="K is indefinite, so that this is no proof that reduced hulls meet"):
        mercer.NuSVC(nu=0.1, kernel="precomputed").fit((A + A.T) / 2, np.arange(30) % 2)


def test_strings_whose_values_overflow_are_advised_of_the_decay():
    with pytest.raises(FloatingPointError, match="Lower its decay"):
        mercer.SVC(kernel=mercer.kernels.Substrings(decay=2)).fit(
            [w * 550 for w in ("ab", "ba", "aa", "bb")], [0, 1, 0, 1]
        )


@pytest.mark.parametrize("seed", [1, 10, 29, 31, 32])
@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_coefficients_whose_sum_overflows_are_the_sign_of_an_unbounded_dual(seed):
    rng = np.random.default_rng(seed)
    samples, labels, weight = rng.normal(size=(50, 4)), rng.random(50) < 0.5, np.ones(50)
    weight[0] = 8e-12
    with pytest.raises(FloatingPointError, match=r"the dual problem is unbounded.*Lower C"):
        mercer.SVC(C=100, slack="l2", kernel="sigmoid").fit(samples, labels, sample_weight=weight)
