"""Bounds on rounding hold against sums in extended precision, and say something on clean data."""

import inspect
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special

from contracts.named import named
from mercer import kernels
from mercer.kernels import (
    ANOVA,
    Bessel,
    Categorical,
    Chi2,
    Cosine,
    FromFunction,
    Gaussian,
    Gower,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spline,
    Tanimoto,
)
from mercer.places import gram_for
from mercer.places.choose import rows_for
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.pair_place import Layout
from mercer.places.host.prepared import PreparedSamples
from mercer.places.host.source import value_error
from mercer.places.rounding import Rounding, WeightedSumBound

WIDE = np.longdouble
pytestmark = pytest.mark.skipif(np.finfo(WIDE).eps > 1e-18, reason="needs an extended precision")

N, D = 60, 7


def unit(X):
    lengths = np.sqrt((X * X).sum(axis=1, keepdims=True))
    return X / np.where(lengths > 0, lengths, 1)


def anova(factors):
    """Sums over pairs of columns."""
    return sum(factors[..., a] * factors[..., b] for a in range(D) for b in range(a))


def spline(x, z):
    m, larger = np.minimum(abs(x), abs(z)) * (x * z > 0), np.maximum(abs(x), abs(z))
    return np.prod(1 + x * z + m * m * (3 * larger - m) / 6, axis=2)


def gower(u, categorical, gamma):
    apart = abs(u)
    apart[..., categorical] = apart[..., categorical] > 0
    return np.exp(-gamma * apart.mean(axis=2))


def sinc(t):
    return np.where(t > 0, np.sin(t) / np.where(t > 0, t, 1), 1)


def j0(t):
    """J_0 at an argument in extended precision, from its derivative −J_1 at the rounded one."""
    near = t.astype(float)
    return special.j0(near).astype(WIDE) - special.j1(near) * (t - near)


def chi2(x, z):
    total = x + z
    return (np.where(total > 0, (x - z) ** 2, 0) / np.where(total > 0, total, 1)).sum(axis=2)


def tanimoto(G):
    either = G.diagonal()[:, None] + G.diagonal() - G
    return np.where(either > 0, G / np.where(either > 0, either, 1), 1)


def squares(X):
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


# The formulas of the kernels, in extended precision.
TRUTHS = {
    "gaussian": (Gaussian(gamma=0.3), lambda X: np.exp(-WIDE(0.3) * squares(X))),
    "scaled": (2.5 * Gaussian(gamma=0.3) + 1.5, lambda X: WIDE(2.5) * np.exp(-WIDE(0.3) * squares(X)) + WIDE(1.5)),
    "laplacian": (
        Laplacian(gamma=0.3),
        lambda X: np.exp(-WIDE(0.3) * np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2)),
    ),
    "linear": (Linear(), lambda X: X @ X.T),
    "polynomial": (Polynomial(degree=3, gamma=0.5, coef0=1.0), lambda X: (WIDE(0.5) * (X @ X.T) + 1) ** 3),
    "sigmoid": (Sigmoid(gamma=0.2, coef0=-0.5), lambda X: np.tanh(WIDE(0.2) * (X @ X.T) - WIDE(0.5))),
    "cosine": (Cosine(), lambda X: unit(X) @ unit(X).T),
    "matern": (Matern(length_scale=2.0, nu=0.5), lambda X: np.exp(-np.sqrt(squares(X)) / 2)),
    "rational quadratic": (RationalQuadratic(0.7, 2.0), lambda X: (1 + squares(X) / (8 * WIDE(0.7))) ** -WIDE(0.7)),
    "chi2": (Chi2(0.3).of(np.abs), lambda X: np.exp(-WIDE(0.3) * chi2(abs(X)[:, None, :], abs(X)[None, :, :]))),
    "tanimoto": (Tanimoto(), lambda X: tanimoto(X @ X.T)),
    "categorical": (Categorical().of(np.round), lambda X: (np.round(X)[:, None, :] == np.round(X)).mean(axis=2)),
    "anova": (ANOVA(order=2, gamma=0.3), lambda X: anova(np.exp(-WIDE(0.3) * (X[:, None, :] - X[None, :, :]) ** 2))),
    "spline": (Spline(), lambda X: spline(X[:, None, :], X[None, :, :])),
    "intersection": (Intersection().of(np.abs), lambda X: np.minimum(abs(X)[:, None, :], abs(X)[None]).sum(axis=2)),
    "gower": (Gower([1, 2], 0.7), lambda X: gower(X[:, None, :] - X[None, :, :], [1, 2], WIDE(0.7))),
    "bessel": (Bessel(order=0.5, sigma=3.0), lambda X: sinc(3 * np.sqrt(squares(X)))),
    "oscillating": (Bessel(order=0.0, sigma=3.0).on([0, 1]), lambda X: j0(3 * np.sqrt(squares(X[:, :2])))),
    "columns": (
        Gaussian(gamma=0.3).on([0, 2]) * Linear().on([1]) + Linear().on([3, 4]) ** 2,
        lambda X: (
            np.exp(-WIDE(0.3) * squares(X[:, [0, 2]])) * np.outer(X[:, 1], X[:, 1]) + (X[:, 3:5] @ X[:, 3:5].T) ** 2
        ),
    ),
}


