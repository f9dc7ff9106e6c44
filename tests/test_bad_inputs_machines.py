"""Bad and odd inputs of the machines beyond SVC: what was given, why it cannot be, what to do."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
T = X[:, 0] + 0.1 * rng.normal(size=40)
Y = (T > 0).astype(int)
RARE = (np.arange(40) < 4).astype(int)


def explode(A, B):
    raise AssertionError("the kernel was evaluated")


def changed(target, place, value):
    target = np.array(target, dtype=float)
    target[place] = value
    return target


ERRORS = {
    "epsilon < 0": (lambda: SVR(epsilon=-0.1).fit(X, T), r"epsilon=-0.1 must be a finite number of at least 0"),
    "epsilon nan": (lambda: SVR(epsilon=np.nan).fit(X, T), r"epsilon=nan"),
    "C = 0": (lambda: SVR(C=0).fit(X, T), r"C=0 must be a finite number above 0"),
    "C = inf": (lambda: SVR(C=np.inf).fit(X, T), r"C=inf must be a finite number above 0"),
    "loss": (lambda: SVR(loss="l2").fit(X, T), r"loss='l2' must be one of 'epsilon_insensitive'"),
    "delta": (lambda: SVR(loss="huber", delta=0).fit(X, T), r"delta=0 must be .*threshold of the Huber loss"),
    "tau": (lambda: SVR(loss="expectile", tau=1.0).fit(X, T), r"tau=1.0 must be a number strictly between 0 and 1"),
    "bias": (lambda: SVR(bias="no").fit(X, T), r"bias='no' must be one of True, False, 'regularized'"),
    "slack": (lambda: SVC(slack="l3").fit(X, Y), r"slack='l3' must be one of 'l1', 'l2'"),
    "multiclass": (lambda: SVC(multiclass="all").fit(X, Y), r"multiclass='all' must be one of"),
    "nu of NuSVR": (lambda: NuSVR(nu=0).fit(X, T), r"nu=0 must be a number above 0 and at most 1"),
    "nu of OneClassSVM": (lambda: OneClassSVM(nu=1.5).fit(X), r"nu=1.5 must be a number above 0 and at most 1"),
    "nu of SVDD": (lambda: SVDD(nu=np.nan).fit(X), r"nu=nan must be"),
    "nu of NuSVC": (lambda: NuSVC(nu=-1).fit(X, Y), r"nu=-1 must be .*'auto' chooses"),
    "nu infeasible": (
        lambda: NuSVC(nu=0.5, kernel=explode).fit(X, RARE),
        r"nu=0.5 is infeasible: at most 2·min\(n₊, n₋\)/n = 0.2 for the labels 1 against 0; lower nu",
    ),
    "nu infeasible in weights": (
        lambda: NuSVC(nu=0.5, kernel=explode).fit(X, Y, sample_weight=np.where(Y == 1, 0.1, 1.0)),
        r"nu=0.5 is infeasible: at most 2·min\(n₊, n₋\)/n = 0\.\d+",
    ),
    "nu too small": (
        lambda: NuSVC(nu=0.01, kernel="linear").fit(np.r_[X, X + 0.01], np.r_[Y, 1 - Y]),
        r"nu=0.01 is too small.*ρ = 0.*(The smallest useful nu is|They meet even at)",
    ),
    "no quantiles": (lambda: QuantileSVR([]).fit(X, T), r"quantiles=\[\] must be a number or a list"),
    "quantile of 1": (lambda: QuantileSVR([0.5, 1.0]).fit(X, T), r"quantiles=1.0 must be .*between 0 and 1"),
    "quantiles of two dimensions": (lambda: QuantileSVR([[0.5]]).fit(X, T), r"quantiles="),
    "y missing": (lambda: SVR().fit(X, None), r"requires y"),
    "y of strings": (lambda: SVR().fit(X, np.array(["a"] * 40)), r"y must hold real numbers.*such as SVC"),
    "y with NaN": (lambda: SVR().fit(X, changed(T, 7, np.nan)), r"y contains NaN: y\[7\]"),
    "y with inf": (lambda: NuSVR().fit(X, changed(T, 7, np.inf)), r"y contains infinity: y\[7\]"),
    "y of two outputs": (lambda: SVR().fit(X, np.c_[T, T]), r"1d array.*RLSRegressor.*MultiOutputRegressor"),
    "y too short": (lambda: QuantileSVR().fit(X, T[:-1]), r"inconsistent numbers of samples"),
    "all weights zero": (lambda: OneClassSVM().fit(X, sample_weight=np.zeros(40)), r"all sample weights are zero"),
    "weights negative": (lambda: SVR().fit(X, T, sample_weight=-np.ones(40)), r"sample_weight\[0\]=-1.0"),
    "coef_ of a Gaussian": (lambda: SVR().fit(X, T).coef_, r"coef_ exists only for a linear kernel"),
    "sparse precomputed": (
        lambda: SVR(kernel="precomputed").fit(sparse.csr_array(X @ X.T), T),
        r"sparse precomputed kernel matrix is not supported",
    ),
    "other columns": (lambda: OneClassSVM().fit(X).predict(X[:, :2]), r"2 features.*3"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_and_why(name):
    act, text = ERRORS[name]
    with pytest.raises((ValueError, TypeError, AttributeError), match=text):
        act()


def test_the_smallest_useful_nu_is_the_smallest():
    """Where the reduced hulls just touch: below it ρ = 0, above it a machine."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(120, 2))
    labels = (points[:, 0] + rng.normal(size=120) > 0).astype(int)
    with pytest.raises(ValueError, match="too small") as caught:
        NuSVC(nu=0.05, kernel="linear").fit(points, labels)
    smallest = float(str(caught.value).partition("useful nu is ")[2].split(" ")[0])
    assert NuSVC(nu=1.01 * smallest, kernel="linear").fit(points, labels).equivalent_C_[0] > 0
    with pytest.raises(ValueError, match="too small"):
        NuSVC(nu=0.97 * smallest, kernel="linear").fit(points, labels)


