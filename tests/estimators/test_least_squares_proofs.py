"""Least squares: a certificate that holds in extended precision, sums that know their digits, weights, landmarks."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import NystromRLS, NystromRLSClassifier, RLSClassifier, RLSClassifierCV, RLSRegressor, RLSRegressorCV

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 2))
Y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=100)


# --- the certificate in extended precision --------------------------------------------------------------------------


def truth(K, y, beta, b, lam, weight):
    """P(f_β, b) − D(β), P and y − Kβ − λW⁻¹β, exactly where K is, and what its entries' rounding can do to each."""
    y, beta, weight = (np.array([Fraction(float(v)) for v in part]) for part in (y, beta, weight))
    b, d = Fraction(float(b)), Fraction(lam) / weight
    u = K @ beta
    h = y - u - d * beta
    primal = beta @ u / 2 + np.sum((y - u - b) ** 2 / d) / 2
    gap = np.sum((h - b) ** 2 / d) / 2 - b * np.sum(beta)
    return gap, primal, h


def exact_kernel(A, linear):
    """K in fractions; the Gaussian's values to eighteen digits."""
    wide = A.astype(np.longdouble)
    if linear:
        rows = np.array([[Fraction(float(v)) for v in row] for row in A])
        return rows @ rows.T
    K = np.exp(-np.longdouble(0.5) * np.sum((wide[:, None, :] - wide[None, :, :]) ** 2, axis=2))
    high = K.astype(np.float64)
    low = (K - high).astype(np.float64)
    return np.array(
        [
            [Fraction(float(a)) + Fraction(float(c)) for a, c in zip(*pair, strict=True)]
            for pair in zip(high, low, strict=True)
        ]
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    power=st.integers(-8, 6),
    offset=st.sampled_from([0.0, 1.0, 1e3]),
    scale=st.sampled_from([1.0, 1e3, 1e-4]),
    linear=st.booleans(),
    solver=st.sampled_from(["auto", "cholesky", "eigen"]),
)
def test_gap_and_violation_are_upper_bounds(seed, power, offset, scale, linear, solver):
    draw = np.random.default_rng(seed)
    A = draw.normal(size=(25, 2)) * [scale, 1] + offset
    y = draw.normal(size=25) + offset
    weight, lam = draw.uniform(0.1, 3.0, 25), 10.0**power
    kernel = {"kernel": "linear"} if linear else {"kernel": "rbf", "gamma": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RLSRegressor(lam, solver=solver, **kernel).fit(A, y, sample_weight=weight)
    proof, b = model.certificate_, model.intercept_[0]
    gap, primal, h = truth(exact_kernel(A, linear), y, model.dual_coef_, b, lam, weight)
    own = Fraction(0 if linear else 1e-18) * sum(abs(Fraction(float(v))) for v in model.dual_coef_)  # of the K above
    assert max(h) - min(h) <= Fraction(proof.violation) + 2 * own
    assert max(abs(h - Fraction(float(b)))) <= Fraction(proof.violation) + own
    if not (linear and model.solver_ == "covariance"):  # there f has weights of its own
        assert gap <= Fraction(proof.gap) + own * own * 25 / Fraction(2 * lam / 3)
        loose = own * 100 * (1 + sum(abs(Fraction(float(v))) for v in model.dual_coef_))
        assert primal - loose <= Fraction(proof.primal) <= primal + Fraction(proof.gap)
        assert Fraction(proof.dual) <= primal - gap + loose
    assert proof.primal - proof.dual <= proof.gap


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    power=st.integers(-8, 6),
    offset=st.sampled_from([0.0, 1.0, 1e3, 1e7]),
    scale=st.sampled_from([1.0, 1e3, 1e9, 1e-4]),
    bias=st.booleans(),
    solver=st.sampled_from(["covariance", "lsqr"]),
)
def test_weights_of_features_have_a_gap_that_is_an_upper_bound(seed, power, offset, scale, bias, solver):
    draw = np.random.default_rng(seed)
    A = draw.normal(size=(25, 2)) * [scale, 1] + offset
    y = draw.normal(size=25) + offset
    weight, lam = draw.uniform(0.1, 3.0, 25), 10.0**power
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RLSRegressor(lam, kernel="linear", bias=bias, solver=solver).fit(A, y, sample_weight=weight)
    exact = [np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(part) for part in (A, y, weight)]
    rows, targets, mass = exact
    w, beta = ([Fraction(float(v)) for v in part] for part in (model.coef_, model.dual_coef_))
    w, beta, b, lam = np.array(w), np.array(beta), Fraction(float(model.intercept_[0])), Fraction(lam)
    r, d = targets - rows @ w - b, lam / mass
    gap = np.sum((w - rows.T @ beta) ** 2) / 2 + np.sum((r - d * beta) ** 2 / d) / 2 - b * np.sum(beta)
    assert gap <= Fraction(model.certificate_.gap)
    # The optimum itself: normal equations of the centred rows, two by two.
    if bias:
        rows, targets = rows - mass @ rows / np.sum(mass), targets - mass @ targets / np.sum(mass)
    H = rows.T @ (mass[:, None] * rows) + lam * np.array([[1, 0], [0, 1]])
    g = rows.T @ (mass * targets)
    determinant = H[0, 0] * H[1, 1] - H[0, 1] * H[1, 0]
    best = np.array([H[1, 1] * g[0] - H[0, 1] * g[1], H[0, 0] * g[1] - H[1, 0] * g[0]]) / determinant
    optimum = best @ best / 2 + np.sum(mass * (targets - rows @ best) ** 2) / (2 * lam)
    primal = w @ w / 2 + np.sum(mass * r**2) / (2 * lam)
    assert primal - optimum <= Fraction(model.certificate_.kkt["primal value above the optimum"])