def test_no_kernel_is_left_out():
    def within(kernel):
        yield type(kernel)
        for value in kernel.get_params(deep=False).values():
            if isinstance(value, kernels.Kernel):
                yield from within(value)

    covered = {kind for kernel, _ in TRUTHS.values() for kind in within(kernel)}
    every = [getattr(kernels, name) for name in kernels.__all__]
    classes = [kind for kind in every if inspect.isclass(kind) and issubclass(kind, kernels.Kernel)]
    # A kernel that is made of others, or of a function, has a parameter without a default.
    simple = [
        kind for kind in classes if all(p.default is not p.empty for p in inspect.signature(kind).parameters.values())
    ]
    missing = {kind for kind in simple if kind().accepts == "vectors"} - covered - {kernels.Kernel}
    assert not missing, (
        f"{missing} need a formula in TRUTHS of this file: certificates rest on their n_terms, n_factors"
    )


SHIFTS = {
    "clean": lambda X: X,
    "clusters": lambda X: X + 1e7 * (np.arange(len(X)) % 2)[:, None],
    "far clusters": lambda X: X + 1e11 * (np.arange(len(X)) % 3)[:, None],
    "outlier": lambda X: np.vstack([X[:-1], X[-1:] + 1e12]),
    "offset": lambda X: X + 1e6,
    "time stamps": lambda X: np.c_[np.where(np.arange(len(X)) < 3, 0.0, 1.7e9 + 100 * X[:, 0]), X[:, 1:]],
    "tiny": lambda X: 1e-12 * X,
}


def data(family, sparse, dtype):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    if sparse:
        X[rng.random(X.shape) < 0.5] = 0.0
    X = SHIFTS[family](X).astype(dtype)
    return (sp.csr_array(X) if sparse else X), X.astype(WIDE), rng.normal(size=N) * 10.0 ** rng.uniform(-2, 3, N)


@pytest.mark.parametrize("name", TRUTHS)
def test_no_row_errs_by_more_than_its_bound(name):
    for family, sparse, dtype in product(SHIFTS, [False, True], [np.float32, np.float64]):
        with named(family, sparse, dtype):
            check_rows(name, *data(family, sparse, dtype))


@pytest.mark.parametrize("apart", [10.0, 100.0, 1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "scaled", "laplacian"])
def test_norms_that_lose_some_digits_but_not_all(name, sparse, apart):
    """From norms, an exponent loses the more, the farther its row is from the centre: the bound is not 0, nor all."""
    rows = (np.arange(N) % 2)[:, None] * np.ones(D)
    _, exact, beta = data("clean", sparse, np.float64)
    X = np.asarray(exact + apart * rows, dtype=float)
    check_rows(name, sp.csr_array(X) if sparse else X, X.astype(WIDE), beta)


def holds(kernel, X, precision):
    """Whether the core computes the kernel in this precision."""
    prepared = PreparedSamples.of(kernel, X, 1)
    return prepared is not None and prepared.all_samples(precision) is not None


