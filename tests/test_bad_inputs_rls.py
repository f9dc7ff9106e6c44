"""Bad and odd inputs of the least-squares machines: the right answer, or an error that says what to do."""

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mercer import RLSClassifier, RLSClassifierCV, RLSRegressor, RLSRegressorCV
from mercer.errors import NonPSDKernelWarning
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
N = 40
X = rng.normal(size=(N, 3))
Y = np.sin(X[:, 0]) + 1.0
LABELS = (Y > 1).astype(int)
K = Gaussian(gamma=0.3)(X)
for shared in (X, Y, LABELS, K):
    shared.flags.writeable = False


def changed(array, where, value):
    array = np.array(array, dtype=np.float64)
    array[where] = value
    return array


def fit(X=X, y=Y, weight=None, **parameters):
    return RLSRegressor(**parameters).fit(X, y, sample_weight=weight)


def choose(X=X, y=Y, weight=None, **parameters):
    return RLSRegressorCV(**parameters).fit(X, y, sample_weight=weight)


def classify(X=X, y=LABELS, weight=None, **parameters):
    return RLSClassifier(**parameters).fit(X, y, sample_weight=weight)


RAISES = {
    "no rows": (lambda: fit(X[:0], Y[:0]), ValueError, "0 sample"),
    "no columns": (lambda: fit(X[:, :0]), ValueError, "0 feature"),
    "1-D X": (lambda: fit(X[:, 0]), ValueError, "(?s)1D array.*[Rr]eshape"),
    "y too short": (lambda: fit(X, Y[:-1]), ValueError, "(?s)40.*39|39.*40"),
    "3-D y": (lambda: fit(X, np.zeros((N, 2, 2))), ValueError, "shape"),
    "y without outputs": (lambda: fit(X, np.zeros((N, 0))), ValueError, "shape|0 feature"),
    "no y": (lambda: fit(X, None), ValueError, "y is None"),
    "y of words": (lambda: fit(X, np.array(["a"] * N)), ValueError, "(?i)numeric|string|convert"),
    "complex y": (lambda: fit(X, Y + 1j), ValueError, "(?i)complex"),
    "NaN in y": (lambda: fit(X, changed(Y, 5, np.nan)), ValueError, r"y contains nan at \(5,\)"),
    "inf in y": (lambda: fit(X, changed(np.c_[Y, Y], (5, 1), np.inf)), ValueError, r"y contains inf at \(5, 1\)"),
    "NaN in X": (lambda: fit(changed(X, (3, 1), np.nan)), ValueError, r"(?s)X.*NaN.*\b3\b.*\b1\b"),
    "inf in X": (lambda: choose(changed(X, (3, 1), np.inf)), ValueError, r"(?s)X.*inf.*\b3\b.*\b1\b"),
    "negative weight": (lambda: fit(weight=changed(np.ones(N), 2, -1.0)), ValueError, r"sample_weight\[2\]"),
    "NaN weight": (lambda: fit(weight=changed(np.ones(N), 2, np.nan)), ValueError, r"sample_weight\[2\]"),
    "no weight at all": (lambda: fit(weight=np.zeros(N)), ValueError, "all sample weights are zero"),
    "absurd weight": (lambda: fit(lam=1e300, weight=np.full(N, 1e-300)), ValueError, "too small beside lam"),
    "negative lam": (lambda: fit(lam=-1.0), ValueError, "lam=-1.0 must be a finite number of at least 0"),
    "NaN lam": (lambda: fit(lam=np.nan), ValueError, "lam=nan must be"),
    "infinite lam": (lambda: fit(lam=np.inf), ValueError, "weighted mean of y.*sklearn.dummy"),
    "lam as text": (lambda: fit(lam="1"), TypeError, "lam='1' must be a number"),
    "bias as text": (lambda: fit(bias="yes"), TypeError, "bias='yes'"),
    "unknown solver": (lambda: fit(solver="qr"), ValueError, "solver='qr' must be one of"),
    "covariance of a Gaussian": (lambda: fit(solver="covariance"), ValueError, "linear kernels.*'auto'"),
    "lsqr of a Gaussian": (lambda: fit(solver="lsqr"), ValueError, "linear kernels"),
    "cache_size 0": (lambda: fit(cache_size=0), ValueError, "cache_size=0"),
    "lams with 0": (lambda: choose(lams=[0.0, 1.0]), ValueError, r"lams=0.0.*RLSRegressor\(lam=0\)"),
    "lams with inf": (lambda: choose(lams=[1.0, np.inf]), ValueError, "lams=inf"),
    "negative lams": (lambda: choose(lams=[-1.0]), ValueError, "lams=-1.0"),
    "no lams": (lambda: choose(lams=[]), ValueError, "lams has shape"),
    "zero lams": (lambda: choose(lams=0), ValueError, "lams=0"),
    "unknown criterion": (lambda: choose(criterion="aic"), ValueError, "criterion='aic'"),
    "mistakes of a regressor": (lambda: choose(criterion="mistakes"), ValueError, "criterion='mistakes'"),
    "grid of C": (lambda: choose(grid={"C": [1.0]}), ValueError, r"grid may hold.*\['C'\]"),
    "one sample to leave out": (lambda: choose(X[:1], Y[:1]), ValueError, "n_samples = 1"),
    "one class": (lambda: classify(y=0 * LABELS), ValueError, "2 classes"),
    "continuous labels": (lambda: classify(y=Y), ValueError, "(?i)continuous|label type"),
    "multi-output labels": (lambda: classify(y=np.c_[LABELS, LABELS]), ValueError, "(?i)1d|multi|shape"),
    "rectangular K": (lambda: fit(K[:, :-1], kernel="precomputed"), ValueError, "square"),
    "asymmetric K": (lambda: fit(changed(K, (0, 1), 7.0), kernel="precomputed"), ValueError, "not symmetric"),
    "sparse K": (lambda: fit(sparse.csr_array(K), kernel="precomputed"), TypeError, "sparse precomputed"),
    "not fitted": (lambda: RLSRegressor().predict(X), NotFittedError, "not fitted"),
    "forget before learning": (
        lambda: RLSRegressor(kernel="linear").forget(X, Y),
        NotFittedError,
        "not fitted",
    ),
    "partial_fit of a Gaussian": (lambda: RLSRegressor().partial_fit(X, Y), AttributeError, "partial_fit"),
    "partial_fit after another solver": (
        lambda: fit(kernel="linear", solver="eigen").partial_fit(X, Y),
        ValueError,
        "solver='covariance'",
    ),
    "other outputs later": (
        lambda: fit(kernel="linear").partial_fit(X, np.c_[Y, Y]),
        ValueError,
        "2 outputs, but the samples before had 1",
    ),
    "balanced in parts": (
        lambda: RLSClassifier(kernel="linear", class_weight="balanced").partial_fit(X, LABELS, classes=[0, 1]),
        ValueError,
        "dict of class weights",
    ),
    "other classes later": (
        lambda: classify(kernel="linear").partial_fit(X, LABELS, classes=[0, 1, 2]),
        ValueError,
        "differ from those of the first call",
    ),
}


