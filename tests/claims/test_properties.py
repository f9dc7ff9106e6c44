"""Invariants of the support vector classifier on drawn problems number by number.

Two solutions of one problem need not be equal, but strong convexity ties them: with duality gaps g₁ and g₂,
‖w₁ − w₂‖ ≤ √(2g₁) + √(2g₂), so that f₁ − b₁ and f₂ − b₂ differ at x by at most that times √k(x,x).
"""

import math
import pickle
import time
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from claims.drawn_problems import FEW, PATIENCE, problems
from reference.certificate import certificate, rounding
from reference.problems import c_svc, gram_matrix, without_bias
from reference.smo import smo

# Comparisons of f need problems whose optimum float64 can resolve.
TAME = {"C": (-3, 2), "kinds": ("gaussian", "lattice", "constant column", "collinear")}


def beta_of(model, n):
    beta = np.zeros(n)
    coefficients = model.dual_coef_
    beta[model.support_] = coefficients.toarray()[0] if sparse.issparse(coefficients) else coefficients[0]
    return beta


def truth_of(drawn, model, *, b=None, C=None):
    """The reference certificate of a model fitted on the drawn data as they are."""
    problem = c_svc(drawn.y, drawn.C if C is None else C)
    return certificate(problem, drawn.gram(), beta_of(model, len(drawn.y)), b=b)


def noise_of(drawn, beta):
    """What float64 cannot resolve of h: its own sums, and squared distances formed as |x|² + |z|² − 2⟨x,z⟩."""
    noise = rounding(c_svc(drawn.y, drawn.C), drawn.gram(), beta)
    if drawn.kernel == "rbf":
        length = ((drawn.X - drawn.X.mean(axis=0)) ** 2).sum(axis=1).max()
        noise += np.finfo(float).eps * drawn.numbers["gamma"] * length * np.abs(beta).sum()
    return noise


def homogeneous(model, X):
    return model.decision_function(X) - model.intercept_[0]


def reach(*models, scale=1.0):
    """How far apart f − b of two certified solutions may be at a point with k(x,x) = 1."""
    return scale * sum(math.sqrt(2 * max(model.certificate_.gap, 0.0)) for model in models)


def assert_same_function(one, f_one, other, f_other, K, problem_scale):
    """f − b agrees within what the two gaps allow, plus rounding."""
    size = np.sqrt(np.maximum(np.diag(K), 0.0))
    allowed = size * reach(one, other) + 1e-7 * (1 + np.abs(f_one).max()) + 1e-12 * problem_scale
    assert (np.abs(f_one - f_other) <= allowed).all(), np.abs(f_one - f_other).max()


def scale_of(drawn):
    return float(drawn.C * np.abs(drawn.gram()).sum(axis=1).max())


def assert_same_bias(drawn, model, b):
    """Another solution's b is as good as our own: the primal value with it is the optimum too."""
    truth = truth_of(drawn, model)
    with_b = truth_of(drawn, model, b=b)
    width = drawn.C * len(drawn.y)
    noise = 1e-7 * (1 + np.abs(truth.u).max())
    assert with_b.primal - truth.dual <= truth.gap + width * (
        reach(model, scale=2 * math.sqrt(np.abs(np.diag(drawn.gram())).max())) + noise
    )


@given(problems())
def test_1_feasible(drawn):
    model = drawn.fit(tol=1e-6)
    beta = beta_of(model, len(drawn.y))
    alpha = drawn.y * beta
    assert (alpha >= 0).all()
    assert (alpha <= drawn.C).all()
    assert abs(math.fsum(beta)) <= 1e-10 * alpha.sum()
    assert (alpha[model.support_] > 0).all(), "a support vector without a coefficient"