def check_rows(name, X, exact, beta):
    kernel, formula = TRUTHS[name]
    gram, true = gram_for(kernel, X), formula(exact) @ beta.astype(WIDE)
    own = np.abs(np.asarray(formula(exact), dtype=float)) @ np.abs(beta) * 64 * float(np.finfo(WIDE).eps)  # the truth's
    levels = {np.float64, *gram.levels} | ({np.float32} if holds(kernel, X, np.float32) else set())
    for level in levels:
        u, error = gram.product_bound(beta, level=level)
        assert not (np.abs(u - true) > error + own).any(), level
        assert np.isinf(error[np.isnan(u)]).all()  # overflow claims nothing
        rows = np.arange(3, 40, 5)
        np.testing.assert_array_equal(gram.product_bound(beta, rows, level).error, error[rows])


@pytest.mark.parametrize("name", TRUTHS)
def test_bounds_are_small_on_clean_data(name):
    kernel, formula = TRUTHS[name]
    X, exact, beta = data("clean", False, np.float64)
    gram = gram_for(kernel, X)
    size = float((np.abs(formula(exact)) @ np.abs(beta)).max())
    assert gram.errors(beta).max() <= (1e-12 if kernel.recipe() is not None else 1e-8) * size
    if holds(kernel, X, np.float32):
        assert gram.errors(beta, level=np.float32).max() <= 1e-4 * size
        pairs = gram.pairs(Layout.of([np.arange(N // 2), np.arange(N // 2, N)], np.array([[0, 1]])), 1)
        assert pairs is None or (pairs.row_errors * np.abs(beta).sum() >= (1 - 1e-9) * gram.errors(beta)).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "scaled"])
def test_the_sum_beside_makes_float32_bounds_smaller(name, sparse):
    kernel = TRUTHS[name][0]
    X, _, beta = data("clean", sparse, np.float64)
    gram = gram_for(kernel, X)
    u, error = gram.product_bound(beta, level=np.float32)
    assert np.median(gram.errors(beta, level=np.float32) / error) > 2.5
    assert error.max() > 0
    np.testing.assert_array_equal(u, gram.product(beta, dtype=np.float32))


@pytest.mark.parametrize("family", ["clean", "clusters", "outlier"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "scaled", "polynomial"])
def test_values_used_twice_give_the_same_bounded_product(monkeypatch, name, sparse, family):
    """Between free rows each value serves a row and a column."""
    monkeypatch.setattr("mercer.places.host.square_sums.SQUARE_ROWS", 8)
    kernel, formula = TRUTHS[name]
    X, exact, beta = data(family, sparse, np.float64)
    beta[::7] = 0.0
    rows = np.setdiff1d(np.arange(N), np.arange(0, N, 5))
    true = (formula(exact) @ beta.astype(WIDE))[rows]
    gram = gram_for(kernel, X)
    monkeypatch.setattr(KernelMatrix, "_use_symmetry", lambda *_: True)
    u, error = gram.product_bound(beta, rows)
    evaluated = gram.evaluations
    own = np.abs(np.asarray(formula(exact), dtype=float)[rows]) @ np.abs(beta) * 64 * float(np.finfo(WIDE).eps)
    assert (np.abs(u - true) <= error + own).all()
    assert evaluated < 0.8 * len(rows) * np.count_nonzero(beta)


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.2), Gaussian(gamma=0.2) + 0.5, Laplacian(gamma=0.1)])
def test_dense_values_between_rows_with_coefficients_are_computed_once(kernel):
    """Stripes of 192 columns, the last of them short, whatever the number of threads."""
    rng = np.random.default_rng(0)
    X, beta = rng.normal(size=(3300, 3)), rng.normal(size=3300)
    beta[::9] = 0.0
    rows = np.setdiff1d(np.arange(3300), np.arange(0, 3300, 50))
    true = np.concatenate([kernel(X[part], X).astype(WIDE) @ beta.astype(WIDE) for part in np.array_split(rows, 10)])
    products = []
    for n_threads in (1, 2):
        gram = gram_for(kernel, X, n_threads=n_threads)
        products.append(gram.product_bound(beta, rows))
        assert gram.evaluations < 0.6 * len(rows) * np.count_nonzero(beta)
    (u, error), (other, _) = products
    np.testing.assert_array_equal(u, other)
    assert (np.abs(u - true) <= error + 1e-15 * np.abs(beta).sum()).all()
    assert error.max() < 1e-12 * np.abs(beta).sum()