@pytest.mark.filterwarnings("ignore:the system is singular")
def test_every_solver_takes_its_verdict_from_the_certificate():
    far = X + 1e7  # K = XXᵀ has lost the digits that matter; the features have not
    for solver in ("cholesky", "eigen", "cg"):
        model = RLSRegressor(1e-3, kernel=1.0 * mercer.kernels.Linear() + 1e14, solver=solver, bias=False)
        with pytest.warns(ConvergenceWarning, match="rounding floor"):
            model.fit(X, Y)
        assert model.stop_reason_ == "rounding floor"
        assert not model.converged_
    assert RLSRegressor(1e-3, kernel="linear").fit(far, Y).converged_


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("big", [1e6, 1e8])
def test_forgetting_what_was_large_says_that_digits_are_gone(big):
    model = RLSRegressor(1e-3, kernel="linear").partial_fit(X, Y)
    assert model.converged_
    before, best = model.coef_, model.certificate_.primal
    B, t = big * rng.normal(size=(5, 2)), big * rng.normal(size=5)
    model.partial_fit(B, t)
    with pytest.warns(ConvergenceWarning, match="have lost digits"):
        model.forget(B, t)
    assert not model.converged_
    assert model.stop_reason_ == "rounding floor"
    # The gap is how far these weights are from the optimum on the samples that are left.
    assert value_of(model.coef_, X, Y) - best <= model.certificate_.gap
    assert np.abs(model.coef_ - before).max() > 0


@pytest.mark.filterwarnings("ignore:RLSRegressor")
def test_digits_that_are_gone_do_not_come_back():
    """Ordinary samples after those that were large: the sums are as unsure as before."""
    model = RLSRegressor(1e-3, kernel="linear").partial_fit(X[:50], Y[:50])
    B, t = 1e7 * rng.normal(size=(5, 2)), 1e7 * rng.normal(size=5)
    model.partial_fit(B, t).forget(B, t).partial_fit(X[50:], Y[50:])
    centred = X - X.mean(axis=0)
    best = np.linalg.solve(centred.T @ centred + 1e-3 * np.eye(2), centred.T @ Y)
    lost = value_of(model.coef_, X, Y) - value_of(best, X, Y)
    assert 1e-10 * model.certificate_.primal < lost <= model.certificate_.gap
    assert not model.converged_


def value_of(w, A, y):
    """½‖w‖² + the squares that its best bias leaves, over 2λ."""
    r = y - A @ w
    return 0.5 * w @ w + np.sum((r - r.mean()) ** 2) / 2e-3