@given(problems())
def test_2_the_gap_is_a_gap_and_as_small_as_asked(drawn):
    tol = 1e-4
    model = drawn.fit(tol=tol)
    truth = truth_of(drawn, model)
    own = model.certificate_
    noise = noise_of(drawn, beta_of(model, len(drawn.y)))
    width = drawn.C * len(drawn.y)
    assert own.gap >= 0
    assert truth.primal - truth.dual >= -1e-9 * (1 + abs(truth.dual)) - 100 * noise * width
    assert own.dual == truth.dual or abs(own.dual - truth.dual) <= 1e-9 * (1 + abs(truth.dual)) + 100 * noise * width
    if model.converged_:
        assert own.violation <= tol
        assert own.gap <= tol * width
        assert truth.gap <= (tol + 100 * noise) * width
    else:
        assert model.stop_reason_ != "converged"
    # The intercept the user sees is a good one for the primal problem, not only some number: any b between the largest
    # h that may rise and the smallest that may fall keeps the gap below violation times width.
    with_b = truth_of(drawn, model, b=model.intercept_)
    assert with_b.primal - truth.dual <= (truth.violation + 1e-9 + 100 * noise) * width


@given(problems())
def test_3_kkt_conditions_of_each_kind_of_sample(drawn):
    tol = 1e-4
    model = drawn.fit(tol=tol)
    assume(model.converged_)
    alpha = drawn.y * beta_of(model, len(drawn.y))
    margin = drawn.y * model.decision_function(drawn.X)
    noise = noise_of(drawn, drawn.y * alpha)
    allowed = tol + 1e-9 + 100 * noise
    free = (alpha > 0) & (alpha < drawn.C)
    assert (np.abs(margin[free] - 1) <= allowed).all()
    assert (margin[alpha == 0] >= 1 - allowed).all()
    assert (margin[alpha == drawn.C] <= 1 + allowed).all()