@pytest.mark.parametrize("family", ["clusters", "far clusters", "outlier", "time stamps"])
@pytest.mark.parametrize("name", ["gaussian", "scaled", "laplacian", "matern"])
def test_float64_values_do_not_cancel(name, family):
    """Blocks, the whole matrix and squares of it are the kernel's own values."""
    kernel, formula = TRUTHS[name]
    X, exact, _ = data(family, False, np.float64)
    K, gram, everything = np.asarray(formula(exact), dtype=float), gram_for(kernel, X), np.arange(N)
    np.testing.assert_allclose(gram.full(), K, atol=1e-11)
    np.testing.assert_allclose(gram.block(everything, everything), K, atol=1e-11)


def test_sums_in_twice_the_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) + 1e9
    c = rng.normal(size=50)
    c -= c.mean()
    for rows in (rows_for(X, 1), rows_for(sp.csr_array(X), 2)):
        hi, lo, _ = rows.combination(c)
        true = X.astype(WIDE).T @ c.astype(WIDE)
        np.testing.assert_allclose(np.asarray(hi.astype(WIDE) + lo - true, dtype=float), 0, atol=1e-9)
        u, error = rows.gram_product(c)
        exact = [sum(Fraction(a) * Fraction(x) for a, x in zip(c, X[:, k], strict=True)) for k in range(4)]
        for i in range(0, 50, 7):
            truth = sum(Fraction(X[i, k]) * exact[k] for k in range(4))
            assert abs(Fraction(u[i]) - truth) <= Fraction(error[i])
        assert error.max() <= 1e-15 * np.abs(u).max() + 1e-9


@pytest.mark.parametrize(("level", "sparse"), [(np.float64, False), ("exact", True)])
def test_a_row_whose_exponent_is_lost_claims_nothing(level, sparse):
    """k and what is computed for it both lie between 0 and 1."""
    rounding = Rounding(Gaussian(gamma=1.0).recipe(), terms=3, sparse=sparse)
    error = rounding.errors(np.array([1.0, 1e30]), np.array([1.0]), np.array([2.0]), level)
    assert error[0] < 1e-13
    assert 2.0 <= error[1] < 2.001


def test_a_float32_sum_of_lost_exponents_may_round_up():
    """Terms a little above 2⁻²⁴ are added to 1 as 2⁻²³, where all k may be 0."""
    beta, rounding = np.array([1.0, *[1.01 * 2.0**-24] * 8]), Rounding(Gaussian(gamma=1.0).recipe(), 3, sparse=False)
    total = np.float32(0.0)
    for term in beta.astype(np.float32):
        total += term
    beside = WeightedSumBound(rounding, np.ones(9), beta)
    assert beside.errors(np.array([1e30]), np.array([1e30]), 3)[0] >= total


def test_the_sums_that_norms_are_count_in_float64():
    """Entries just above half an ulp of the sum are rounded up in norms and down in the product, one after another."""
    d, gamma = 800, 1 / (2 * np.log2(np.e))
    X = np.full((8, d), np.sqrt(0.5000001 * np.spacing(8.001**2)))
    X[:, 0] = 8.001
    X[1::2, 1:] *= -1
    X = np.vstack([X, -X])  # the mean is zero
    beta = np.zeros(16)
    beta[1] = 1.0
    gram, exact = gram_for(Gaussian(gamma=gamma), X), X.astype(WIDE)
    u, error = gram.product_bound(beta, level=np.float64)
    true = np.exp(-WIDE(gamma) * ((exact - exact[1]) ** 2).sum(axis=1))
    assert not (np.abs(u - true) > error).any()


@pytest.mark.parametrize("what", ["coefficients", "scale", "features", "gamma"])
@pytest.mark.parametrize("name", ["gaussian", "linear", "polynomial", "sigmoid"])
def test_numbers_beyond_the_range_of_float32(name, what):
    """Coefficients, factors and features that float32 holds as zero, as few digits or not at all."""
    for size, level in product([1e-50, 1e-42, 1e-38, 1e30, 1e38, 1e45], [np.float32, np.float64]):
        with named(size, level):
            check_numbers_beyond(name, what, size, level)