def test_forgetting_ordinary_samples_stays_exact():
    model = RLSRegressor(1e-3, kernel="linear").partial_fit(X, Y)
    for start in range(0, 60, 20):
        model.partial_fit(X[start : start + 20] + 1.0, Y[start : start + 20])
        model.forget(X[start : start + 20] + 1.0, Y[start : start + 20])
    assert model.converged_
    np.testing.assert_allclose(model.coef_, RLSRegressor(1e-3, kernel="linear").fit(X, Y).coef_, rtol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "rows",
    [
        (X[:20] * 3 + 1, Y[:20]),  # squares that were never there
        (X[:20], Y[:20] * 5),  # targets that were never there
        (np.full((20, 2), 50.0), Y[:20]),  # sums that were never there
        (X[:20] @ [[1.0, 5.0], [0.0, 1.0]], Y[:20]),  # products that were never there
    ],
)
def test_forgetting_what_was_never_learnt_is_refused(rows, bias):
    model = RLSRegressor(0.01, kernel="linear", bias=bias).partial_fit(X[:30], Y[:30])
    before = model.coef_, model.certificate_
    with pytest.raises(ValueError, match="never learnt"):
        model.forget(*rows)
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.certificate_ is before[1]


def test_forgetting_what_leaves_products_above_the_squares_is_refused():
    """Three samples (1, 1) would be left if δ were 0: (3 + δ²)² > (3 − 2δ − δ²)(3 + 2δ − δ²) by 16δ²/9 of it."""
    model = RLSRegressor(0.01, kernel="linear", bias=False).partial_fit(np.ones((4, 2)), [1.0, -1.0, 1.0, 0.0])
    row = np.array([[1 + 2.0**-15, 1 - 2.0**-15]])
    a, b = map(Fraction, row[0].tolist())
    assert (4 - a * b) ** 2 > (4 - a * a) * (4 - b * b)
    with pytest.raises(ValueError, match="never learnt"):
        model.forget(row, [0.0])
    model.forget(np.ones((1, 2)), [0.0])


@pytest.mark.parametrize("bias", [False, True])
def test_another_bias_halfway_is_refused(bias):
    model = RLSRegressor(kernel="linear", bias=bias).partial_fit(X, Y).set_params(bias=not bias)
    with pytest.raises(ValueError, match=f"bias={not bias}, but the samples before were learnt with bias={bias}"):
        model.partial_fit(X, Y)


# --- weights and classes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        RLSRegressor(0.1),
        RLSRegressor(0.1, kernel="linear"),
        RLSRegressorCV(),
        RLSRegressorCV(kernel="linear"),
        RLSClassifier(),
        RLSClassifierCV(),
        NystromRLS(n_landmarks=20, random_state=0),
        NystromRLSClassifier(n_landmarks=20, random_state=0),
    ],
    ids=str,
)
def test_a_weight_is_a_repetition_to_the_last_bit(model):
    weight = np.random.default_rng(1).integers(0, 4, 100)
    y = (Y > 0).astype(int) if is_classifier(model) else Y
    copies, kept = np.repeat(np.arange(100), weight), weight > 0
    found = [
        clone(model).fit(X, y, sample_weight=weight),
        clone(model).fit(X[copies], y[copies]),
        clone(model).fit(X[kept], y[kept], sample_weight=weight[kept]),
        clone(model).fit(X[::-1], y[::-1], sample_weight=weight[::-1]),
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other._decision(X), found[0]._decision(X))


def test_landmarks_need_weight_in_every_class():
    y = (Y > 0).astype(int)
    with pytest.raises(ValueError, match="class 1 has no sample with positive weight"):
        NystromRLSClassifier().fit(X, y, sample_weight=(y == 0).astype(float))


# --- landmarks ------------------------------------------------------------------------------------------------------


def test_wrong_landmarks_are_called_landmarks():
    for wrong in (np.full((3, 2), np.nan), np.ones((3, 5)), np.ones(3)):
        with pytest.raises(ValueError, match="landmarks are no valid samples"):
            NystromRLS(landmarks=wrong).fit(X, Y)