@given(problems(**TAME), st.randoms(use_true_random=False))
def test_4_order_of_rows_and_columns_does_not_matter(drawn, random):
    rows, columns = list(range(len(drawn.y))), list(range(drawn.X.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    model = drawn.fit()
    f = homogeneous(model, drawn.X)
    by_rows = drawn.fit(drawn.X[rows], drawn.y[rows])
    assert_same_function(model, f, by_rows, homogeneous(by_rows, drawn.X), drawn.gram(), scale_of(drawn))
    assert_same_bias(drawn, model, by_rows.intercept_)
    by_columns = drawn.fit(drawn.X[:, columns])
    f_columns = homogeneous(by_columns, drawn.X[:, columns])
    assert_same_function(model, f, by_columns, f_columns, drawn.gram(), scale_of(drawn))


@given(problems(**TAME), st.integers(0, 2**32 - 1))
def test_4_rotation_and_translation(drawn, seed):
    rng = np.random.default_rng(seed)
    model = drawn.fit()
    f = homogeneous(model, drawn.X)
    if drawn.kernel != "laplacian":
        Q = np.linalg.qr(rng.normal(size=(drawn.X.shape[1],) * 2))[0]
        rotated = drawn.fit(drawn.X @ Q)
        f_rotated = homogeneous(rotated, drawn.X @ Q)
        assert_same_function(model, f, rotated, f_rotated, drawn.gram(), scale_of(drawn))
    if drawn.kernel in ("rbf", "laplacian"):
        moved = drawn.X + rng.normal(scale=100, size=drawn.X.shape[1])
        shifted = drawn.fit(moved)
        assert_same_function(model, f, shifted, homogeneous(shifted, moved), drawn.gram(), scale_of(drawn))
        assert_same_bias(drawn, model, shifted.intercept_)


@FEW
@given(problems(**TAME))
def test_5_flipped_and_renamed_labels(drawn):
    model = drawn.fit()
    f = homogeneous(model, drawn.X)
    flipped = drawn.fit(y=-drawn.y)
    assert_same_function(model, f, flipped, -homogeneous(flipped, drawn.X), drawn.gram(), scale_of(drawn))
    assert_same_bias(drawn, model, -flipped.intercept_)
    renamed = drawn.fit(y=np.where(drawn.y > 0, "white", "black"))
    np.testing.assert_array_equal(renamed.decision_function(drawn.X), model.decision_function(drawn.X))
    np.testing.assert_array_equal(renamed.predict(drawn.X) == "white", model.predict(drawn.X) > 0)


@given(
    problems(C=(-3, 2), kinds=TAME["kinds"], kernels=("linear", "rbf")),
    st.sampled_from([0.125, 0.5, 4.0, 3.0]),
)
def test_6_scaling_laws(drawn, s):
    model = drawn.fit()
    f = homogeneous(model, drawn.X)
    if drawn.kernel == "linear":
        # k(sx, sz) = s²k(x, z), so C/s² gives the same function and α/s²; the gap becomes gap/s².
        scaled = drawn.fit(s * drawn.X, C=drawn.C / s**2)
        f_scaled = homogeneous(scaled, s * drawn.X)
        bound = reach(model) + reach(scaled, scale=s)
    else:
        scaled = drawn.fit(s * drawn.X, gamma=drawn.numbers["gamma"] / s**2)
        f_scaled = homogeneous(scaled, s * drawn.X)
        bound = reach(model, scaled)
    size = np.sqrt(np.diag(drawn.gram()))
    slack = 1e-7 * (1 + np.abs(f).max()) + 1e-12 * scale_of(drawn)
    assert (np.abs(f - f_scaled) <= size * bound + slack).all()


@given(problems(**TAME), st.sampled_from([0.25, 8.0, 10.0]))
def test_6_scaled_matrix(drawn, a):
    K = drawn.gram()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = mercer.SVC(kernel="precomputed", C=drawn.C, tol=1e-10).fit(K, drawn.y)
        other = mercer.SVC(kernel="precomputed", C=drawn.C / a, tol=1e-10).fit(a * K, drawn.y)
    f, f_scaled = homogeneous(one, K), homogeneous(other, a * K)
    size = np.sqrt(np.maximum(np.diag(K), 0))
    bound = reach(one) + reach(other, scale=math.sqrt(a))
    slack = 1e-7 * (1 + np.abs(f).max()) + 1e-12 * scale_of(drawn)
    assert (np.abs(f - f_scaled) <= size * bound + slack).all()


@FEW
@given(problems(**TAME), st.randoms(use_true_random=False))
def test_7_integer_weights_are_repeats_and_zero_is_removed(drawn, random):
    weight = np.array([random.randint(0, 3) for _ in drawn.y], dtype=float)
    assume(len(set(drawn.y[weight > 0])) == 2)
    rows = np.repeat(np.arange(len(drawn.y)), weight.astype(int))
    weighted = drawn.fit(sample_weight=weight)
    repeated = drawn.fit(drawn.X[rows], drawn.y[rows])
    f = homogeneous(weighted, drawn.X)
    assert_same_function(weighted, f, repeated, homogeneous(repeated, drawn.X), drawn.gram(), 3 * scale_of(drawn))
    assert not np.isin(weighted.support_, np.flatnonzero(weight == 0)).any()
    # Copies and weights each stay in their own box.
    assert (np.abs(beta_of(weighted, len(drawn.y))) <= drawn.C * weight * (1 + 1e-12)).all()
    assert (np.abs(beta_of(repeated, len(rows))) <= drawn.C).all()


@given(problems(**TAME), st.sampled_from([0.5, 2.0, 7.0]), st.integers(0, 2**32 - 1))
def test_7_weights_and_C_are_one_product(drawn, t, seed):
    weight = np.random.default_rng(seed).uniform(0.2, 2.0, len(drawn.y))
    one = drawn.fit(sample_weight=weight)
    other = drawn.fit(sample_weight=t * weight, C=drawn.C / t)
    f = homogeneous(one, drawn.X)
    assert_same_function(one, f, other, homogeneous(other, drawn.X), drawn.gram(), 2 * scale_of(drawn))
    twice = drawn.fit(np.r_[drawn.X, drawn.X], np.r_[drawn.y, drawn.y], C=drawn.C / 2)
    once = drawn.fit()
    f = homogeneous(once, drawn.X)
    assert_same_function(once, f, twice, homogeneous(twice, drawn.X), drawn.gram(), 2 * scale_of(drawn))


@given(problems(**TAME), st.integers(0, 2**32 - 1))
def test_8_samples_that_do_not_support_change_nothing(drawn, seed):
    model = drawn.fit()
    f = homogeneous(model, drawn.X)
    rng = np.random.default_rng(seed)
    # A point repeated from the data, given the label it is predicted with a margin above 1, adds no loss.
    confident = np.flatnonzero(drawn.y * model.decision_function(drawn.X) > 1 + 1e-6)
    idle = np.setdiff1d(np.arange(len(drawn.y)), model.support_)
    assume(len(confident) or len(idle))
    if len(confident):
        i = rng.choice(confident)
        more = drawn.fit(np.r_[drawn.X, drawn.X[i : i + 1]], np.r_[drawn.y, drawn.y[i]])
        assert_same_function(model, f, more, homogeneous(more, drawn.X), drawn.gram(), scale_of(drawn))
    if len(idle) and len(set(drawn.y[np.arange(len(drawn.y)) != idle[0]])) == 2:
        keep = np.arange(len(drawn.y)) != idle[0]
        less = drawn.fit(drawn.X[keep], drawn.y[keep])
        # The model fitted on all data is a solution of the smaller problem, up to its own gap.
        assert_same_function(model, f, less, homogeneous(less, drawn.X), drawn.gram(), scale_of(drawn))


@given(problems(**TAME), st.floats(0.1, 2.0))
def test_9_monotone_and_concave_in_C(drawn, factor):
    Cs = [drawn.C, drawn.C * (1 + factor / 2), drawn.C * (1 + factor)]
    norms, slacks, values, gaps = [], [], [], []
    for C in Cs:
        model = drawn.fit(C=C)
        truth = truth_of(drawn, model, C=C)
        beta = beta_of(model, len(drawn.y))
        norms.append(beta @ truth.u)
        slacks.append(np.maximum(0, 1 - drawn.y * model.decision_function(drawn.X)).sum())
        values.append(truth.dual)
        gaps.append(truth.gap)
    # The exchange argument for ε-optimal solutions: both are monotone up to (gap₁ + gap₂)/(C₂ − C₁).
    noise = 1e-9 * (1 + max(map(abs, values))) + 1e-13 * scale_of(drawn) * len(drawn.y)
    for k in (0, 1):
        allowed = (gaps[k] + gaps[k + 1] + noise) / (Cs[k + 1] - Cs[k])
        assert slacks[k + 1] <= slacks[k] + allowed
        assert norms[k + 1] >= norms[k] - 2 * Cs[k + 1] * allowed
        assert values[k + 1] >= values[k] - gaps[k] - noise
    assert values[1] + gaps[1] + noise >= (values[0] + values[2]) / 2


@given(problems(C=(-1, 1)))
def test_11_the_kernel_it_used_is_one(drawn):
    assume(np.abs(drawn.X).max() < 1e4)
    model = drawn.fit(tol=1e-3)
    K = model.kernel_(drawn.X)
    expected = drawn.gram()
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(np.diag(K), model.kernel_.diag(drawn.X), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * np.trace(K)
    bound = np.outer(np.diag(K), np.diag(K))
    assert (bound * (1 + 1e-12) + 1e-300 >= K**2).all()
    if drawn.kernel in ("rbf", "laplacian"):
        np.testing.assert_array_equal(np.diag(K), 1.0)
    thin = model.kernel_(sparse.csr_matrix(drawn.X))
    np.testing.assert_allclose(thin, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    X32 = drawn.X.astype(np.float32)
    np.testing.assert_allclose(
        model.kernel_(X32), drawn.gram(X32.astype(np.float64)), rtol=1e-9, atol=1e-12 * np.abs(expected).max()
    )


@FEW
@given(problems())
def test_14_prediction_is_the_sign_and_rows_are_independent(drawn):
    model = drawn.fit(tol=1e-3)
    f = model.decision_function(drawn.X)
    predicted = model.predict(drawn.X)
    sure = f != 0
    np.testing.assert_array_equal(predicted[sure], np.where(f[sure] > 0, 1.0, -1.0))
    one_by_one = np.concatenate([model.decision_function(row[None]) for row in drawn.X])
    noise = noise_of(drawn, beta_of(model, len(drawn.y)))
    np.testing.assert_allclose(one_by_one, f, rtol=1e-9, atol=1e-12 + 100 * noise)


@FEW
@given(problems())
def test_14_fit_again_clone_and_pickle(drawn):
    model = drawn.fit(tol=1e-3)
    assume(model.stop_reason_ != "max_time")  # number 17's business
    f = model.decision_function(drawn.X)
    copies = [drawn.fit(tol=1e-3), pickle.loads(pickle.dumps(model))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copies += [clone(model).fit(drawn.X, drawn.y), model.fit(drawn.X, drawn.y)]
    for copy in copies:
        np.testing.assert_array_equal(copy.decision_function(drawn.X), f)
        np.testing.assert_array_equal(copy.support_, model.support_)
        np.testing.assert_array_equal(copy.dual_coef_, model.dual_coef_)


@FEW
@given(problems())
def test_15_number_of_threads(drawn):
    models = [drawn.fit(tol=1e-3, n_jobs=n) for n in (1, 2, 4)]
    assume(all(model.stop_reason_ != "max_time" for model in models))  # number 17's business
    for model in models[1:]:
        # Sums are split over outputs, never over the reduction, so threads cannot change a result.
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)
        np.testing.assert_array_equal(model.decision_function(drawn.X), models[0].decision_function(drawn.X))


@given(problems(), st.sampled_from([1e-3, 1e-8]), st.booleans())
def test_17_every_fit_ends_and_says_why(drawn, tol, as_csr):
    start = time.process_time()  # what other processes take is not the fit's
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mercer.SVC(C=drawn.C, kernel=drawn.kernel, tol=tol, max_time=PATIENCE, **drawn.numbers)
        model.fit(sparse.csr_matrix(drawn.X) if as_csr else drawn.X, drawn.y)
    assert time.process_time() - start < 2
    assert model.stop_reason_ in ("converged", "rounding floor", "max_iter", "max_time", "stalled")
    assert model.converged_ == (model.stop_reason_ == "converged")
    if not model.converged_:
        assert any(issubclass(w.category, ConvergenceWarning) for w in caught), model.stop_reason_
    assert np.isfinite(model.dual_coef_.data if sparse.issparse(model.dual_coef_) else model.dual_coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.certificate_.gap)


@pytest.mark.parametrize("scale", [1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_17_polynomials_of_unscaled_features_end(degree, scale):
    """Kernel values up to 1e30 leave few digits to the dual; the fit must notice that it has used them up."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(34, 3)) * [scale / 50, scale, 100], rng.integers(0, 2, 34)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mercer.SVC(C=2e-4, kernel="poly", degree=degree, gamma=0.1, coef0=1.0, max_time=PATIENCE).fit(X, y)
    assert time.process_time() - start < 2, model.stop_reason_
    assert model.stop_reason_ in ("converged", "rounding floor", "stalled")


def test_the_reference_itself_knows_no_bias():
    """A guard on the judge: dropping the equality can only raise the optimum's dual value."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    K = gram_matrix("rbf", X, gamma=0.5)
    tied, free = c_svc(y, 1.0), without_bias(c_svc(y, 1.0))
    values = [certificate(p, K, smo(p, K, tol=1e-8)[0]).dual for p in (tied, free)]
    assert values[1] > values[0]