def check_numbers_beyond(name, what, size, level):
    X, exact, beta = data("clean", False, np.float64)
    kernel, formula = TRUTHS[name]
    factor = WIDE(1)
    if what == "coefficients":
        beta = size * beta
    elif what == "scale":
        kernel, factor = size * kernel, WIDE(size)
    elif what == "features":
        X, exact = size * X, (size * X).astype(WIDE)
    elif name == "sigmoid":
        X = X / np.sqrt(size)
        exact = X.astype(WIDE)
        kernel, formula = Sigmoid(gamma=size, coef0=-0.5), lambda Z: np.tanh(WIDE(size) * (Z @ Z.T) - WIDE(0.5))
    elif name == "polynomial":
        X = X / np.sqrt(size)
        exact = X.astype(WIDE)
        kernel, formula = Polynomial(2, size, 1.0), lambda Z: (WIDE(size) * (Z @ Z.T) + 1) ** 2
    gram, K = gram_for(kernel, X), factor * formula(exact)
    if not holds(kernel, X, level):
        return
    gram.full(np.float32)  # the norms that bounds use may come from here
    u, error = gram.product_bound(beta, level=level)
    own = 64 * np.finfo(WIDE).eps * (np.abs(K) @ np.abs(beta.astype(WIDE)))
    assert not (np.abs(u - K @ beta.astype(WIDE)) > error + own).any()
    assert np.isinf(error[~np.isfinite(u)]).all()


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6])
def test_a_nearly_singular_metric_is_known_to_few_digits(noise):
    """Features that nearly repeat one another make a factor of Cholesky whose products cancel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    X[:, 1] = X[:, 0] + noise * rng.normal(size=N)
    M = 0.5 * np.array([[1 / noise**2 + 1, -1 / noise**2, 0], [-1 / noise**2, 1 / noise**2, 0], [0, 0, 1]])
    differences, beta = X.astype(WIDE)[:, None] - X.astype(WIDE), rng.normal(size=N)
    K = np.exp(-np.einsum("ijk,kl,ijl->ij", differences, M.astype(WIDE), differences))
    for kernel, truth in ((Gaussian(M=M), K), (Gaussian(M=M) + Linear(), K + X.astype(WIDE) @ X.T.astype(WIDE))):
        gram = gram_for(kernel, X)
        for level in gram.levels:
            u, error = gram.product_bound(beta, level=level)
            assert not (np.abs(u - truth @ beta.astype(WIDE)) > error).any()
    assert gram_for(Gaussian(M=M), X).errors(beta).max() <= 1.0001 * np.abs(beta).sum()


def test_a_short_row_counts_what_the_factor_of_a_metric_rounds_in_long_ones():
    """Rows near the null direction of M are long before their terms cancel, and not far from the row at the centre."""
    rng, noise = np.random.default_rng(0), 0.02
    X = rng.uniform(-0.7, 0.7, (N, 3))
    X[:, 1] = X[:, 0] + noise * rng.normal(size=N)
    X = np.vstack([X, -X, np.zeros((1, 3))])
    M = 0.5 * np.array([[1 / noise**2 + 0.05, -1 / noise**2, 0], [-1 / noise**2, 1 / noise**2, 0], [0, 0, 1]])
    differences = X.astype(WIDE)[:, None] - X.astype(WIDE)
    K = np.exp(-np.einsum("ijk,kl,ijl->ij", differences, M.astype(WIDE), differences))
    u, error = gram_for(Gaussian(M=M), X).product_bound(np.eye(len(X)), level=np.float64)
    assert not (np.abs(u - K) > error).any()


@pytest.mark.parametrize("given", [True, False])
def test_sums_of_large_values_beside_a_small_diagonal(given):
    """−‖x − z‖² has a diagonal of zeros, which says nothing of its values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) + 1e6 * (np.arange(N) % 2)[:, None]

    def values(A, B):
        return -((A[:, None] - B) ** 2).sum(axis=2)

    kernel, K, beta = FromFunction(values), values(X, X), rng.normal(size=N)
    gram = gram_for(Precomputed(), K) if given else gram_for(kernel, X)
    u, error = gram.product_bound(beta)
    assert not (np.abs(u - K.astype(WIDE) @ beta.astype(WIDE)) > error).any()