@pytest.mark.parametrize("case", RAISES)
def test_what_cannot_be_is_refused(case):
    act, kind, text = RAISES[case]
    with pytest.raises(kind, match=text):
        act()


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            RLSRegressor(solver="cholesky", cache_size=500),
            r"kernel matrix of 60,000 samples needs [\d,]+ MB.*cache_size.*NystromRLS",
        ),
        (RLSRegressor(lam=0.0, cache_size=500), r"decomposing it needs [\d,]+ MB.*larger lam"),
        (RLSRegressorCV(cache_size=500), r"decomposing the matrix of 60,000 samples needs [\d,]+ MB.*cache_size"),
        (RLSRegressor(kernel="linear", solver="covariance", cache_size=0.001), r"covariance of 60 features.*lsqr"),
    ],
    ids=["factor", "limit", "path", "covariance"],
)
def test_memory_is_counted_before_it_is_asked_for(model, text):
    many = np.arange(60_000 * 60, dtype=np.float32).reshape(60_000, 60)
    begin = time.perf_counter()
    with pytest.raises(MemoryError, match=text):
        model.fit(many, many[:, 0])
    assert time.perf_counter() - begin < 5
    assert not hasattr(model, "kernel_")


def test_a_float64_factor_that_does_not_fit_names_a_larger_lam():
    X = rng.normal(size=(1200, 2))
    with pytest.raises(MemoryError, match=r"float64 factor.*larger lam"):
        RLSRegressor(1e-13, cache_size=12, gamma=0.1).fit(X, X[:, 0])
    assert RLSRegressor(1.0, cache_size=12, gamma=0.1).fit(X, X[:, 0]).factor_precision_ == "float32"


def test_an_indefinite_matrix_is_solved_and_named():
    indefinite = K - 0.5 * np.eye(N)
    with pytest.warns(NonPSDKernelWarning):
        model = RLSRegressor(0.1, kernel="precomputed").fit(indefinite, Y)
    assert model.certificate_.proves == "stationarity"
    A = np.block([[indefinite + 0.1 * np.eye(N), np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(A, np.r_[Y, 0.0])[:-1], atol=1e-8)


def test_odd_but_right():
    duplicates = np.repeat(X, 3, axis=0)
    model = RLSRegressor(0.0, gamma=5.0).fit(duplicates, np.repeat(Y, 3))  # duplicates do not make K singular here
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-6)
    constant = RLSRegressor(gamma=1.0).fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(constant.predict([[1.0, 1.0]]), 2.0)
    assert RLSRegressor(gamma=1.0).fit([[1.0]], [3.0]).predict([[9.0]])[0] == pytest.approx(3.0)
    zero = RLSRegressor(kernel="linear").fit(np.zeros((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(zero.coef_, 0.0)
    integers = RLSRegressor().fit(np.arange(10)[:, None], np.arange(10))
    assert integers.predict([[3]]).dtype == np.float64
    assert RLSRegressorCV(3, gamma=1.0).fit(np.ones((4, 1)), np.ones(4)).predict([[0.0]])[0] == pytest.approx(1.0)
    boolean = RLSClassifierCV(3).fit(X, LABELS == 1)
    assert boolean.predict(X).dtype == bool


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    for model in (RLSRegressor(0.1), RLSRegressor(0.1, kernel="linear"), RLSRegressorCV(4)):
        before = model.fit(X, Y).predict(X)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(changed(X, (3, 1), np.nan), Y)
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match="nan"):
                model.partial_fit(X, changed(Y, 3, np.nan))
        np.testing.assert_array_equal(model.predict(X), before)


def test_inputs_are_not_modified():
    X_, y_, w = X.copy(), np.c_[Y, Y].copy(), np.linspace(0, 2, N)
    K_ = K.copy()
    for model in (RLSRegressor(), RLSRegressor(kernel="linear"), RLSRegressorCV(4), RLSRegressorCV(4, kernel="linear")):
        model.fit(X_, y_, sample_weight=w)
    RLSRegressor(kernel="precomputed").fit(K_, y_)
    RLSRegressorCV(4, kernel="precomputed").fit(K_, y_)
    np.testing.assert_array_equal(X_, X)
    np.testing.assert_array_equal(y_, np.c_[Y, Y])
    np.testing.assert_array_equal(K_, K)
    np.testing.assert_array_equal(w, np.linspace(0, 2, N))