def test_auto_takes_what_is_feasible_and_says_so():
    assert NuSVC().fit(X, Y).nu_[0] == pytest.approx(0.5)
    with pytest.warns(UserWarning, match=r"nu=0.5 is infeasible.*took 0.198 for 1 against 0"):
        model = NuSVC().fit(X, RARE)
    assert model.nu_[0] == pytest.approx(0.99 * 0.2)


def test_constant_targets_and_single_samples():
    assert SVR().fit(X, np.full(40, 3.0)).predict(X) == pytest.approx(3.0)
    assert SVR(epsilon=0.0).fit(X[:1], [2.0]).predict(X[:1]) == pytest.approx(2.0)
    assert QuantileSVR(0.9).fit(X, np.full(40, 3.0)).predict(X) == pytest.approx(3.0)
    assert NuSVR().fit(X, np.full(40, 3.0)).predict(X) == pytest.approx(3.0)
    ball = SVDD().fit(X[:1])
    assert ball.radius_ == pytest.approx(0.0, abs=1e-6)
    assert OneClassSVM().fit(np.repeat(X[:1], 5, axis=0)).offset_ > 0


def test_nu_of_one():
    assert (OneClassSVM(nu=1.0).fit(X).dual_coef_ == 1.0).all()
    assert NuSVR(nu=1.0).fit(X, T).epsilon_ == pytest.approx(0.0, abs=1e-2)
    balanced = np.arange(40) % 2
    assert len(NuSVC(nu=1.0).fit(X, balanced).support_) == 40


MACHINES = ["SVC", "NuSVC", "SVR", "NuSVR", "QuantileSVR", "OneClassSVM", "SVDD"]


@pytest.mark.parametrize("name", MACHINES)
def test_limits_warn_and_leave_a_usable_model(name):
    estimator = getattr(mercer.estimators, name)
    target = Y if name in ("SVC", "NuSVC") else T
    with pytest.warns(ConvergenceWarning, match=f"{name} stopped before tol=1e-12"):
        model = estimator(tol=1e-12, max_iter=2).fit(X, target)
    assert not model.converged_
    assert model.fit_status_ == 1
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("name", MACHINES)
def test_fitted_arrays_are_read_only_and_inputs_untouched(name):
    target = Y if name in ("SVC", "NuSVC") else T
    data, copy = X.copy(), X.copy()
    model = getattr(mercer.estimators, name)().fit(data, target)
    np.testing.assert_array_equal(data, copy)
    for attribute in ("dual_coef_", "support_", "support_vectors_", "intercept_", "n_support_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, attribute)[...] = 0