@pytest.mark.parametrize(("degree", "coef0", "power"), [(3, 0.0, -109), (3, 1.0, -150), (5, 0.3, -148), (12, 1.0, -30)])
def test_polynomials_of_rows_whose_lengths_have_no_such_power(degree, coef0, power):
    """γ‖x‖‖z‖ is of ordinary size, but ‖z‖^degree is 0 in float64: the largest term of the bound was missing."""
    rng = np.random.default_rng(0)
    X, beta = rng.normal(size=(40, 4)), rng.normal(size=40)
    kernel = Polynomial(degree=degree, gamma=10.0 ** (-2 * power), coef0=coef0)
    small = X * 10.0**power
    u, error = gram_for(kernel, small).product_bound(beta)
    wide = small.astype(WIDE)
    true = (WIDE(kernel.gamma) * (wide @ wide.T) + WIDE(coef0)) ** degree @ beta.astype(WIDE)
    assert (np.abs(u - true) <= error).all()
    plain = gram_for(Polynomial(degree=degree, gamma=1.0, coef0=coef0), X).errors(beta)
    np.testing.assert_allclose(error, plain, rtol=1e-6)


@pytest.mark.parametrize("exponent", [3, 10**7])
def test_a_power_has_the_errors_of_all_its_factors(exponent):
    rng = np.random.default_rng(0)
    X, beta = 1.0 + 1e-5 * rng.random((30, 3)), rng.normal(size=30)
    u, error = gram_for(Tanimoto() ** exponent, X).product_bound(beta)
    wide = X.astype(WIDE)
    inner, squares_of = wide @ wide.T, (wide * wide).sum(axis=1)
    true = (inner / (squares_of[:, None] + squares_of - inner)) ** exponent @ beta.astype(WIDE)
    assert (np.abs(u - true) <= error).all()
    assert error.max() <= 1e-2 * np.abs(beta).sum()


@pytest.mark.parametrize("scale", [1.0, 3e-3])
def test_an_exponential_has_the_error_of_its_exponent_times_its_size(scale):
    """exp(scale (xz)⁵⁰⁰⁰) in decimals: the roundings of 5,000 factors, which exp multiplies by up to 690."""
    kernel, degree = (scale * Polynomial(degree=5000, gamma=1.0, coef0=0.0)).exp(), 5000
    X = np.linspace(1.0, (690 / scale) ** (0.5 / degree), 9)[:, None]
    K, root = kernel(X), np.sqrt(kernel.diag(X))
    with localcontext() as context:
        context.prec = 60
        x = [Decimal(value) for value in X[:, 0].tolist()]
        off = [
            [float(abs(Decimal(float(K[i, j])) - (Decimal(scale) * (x[i] * x[j]) ** degree).exp())) for j in range(9)]
            for i in range(9)
        ]
    shares = np.array(off) / np.outer(root, root)
    assert (shares <= value_error(kernel, X)).all()
    assert shares.max() > 4.3e5 * 2.0**-53  # what 5,000 factors have without the exponential


def one_after_another(term, count, dtype):
    """The sum of `count` equal terms, each rounded once when it is added, and the exact sum."""
    total = dtype(0)
    for _ in range(count):
        total = dtype(WIDE(total) + WIDE(term))
    return WIDE(total), WIDE(term) * count


def test_long_float32_sums_are_split_as_their_bounds_say():
    """Equal terms whose additions all round the same way: one sum over all features would leave the bound."""
    d, c = 16384, np.float32(1.3950917)
    X = np.full((40, d), c)
    beta = np.zeros(40)
    beta[0] = 1.0
    u, error = gram_for(Linear(), X).product_bound(beta, level=np.float32)
    whole, true = one_after_another(WIDE(c) ** 2, d, np.float32)
    assert not (np.abs(u - true) > error).any()
    assert abs(whole - true) > 2 * error[0]