@pytest.mark.parametrize("bias", [False, True])
def test_the_gap_on_landmarks_is_an_upper_bound(bias):
    Z, lam = X[:15], 0.05
    model = NystromRLS(lam, landmarks=Z, gamma=0.5, bias=bias, tol=1e-9).fit(X, Y)
    kernel = mercer.kernels.Gaussian(gamma=0.5)
    K, K_MM = kernel(X, Z), kernel(Z) + model.jitter_ * np.eye(15)
    A = np.block([[K, np.ones((100, 1))], [np.sqrt(lam) * np.linalg.cholesky(K_MM).T, np.zeros((15, 1))]])
    A = A if bias else A[:, :-1]
    target = np.concatenate([Y, np.zeros(15)])
    best = 0.5 * np.linalg.lstsq(A, target, rcond=None)[1][0]
    reached = np.concatenate([model.dual_coef_[:, 0], model.intercept_ if bias else []])
    value = 0.5 * np.sum((A @ reached - target) ** 2)
    assert value - best <= model.certificate_.gap + 1e-14 * value
    assert model.certificate_.gap <= 1e-9 * value


@pytest.mark.filterwarnings("ignore:NystromRLS stopped before")
@pytest.mark.parametrize("lam", [0.1, 1e3, 1e6])
def test_the_gap_on_landmarks_before_the_first_step(lam):
    """At f = 0 the residual is g = K_nM'y, and the dual point y/λ leaves a gap of g'K_MM⁻¹g/2λ."""
    Z, kernel = X[:6], mercer.kernels.Gaussian(gamma=0.5)
    model = NystromRLS(lam, landmarks=Z, kernel=kernel, bias=False, max_iter=0).fit(X, Y)
    g = kernel(Z, X) @ Y
    expected = g @ np.linalg.solve(kernel(Z) + model.jitter_ * np.eye(6), g) / (2 * lam)
    assert not model.dual_coef_.any()
    assert model.certificate_.primal == pytest.approx(0.5 * Y @ Y)
    assert model.certificate_.gap == pytest.approx(expected, rel=1e-6)
    assert model.certificate_.gap >= expected * (1 - 1e-12)


def test_landmarks_whose_values_float64_cannot_resolve_say_so():
    huge = 1e6 * X
    with pytest.warns(ConvergenceWarning, match="rounding floor"):
        model = NystromRLS(1e-12, landmarks=X[:40], kernel="poly", degree=5, tol=1e-9).fit(huge / 1e6, Y)
    assert not model.converged_


def exact_optimum(A, y, lam):
    """½‖w‖² + Σ(y − w'x − b)²/(2λ) at its minimum, in fractions: elimination in the normal equations of (w, b)."""
    lam, y = Fraction(lam), [Fraction(float(v)) for v in y]
    Z = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in A]
    d = len(Z[0])
    system = [
        [sum(z[i] * z[j] for z in Z) + (lam if i == j < d - 1 else 0) for j in range(d)]
        + [sum(z[i] * v for z, v in zip(Z, y, strict=True))]
        for i in range(d)
    ]
    for i in range(d):
        system[i] = [v / system[i][i] for v in system[i]]
        for j in range(d):
            if j != i:
                system[j] = [a - system[j][i] * c for a, c in zip(system[j], system[i], strict=True)]
    best = [row[-1] for row in system]
    risk = sum((v - sum(a * c for a, c in zip(best, z, strict=True))) ** 2 for z, v in zip(Z, y, strict=True))
    return sum(a * a for a in best[:-1]) / 2 + risk / (2 * lam)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("way", ["fit", "sums", "forget", "cholesky"])
def test_primal_and_dual_bound_the_optimum(way, offset, lam):
    draw = np.random.default_rng(1)
    A, y = draw.normal(size=(24, 2)) + offset, draw.normal(size=24)
    model = RLSRegressor(lam, kernel="linear", solver="cholesky" if way == "cholesky" else "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way in ("fit", "cholesky"):
            model.fit(A, y)
        else:
            model.partial_fit(A[:10], y[:10]).partial_fit(A[10:], y[10:])
        if way == "forget":
            model.forget(A[:6], y[:6])
            A, y = A[6:], y[6:]
    proof = model.certificate_
    assert Fraction(proof.dual) <= exact_optimum(A, y, lam) <= Fraction(proof.primal)
    assert proof.primal - proof.dual <= proof.gap
