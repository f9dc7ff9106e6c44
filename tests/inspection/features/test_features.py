"""Explicit features: exact where they are exact, with the error they state elsewhere."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from contracts import scikit_learn_checks
from mercer import SVC, LinearSVC
from mercer.inspection.features import (
    GaussianSeries,
    Monomials,
    Nystrom,
    RandomFourier,
    mercer_expansion,
    mercer_integral,
)
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Sigmoid, Spectrum, rank_one

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(25, 2)), rng.normal(size=(10, 2))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("gamma", [0.2, 1.0])
def test_the_closed_form_for_a_gaussian_under_a_normal_law(sigma, gamma):
    """λ_j = √(2a/A) B^j with a = 1/4σ², c = √(a² + 2aγ), A = a + γ + c, B = γ/A (Rasmussen and Williams, 4.3.1)."""
    x, w = np.polynomial.hermite.hermgauss(150)
    found = mercer_expansion(
        math.sqrt(2) * sigma * x[:, None], kernel=Gaussian(gamma=gamma), n_terms=8, weights=w / math.sqrt(math.pi)
    )
    a = 1 / (4 * sigma**2)
    c = math.sqrt(a**2 + 2 * a * gamma)
    A = a + gamma + c
    expected = math.sqrt(2 * a / A) * (gamma / A) ** np.arange(8)
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-6)
    # The eigenfunctions are Hermite functions: the first is a multiple of exp(−(c − a)x²).
    points = np.linspace(-1, 1, 5)[:, None]
    first = found.functions(points)[:, 0]
    np.testing.assert_allclose(first / first[2], np.exp(-(c - a) * points[:, 0] ** 2), rtol=1e-7)
    assert found.rest == pytest.approx(1 - expected.sum(), abs=1e-8)


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.5), Matern(nu=1.5), Polynomial(2, 1.0, 1.0), Laplacian(gamma=0.3)], ids=repr
)
def test_expansions_on_samples(kernel):
    whole = mercer_expansion(X, kernel=kernel, n_terms=25)
    assert whole.error(X) < 1e-9 * np.abs(kernel(X)).max()
    functions = whole.functions(X)
    np.testing.assert_allclose(functions.T @ functions / 25, np.eye(len(whole.eigenvalues)), atol=1e-5)
    errors = [mercer_expansion(X, kernel=kernel, n_terms=terms).error(X) for terms in (1, 3, 25)]
    assert errors[0] > errors[1] > errors[2]
    some = mercer_expansion(X, kernel=kernel, n_terms=3)
    assert np.mean(kernel.diag(X) - some.values(X).diagonal()) == pytest.approx(some.rest, rel=1e-9)
    assert some.values(X, Z).shape == (25, 10)
    assert some.error(X, Z) == pytest.approx(np.abs(some.values(X, Z) - kernel(X, Z)).max())


def test_expansions_of_strings_and_what_has_none():
    words = ["ab", "ba", "aab", "bb"]
    assert mercer_expansion(words, kernel=Spectrum(1), n_terms=4).error(words) < 1e-12
    assert len(mercer_expansion(X, kernel=Linear(), n_terms=10).eigenvalues) == 2
    with pytest.raises(ValueError, match="Mercer's theorem does not hold"):
        mercer_expansion(X, kernel=Sigmoid(gamma=1.0, coef0=-1.0), n_terms=3)
    with pytest.raises(ValueError, match="a finite weight ≥ 0 for each of the 25"):
        mercer_expansion(X, kernel=Linear(), n_terms=3, weights=np.ones(3))


def test_mercers_condition_as_an_integral():
    x, w = np.polynomial.legendre.leggauss(30)
    points = x[:, None]
    for f in (np.ravel, lambda x: np.cos(5 * x[:, 0]), lambda x: np.sign(x[:, 0])):
        assert mercer_integral(points, f, kernel=Gaussian(gamma=2.0), weights=w) > 0
    # ∫∫ xz·x·z dx dz over [−1, 1]² = (2/3)²
    assert mercer_integral(points, np.ravel, kernel=Linear(), weights=w) == pytest.approx(4 / 9)
    assert mercer_integral(points, lambda x: np.ones(len(x)), kernel=Sigmoid(gamma=1.0, coef0=-1.0), weights=w) < 0


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        3 * Linear() ** 2,
        Polynomial(3, 0.5, 1.0),
        (Linear() + 2.0) ** 2,
        2 * Polynomial(2, 1.0, 0.5) + 1.5,
        Polynomial(0, 1.0, 1.0),
    ],
    ids=repr,
)
def test_monomials_are_exact(kernel, ordered):
    found = Monomials(kernel, ordered=ordered).fit(X)
    assert found.error(X) <= 1e-12 * np.abs(kernel(X)).max()


def test_the_number_of_monomials():
    for d, n in ((2, 2), (3, 2), (3, 4), (5, 3)):
        data = rng.normal(size=(4, n))
        count = Monomials(Polynomial(d, 1.0, 0.0)).fit_transform(data).shape[1]
        assert count == math.comb(d + n - 1, d)
        assert Monomials(Polynomial(d, 1.0, 0.0), ordered=True).fit_transform(data).shape[1] == n**d
    with pytest.raises(ValueError, match="too many to list"):
        Monomials(Polynomial(20, 1.0, 0.0)).fit(rng.normal(size=(3, 20)))
    with pytest.raises(ValueError, match="is no polynomial"):
        Monomials(Gaussian(gamma=1.0)).fit(X)
    with pytest.raises(ValueError, match="negative"):
        Monomials(Polynomial(2, 1.0, -1.0)).fit(X)


def test_the_series_of_a_gaussian():
    one = np.array([[-1.5], [0.0], [0.3], [2.0]])
    errors = [GaussianSeries(2.0 * Gaussian(gamma=0.7), n_terms=n).fit(one).error(one) for n in (1, 5, 20, 60)]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-13


def test_the_series_of_a_gaussian_of_several_features():
    """All monomials below a degree: Σ_j (2γ⟨x, z⟩)^j/j!, times the two lengths."""
    data = rng.normal(size=(6, 3))
    for terms in (1, 2, 5):
        found = GaussianSeries(1.5 * Gaussian(gamma=0.3), n_terms=terms).fit(data)
        F = found.transform(data)
        assert F.shape[1] == math.comb(3 + terms - 1, 3) == len(found.get_feature_names_out())
        damped = np.exp(-0.3 * np.sum(data**2, axis=1))
        series = sum((0.6 * data @ data.T) ** j / math.factorial(j) for j in range(terms))
        np.testing.assert_allclose(F @ F.T, 1.5 * damped[:, None] * series * damped, rtol=1e-12)
    assert GaussianSeries(Gaussian(gamma=0.1)).fit(data).transform(data).shape[1] <= 1000
    assert GaussianSeries(Gaussian(gamma=0.1)).fit(data[:, :1]).n_terms_ == 20
    with pytest.raises(ValueError, match="are too many"):
        GaussianSeries(Gaussian(gamma=0.1), n_terms=20).fit(rng.normal(size=(3, 20)))
    with pytest.raises(ValueError, match="has a matrix"):
        GaussianSeries(Gaussian(M=np.eye(2))).fit(X)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(3, 0.5, 1.0), 2 * Linear() ** 2 + 1.5, Polynomial(2, 1.0, 0.0)], ids=repr
)
def test_monomials_of_sparse_samples_are_sparse_and_the_same(kernel, ordered):
    thin = sp.random_array((12, 5), density=0.4, rng=3, format="csr")
    thin.data[0] = 0.0  # stored, and zero
    dense, sparse = Monomials(kernel, ordered=ordered).fit(thin.toarray()), Monomials(kernel, ordered=ordered).fit(thin)
    made = sparse.transform(thin)
    assert sp.issparse(made)
    np.testing.assert_allclose(made.toarray(), dense.transform(thin.toarray()), rtol=1e-14)
    assert made.nnz == np.count_nonzero(made.toarray())
    assert sparse.error(thin) <= 1e-12
    turned = sparse.transform(sp.csr_array(thin[:, ::-1])).toarray()
    np.testing.assert_allclose(turned, dense.transform(thin.toarray()[:, ::-1]), rtol=1e-14)


def test_monomials_of_many_sparse_features():
    """Two hundred million columns, of which a row has three."""
    wide = sp.csr_array(([1.0, 2.0, 3.0], ([0, 0, 1], [3, 19_999, 7])), shape=(2, 20_000))
    found = Monomials(Polynomial(2, 1.0, 0.0)).fit(wide)
    made = found.transform(wide)
    assert made.shape == (2, math.comb(20_001, 2))
    assert made.nnz == 4
    assert found.error(wide) == 0.0
    assert made.indices[2] == math.comb(20_001, 2) - 1  # the last feature, squared
    with pytest.raises(ValueError, match="too many to list"):
        Monomials(Polynomial(2, 1.0, 0.0)).fit(wide.toarray())
    with pytest.raises(ValueError, match="pass sparse samples"):
        found.transform(wide.toarray())


@pytest.mark.parametrize("landmarks", ["uniform", "leverage"])
@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.3), Matern(nu=1.5), Polynomial(2, 1.0, 1.0), Laplacian(gamma=0.5)], ids=repr
)
def test_nystrom(kernel, landmarks):
    data = rng.normal(size=(60, 2))
    K = kernel(data)
    for m in (5, 30, 60):
        found = Nystrom(kernel, m, landmarks).fit(data)
        F = found.transform(data)
        Z = found.indices_
        assert len(Z) == m
        np.testing.assert_array_equal(found.landmarks_, data[Z])
        # K_·Z K_ZZ⁺ K_Z·, by another way
        expected = K[:, Z] @ np.linalg.pinv(K[np.ix_(Z, Z)], rcond=1e-12, hermitian=True) @ K[Z]
        np.testing.assert_allclose(F @ F.T, expected, atol=1e-4 * K.max())  # its rounding, not ours
        np.testing.assert_allclose((F @ F.T)[Z], K[Z], atol=1e-6 * K.max())  # exact where one is a landmark
        assert np.linalg.eigvalsh(K - F @ F.T)[0] > -1e-6 * K.max()  # never too much
        assert found.error(data) == pytest.approx(np.abs(F @ F.T - K).max())
        assert F.shape[1] == len(found.eigenvalues_) == len(found.get_feature_names_out())
    assert found.error(data) < 1e-6 * K.max()


def test_nystrom_takes_sparse_samples_and_says_what_it_cannot_do():
    thin = sp.random_array((30, 8), density=0.3, rng=1, format="csr")
    sparse, dense = Nystrom(Gaussian(gamma=0.5), 10).fit(thin), Nystrom(Gaussian(gamma=0.5), 10).fit(thin.toarray())
    np.testing.assert_array_equal(sparse.indices_, dense.indices_)
    np.testing.assert_allclose(sparse.error(thin), dense.error(thin.toarray()), rtol=1e-8)
    with pytest.raises(ValueError, match="is not positive definite"):
        Nystrom(Sigmoid(gamma=1.0, coef0=-1.0)).fit(X)
    with pytest.raises(ValueError, match="not a kernel of vectors"):
        Nystrom(Spectrum(2)).fit(X)
    zero = Nystrom(Linear()).fit(np.zeros((4, 2)))
    np.testing.assert_array_equal(zero.transform(np.zeros((2, 2))), np.zeros((2, 1)))


@pytest.mark.parametrize("n", [1, 3, 401])
def test_odd_numbers_of_random_features_are_unbiased(n):
    kernel, few = Gaussian(gamma=0.3), X[:4]
    drawn = (RandomFourier(kernel, n, False, seed).fit_transform(few) for seed in range(200 if n == 1 else 60))
    means = np.mean([F @ F.T for F in drawn], axis=0)
    assert np.abs(means - kernel(few)).max() < 0.3
    assert RandomFourier(kernel, n).fit_transform(few).shape == (4, n)


def test_sparse_random_features():
    thin = sp.random_array((9, 6), density=0.4, rng=2, format="csr")
    found = RandomFourier(Gaussian(gamma=0.5)).fit(thin)
    np.testing.assert_allclose(found.transform(thin), found.transform(thin.toarray()), rtol=1e-12)


def test_the_kernel_of_one_function():
    kernel = rank_one(lambda X: X[:, 0] ** 2)
    np.testing.assert_allclose(kernel(X, Z), np.outer(X[:, 0] ** 2, Z[:, 0] ** 2))
    np.testing.assert_allclose(kernel.diag(X), X[:, 0] ** 4)
    assert kernel.positive_definite == "yes"
    assert np.linalg.matrix_rank(kernel(X)) == 1
    both = 2 * kernel + Gaussian(gamma=1.0)
    np.testing.assert_allclose(both(X), 2 * kernel(X) + Gaussian(gamma=1.0)(X))
    assert rank_one(lambda words: [len(w) for w in words], accepts="sequences")(["ab", "a"]).tolist() == [
        [4, 2],
        [2, 1],
    ]
    with pytest.raises(ValueError, match="one finite number per sample"):
        rank_one(lambda X: X)(X)
    with pytest.raises(TypeError, match="must be a function"):
        rank_one(3)


@scikit_learn_checks.of_each([Monomials((Linear() + 1.0) ** 2), GaussianSeries(), RandomFourier(), Nystrom()])
def test_scikit_learns_checks(estimator):
    scikit_learn_checks.hold(estimator)


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.3), 2.0 * Gaussian(M=np.array([[1.0, 0.3], [0.3, 0.5]]))], ids=repr
)
def test_random_fourier_features(kernel, orthogonal):
    few, many = (
        np.mean([RandomFourier(kernel, n, orthogonal, seed).fit(X).error(X) for seed in range(5)]) for n in (50, 5000)
    )
    assert many < 0.25 * few  # about 1/10
    assert many < 0.1
    features = RandomFourier(kernel, 400, orthogonal).fit_transform(X)
    np.testing.assert_allclose(np.sum(features**2, axis=1), kernel.diag(X), rtol=1e-12)


def test_orthogonal_features_are_better():
    data = rng.normal(size=(40, 6))
    errors = [
        np.mean([RandomFourier(Gaussian(gamma=0.1), 120, way, seed).fit(data).error(data) for seed in range(20)])
        for way in (True, False)
    ]
    assert errors[0] < errors[1]


def test_a_linear_machine_on_features_is_the_kernel_machine():
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    kernel = Polynomial(2, 1.0, 1.0)
    linear = make_pipeline(Monomials(kernel), LinearSVC(loss="hinge", tol=1e-9)).fit(X, y)
    machine = SVC(kernel=kernel, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(linear.decision_function(Z), machine.decision_function(Z), rtol=1e-5, atol=1e-6)


def test_plain_monomials_have_no_weights():
    """(1, x, …, x^k) of one feature, and x^a of several, named as they are."""
    x = np.linspace(-2, 2, 9)[:, None]
    plain = Monomials((Linear() + 1) ** 4, weighted=False).fit(x)
    columns = dict(zip(plain.get_feature_names_out(), plain.transform(x).T, strict=True))
    assert set(columns) == {"1", "x0", "x0^2", "x0^3", "x0^4"}
    for k, name in enumerate(["1", "x0", "x0^2", "x0^3", "x0^4"]):
        assert columns[name] == pytest.approx(x[:, 0] ** k)
    Z = np.random.default_rng(0).normal(size=(6, 2))
    for samples in (Z, sp.csr_array(Z)):
        model = Monomials(Polynomial(degree=2, gamma=3.0, coef0=5.0), weighted=False).fit(samples)
        values = model.transform(samples)
        values = values.toarray() if sp.issparse(values) else values
        a, b = Z.T
        assert model.get_feature_names_out(["a", "b"]).tolist() == ["a^2", "a b", "a", "b^2", "b", "1"]
        assert values == pytest.approx(np.column_stack([a * a, a * b, a, b * b, b, np.ones(6)]))
    once = Monomials(3 * (Linear() + 1) ** 2 + 7, weighted=False).fit(Z)  # 1 is one monomial, not two
    assert once.get_feature_names_out(["a", "b"]).tolist() == ["a^2", "a b", "a", "b^2", "b", "1"]
    assert once.transform(Z) == pytest.approx(np.column_stack([a * a, a * b, a, b * b, b, np.ones(6)]))
    homogeneous = Monomials(Linear() ** 2 + 7, weighted=False).fit(Z)
    assert homogeneous.transform(Z) == pytest.approx(np.column_stack([a * a, a * b, b * b, np.ones(6)]))


def test_names_of_monomials():
    model = Monomials(2 * Polynomial(degree=2, gamma=1.0, coef0=0.0) + 1).fit(np.ones((2, 3)))
    assert model.get_feature_names_out().tolist() == ["x0^2", "x0 x1", "x0 x2", "x1^2", "x1 x2", "x2^2", "1"]
    ordered = Monomials(Linear() ** 2, ordered=True).fit(np.ones((2, 2)))
    assert ordered.get_feature_names_out().tolist() == ["x0^2", "x0 x1", "x1 x0", "x1^2"]
    with pytest.raises(ValueError, match="input_features"):
        model.get_feature_names_out(["a", "b"])
