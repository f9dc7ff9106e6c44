"""The closure rules as equalities, what they refuse, and composites as scikit-learn sees them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer.kernels import FromFunction, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, Spectrum
from mercer.kernels.algebra import Exponential, Power, Scaled, Shifted, Sum

rng = np.random.default_rng(3)
X = rng.normal(size=(12, 3))
Z = rng.normal(size=(7, 3))
k1, k2 = Gaussian(gamma=0.4), Polynomial(degree=2, gamma=0.5, coef0=1.0)


def length(A):
    return 1.0 + np.sqrt(np.asarray((A**2).sum(axis=1)))


def square(A):
    return np.hstack([A, A**2])


CLOSURES = [
    (2.5 * k1, lambda a, b: 2.5 * k1(a, b)),
    (k1 * 2, lambda a, b: 2 * k1(a, b)),
    (k1 + k2, lambda a, b: k1(a, b) + k2(a, b)),
    (k1 * k2, lambda a, b: k1(a, b) * k2(a, b)),
    (k2 + 0.7, lambda a, b: k2(a, b) + 0.7),
    (0.7 + k2, lambda a, b: k2(a, b) + 0.7),
    (k2**5, lambda a, b: k2(a, b) ** 5),
    (k2**1, k2),
    (k1.exp(), lambda a, b: np.exp(k1(a, b))),
    (k2.normalised(), lambda a, b: k2(a, b) / np.sqrt(np.outer(k2.diag(a), k2.diag(b)))),
    (k1.scaled_by(length), lambda a, b: length(a)[:, None] * k1(a, b) * length(b)),
    (k1.of(square), lambda a, b: k1(square(a), square(b))),
    (2 * k1 + Linear() ** 2, lambda a, b: 2 * k1(a, b) + (a @ b.T) ** 2),
    (sum([k1, k2, k1]), lambda a, b: 2 * k1(a, b) + k2(a, b)),
]


@pytest.mark.parametrize(("kernel", "formula"), CLOSURES, ids=lambda case: repr(case) if hasattr(case, "diag") else "")
def test_closure_rules(kernel, formula):
    np.testing.assert_allclose(kernel(X, Z), formula(X, Z), rtol=1e-12)
    np.testing.assert_allclose(kernel(X), formula(X, X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), formula(X, X).diagonal(), rtol=1e-12)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-10 * np.trace(kernel(X))


def test_closure_rules_of_a_linear_kernel_are_explicit_feature_maps():
    def monomials(A):
        a, b, c = A.T
        r = np.sqrt(2)
        return np.stack([a * a, b * b, c * c, r * a * b, r * a * c, r * b * c], axis=1)

    np.testing.assert_allclose((Linear() ** 2)(X, Z), monomials(X) @ monomials(Z).T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((Linear().exp())(X, Z), np.exp(X @ Z.T), rtol=1e-12)
    # exp of a linear kernel, normalised, is the Gaussian
    np.testing.assert_allclose(Linear().exp().normalised()(X, Z), Gaussian(gamma=0.5)(X, Z), rtol=1e-12)


def test_normalised_has_an_exact_unit_diagonal():
    np.testing.assert_array_equal((3 * k2).normalised()(X).diagonal(), 1.0)
    np.testing.assert_array_equal(k2.normalised().diag(X), 1.0)


@pytest.mark.parametrize("given", [np.vstack([X, np.zeros(3)]), sp.csr_matrix(np.vstack([X, np.zeros(3)]))])
def test_normalised_needs_a_positive_diagonal(given):
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0 for sample 12.*add a constant"):
        Linear().normalised()(given)
    with pytest.raises(ValueError, match="cannot be normalised"):
        Linear().normalised()(X, given)
    with pytest.raises(ValueError, match="must be > 0"):
        Sigmoid(gamma=1.0, coef0=-50.0).normalised().diag(X)


@pytest.mark.parametrize("factor", [-1, -0.5, 0, 0.0, np.nan, np.inf, -np.inf])
def test_factors_that_are_refused(factor):
    for product in (
        lambda: factor * k1,
        lambda: k1 * factor,
        lambda: Scaled(k1, factor),
        lambda: np.float64(factor) * k1,
    ):
        with pytest.raises(ValueError, match=r"factor=.*finite a > 0. A negative a turns positive eigenvalues"):
            product()


@pytest.mark.parametrize("constant", [-1, -1e-300, np.nan, np.inf])
def test_constants_that_are_refused(constant):
    with pytest.raises(ValueError, match=r"constant=.*finite c ≥ 0"):
        k1 + constant


@pytest.mark.parametrize("exponent", [0, -1, 0.5, 2.0, "2", True, None])
def test_exponents_that_are_refused(exponent):
    with pytest.raises(ValueError, match=r"exponent=.*integer of at least 1"):
        k1**exponent


def test_differences_are_refused():
    for difference in (lambda: k1 - k2, lambda: k1 - 1, lambda: 1 - k1):
        with pytest.raises(TypeError, match=r"difference of kernels.*negative eigenvalues"):
            difference()
    with pytest.raises(TypeError, match="-k is not a kernel"):
        _ = -k1


@pytest.mark.parametrize("other", ["a", None, [1.0], np.eye(2), 1j])
def test_what_does_not_combine(other):
    for combine in (lambda: k1 + other, lambda: k1 * other, lambda: other + k1, lambda: other * k1):
        with pytest.raises(TypeError):
            combine()
    with pytest.raises(TypeError, match="must be a kernel object"):
        Sum(k1, other)


def test_precomputed_does_not_combine():
    combinations = [
        lambda: Precomputed() + k1,
        lambda: 2 * Precomputed(),
        lambda: k1 * Precomputed(),
        lambda: Precomputed() ** 2,
        lambda: Precomputed().exp(),
        lambda: Precomputed().normalised(),
        lambda: Precomputed().of(square),
        lambda: Precomputed() + 1,
    ]
    for combine in combinations:
        with pytest.raises(TypeError, match="combine the matrices before fitting"):
            combine()


def test_strings_and_vectors_do_not_combine():
    with pytest.raises(TypeError, match=r"Gaussian\(\) compares vectors, Spectrum\(\) compares sequences"):
        Gaussian() + Spectrum()
    assert (Spectrum() + 2 * Spectrum(1)).accepts == "sequences"
    assert Gaussian().of(length, accepts="sequences").accepts == "sequences"
    with pytest.raises(ValueError, match="accepts='gram'"):
        Gaussian().of(length, accepts="gram")
    with pytest.raises(TypeError, match="feature_map=3"):
        Gaussian().of(3)
    with pytest.raises(TypeError, match="function=None"):
        Gaussian().scaled_by(None)


def test_functions_of_samples_are_checked():
    for bad in (lambda A: np.ones(3), lambda A: np.full(len(A), np.nan), lambda A: A, lambda A: ["x"] * len(A)):
        with pytest.raises(ValueError, match=r"one finite number per sample: an array of shape \(12,\)"):
            k1.scaled_by(bad)(X)
    with pytest.raises(ValueError, match=r"returned 3 rows for 12 samples"):
        k1.of(lambda A: A[:3])(X)

    def spoil(A):
        A[0] = 0.0

    for kernel in (k1.scaled_by(spoil), k1.of(spoil)):
        with pytest.raises(ValueError, match="read-only"):
            kernel(X)


def test_mergeable():
    assert (2 * k1 + k2).mergeable
    assert not (2 * k1 + FromFunction(lambda a, b: a @ b.T)).mergeable
    assert not (FromFunction(lambda a, b: a @ b.T) ** 2).normalised().mergeable


def test_text_reads_like_the_expression():
    for text in (
        "2 * Gaussian(sigma=1) + Linear() ** 2",
        "(Linear() + 1) ** 3",
        "0.1 * (Linear() + Gaussian()) * Laplacian(gamma=2)",
        "(2 * Linear()).exp()",
        "(Linear() ** 2).normalised()",
        "(Linear() ** 2) ** 2",
    ):
        kernel = eval(text)
        assert repr(kernel) == text
        assert str(clone(kernel)) == text
    assert repr(np.float64(2.5) * Linear() + np.int64(1)) == "2.5 * Linear() + 1"
    assert repr(Gaussian().scaled_by(length)) == "Gaussian().scaled_by(length)"
    assert repr(Gaussian().of(square)) == "Gaussian().of(square)"


def test_nested_parameters():
    kernel = 2 * Gaussian() + Linear() ** 2
    assert kernel.get_params()["left__kernel__gamma"] == "scale"
    kernel.set_params(left__kernel__gamma=0.3, left__factor=5.0, right__exponent=3)
    assert repr(kernel) == "5.0 * Gaussian(gamma=0.3) + Linear() ** 3"
    np.testing.assert_allclose(kernel(X, Z), 5 * Gaussian(gamma=0.3)(X, Z) + (X @ Z.T) ** 3, rtol=1e-12)
    copy = clone(kernel)
    copy.set_params(left__kernel__gamma=9.0)
    assert kernel.left.kernel.gamma == 0.3
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(X), kernel(X))
    with pytest.raises(ValueError, match="Invalid parameter"):
        kernel.set_params(left__sigma=1.0)


def test_parameters_set_later_are_checked_when_used():
    with pytest.raises(ValueError, match="factor=-1"):
        (2 * k1).set_params(factor=-1).bind(X)
    with pytest.raises(ValueError, match="factor=-1"):
        (2 * k1).set_params(factor=-1)(X)
    with pytest.raises(TypeError, match="compares"):
        (k1 + k2).set_params(right=Spectrum()).bind(X)


def test_binding_reaches_every_part():
    kernel = 2 * Gaussian() + (Polynomial() * Laplacian("median") + 1).normalised()
    bound = kernel.bind(X)
    assert bound.bound
    assert not kernel.bound
    assert bound.left.kernel.gamma == Gaussian().bind(X).gamma
    assert bound.right.kernel.kernel.right.gamma == Laplacian("median").bind(X).gamma
    assert kernel.left.kernel.gamma == "scale"
    weight = np.arange(1.0, 13.0)
    assert kernel.bind(X, weight).left.kernel.gamma == Gaussian().bind(X, weight).gamma
    fixed = 2 * k1 + k2
    assert fixed.bind(X) is fixed


def test_a_pulled_back_kernel_binds_to_its_features():
    bound = Gaussian().of(square).bind(X)
    assert bound.kernel.gamma == Gaussian().bind(square(X)).gamma


def test_composites_make_blocks_only():
    shapes = []

    def watched(A, B):
        shapes.append((len(A), len(B)))
        return A @ B.T

    kernel = 2 * FromFunction(watched) ** 2 + k1
    kernel(X[:5], Z[:2])
    assert shapes == [(5, 2)]


def test_the_classes_can_be_used_directly():
    assert isinstance(2 * k1, Scaled)
    assert isinstance(k1 + 1, Shifted)
    assert isinstance(k1**2, Power)
    assert isinstance(k1.exp(), Exponential)
    assert k1 + 0 is k1
